package p2p

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	lp "github.com/libp2p/go-libp2p/core/protocol"

	"github.com/mrsmesh/mrsmesh/internal/p2p/relay"
	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// A stream moves where it leads through a relay and there is a direct connection. The old one ends
// when the peer has answered on the new one, and the relayed connection a while later.
func TestAStreamMoves(t *testing.T) {
	change := func(c *Config) { c.Timing.Linger = 7 * time.Second }
	inBubble(t, change, func(t *testing.T, q *quiet, conn *stubConn) {
		r := q.present(conn.peer)
		relayed := q.connected(r.id, through(q.stranger(), "/ip4/10.0.0.8/tcp/1"), network.DirOutbound)
		old, _ := newStream(t, relayed)
		next, there := newStream(t, conn)
		q.stub.open = func(ctx context.Context) (network.Stream, error) {
			if until, ok := ctx.Deadline(); !ok || time.Until(until) != moveLimit {
				t.Errorf("it may take %s, want %s", time.Until(until), moveLimit)
			}
			return next, nil
		}
		go func() {
			if _, err := readHello(wire.NewReader(there, time.Hour)); err != nil {
				t.Error(err)
			}
			if err := writeHello(there, time.Hour, validHello()); err != nil {
				t.Error(err)
			}
		}()
		better := r.carry(t.Context(), link{stream: old})
		if better == nil || better.stream != network.Stream(next) || next.isReset() {
			t.Fatalf("the stream moves to %+v", better)
		}
		if synctest.Wait(); !old.isClosed() || old.isReset() {
			t.Error("want the old stream closed in one direction, for what is on its way")
		}
		time.Sleep(leaveGrace)
		if synctest.Wait(); !old.isReset() {
			t.Errorf("the old stream is kept for more than %s", leaveGrace)
		}
		if q.Count(wire.CountMoves, moveOK) != 1 || !q.lines.has("INFO", "peer is reached directly") {
			t.Error("it is not counted, or not logged")
		}
		if got := q.soon(); len(got) != 1 || got[0] != 7*time.Second || !relayed.closed || conn.closed {
			t.Errorf("to be done %v; want the relayed connection closed, %t, and no other, %t",
				got, relayed.closed, conn.closed)
		}
	})
}

// Where the direct connection carries nothing the old stream stays, and it is tried again later.
func TestAMoveThatFails(t *testing.T) {
	change := func(c *Config) { c.Timing.Hello = time.Second }
	inBubble(t, change, func(t *testing.T, q *quiet, conn *stubConn) {
		r := q.present(conn.peer)
		relayed := q.connected(r.id, through(q.stranger(), "/ip4/10.0.0.8/tcp/1"), network.DirOutbound)
		old, there := newStream(t, relayed)
		var tried *stubStream
		answers := []func() (network.Stream, error){
			func() (network.Stream, error) { return nil, errSelf },
			func() (network.Stream, error) { tried, _ = newStream(t, relayed); return tried, nil },
			func() (network.Stream, error) { tried, _ = newStream(t, conn); return tried, nil },
		}
		q.stub.open = func(ctx context.Context) (network.Stream, error) {
			if until, ok := ctx.Deadline(); !ok || time.Until(until) != time.Second {
				t.Errorf("it may take %s, want what a Hello may", time.Until(until))
			}
			answer := answers[0]
			answers = answers[1:]
			return answer()
		}
		gone := make(chan *link)
		go func() { gone <- r.carry(t.Context(), link{stream: old}) }()
		for i := range 3 {
			time.Sleep(time.Second)
			synctest.Wait()
			if got := q.Count(wire.CountMoves, moveFailed); got != uint64(i+1) || old.isReset() {
				t.Fatalf("%d moves failed, the old stream ended %t", got, old.isReset())
			}
			if tried != nil && !tried.isReset() {
				t.Error("the stream that was tried stays")
			}
			if i < 2 && (len(q.later) != 1 || q.soon()[0] != time.Second) {
				t.Fatalf("to be done %+v, want another attempt", q.later)
			}
		}
		if !q.lines.has("DEBUG", "direct connection is not usable", errRelayed.Error()) {
			t.Error("why it failed is not logged")
		}
		_ = there.Close()
		if next := <-gone; next != nil {
			t.Error("a failed move leads somewhere")
		}
	})
}

