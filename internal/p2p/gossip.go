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
	options := g.options(name)
	if !m.cfg.unscored {
		options = append(options, pubsub.WithPeerScore(scores(name)))
	}
	ps, err := pubsub.NewGossipSub(ctx, m.host, options...)
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

// options is how gossipsub is set up, except for the scores.
func (g *gossip) options(topic string) []pubsub.Option {
	m := g.m
	return []pubsub.Option{
		pubsub.WithMessageSignaturePolicy(pubsub.StrictNoSign), pubsub.WithNoAuthor(),
		pubsub.WithMessageIdFn(messageID),
		pubsub.WithGossipSubParams(meshShape(m.cfg.Preset)), pubsub.WithFloodPublish(m.cfg.Preset != PresetWAN),
		pubsub.WithPeerOutboundQueueSize(gossipQueue), pubsub.WithValidateQueueSize(gossipQueue),
		pubsub.WithSubscriptionFilter(pubsub.WrapLimitSubscriptionFilter(pubsub.NewAllowlistSubscriptionFilter(topic), maxTopics)),
		pubsub.WithPeerFilter(func(p peer.ID, _ string) bool { return m.Allowed(p) }),
		pubsub.WithBlacklist(strangers{m}),
		pubsub.WithRawTracer(dropTracer{g: g}),
		pubsub.WithLogger(slog.New(slog.DiscardHandler)),
		pubsub.WithDefaultValidator(g.check, pubsub.WithValidatorInline(true)),
	}
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
