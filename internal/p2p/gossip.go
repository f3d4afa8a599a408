package p2p

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// Sizes of pubsub's own queues. With the defaults a burst of 1,000 messages
// loses a quarter and more, silently (protocol.md).
const (
	gossipQueue   = 4096 // messages to one peer, and messages to be checked
	maxTopics     = 16   // subscriptions that a peer may announce in one message
	clearValidity = 2 * time.Minute
	minValidity   = 10 * time.Second
	sequenceBits  = 32 // of a sequence count envelopes; those above are the incarnation
)

// gossip is the domain's topic: what this site says there, and the check of
// what others say.
type gossip struct {
	m     *Mesh
	topic *pubsub.Topic
	sub   *pubsub.Subscription
	peers *pubsub.TopicEventHandler

	sent    atomic.Uint64 // envelopes of this incarnation
	waiting atomic.Int64  // messages received and not handled
	bytes   atomic.Int64  // bytes of them

	mu      sync.Mutex
	on      map[peer.ID]bool // peers known to be on the topic
	replays *protocol.ReplayWindow
	now     time.Time // never decreases
	rates   *rates
}

// newGossip subscribes to the domain's topic.
func newGossip(ctx context.Context, m *Mesh) (*gossip, error) {
	name := protocol.Topic(m.cfg.Domain)
	g := &gossip{
		m: m, on: make(map[peer.ID]bool), replays: protocol.NewReplayWindow(m.cfg.Limits.Submitters),
		rates: newRates(m.cfg.Limits.SubmitterRate, m.cfg.Limits.SubmitterBurst, m.cfg.Limits.Submitters),
	}
	score, thresholds := scores(name)
	ps, err := pubsub.NewGossipSub(ctx, m.host,
		pubsub.WithMessageSignaturePolicy(pubsub.StrictNoSign), pubsub.WithNoAuthor(),
		pubsub.WithMessageIdFn(messageID),
		pubsub.WithGossipSubParams(meshShape(m.cfg.Preset)), pubsub.WithFloodPublish(m.cfg.Preset != PresetWAN),
		pubsub.WithPeerScore(score, thresholds),
		pubsub.WithPeerOutboundQueueSize(gossipQueue), pubsub.WithValidateQueueSize(gossipQueue),
		pubsub.WithSubscriptionFilter(pubsub.WrapLimitSubscriptionFilter(pubsub.NewAllowlistSubscriptionFilter(name), maxTopics)),
		pubsub.WithPeerFilter(func(p peer.ID, _ string) bool { return m.Allowed(p) }),
		pubsub.WithBlacklist(strangers{m}),
		pubsub.WithRawTracer(dropTracer{g: g}),
		pubsub.WithLogger(slog.New(slog.DiscardHandler)),
		pubsub.WithDefaultValidator(g.check, pubsub.WithValidatorInline(true)))
	if err != nil {
		return nil, fmt.Errorf("start gossip: %w", err)
	}
	if g.topic, err = ps.Join(name); err != nil {
		return nil, fmt.Errorf("join topic: %w", err)
	}
	if g.sub, err = g.topic.Subscribe(pubsub.WithBufferSize(m.cfg.Limits.GossipMessages)); err != nil {
		return nil, fmt.Errorf("subscribe to topic: %w", err)
	}
	if g.peers, err = g.topic.EventHandler(); err != nil {
		return nil, fmt.Errorf("watch topic: %w", err)
	}
	return g, nil
}

// follow keeps count of who is on the topic.
func (g *gossip) follow(ctx context.Context) {
	for {
		event, err := g.peers.NextPeerEvent(ctx)
		if err != nil {
			return
		}
		g.mu.Lock()
		if event.Type == pubsub.PeerJoin {
			g.on[event.Peer] = true
		} else {
			delete(g.on, event.Peer)
		}
		g.mu.Unlock()
	}
}

// reaches reports whether gossip goes to the peer directly.
func (g *gossip) reaches(id peer.ID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.on[id]
}

// close leaves the topic.
func (g *gossip) close() {
	g.peers.Cancel()
	g.sub.Cancel()
}

// messageID makes the same envelope the same message, whoever brings it.
func messageID(m *pb.Message) string {
	sum := sha256.Sum256(m.GetData())
	return string(sum[:])
}