// Nothing moves from a direct connection, or where there is none.
func TestWhatDoesNotMove(t *testing.T) {
	for name, c := range map[string]struct{ at, other string }{
		"direct already": {"/ip4/10.0.0.9/tcp/1", "/ip4/10.0.0.9/tcp/2"},
		"none":           {through(somebody(t), "/ip4/10.0.0.9/tcp/1"), ""},
	} {
		q := newQuiet(t, nil)
		r := q.present(q.stranger())
		s, _ := newStream(t, q.connected(r.id, c.at, network.DirInbound))
		if c.other != "" {
			q.connected(r.id, c.other, network.DirInbound)
		}
		if r.move(t.Context(), link{stream: s}) != nil {
			t.Errorf("%s: the stream moves", name)
		}
		q.closeRelayed(r.id)
		for _, conn := range q.stub.net.ConnsToPeer(r.id) {
			if conn.IsClosed() {
				t.Errorf("%s: the connection at %s is closed", name, conn.RemoteMultiaddr())
			}
		}
	}
	if await(nil) != nil {
		t.Error("no move leads somewhere")
	}
}

// A peer that lost its place in gossip is brought back: its gossip streams end on all connections,
// twice in ten minutes at most.
func TestGossipIsMended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuiet(t, nil)
		r := q.present(q.stranger())
		var gossips, others []*stubStream
		for range 2 {
			conn := q.connected(r.id, "/ip4/10.0.0.9/tcp/1", network.DirInbound)
			g, _ := newStream(t, conn)
			o, _ := newStream(t, conn)
			g.name = "/meshsub/1.3.0"
			conn.streams = []network.Stream{g, o}
			gossips, others = append(gossips, g), append(others, o)
		}
		q.parted(q.stub.net.conns[r.id][0].(*stubConn))
		for i := 1; i <= mendMost+1; i++ {
			if len(q.later) != 1 || q.soon()[0] != mendAfter {
				t.Fatalf("to be done %+v, want a look after %s", q.later, mendAfter)
			}
			for k, g := range gossips {
				if g.resets != min(i, mendMost) || others[k].isReset() {
					t.Errorf("look %d: stream ended %d times, another one %t", i, g.resets, others[k].isReset())
				}
			}
		}
		if len(q.later) != 0 || !q.lines.has("DEBUG", "gossip with peer begins anew") {
			t.Error("it is tried without end, or not logged")
		}
		time.Sleep(mendWithin)
		if q.mend(r.id); gossips[0].resets != mendMost {
			t.Error("it is tried again too early")
		}
		time.Sleep(time.Nanosecond)
		if q.mend(r.id); gossips[0].resets != mendMost+1 {
			t.Error("it is not tried again later")
		}
	})
}

// Nothing is mended with who is unknown, away or not admitted, or when the mesh is closed.
func TestWhatIsNotMended(t *testing.T) {
	for name, before := range map[string]func(*quiet, *remote){
		"unknown":      func(q *quiet, r *remote) { delete(q.remotes, r.site) },
		"away":         func(q *quiet, r *remote) { delete(q.stub.net.conns, r.id) },
		"not admitted": func(_ *quiet, r *remote) { r.gone(protocol.Run{Number: 1}, false) },
	} {
		q := newQuiet(t, nil)
		r := q.present(q.stranger())
		conn := q.connected(r.id, "/ip4/10.0.0.9/tcp/1", network.DirInbound)
		g, _ := newStream(t, conn)
		g.name, conn.streams = "/meshsub/1.3.0", []network.Stream{g}
		before(q, r)
		if q.mend(r.id); g.isReset() || len(q.later) > 0 || r.mended.times > 0 {
			t.Errorf("%s: it is mended", name)
		}
	}
	q := newQuiet(t, nil)
	r := q.present(q.stranger())
	if q.parted(&stubConn{peer: r.id}); len(q.later) > 0 {
		t.Error("a peer that has left is looked at")
	}
	conn := q.connected(r.id, "/ip4/10.0.0.9/tcp/1", network.DirInbound)
	q.notifiee().Disconnected(q.stub.net, conn) // another one remains
	if len(q.later) != 1 {
		t.Error("a peer that lost one of its connections is not looked at")
	}
	q.wg.Wait() // nothing keeps the mesh open
	q.closed = true
	if q.parted(conn); len(q.later) != 1 {
		t.Error("a closed mesh goes on")
	}
}

// A peer that is on the topic keeps its gossip streams.
func TestGossipThatWorksIsLeftAlone(t *testing.T) {
	nodes := cluster(t, 2, nil)
	a, b := nodes[0], nodes[1]
	r := a.lookup(b.Self())
	a.mend(b.Host().ID())
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mended.times != 0 {
		t.Error("gossip that works begins anew")
	}
}

// asked counts how often relays look for one.
type asked struct {
	peerstore.Peerstore

	times int
}

