package gossip

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/libp2p/go-libp2p"
	pubsub "github.com/libp2p/go-libp2p-pubsub"
	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	lp "github.com/libp2p/go-libp2p/core/protocol"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// ear notes what a station hears.
type ear struct {
	mu    sync.Mutex
	heard []string
}

func (e *ear) listen(by grid.SiteID, m protocol.Message) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.heard = append(e.heard, words(by, m))
}

func words(by grid.SiteID, m protocol.Message) string { return fmt.Sprintf("%s: %+v", by, m) }

func (e *ear) has(by grid.SiteID, m protocol.Message) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Contains(e.heard, words(by, m))
}

// link connects one host to another one.
func link(t *testing.T, from, to host.Host) {
	t.Helper()
	if err := to.Network().Listen(ma.StringCast("/ip4/127.0.0.1/tcp/0")); err != nil {
		t.Fatal(err)
	}
	if err := from.Connect(t.Context(), peer.AddrInfo{ID: to.ID(), Addrs: to.Addrs()}); err != nil {
		t.Fatal(err)
	}
}

// Two that are connected know that they reach each other, as long as both are on the topic, and
// what one says both hear in full.
func TestTwoStations(t *testing.T) {
	var ears [2]ear
	var stations [2]*Topic
	for i := range stations {
		stations[i] = newStation(t, func(c *Config) { c.OnMessage = ears[i].listen })
	}
	a, b := stations[0], stations[1]
	reach := func() [2]bool {
		return [2]bool{a.Reaches(b.cfg.Host.ID()), b.Reaches(a.cfg.Host.ID())}
	}
	if reach() != [2]bool{} {
		t.Error("they reach each other without a connection")
	}
	link(t, a.cfg.Host, b.cfg.Host)
	eventually(t, "they reach each other", func() bool { return reach() == [2]bool{true, true} })
	if a.Reaches(a.cfg.Host.ID()) || a.Reaches("stranger") {
		t.Error("others are reached")
	}
	said := []protocol.Message{
		announcement(a.cfg.Self, 1), announcement(a.cfg.Self, 2),
		protocol.Clear{Job: announcement("", 1).Job, Submitter: a.cfg.Self, Kind: protocol.ClearEnded},
	}
	for _, m := range said {
		if err := a.Say(m); err != nil {
			t.Fatal(err)
		}
		for i := range ears {
			heard := func() bool { return ears[i].has(a.cfg.Self, m) }
			eventually(t, fmt.Sprintf("%d hears %T", i, m), heard)
		}
	}
	for i, s := range stations {
		if len(ears[i].heard) != len(said) || s.cfg.Counts.Get(wire.CountIn, wire.NameOf(said[0])) != 2 ||
			s.cfg.Counts.Get(wire.CountIn, wire.NameOf(said[2])) != 1 {
			t.Errorf("%d hears %q", i, ears[i].heard)
		}
	}
	if err := a.cfg.Host.Network().ClosePeer(b.cfg.Host.ID()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "none reaches the other", func() bool { return reach() == [2]bool{} })
	if err := a.cfg.Host.Connect(t.Context(), peer.AddrInfo{
		ID: b.cfg.Host.ID(), Addrs: b.cfg.Host.Addrs(),
	}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "they reach each other again", func() bool { return reach() == [2]bool{true, true} })
	a.Close()
	eventually(t, "the one has left the topic", func() bool { return !reach()[1] })
}

// liar is on the topic of a station, and says what it likes there.
type liar struct {
	tracer // for what it need not look at
	topic  *pubsub.Topic
	mu     sync.Mutex
	in     bool // the mesh of the station
	pruned bool
}

func (*liar) OnNewOutboundStream(peer.ID, lp.ID)    {}
func (*liar) OnClosedOutboundStream(peer.ID)        {}
func (*liar) DropRPC(*pubsub.RPC, peer.ID)          {}
func (*liar) RejectMessage(*pubsub.Message, string) {}
func (*liar) UndeliverableMessage(*pubsub.Message)  {}

func (l *liar) Graft(peer.ID, string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.in = true
}

func (l *liar) Prune(peer.ID, string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pruned = true
}

func (l *liar) meshed() (in, pruned bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.in, l.pruned
}

