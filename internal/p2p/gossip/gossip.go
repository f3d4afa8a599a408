package gossip

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
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	"golang.org/x/time/rate"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
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

// Config sets up a Topic. All fields but Wide, Quick and Unscored are
// required.
type Config struct {
	Host        host.Host
	Key         crypto.PrivKey // signs what this site says
	Self        grid.SiteID
	Domain      grid.DomainID
	Incarnation uint64           // number of this start of the agent
	Now         func() time.Time // the wall clock
	Limits      Limits
	Counts      *wire.Counters

	Wide     bool // gossipsub's own degree, no flood publishing: far sites, slow links
	Quick    bool // for tests: ten heartbeats a second
	Unscored bool // for tests: no peer scores, to see what these are good for

	// Allowed reports whether a site may be a member now.
	Allowed func(grid.SiteID) bool
	// Account bounds what peers may cost here.
	Account Account
	// LateOwn reports whether an expired envelope that a peer signed itself is forgiven.
	LateOwn func(peer.ID) bool
	// OnMessage brings a checked message and the site that said it, which may be this
	// one; one after the other.
	OnMessage func(by grid.SiteID, m protocol.Message)
}

// Limits bounds what others can make this site hold. All are above 0.
type Limits struct {
	Messages       int     // waiting for OnMessage
	Bytes          int64   // of them
	SubmitterRate  float64 // messages of one, per second, in the long run; large ones count more
	SubmitterBurst int     // messages of one in a row
	Submitters     int     // whose rate and replays are watched
}

// Topic is the domain's topic: what this site says there, and the check of what others
// say. It is safe for concurrent use.
type Topic struct {
	cfg    Config
	own    channel    // what submitters say
	behalf channel    // what is said on behalf of owners
	hand   sync.Mutex // held while OnMessage runs

	quota   *rate.Limiter // of what this site says, as others count it
	sent    atomic.Uint64 // envelopes of this incarnation
	waiting atomic.Int64  // messages received and not handled
	bytes   atomic.Int64  // bytes of them

	mu      sync.Mutex
	streams map[peer.ID]bool // to whom gossipsub has a stream; guarded by mu, as what follows
	replays *protocol.ReplayWindow
	now     time.Time // never decreases
	rates   *rates
}