// meshShape is gossipsub's degree and pace (protocol.md, "Hardening").
func meshShape(p Preset) pubsub.GossipSubParams {
	shape := pubsub.DefaultGossipSubParams()
	if p != PresetWAN {
		shape.D, shape.Dlo, shape.Dhi, shape.Dout, shape.Dscore = 4, 3, 5, 1, 3
	}
	if p == PresetTest {
		shape.HeartbeatInterval = 100 * time.Millisecond
	}
	return shape
}

// scores is how peers are rated by what they pass on (protocol.md, "Hardening").
func scores(topic string) (*pubsub.PeerScoreParams, *pubsub.PeerScoreThresholds) {
	slow := pubsub.ScoreParameterDecay(10 * time.Minute)
	params := &pubsub.PeerScoreParams{
		Topics: map[string]*pubsub.TopicScoreParams{topic: {
			TopicWeight:      1,
			TimeInMeshWeight: 0.01, TimeInMeshQuantum: time.Second, TimeInMeshCap: 300,
			FirstMessageDeliveriesWeight: 0.5, FirstMessageDeliveriesCap: 50,
			FirstMessageDeliveriesDecay:    pubsub.ScoreParameterDecay(time.Minute),
			InvalidMessageDeliveriesWeight: -10, InvalidMessageDeliveriesDecay: slow,
		}},
		AppSpecificScore:       func(peer.ID) float64 { return 0 },
		BehaviourPenaltyWeight: -5, BehaviourPenaltyThreshold: 6, BehaviourPenaltyDecay: slow,
		DecayInterval: pubsub.DefaultDecayInterval, DecayToZero: pubsub.DefaultDecayToZero,
		RetainScore: 10 * time.Minute,
	}
	return params, &pubsub.PeerScoreThresholds{
		GossipThreshold: -50, PublishThreshold: -100, GraylistThreshold: -200,
		OpportunisticGraftThreshold: 1,
	}
}

// Broadcast says the message, an announcement or a clear, to the whole domain.
// This site's own handler gets it, too, and so do, on their streams, the admitted
// peers that are not yet on the topic. Nobody confirms it. It fails when the
// message cannot be encoded, and when the own handler is far behind.
func (m *Mesh) Broadcast(message protocol.Message) error {
	raw, err := m.gossip.seal(message)
	if err != nil {
		return fmt.Errorf("broadcast %s: %w", nameOf(message), err)
	}
	// Without waiting for peers Publish only hands the message over.
	if err := m.gossip.topic.Publish(context.Background(), raw); err != nil {
		return fmt.Errorf("broadcast %s: %w", nameOf(message), err)
	}
	m.counts.inc(CountOut, nameOf(message))
	for _, r := range m.all() {
		if _, present := r.admitted(); present && !m.gossip.reaches(r.id) {
			_ = m.Send(r.site, message) // what is lost is counted
		}
	}
	return nil
}

// seal puts the message into a signed envelope. Sequences grow over restarts,
// because the incarnation stands above the count.
func (g *gossip) seal(message protocol.Message) ([]byte, error) {
	if _, ok := speaker(message); !ok {
		return nil, fmt.Errorf("%w: not a message for gossip", protocol.ErrUnknownMessage)
	}
	payload, err := protocol.Encode(message)
	if err != nil {
		return nil, err
	}
	e := protocol.Envelope{
		Version: protocol.Version, Domain: g.m.cfg.Domain, Signer: g.m.self,
		Sequence: g.m.cfg.Incarnation<<sequenceBits | g.sent.Add(1),
		IssuedMS: g.m.cfg.Now().UnixMilli(), Validity: validity(message), Payload: payload,
	}
	if err = e.Validate(); err != nil {
		return nil, err
	}
	signature, err := g.m.key.Sign(e.SignedBytes())
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return protocol.EncodeEnvelope(e, signature), nil
}

// speaker is the site in whose name a gossiped message speaks; ok is false for
// messages that do not belong there.
func speaker(message protocol.Message) (site grid.SiteID, ok bool) {
	switch m := message.(type) {
	case protocol.Announce:
		return m.Submitter, true
	case protocol.Reannounce:
		return m.Submitter, true
	case protocol.Clear:
		return m.Submitter, true
	default:
		return "", false
	}
}

// validity is how long the message matters.
func validity(message protocol.Message) time.Duration {
	ttl := clearValidity
	switch m := message.(type) {
	case protocol.Announce:
		ttl = m.TTL
	case protocol.Reannounce:
		ttl = m.TTL
	}
	return min(max(ttl, minValidity), protocol.MaxValidity)
}

