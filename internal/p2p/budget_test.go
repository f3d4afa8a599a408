package p2p

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// watched is a guard that notes whom it parts from, and why.
func watched(limits Limits) (*guard, map[peer.ID]string) {
	g, gone := newGuard(Config{Limits: limits}.withDefaults()), make(map[peer.ID]string)
	g.part = func(id peer.ID, why string) { gone[id] = why }
	return g, gone
}

// What a peer may do in a row and again soon, and what happens when it goes on.
func TestWhoGoesOnIsPartedFrom(t *testing.T) {
	for name, c := range map[string]struct {
		does   func(*guard, peer.ID) bool
		burst  int
		again  time.Duration
		spared int // refusals before it is parted from
		why    string
	}{
		"opens streams": {(*guard).stream, 20_000, 2 * time.Millisecond, 1000, "streams"},
		"opens streams that are not for data": {
			(*guard).other, 4096, 10 * time.Millisecond, 1000, "streams",
		},
		"connects": {(*guard).conn, 128, time.Second, 0, "connections"},
		"announces beyond its rate": {
			func(g *guard, id peer.ID) bool {
				before := g.ledger(id).excess.Tokens()
				g.excess(id)
				return before >= 1
			}, 5_000, 10 * time.Millisecond, 0, "announcements",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, gone := watched(Limits{})
				id := newID(1)
				for i := range c.burst {
					if !c.does(g, id) {
						t.Fatalf("time %d of %d is refused", i+1, c.burst)
					}
				}
				for i := range c.spared {
					if c.does(g, id) || len(gone) > 0 {
						t.Fatalf("%d more: want refusals alone, parted from %v", i+1, gone)
					}
				}
				if c.does(g, id) || gone[id] != c.why || len(gone) != 1 {
					t.Errorf("parted from %v, want the one that went on: %s", gone, c.why)
				}
				if !c.does(g, newID(2)) {
					t.Error("another peer is refused")
				}
				time.Sleep(c.again)
				if !c.does(g, id) {
					t.Errorf("after %s it is still refused", c.again)
				}
			})
		})
	}
}

// Data comes on many streams: those with data on them are free, as many as there is data.
func TestStreamsWithDataAreFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, gone := watched(Limits{})
		id := newID(1)
		for range 4 * streamBurst { // 20 GB, as fast as can be
			g.ledger(id).brought(256 << 10)
			if !g.stream(id) {
				t.Fatal("a stream with data is refused")
			}
		}
		if len(gone) > 0 {
			t.Errorf("parted from %v, which sent data", gone)
		}
		free := 0
		for ; g.stream(id); free++ {
			if free > streamBurst+dataKept/dataPerStream {
				t.Fatalf("%d streams without data are free", free)
			}
		}
		if free < streamBurst {
			t.Errorf("%d streams without data are free, want %d and more", free, streamBurst)
		}
	})
}

// A site under the greatest honest load: a submitter that asks it directly for offers for 10,000
// jobs in a row and awards it 10,000 tasks, then keeps 64 cores busy with tasks of a second, while
// it passes on a thousand announcements of others a second.
func TestTheGreatestHonestLoadIsNeverPartedFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, gone := watched(Limits{})
		ctx, id := t.Context(), newID(1)
		say := func(m protocol.Message, size int) {
			if !g.pace(ctx, id, size) || extraWork(m) > 0 && !g.work(ctx, id, extraWork(m)) {
				t.Fatal("a message is not read")
			}
		}
		began := time.Now()
		for i := range 10_000 {
			say(announcement("s", i), 400)
		}
		for range 10_000 / 100 {
			say(protocol.Award{}, 64<<10)
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("10,000 searches and awards were read in %s", took)
		}
		late := time.Duration(0)
		for range 10 * 60 { // ten minutes
			due := time.Now().Add(time.Second)
			for range 64 * 6 {
				say(protocol.Renew{}, 200)
			}
			for range 1000 {
				g.gossiped(id, 14*time.Microsecond)
				g.gossipWork(ctx, id, 3*time.Microsecond)
			}
			late = max(late, time.Since(due))
			time.Sleep(time.Until(due))
		}
		if late > 0 {
			t.Errorf("a second's messages were read %s too late", late)
		}
		if len(gone) > 0 {
			t.Errorf("an honest peer is parted from, because of its %s", gone[id])
		}
	})
}