// Join subscribes to the domain's topic. Nothing is handed on before Run. The topic
// ends with Close, or when ctx does.
func Join(ctx context.Context, cfg Config) (*Topic, error) {
	g := &Topic{
		cfg: cfg, streams: make(map[peer.ID]bool),
		quota:   rate.NewLimiter(rate.Limit(cfg.Limits.SubmitterRate), cfg.Limits.SubmitterBurst),
		replays: protocol.NewReplayWindow(cfg.Limits.Submitters),
		rates:   newRates(cfg.Limits.SubmitterRate, cfg.Limits.SubmitterBurst, cfg.Limits.Submitters),
	}
	names := []string{protocol.Topic(cfg.Domain), protocol.BehalfTopic(cfg.Domain)}
	options := g.options(names)
	if !cfg.Unscored {
		options = append(options, pubsub.WithPeerScore(scores(names)))
	}
	paced := pacedHost{Host: cfg.Host, ctx: ctx, account: cfg.Account}
	ps, err := pubsub.NewGossipSub(ctx, paced, options...)
	if err != nil {
		return nil, fmt.Errorf("start gossip: %w", err)
	}
	for i, c := range []*channel{&g.own, &g.behalf} {
		if err := c.join(ps, names[i], cfg.Limits.Messages); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// Run hands messages on and counts the peers on the topic, until ctx ends or Close
// is called.
func (g *Topic) Run(ctx context.Context) {
	var following sync.WaitGroup
	for _, c := range []*channel{&g.own, &g.behalf} {
		following.Go(func() { c.follow(ctx) })
		following.Go(func() { g.deliver(ctx, c.sub) })
	}
	following.Wait()
}

// options set up gossipsub, except for the scores.
func (g *Topic) options(topics []string) []pubsub.Option {
	return []pubsub.Option{
		pubsub.WithMessageSignaturePolicy(pubsub.StrictNoSign), pubsub.WithNoAuthor(),
		pubsub.WithMessageIdFn(messageID),
		pubsub.WithGossipSubParams(meshShape(g.cfg)), pubsub.WithFloodPublish(!g.cfg.Wide),
		pubsub.WithPeerOutboundQueueSize(gossipQueue), pubsub.WithValidateQueueSize(gossipQueue),
		pubsub.WithSubscriptionFilter(pubsub.WrapLimitSubscriptionFilter(
			pubsub.NewAllowlistSubscriptionFilter(topics...), maxTopics)),
		pubsub.WithPeerFilter(func(p peer.ID, _ string) bool { return g.allows(p) }),
		pubsub.WithBlacklist(strangers{g}),
		pubsub.WithRawTracer(tracer{g: g}),
		pubsub.WithLogger(slog.New(slog.DiscardHandler)),
		pubsub.WithAppSpecificRpcInspector(g.weigh),
		pubsub.WithDefaultValidator(g.check, pubsub.WithValidatorInline(true)),
	}
}

// Reaches reports whether gossip goes to the peer directly.
func (g *Topic) Reaches(id peer.ID) bool { return g.streamTo(id) && g.own.holds(id) }

// Hears reports whether the message, when it is said, goes to the peer directly: what is said on
// behalf of an owner does not go to one that knows no standbys.
func (g *Topic) Hears(id peer.ID, message protocol.Message) bool {
	return g.streamTo(id) && g.channelOf(message).holds(id)
}

// streamTo reports whether what is said goes to a peer that is on the topic. A peer may say that
// it is before gossipsub has noticed the connection, and until then what is said to it is lost.
func (g *Topic) streamTo(id peer.ID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.streams[id]
}

func (g *Topic) noteStream(id peer.ID, open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if open {
		g.streams[id] = true
	} else {
		delete(g.streams, id)
	}
}

// channelOf is the topic on which a message is said.
func (g *Topic) channelOf(message protocol.Message) *channel {
	if _, is := message.(protocol.OnBehalf); is {
		return &g.behalf
	}
	return &g.own
}

// Close leaves the topic.
func (g *Topic) Close() {
	g.own.close()
	g.behalf.close()
}

// messageID makes the same envelope the same message, no matter which peer brings it.
func messageID(m *pb.Message) string {
	sum := sha256.Sum256(m.GetData())
	return string(sum[:])
}

// meshShape is gossipsub's degree and pace (protocol.md, "Hardening").
func meshShape(c Config) pubsub.GossipSubParams {
	shape := pubsub.DefaultGossipSubParams()
	if !c.Wide {
		shape.D, shape.Dlo, shape.Dhi, shape.Dout, shape.Dscore = 4, 3, 5, 1, 3
	}
	if c.Quick {
		shape.HeartbeatInterval = 100 * time.Millisecond
	}
	return shape
}

// scores rate peers by what they pass on (protocol.md, "Hardening").
func scores(topics []string) (*pubsub.PeerScoreParams, *pubsub.PeerScoreThresholds) {
	slow := pubsub.ScoreParameterDecay(10 * time.Minute)
	params := &pubsub.PeerScoreParams{
		Topics:                 make(map[string]*pubsub.TopicScoreParams, len(topics)),
		AppSpecificScore:       func(peer.ID) float64 { return 0 },
		BehaviourPenaltyWeight: -5, BehaviourPenaltyThreshold: 6, BehaviourPenaltyDecay: slow,
		DecayInterval: pubsub.DefaultDecayInterval, DecayToZero: pubsub.DefaultDecayToZero,
		RetainScore: 10 * time.Minute,
	}
	for _, topic := range topics {
		params.Topics[topic] = &pubsub.TopicScoreParams{
			TopicWeight:      1,
			TimeInMeshWeight: 0.01, TimeInMeshQuantum: time.Second, TimeInMeshCap: 300,
			FirstMessageDeliveriesWeight: 0.5, FirstMessageDeliveriesCap: 50,
			FirstMessageDeliveriesDecay:    pubsub.ScoreParameterDecay(time.Minute),
			InvalidMessageDeliveriesWeight: -10, InvalidMessageDeliveriesDecay: slow,
		}
	}
	return params, &pubsub.PeerScoreThresholds{
		GossipThreshold: -50, PublishThreshold: -100, GraylistThreshold: -200,
		OpportunisticGraftThreshold: 1,
	}
}

// Say says the message, an announcement or a clear, to the whole topic, this site
// included. Nobody confirms it. It fails when the message cannot be encoded, and when
// OnMessage is far behind. What is more than others hear from one submitter is not sent to them.
func (g *Topic) Say(message protocol.Message) error {
	raw, err := g.seal(message)
	if err != nil {
		return err
	}
	// Without waiting for peers Publish only hands the message over.
	local := !g.quota.AllowN(g.clock(), g.rates.tokens(len(raw)))
	if local {
		g.cfg.Counts.Inc(wire.CountDropped, queueOwn)
	}
	return g.channelOf(message).topic.Publish(
		context.Background(), raw, pubsub.WithLocalPublication(local))
}

// seal puts the message into a signed envelope. Sequences grow over restarts,
// because the incarnation stands above the count.
func (g *Topic) seal(message protocol.Message) ([]byte, error) {
	if _, ok := speaker(message); !ok {
		return nil, fmt.Errorf("%w: not a message for gossip", protocol.ErrUnknownMessage)
	}
	payload, err := protocol.Encode(message)
	if err != nil {
		return nil, err
	}
	e := protocol.Envelope{
		Version: protocol.Version, Domain: g.cfg.Domain, Signer: g.cfg.Self,
		Sequence: g.cfg.Incarnation<<sequenceBits | g.sent.Add(1),
		IssuedMS: g.cfg.Now().UnixMilli(), Validity: validity(message), Payload: payload,
	}
	if err = e.Validate(); err != nil {
		return nil, err
	}
	signature, err := g.cfg.Key.Sign(e.SignedBytes())
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return protocol.EncodeEnvelope(e, signature), nil
}

// speaker is the site in whose name a gossiped message speaks; ok is false for
// messages that do not belong there. Who may speak on behalf of an owner is not asked here.
func speaker(message protocol.Message) (site grid.SiteID, ok bool) {
	switch m := message.(type) {
	case protocol.OnBehalf:
		site, ok = speaker(m.Message)
		return site, ok && site == m.Owner
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

// validity is the time for which the message matters.
func validity(message protocol.Message) time.Duration {
	ttl := clearValidity
	if on, is := message.(protocol.OnBehalf); is {
		message = on.Message
	}
	switch m := message.(type) {
	case protocol.Announce:
		ttl = m.TTL
	case protocol.Reannounce:
		ttl = m.TTL
	}
	return min(max(ttl, minValidity), protocol.MaxValidity)
}

// deliver hands checked messages on, one after the other.
func (g *Topic) deliver(ctx context.Context, sub *pubsub.Subscription) {
	for {
		raw, err := sub.Next(ctx)
		if err != nil {
			return
		}
		g.release(len(raw.GetData()))
		s, ok := raw.ValidatorData.(said)
		if !ok {
			continue
		}
		g.cfg.Counts.Inc(wire.CountIn, wire.NameOf(s.message))
		g.hand.Lock()
		g.cfg.OnMessage(s.by, s.message)
		g.hand.Unlock()
	}
}

// strangers keeps peers that are not members, guests included, out of gossip.
type strangers struct{ g *Topic }

// Add does nothing: Allowed decides.
func (strangers) Add(peer.ID) bool { return false }

// Contains reports whether the peer is not a member. Messages have no author.
func (s strangers) Contains(p peer.ID) bool { return p != "" && !s.g.allows(p) }

func (g *Topic) allows(p peer.ID) bool { return g.cfg.Allowed(wire.SiteOf(p)) }