func (a *asked) SupportsProtocols(peer.ID, ...lp.ID) ([]lp.ID, error) {
	a.times++
	return nil, nil
}

// However seldom relays are looked for, a connection that ends and a peer that is admitted are a
// reason to.
func TestWhenRelaysAreLookedFor(t *testing.T) {
	change := func(c *Config) { c.NAT.Relay, c.Timing.Relay = relay.Use, time.Hour }
	inBubble(t, change, func(t *testing.T, q *quiet, conn *stubConn) {
		q.present(conn.peer) // which does not relay
		other := q.connected(q.stranger(), "/ip4/10.0.0.8/tcp/1", network.DirOutbound)
		store := &asked{Peerstore: q.stub.store}
		q.stub.store = store
		ctx, cancel := context.WithCancel(t.Context())
		q.wg.Go(func() { q.relays.Run(ctx) })
		if synctest.Wait(); store.times != 1 {
			t.Fatalf("at first relays are looked for %d times", store.times)
		}
		q.parted(other)
		if synctest.Wait(); store.times != 2 {
			t.Error("the end of a connection is no reason to look for relays")
		}
		stream, _ := newStream(t, other)
		q.knows(other.peer).admit(t.Context(), link{
			stream: stream, facts: Facts{Run: protocol.Run{Number: 1}},
		})
		if synctest.Wait(); store.times != 4 { // two members now
			t.Error("an admitted peer is no reason to look for relays")
		}
		cancel()
		q.wg.Wait()
	})
}

// opensTo lets streams to a peer answer a Hello so.
func (q *quiet) opensTo(conn *stubConn, answer func(*protocol.Hello)) (opened *[]*stubStream) {
	opened = &[]*stubStream{}
	q.stub.open = func(context.Context) (network.Stream, error) {
		here, there := newStream(q.t, conn)
		*opened = append(*opened, here)
		go func() {
			hello, err := readHello(wire.NewReader(there, time.Hour))
			if err != nil {
				return
			}
			hello.Run, hello.Incarnation, hello.Roster = protocol.Run{}, 1, protocol.Digest{7}
			answer(&hello)
			_ = writeHello(there, time.Hour, hello)
		}()
		return here, nil
	}
	return opened
}

// Both sides judge what the other says: a refusal is the peer's, or this site's.
func TestHowAPeerAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(*protocol.Hello)
		want   grid.Reason
		byPeer bool
	}{
		"admitted": {
			func(h *protocol.Hello) { h.Name = "n"; h.Peers = []string{"p"} },
			grid.ReasonNone, false,
		},
		"another domain": {func(h *protocol.Hello) { h.Domain = "other" }, grid.ReasonDomain, false},
		"refused": {
			func(h *protocol.Hello) { h.Refusal = grid.ReasonBanned }, grid.ReasonBanned,
			true,
		},
		"both": {func(h *protocol.Hello) {
			h.Domain, h.Refusal = "other", grid.ReasonDomain
		}, grid.ReasonDomain, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, q *quiet, conn *stubConn) {
				r := q.knows(conn.peer)
				opened := q.opensTo(conn, c.answer)
				l, err := r.open(t.Context())
				if c.want == grid.ReasonNone {
					if err != nil || l.facts.Name != "n" || l.peers[0] != "p" ||
						l.roster != (protocol.Digest{7}) || l.stream != network.Stream((*opened)[0]) {
						t.Fatalf("%+v, %v", l, err)
					}
					time.Sleep(time.Hour) // no deadline is left
					if (*opened)[0].isReset() || len(q.Refusals()) != 0 {
						t.Error("the stream ends")
					}
					got := make(chan error, 1)
					go func() { _, failed := l.stream.Read(make([]byte, 1)); got <- failed }()
					if synctest.Wait(); len(got) > 0 {
						t.Errorf("the stream cannot be read: %v", <-got)
					}
					_ = l.stream.Reset()
					return
				}
				refusal := &refusedError{}
				if !errors.As(err, &refusal) || refusal.Reason != c.want || refusal.ByPeer != c.byPeer ||
					refusal.Site != r.site || !(*opened)[0].isReset() {
					t.Errorf("%v, want a refusal for %s, by the peer: %t", err, c.want, c.byPeer)
				}
				if got := q.Count(wire.CountRefused, reasonLabel(c.want)); got != 1 || !isRefusal(err) {
					t.Errorf("counted %d times", got)
				}
			})
		})
	}
}