// What a peer's messages cost in the long run is a part of a core; what is more waits at the
// sender, and one that never lets up is parted from after five minutes.
func TestAFloodOfMessagesIsReadForAPartOfACore(t *testing.T) {
	for name, m := range map[string]protocol.Message{
		"orders":      protocol.Cancel{},
		"searches":    announcement("s", 1),
		"testimonies": protocol.Testimony{},
		"rosters":     protocol.Roster{Records: make([]protocol.MemberRecord, 64)},
		"on behalf":   protocol.OnBehalf{Message: announcement("s", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, gone := watched(Limits{})
				id, began := newID(1), time.Now()
				work := readingWork(100) + extraWork(m)
				read := 0
				for ; g.pace(t.Context(), id, 100) &&
					(extraWork(m) == 0 || g.work(t.Context(), id, extraWork(m))); read++ {
					if time.Since(began) > 7*time.Minute {
						t.Fatal("after seven minutes it is still read")
					}
				}
				took := time.Since(began)
				most := (workBurst + time.Duration(took.Seconds()*float64(workRate))) * 101 / 100
				if did := time.Duration(read) * work; did > most || did < workBurst {
					t.Errorf("%d messages, %s of work, in %s; want %s", read, did, took, most)
				}
				if gone[id] != tooManyMessages || took < behindMost {
					t.Errorf("parted from after %s: %v; want it after five", took, gone)
				}
			})
		})
	}
}

// One that has caught up in between is as one that never was behind.
func TestWhoCatchesUpIsNotBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, gone := watched(Limits{})
		id := newID(1)
		for range 10 {
			for began := time.Now(); time.Since(began) < 50*time.Second; {
				if !g.work(t.Context(), id, workMessage) {
					t.Fatal("a message is not handled")
				}
			}
			time.Sleep(5 * time.Second)
		}
		if len(gone) > 0 {
			t.Errorf("parted from %v", gone)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for g.work(ctx, id, workMessage) {
		}
		if len(gone) > 0 {
			t.Errorf("parted from %v at the end", gone)
		}
	})
}

// Gossip waits for what was done for it, and nobody is parted from: peers pass on what others say.
func TestGossipWaitsForItsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, gone := watched(Limits{})
		id, began := newID(1), time.Now()
		const work = 15 * time.Microsecond
		done := time.Duration(0)
		for ; time.Since(began) < 5*time.Minute; done += work + time.Microsecond {
			if !g.gossipWork(t.Context(), id, time.Microsecond) {
				t.Fatal("gossip is not read")
			}
			g.gossiped(id, work)
		}
		took := time.Since(began)
		most := workBurst + time.Duration(took.Seconds()*float64(gossipRate)) + time.Millisecond
		if done > most || done < most-50*time.Millisecond {
			t.Errorf("%s of work in %s, want %s", done, took, most)
		}
		if len(gone) > 0 {
			t.Errorf("parted from %v", gone)
		}
	})
}

// Peers that share an account have not shown which of them it was.
func TestNobodyIsPartedFromForAnothersDoing(t *testing.T) {
	g, gone := watched(Limits{Peers: 1})
	g.stream(newID(0))
	for i := range 2 * (streamBurst + refusedBurst) {
		g.stream(newID(1 + i%100))
	}
	for i := range 2 * connBurst {
		g.conn(newID(1 + i%100))
	}
	if len(gone) > 0 {
		t.Errorf("%d are parted from, want none", len(gone))
	}
}

// A member that was kept out may come again when its time is over; a table that is full forgets
// the site with the shortest time left.
func TestWhoIsKeptOut(t *testing.T) {
	out, now := partings{patience: time.Minute}, time.Now()
	site := func(i int) grid.SiteID { return grid.SiteID(fmt.Sprint(i)) }
	if out.hasSite(site(0), now) || !out.add(site(0), nil, now) || out.add(site(0), nil, now) {
		t.Error("want a site kept out once")
	}
	later := now.Add(time.Minute)
	if got := out.list(later); len(got) > 0 {
		t.Errorf("%v are still named", got)
	}
	if !out.hasSite(site(0), later.Add(-1)) || out.hasSite(site(0), later) {
		t.Error("want it kept out for a minute")
	}
	if !out.add(site(0), nil, later) || !out.hasSite(site(0), later.Add(time.Second)) {
		t.Error("want it kept out a second time")
	}
	for i := range 2 * maxParted {
		out.add(site(1+i), nil, now.Add(time.Duration(i)*time.Millisecond))
	}
	if first, last := site(1), site(2*maxParted); len(out.sites) != maxParted ||
		out.hasSite(first, now) || !out.hasSite(last, now) {
		t.Errorf("%d are kept out, want %d, with the most time left", len(out.sites), maxParted)
	}
}
