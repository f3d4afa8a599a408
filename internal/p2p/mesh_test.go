package p2p

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

func TestOneBootstrapAddressIsEnoughForAFullMesh(t *testing.T) {
	nodes := cluster(t, 5, func(i int, cfg *Config) {
		cfg.Name = fmt.Sprintf("site-%d", i)
		cfg.Capability = func() grid.Capability { return grid.Capability{CoreMFLOPS: int64(100 + i)} }
	})
	for i, n := range nodes {
		facts, ok := nodes[(i+1)%5].facts(n.Self())
		want := int64(100 + i)
		if !ok || facts.Name != fmt.Sprintf("site-%d", i) || facts.Capability.CoreMFLOPS != want {
			t.Errorf("facts of site %d = %+v, %t; want its name and %d MFLOP/s", i, facts, ok, want)
		}
		if facts.Skew.Abs() > time.Second {
			t.Errorf("skew to site %d = %s on one machine", i, facts.Skew)
		}
	}
}

func TestABurstOfAnnouncementsReachesEverySite(t *testing.T) {
	const burst = 1_000
	nodes := cluster(t, 5, nil)
	for i := range burst {
		if err := nodes[2].Broadcast(announcement(nodes[2].Self(), i)); err != nil {
			t.Fatalf("Broadcast(%d) = %v", i, err)
		}
	}
	for i, n := range nodes {
		eventually(t, fmt.Sprintf("site %d has all announcements (has %d)", i, n.count()),
			func() bool { return n.count() >= burst })
		jobs := make(map[grid.JobID]bool)
		for _, h := range n.heard() {
			if h.from != nodes[2].Self() {
				t.Fatalf("announcement from %s, want %s", h.from, nodes[2].Self())
			}
			jobs[h.message.(protocol.Announce).Job] = true
		}
		if len(jobs) != burst || n.count() != burst {
			t.Errorf(
				"site %d heard %d announcements of %d jobs, want %d of each", i, n.count(), len(jobs), burst,
			)
		}
	}
}

func TestSendGoesThereAndBackInOrder(t *testing.T) {
	const rounds = 500
	nodes := cluster(t, 2, nil)
	a, b := nodes[0], nodes[1]
	b.recorder.mu.Lock()
	b.on = func(from grid.SiteID, m protocol.Message) {
		if err := b.Send(from, m); err != nil {
			t.Errorf("Send back = %v", err)
		}
	}
	b.recorder.mu.Unlock()
	for i := range rounds {
		if err := a.Send(b.Self(), protocol.Cancel{Job: jobID(i)}); err != nil {
			t.Fatalf("Send(%d) = %v", i, err)
		}
	}
	eventually(t, "all messages came back", func() bool { return a.count() == rounds })
	for i, h := range a.heard() {
		if h.from != b.Self() || h.message != (protocol.Cancel{Job: jobID(i)}) {
			t.Fatalf("message %d = %+v, want the one that was sent", i, h)
		}
	}
	if got := a.Count(wire.CountOut, "Cancel"); got != rounds {
		t.Errorf("counted %d messages out, want %d", got, rounds)
	}
}

func TestSendSaysWhatCannotBeSent(t *testing.T) {
	nodes := cluster(t, 2, func(_ int, cfg *Config) { cfg.Limits.QueueBytes = 100 })
	a, b := nodes[0], nodes[1]
	stranger, err := LoadIdentity(t.TempDir() + "/key")
	if err != nil {
		t.Fatal(err)
	}
	big := protocol.Vacancy{Jobs: []grid.JobID{
		jobID(1), jobID(2), jobID(3), jobID(4), jobID(5), jobID(6),
	}}
	for _, c := range []struct {
		to   grid.SiteID
		m    protocol.Message
		want error
	}{
		{a.Self(), protocol.Cancel{Job: jobID(1)}, errSelf},
		{stranger.Site(), protocol.Cancel{Job: jobID(1)}, errUnknownSite},
		{b.Self(), protocol.Cancel{Job: "short"}, grid.ErrInvalid},
		{b.Self(), big, errQueueFull},
		{b.Self(), protocol.Cancel{Job: jobID(1)}, nil},
	} {
		if err := a.Send(c.to, c.m); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("Send(%s, %T) = %v, want %v", c.to, c.m, err, c.want)
		}
	}
	if got := a.Count(wire.CountDropped, queueFull); got != 1 {
		t.Errorf("counted %d dropped messages, want 1", got)
	}
	got := a.Broadcast(protocol.Cancel{Job: jobID(1)})
	if !errors.Is(got, protocol.ErrUnknownMessage) {
		t.Errorf("Broadcast(Cancel) = %v, want ErrUnknownMessage", got)
	}
	_ = a.Close()
	if err := a.Send(b.Self(), protocol.Cancel{Job: jobID(1)}); !errors.Is(err, errClosed) {
		t.Errorf("Send after Close = %v, want ErrClosed", err)
	}
}

