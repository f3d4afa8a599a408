package gossip

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// account lets all that peers say pass, and remembers what it cost.
type account struct {
	mu     sync.Mutex
	waited map[peer.ID]time.Duration // guarded by mu, as what follows
	done   map[peer.ID]time.Duration
	excess map[peer.ID]int
	shut   bool // nothing more may be read
}

// Wait implements Account.
func (a *account) Wait(_ context.Context, from peer.ID, work time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waited == nil {
		a.waited = make(map[peer.ID]time.Duration)
	}
	a.waited[from] += work
	return !a.shut
}

// Done implements Account.
func (a *account) Done(from peer.ID, work time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.done == nil {
		a.done = make(map[peer.ID]time.Duration)
	}
	a.done[from] += work
}

// Excess implements Account.
func (a *account) Excess(from peer.ID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.excess == nil {
		a.excess = make(map[peer.ID]int)
	}
	a.excess[from]++
}

// All that a peer says in a row is weighed, its own words and gossipsub's.
func TestWhatIsSaidIsWeighed(t *testing.T) {
	ids := []string{"1", "2", "3"}
	for name, c := range map[string]struct {
		rpc  *pubsub.RPC
		want time.Duration
	}{
		"nothing":  {rpc: &pubsub.RPC{}},
		"messages": {&pubsub.RPC{RPC: pb.RPC{Publish: make([]*pb.Message, 2)}}, 2 * workEntry},
		"subscriptions": {
			&pubsub.RPC{RPC: pb.RPC{Subscriptions: make([]*pb.RPC_SubOpts, 3)}}, 3 * workControl,
		},
		"what it has": {
			control(&pb.ControlMessage{Ihave: []*pb.ControlIHave{{MessageIDs: ids}}}),
			4 * workControl,
		},
		"what it wants": {
			control(&pb.ControlMessage{Iwant: []*pb.ControlIWant{{MessageIDs: ids}, {}}}),
			5 * workControl,
		},
		"what it does not want": {
			control(&pb.ControlMessage{
				Idontwant: []*pb.ControlIDontWant{{MessageIDs: ids}},
			}), 4 * workControl,
		},
		"grafts and prunes": {
			control(&pb.ControlMessage{
				Graft: make([]*pb.ControlGraft, 2), Prune: make([]*pb.ControlPrune, 1),
			}), 3 * workControl,
		},
	} {
		a := &account{}
		g := &Topic{cfg: Config{Account: a}}
		if err := g.weigh("p", c.rpc); err != nil {
			t.Error(err)
		}
		if got := a.done["p"]; got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func control(c *pb.ControlMessage) *pubsub.RPC { return &pubsub.RPC{RPC: pb.RPC{Control: c}} }

// What comes on the streams of gossip is paid for.
func TestStreamsOfGossipArePaced(t *testing.T) {
	var heard ear
	var accounts [2]account
	a := newStation(t, func(c *Config) { c.Account = &accounts[0] })
	b := newStation(t, func(c *Config) { c.Account, c.OnMessage = &accounts[1], heard.listen })
	link(t, a.cfg.Host, b.cfg.Host)
	from := a.cfg.Host.ID()
	eventually(t, "they reach each other", func() bool { return a.Reaches(b.cfg.Host.ID()) })
	before := accounts[1].cost(from)
	m := announcement(a.cfg.Self, 1)
	if err := a.Say(m); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is heard", func() bool { return heard.has(a.cfg.Self, m) })
	if got := accounts[1].cost(from) - before; got < workEntry+workRead {
		t.Errorf("a message costs %s, want at least %s", got, workEntry+workRead)
	}
}

// stub is a stream that brings a byte with each read.
type stub struct {
	network.Stream

	err error
}

func (s *stub) Read([]byte) (int, error) { return 1, s.err }
func (s *stub) Conn() network.Conn       { return stubConn{} }

type stubConn struct{ network.Conn }

func (stubConn) RemotePeer() peer.ID { return "p" }

// When nothing more may be read a stream ends.
func TestAStreamThatMayNotBeReadEnds(t *testing.T) {
	a, s := &account{}, &stub{}
	paced := &pacedStream{s, pacedHost{ctx: t.Context(), account: a}}
	if n, err := paced.Read(nil); n != 1 || err != nil || a.waited["p"] != workRead {
		t.Errorf("read %d, %v, for %s", n, err, a.waited["p"])
	}
	s.err = io.EOF
	if n, err := paced.Read(nil); n != 1 || !errors.Is(err, io.EOF) {
		t.Errorf("read %d, %v; want the stream's own end", n, err)
	}
	s.err, a.shut = nil, true
	if _, err := paced.Read(nil); !errors.Is(err, errEnded) {
		t.Errorf("%v, want the end", err)
	}
}

// cost is all that a peer has cost.
func (a *account) cost(from peer.ID) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.waited[from] + a.done[from]
}

// What a submitter says beyond its rate is held against it where it brings it itself, and not
// against those that pass it on.
func TestExcessIsHeldAgainstTheSubmitterAlone(t *testing.T) {
	signer, other := newForge(t), newForge(t)
	a := &account{}
	n := newStation(t, func(c *Config) {
		c.Account, c.Limits.SubmitterRate, c.Limits.SubmitterBurst = a, 1e-6, 1
	})
	for i, c := range []struct {
		from   forge
		want   pubsub.ValidationResult
		excess int
	}{
		{signer, pubsub.ValidationAccept, 0},
		{other, pubsub.ValidationIgnore, 0},
		{signer, pubsub.ValidationIgnore, 1},
		{signer, pubsub.ValidationIgnore, 2},
	} {
		e := signer.envelope(announcement(signer.site, i))
		e.Sequence += uint64(i)
		got := n.check(t.Context(), c.from.peer(),
			on(protocol.Topic("lab"), signer.sign(e), c.from.peer()))
		if got != c.want || a.excess[signer.peer()] != c.excess || len(a.excess) > 1 {
			t.Errorf("message %d: verdict %d, want %d; excess %v", i, got, c.want, a.excess)
		}
	}
}

// An honest site says no more than others hear, but hears itself.
func TestWhatNobodyWouldHearIsNotSent(t *testing.T) {
	var own, others ear
	const burst, said = 5, 9
	slow := func(e *ear) func(*Config) {
		return func(c *Config) {
			c.OnMessage, c.Limits.SubmitterRate, c.Limits.SubmitterBurst = e.listen, 1e-6, burst
		}
	}
	a, b := newStation(t, slow(&own)), newStation(t, slow(&others))
	link(t, a.cfg.Host, b.cfg.Host)
	eventually(t, "they reach each other", func() bool { return a.Reaches(b.cfg.Host.ID()) })
	for i := range said {
		if err := a.Say(announcement(a.cfg.Self, i)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range said {
		m := announcement(a.cfg.Self, i)
		eventually(t, "it hears itself", func() bool { return own.has(a.cfg.Self, m) })
		if i < burst {
			eventually(t, "the other hears it", func() bool { return others.has(a.cfg.Self, m) })
		}
	}
	if got := a.cfg.Counts.Get(wire.CountDropped, queueOwn); got != said-burst {
		t.Errorf("%d are counted as not sent, want %d", got, said-burst)
	}
	if got := b.cfg.Counts.Get(wire.CountInvalid, causeRate); got != 0 {
		t.Errorf("%d came beyond the rate", got)
	}
}