// check is the validator: cheap questions first, the signature last. Ignored
// messages cost nobody anything; rejected ones cost the peer that brought them
// its score.
func (g *gossip) check(_ context.Context, from peer.ID, raw *pubsub.Message) pubsub.ValidationResult {
	own := from == g.m.host.ID()
	e, signed, signature, err := protocol.DecodeEnvelope(raw.GetData())
	if err != nil {
		return g.reject(causeOf(err))
	}
	if !own {
		if cause, result := g.checkCheaply(e); result != pubsub.ValidationAccept {
			return g.invalid(cause, result)
		}
		if !verified(e.Signer, signed, signature) {
			return g.reject(causeSignature)
		}
	}
	message, err := protocol.Decode(e.Payload)
	if err != nil {
		return g.reject(causeOf(err))
	}
	if site, ok := speaker(message); !ok || site != e.Signer {
		return g.reject(causeFormat)
	}
	if !own && !g.first(e) {
		return g.invalid(causeReplay, pubsub.ValidationIgnore)
	}
	raw.ValidatorData = said{by: e.Signer, message: message}
	return g.reserve(len(raw.GetData()))
}

// said is a checked message on its way to the handler.
type said struct {
	by      grid.SiteID
	message protocol.Message
}

// checkCheaply asks what needs no cryptography.
func (g *gossip) checkCheaply(e protocol.Envelope) (cause string, result pubsub.ValidationResult) {
	now := g.clock()
	switch {
	case e.Domain != g.m.cfg.Domain:
		return causeDomain, pubsub.ValidationReject
	case e.CheckTime(now) != nil:
		return causeDeadline, pubsub.ValidationIgnore
	case e.Signer == g.m.self: // nobody else says anything new in our name
		return causeReplay, pubsub.ValidationIgnore
	case !g.m.allowsSite(e.Signer):
		return causeStranger, pubsub.ValidationIgnore
	case !g.rates.take(e.Signer, now):
		return causeRate, pubsub.ValidationIgnore
	default:
		return "", pubsub.ValidationAccept
	}
}

// clock is the wall clock, except that it never steps back.
func (g *gossip) clock() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.tick()
}

// tick is clock for who holds g.mu.
func (g *gossip) tick() time.Time {
	if now := g.m.cfg.Now(); now.After(g.now) {
		g.now = now
	}
	return g.now
}

// first reports whether the envelope comes for the first time.
func (g *gossip) first(e protocol.Envelope) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.replays.Admit(e, g.tick()) == nil
}

// verified reports whether the envelope was signed by whom it names. A peer ID
// of an ed25519 key holds the key.
func verified(signer grid.SiteID, signed, signature []byte) bool {
	id, err := peerOf(signer)
	if err != nil {
		return false
	}
	key, err := id.ExtractPublicKey()
	if err != nil {
		return false
	}
	ok, err := key.Verify(signed, signature)
	return ok && err == nil
}

// reserve makes room for a message on its way to the handler.
func (g *gossip) reserve(size int) pubsub.ValidationResult {
	limits := g.m.cfg.Limits
	waiting, bytes := g.waiting.Add(1), g.bytes.Add(int64(size))
	if waiting <= int64(limits.GossipMessages) && bytes <= limits.GossipBytes {
		return pubsub.ValidationAccept
	}
	g.release(size)
	g.m.counts.inc(CountDropped, queueGossip)
	return pubsub.ValidationIgnore
}

func (g *gossip) release(size int) {
	g.waiting.Add(-1)
	g.bytes.Add(-int64(size))
}

func (g *gossip) reject(cause string) pubsub.ValidationResult {
	return g.invalid(cause, pubsub.ValidationReject)
}

func (g *gossip) invalid(cause string, result pubsub.ValidationResult) pubsub.ValidationResult {
	g.m.counts.inc(CountInvalid, cause)
	return result
}

// deliver hands checked messages on, one after the other.
func (g *gossip) deliver(ctx context.Context) {
	for {
		raw, err := g.sub.Next(ctx)
		if err != nil {
			return
		}
		g.release(len(raw.GetData()))
		s, ok := raw.ValidatorData.(said)
		if !ok {
			continue
		}
		if a, ok := s.message.(protocol.Announce); ok && s.by != g.m.self {
			if id, err := peerOf(s.by); err == nil {
				g.m.hint(id, a.Addrs)
			}
		}
		g.m.counts.inc(CountIn, nameOf(s.message))
		g.m.handlers.OnMessage(s.by, s.message)
	}
}