func TestACapabilityThatChangesIsToldAnew(t *testing.T) {
	var speed atomic.Int64
	speed.Store(1)
	nodes := cluster(t, 2, func(i int, cfg *Config) {
		if i == 1 {
			cfg.Capability = func() grid.Capability { return grid.Capability{CoreMFLOPS: speed.Load()} }
		}
	})
	a, b := nodes[0], nodes[1]
	speed.Store(2)
	b.Announce()
	eventually(t, "the new speed is known", func() bool {
		f, ok := a.facts(b.Self())
		return ok && f.Capability.CoreMFLOPS == 2
	})
	if got := len(a.losses()); got != 0 {
		t.Errorf("%d losses told, want none", got)
	}
}

func TestLeavingAndReturning(t *testing.T) {
	cfg := testConfig(t)
	a := startSite(t, cfg)
	other := testConfig(t)
	other.Bootstrap = a.Addrs()
	first := startSite(t, other)
	whole(t, []node{a, first})
	if err := first.Close(); err != nil {
		t.Fatalf("Close() = %v", err)
	}
	eventually(t, "the loss is told", func() bool { return len(a.losses()) == 1 })
	other.Incarnation = 2
	other.Bootstrap = nil // the addresses were remembered
	second := startSite(t, other)
	if second.Self() != first.Self() {
		t.Fatalf("the identity changed: %s, then %s", first.Self(), second.Self())
	}
	whole(t, []node{a, second})
	if f, _ := a.facts(second.Self()); f.Incarnation != 2 {
		t.Errorf("incarnation = %d, want 2", f.Incarnation)
	}
}

// A testimony arrives with its author's signature. One that was not signed so, or for another
// domain, is counted and not heard, and the stream goes on.
func TestTestimoniesAreSigned(t *testing.T) {
	nodes := cluster(t, 2, nil)
	a, b := nodes[0], nodes[1]
	said := protocol.Testimony{
		Author: a.Self(), Sequence: 1,
		Said: []protocol.Statement{{About: b.Self(), Index: 2, Tried: 3}},
	}
	if err := a.Send(b.Self(), said); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the testimony came", func() bool { return b.count() == 1 })
	got, is := b.heard()[0].message.(protocol.Testimony)
	if !is || len(got.Signature) != protocol.SignatureBytes || !b.isGenuine(got) {
		t.Fatalf("heard %+v", b.heard()[0])
	}
	for name, forge := range map[string]func(*protocol.Testimony){
		"more faults": func(m *protocol.Testimony) {
			m.Said = []protocol.Statement{{About: b.Self(), Index: 3}}
		},
		"another author": func(m *protocol.Testimony) { m.Author = b.Self() },
		"no signature":   func(m *protocol.Testimony) { m.Signature = nil },
		"no key":         func(m *protocol.Testimony) { m.Author = "nobody" },
		"another domain": func(m *protocol.Testimony) {
			m.Signature, _ = a.key.Sign(m.SignedBytes("elsewhere"))
		},
	} {
		forged := got
		if forge(&forged); b.isGenuine(forged) {
			t.Errorf("%s: it is taken for genuine", name)
		}
	}
	passedOn := got // b passes on what a has said, with something added
	passedOn.Sequence = 9
	if err := b.Send(a.Self(), passedOn); err != nil {
		t.Fatal(err)
	}
	if err := b.Send(a.Self(), protocol.Cancel{Job: jobID(1)}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "what came behind it", func() bool { return a.count() == 1 })
	if n := a.Count(wire.CountInvalid, causeTestimony); n != 1 {
		t.Errorf("counted %d forged testimonies, want 1", n)
	}
}
