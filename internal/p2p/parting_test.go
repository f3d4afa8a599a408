package p2p

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	lp "github.com/libp2p/go-libp2p/core/protocol"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// A member that floods a site with what cannot wait is parted from. What it made the site do is
// bounded, all others stay, and it may come again.
func TestAFloodingMemberIsPartedFrom(t *testing.T) {
	for kind, cause := range map[string]string{
		"streams": tooManyStreams, "message-streams": tooManyStreams, "log-streams": tooManyStreams,
		"connections": tooManyConns, "announcements": tooMuchGossip,
	} {
		t.Run(kind, func(t *testing.T) {
			nodes := cluster(t, 2, func(_ int, c *Config) {
				c.Timing.Parted = 500 * time.Millisecond
				c.Limits.SubmitterRate, c.Limits.SubmitterBurst = 1, 50
			})
			n, honest := nodes[0], nodes[1]
			n.HandleLog(func(_ grid.SiteID, s io.ReadWriteCloser) { _ = s.Close() })
			a := newAttacker(t, peer.AddrInfo{ID: n.Host().ID(), Addrs: n.Host().Addrs()})
			// To sign what it may say beyond its rate takes longer than a test should.
			n.guard.ledger(a.peer()).excess.AllowN(time.Now(), excessBurst-100)
			began := time.Now()
			floodUntilParted(t, n, a, kind, cause)

			most := otherBurst + otherRate*uint64(time.Since(began)/time.Second+1)
			if got := n.Count(wire.CountDropped, queueStreams); got > most {
				t.Errorf("%d streams were looked at, want at most %d", got, most)
			}
			if least, most := heardOf(n, a.site); most > 50+5 {
				t.Errorf("%d to %d announcements were heard, want at most 50", least, most)
			}
			if err := honest.Broadcast(announcement(honest.Self(), 1)); err != nil {
				t.Fatal(err)
			}
			if err := honest.Send(n.Self(), protocol.Cancel{Job: jobID(2)}); err != nil {
				t.Fatal(err)
			}
			eventually(t, "an honest site is heard", func() bool {
				_, got := heardOf(n, honest.Self())
				return got == 2
			})
			for _, lost := range n.losses() {
				if lost.site == honest.Self() {
					t.Error("an honest site is parted from")
				}
			}
			eventually(t, "the attacker may come again", func() bool {
				s, err := a.open(t.Context())
				if err == nil {
					_ = s.Reset()
				}
				return err == nil
			})
		})
	}
}

// floodUntilParted attacks until the victim has parted from the attacker, and turned it away.
func floodUntilParted(t *testing.T, n node, a *attacker, kind, cause string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); a.attack(ctx, kind) }()
	defer func() { cancel(); <-done }()
	eventually(t, "it is parted from, and turned away", func() bool {
		return n.Count(wire.CountParted, cause) > 0 && n.Count(wire.CountRefused, "flood") > 0
	})
}

// heardOf counts what a site has heard of another one.
func heardOf(n node, from grid.SiteID) (announced, all int) {
	for _, h := range n.heard() {
		if h.from == from {
			all++
			if _, is := h.message.(protocol.Announce); is {
				announced++
			}
		}
	}
	return announced, all
}

// A flood of messages is read for its part of a core, whatever they are, and others do not wait.
func TestAFloodOfMessagesLeavesTimeForOthers(t *testing.T) {
	nodes := cluster(t, 2, nil)
	n, honest := nodes[0], nodes[1]
	a := newAttacker(t, peer.AddrInfo{ID: n.Host().ID(), Addrs: n.Host().Addrs()})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	began := time.Now()
	go func() { defer close(done); a.attack(ctx, "searches") }()
	const burst = int(workBurst / (workMessage + workOffer))
	eventually(t, "its burst is used up", func() bool {
		_, got := heardOf(n, a.site)
		return got >= burst
	})
	for i := range 20 {
		if err := honest.Send(n.Self(), protocol.Cancel{Job: jobID(i)}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "an honest message arrives", func() bool {
			_, got := heardOf(n, honest.Self())
			return got == i+1
		})
	}
	cancel()
	<-done
	most := burst + int(time.Since(began)/time.Second+1)*int(workRate/(workMessage+workOffer))
	if _, got := heardOf(n, a.site); got > most {
		t.Errorf("%d messages in %s were heard, want at most %d", got, time.Since(began), most)
	}
	if len(n.losses()) > 0 && n.Count(wire.CountParted, tooManyMessages) > 0 {
		t.Error("parted from within seconds, want a minute")
	}
}