// A peer that does not answer is given up after the Hello's time, or when the attempt ends.
func TestAPeerThatDoesNotAnswer(t *testing.T) {
	change := func(c *Config) { c.Timing.Hello = 3 * time.Second }
	inBubble(t, change, func(t *testing.T, q *quiet, conn *stubConn) {
		r := q.knows(conn.peer)
		var here *stubStream
		q.stub.open = func(context.Context) (network.Stream, error) {
			here, _ = newStream(t, conn)
			return here, nil
		}
		for _, limit := range []time.Duration{time.Hour, time.Second} {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			began := time.Now()
			if _, err := r.open(ctx); !isTimeout(err) || time.Since(began) != min(limit, 3*time.Second) ||
				!here.isReset() {
				t.Errorf("of %s: %v after %s", limit, err, time.Since(began))
			}
			cancel()
		}
		q.stub.open = func(context.Context) (network.Stream, error) {
			s, there := newStream(t, conn)
			s.stuck = errSelf
			go func() { _, _ = readHello(wire.NewReader(there, time.Hour)) }()
			return s, nil
		}
		if _, err := r.open(t.Context()); !errors.Is(err, errSelf) {
			t.Errorf("a stream without deadlines: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		q.stub.open = func(ctx context.Context) (network.Stream, error) { return nil, ctx.Err() }
		if _, err := r.open(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("no stream: %v", err)
		}
	})
}

// Only the code of a gated connection, sent by the peer, is its refusal; the connection that this
// site dialled last may still know it.
func TestWhatAClosedConnectionSays(t *testing.T) {
	gated := &network.ConnError{Remote: true, ErrorCode: network.ConnGated}
	for name, c := range map[string]struct {
		err     error
		last    *stubConn
		refused bool
	}{
		"nothing of it":     {err: errSelf},
		"gated":             {err: gated, refused: true},
		"gated by us":       {err: &network.ConnError{ErrorCode: network.ConnGated}},
		"another code":      {err: &network.ConnError{Remote: true}},
		"the last knows":    {err: errSelf, last: &stubConn{closed: true, why: gated}, refused: true},
		"the last is open":  {err: errSelf, last: &stubConn{why: gated}},
		"the last is fine":  {err: errSelf, last: &stubConn{closed: true}},
		"the last is other": {err: gated, last: &stubConn{closed: true, why: errSelf}, refused: true},
	} {
		q := newQuiet(t, nil)
		r := q.knows(q.stranger())
		if c.last != nil {
			last := network.Conn(c.last)
			r.outbound.Store(&last)
		}
		err := r.gated(t.Context(), c.err)
		refusal := &refusedError{}
		if errors.As(err, &refusal) != c.refused || c.refused && (!refusal.ByPeer ||
			refusal.Reason != grid.ReasonNotMember || q.Count(wire.CountRefused, "not_member") != 1) {
			t.Errorf("%s: %v, want a refusal: %t", name, err, c.refused)
		}
		if !c.refused && !errors.Is(err, c.err) || r.outbound.Load() != nil {
			t.Errorf("%s: %v, want the error, and the connection forgotten", name, err)
		}
	}
}

// A peer that is connected is not dialled. Else it is dialled where it was, and each attempt
// counts.
func TestHowAPeerIsDialled(t *testing.T) {
	inBubble(t, func(c *Config) { c.Timing.Dial = 9 * time.Second },
		func(t *testing.T, q *quiet, conn *stubConn) {
			r := q.knows(conn.peer)
			r.bootstrap = addrAt(1)
			q.book.put(r.id, addrAt(2), time.Now())
			dials := 0
			q.stub.connect = func(ctx context.Context, info peer.AddrInfo) error {
				dials++
				if until, _ := ctx.Deadline(); time.Until(until) != 9*time.Second || info.ID != r.id ||
					len(info.Addrs) != 2 || !info.Addrs[0].Equal(addrAt(1)[0]) ||
					!info.Addrs[1].Equal(addrAt(2)[0]) {
					t.Errorf("dialled %+v within %s", info, time.Until(until))
				}
				return nil
			}
			q.stub.open = func(context.Context) (network.Stream, error) { return nil, errSelf }
			if _, err := r.open(t.Context()); !errors.Is(err, errSelf) || dials != 0 {
				t.Errorf("%v; a connected peer is dialled %d times", err, dials)
			}
			delete(q.stub.net.conns, r.id)
			if _, err := r.open(t.Context()); !errors.Is(err, errSelf) || dials != 1 ||
				q.Count(wire.CountDials, "ok") != 1 || q.Count(wire.CountDials, "failed") != 0 {
				t.Errorf("%v; dialled %d times", err, dials)
			}
			if len(r.bootstrap) != 1 {
				t.Error("the bootstrap addresses grow")
			}
		})
}