func newLiar(t *testing.T, station *Topic) *liar {
	t.Helper()
	h, err := libp2p.New(libp2p.NoListenAddrs, libp2p.DisableMetrics())
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	l := &liar{}
	shape := pubsub.DefaultGossipSubParams()
	shape.HeartbeatInterval /= 10
	ps, err := pubsub.NewGossipSub(ctx, h, pubsub.WithMessageSignaturePolicy(pubsub.StrictNoSign),
		pubsub.WithNoAuthor(), pubsub.WithMessageIdFn(messageID), pubsub.WithRawTracer(l),
		pubsub.WithGossipSubParams(shape), pubsub.WithFloodPublish(true))
	if err != nil {
		t.Fatal(err)
	}
	if l.topic, err = ps.Join(protocol.Topic("lab")); err != nil {
		t.Fatal(err)
	}
	sub, err := l.topic.Subscribe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		sub.Cancel()
		end()
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	link(t, h, station.cfg.Host)
	eventually(t, "both are on the topic, and in its mesh", func() bool {
		in, _ := l.meshed()
		return in && station.Reaches(h.ID())
	})
	return l
}

// Who says what cannot be read loses its place in the mesh, where peers are scored.
func TestLiarsAreLeftOut(t *testing.T) {
	n := newStation(t, func(*Config) {})
	l := newLiar(t, n)
	i := 0
	eventually(t, "the liar is pruned", func() bool {
		i++
		if err := l.topic.Publish(t.Context(), fmt.Appendf(nil, "rubbish %d", i)); err != nil {
			t.Fatal(err)
		}
		_, pruned := l.meshed()
		return pruned
	})
	if n.cfg.Counts.Get(wire.CountInvalid, wire.CauseFormat) == 0 {
		t.Error("nothing was found wrong")
	}
	lenient := newStation(t, func(c *Config) { c.Unscored = true })
	l = newLiar(t, lenient)
	const many = 40 // far more than a score would bear
	for i := range uint64(many) {
		if err := l.topic.Publish(t.Context(), fmt.Appendf(nil, "rubbish %d", i)); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it is heard", func() bool {
			return lenient.cfg.Counts.Get(wire.CountInvalid, wire.CauseFormat) == i+1
		})
	}
	if _, pruned := l.meshed(); pruned {
		t.Error("without scores the liar is pruned")
	}
}

// The scores in full. A peer gets up to 3 for five minutes in the mesh and up to 25 for the first
// word of fifty messages; each bad message costs as the square of their number.
func TestScoresInFull(t *testing.T) {
	params, limits := scores([]string{"topic"})
	slow := pubsub.ScoreParameterDecay(10 * time.Minute)
	want := &pubsub.PeerScoreParams{
		Topics: map[string]*pubsub.TopicScoreParams{"topic": {
			TopicWeight: 1, TimeInMeshWeight: 3.0 / 300, TimeInMeshQuantum: time.Second,
			TimeInMeshCap: (5 * time.Minute).Seconds(), FirstMessageDeliveriesWeight: 25.0 / 50,
			FirstMessageDeliveriesDecay: pubsub.ScoreParameterDecay(time.Minute),
			FirstMessageDeliveriesCap:   50, InvalidMessageDeliveriesWeight: -10,
			InvalidMessageDeliveriesDecay: slow,
		}},
		BehaviourPenaltyWeight: -5, BehaviourPenaltyThreshold: 6, BehaviourPenaltyDecay: slow,
		DecayInterval: time.Second, DecayToZero: 0.01, RetainScore: 10 * time.Minute,
	}
	ignore := cmpopts.IgnoreFields(pubsub.PeerScoreParams{}, "AppSpecificScore")
	if diff := cmp.Diff(want, params, ignore, cmpopts.IgnoreUnexported(pubsub.PeerScoreParams{},
		pubsub.TopicScoreParams{})); diff != "" {
		t.Errorf("scores (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&pubsub.PeerScoreThresholds{
		GossipThreshold: -50, PublishThreshold: -100, GraylistThreshold: -200,
		OpportunisticGraftThreshold: 1,
	}, limits, cmpopts.IgnoreUnexported(pubsub.PeerScoreThresholds{})); diff != "" {
		t.Errorf("thresholds (-want +got):\n%s", diff)
	}
	shape := pubsub.DefaultGossipSubParams()
	shape.D, shape.Dlo, shape.Dhi, shape.Dout, shape.Dscore = 4, 3, 5, 1, 3
	if diff := cmp.Diff(shape, meshShape(Config{})); diff != "" {
		t.Errorf("the mesh (-want +got):\n%s", diff)
	}
}

// What is sent faster than a peer takes it is counted by messages.
func TestWhatPeersDoNotTake(t *testing.T) {
	n := newStation(t, func(*Config) {})
	for _, messages := range []int{0, 2, 1} {
		rpc := &pubsub.RPC{RPC: pb.RPC{Publish: make([]*pb.Message, messages)}}
		tracer{g: n}.DropRPC(rpc, "peer")
	}
	if got := n.cfg.Counts.Get(wire.CountDropped, queueGossipOut); got != 3 {
		t.Errorf("%d are counted, want 3", got)
	}
}