// Who is parted from is turned away at every door, told why, kept in mind, and dialled again.
func TestWhatPartingMeans(t *testing.T) {
	q := newQuiet(t, nil)
	id := q.stranger()
	site, r := wire.SiteOf(id), q.present(id)
	q.at(id, "/ip4/10.0.0.9/tcp/4601")
	conn := q.connected(id, "/ip4/10.0.0.9/tcp/4601", network.DirInbound)
	g := gater{q.Mesh}
	other := q.connected(q.stranger(), "/ip4/10.0.0.9/tcp/7", network.DirInbound)
	far := q.connected(q.stranger(), "/ip4/10.0.0.8/tcp/7", network.DirInbound)

	q.part(id, tooManyStreams)
	q.part(id, tooManyStreams)
	q.soon()
	if q.Count(wire.CountParted, tooManyStreams) != 1 || q.Count(wire.CountRefused, "flood") != 1 {
		t.Error("want it counted once")
	}
	said := r.waiting(t)
	if len(said) != 1 {
		t.Fatalf("it is told %v, want why", said)
	}
	if hello, is := said[0].(protocol.Hello); !is || hello.Refusal != grid.ReasonFlood {
		t.Errorf("it is told %v, want why", hello)
	}
	if !q.lines.has("WARN", string(site), tooManyStreams) {
		t.Error("the log does not say whom it was parted from, and why")
	}
	if losses := q.losses(); len(losses) != 1 || losses[0].site != site || losses[0].refusing {
		t.Errorf("lost %v, want it gone, and not as if it were dead", losses)
	}
	if got := q.KeptOut(); len(got) != 1 || got[0] != site {
		t.Errorf("kept out are %v, want %s", got, site)
	}
	if q.Allowed(id) || q.borders(id) || q.Judge(site) != grid.ReasonFlood {
		t.Error("it is let in")
	}
	if g.InterceptPeerDial(id) {
		t.Error("it is dialled")
	}
	if pass, _ := g.InterceptUpgraded(conn); pass {
		t.Error("it passes")
	}
	if len(q.book.addrs(id)) == 0 && len(q.host.Peerstore().Addrs(id)) == 0 {
		t.Error("its addresses are forgotten")
	}
	let := 0
	for range 3 * knockBurst {
		if g.InterceptAccept(other) {
			let++
		}
		if !g.InterceptAccept(far) {
			t.Fatal("a site elsewhere is not let in")
		}
	}
	if let != knockBurst {
		t.Errorf("%d connections from its address are looked at, want %d", let, knockBurst)
	}
}

// A peer that waits at a relay is not found out by the relay's address.
func TestTheRelaysAddressIsNobodysElse(t *testing.T) {
	q := newQuiet(t, nil)
	id := q.stranger()
	q.present(id)
	at := through(somebody(t), "/ip4/10.0.0.1/tcp/1")
	q.connected(id, at, network.DirInbound)
	q.part(id, tooManyConns)
	q.soon()
	conn := q.connected(id, at, network.DirInbound)
	if q.keptOut.comes(id, conn, time.Now()); len(q.keptOut.addrs) > 0 {
		t.Errorf("%v are kept out", q.keptOut.addrs)
	}
}

// Streams of what is served on the mesh's host are for data, and what comes on them is noted; those
// of anything else are not.
func TestStreamsForDataAreTold(t *testing.T) {
	n := startSite(t, testConfig(t))
	h := rawPeer(t, n)
	const data, other, bytes = lp.ID("/data"), lp.ID("/other"), 100_000
	drain := func(s network.Stream) {
		_, _ = io.Copy(io.Discard, s)
		_ = s.Close()
	}
	n.Host().SetStreamHandler(data, drain)
	n.host.SetStreamHandler(other, drain)
	t.Cleanup(func() { n.host.RemoveStreamHandler(data); n.host.RemoveStreamHandler(other) })
	send := func(kind lp.ID) {
		s, err := h.NewStream(t.Context(), n.host.ID(), kind)
		if err == nil {
			_, err = s.Write(make([]byte, bytes))
		}
		if err = errors.Join(err, s.CloseWrite()); err != nil {
			t.Fatal(err)
		}
		if _, err = io.ReadAll(s); err != nil {
			t.Fatal(err)
		}
	}
	l := n.guard.ledger(h.ID())
	for range 2 { // none is left, nor for a while
		l.others.ReserveN(time.Now(), otherBurst)
	}
	before := l.data.Load()
	send(data)
	if got := l.data.Load() - before; got != bytes {
		t.Errorf("%d bytes of data are noted, want %d", got, bytes)
	}
	if s, err := h.NewStream(t.Context(), n.host.ID(), other); err == nil {
		_ = s.SetDeadline(time.Now().Add(patience))
		_, err = s.Read(make([]byte, 1))
		if err == nil || isTimeout(err) || errors.Is(err, io.EOF) {
			t.Errorf("a stream that is not for data is served beyond the budget: %v", err)
		}
	}
}
