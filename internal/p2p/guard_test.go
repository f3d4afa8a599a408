package p2p

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// A peer has four streams for messages at a time, and 32 in a row; then two a second.
func TestStreamsForMessagesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, id := newGuard(Config{}.withDefaults()), newID(1)
		var leave []func()
		for i := range bidStreams {
			end, ok := g.openStream(id)
			if !ok {
				t.Fatalf("stream %d of %d is refused", i+1, bidStreams)
			}
			leave = append(leave, end)
		}
		if _, ok := g.openStream(id); ok {
			t.Error("one stream more than it may have is open")
		}
		if _, ok := g.openStream(newID(2)); !ok {
			t.Error("another peer's stream is refused")
		}
		for _, end := range leave {
			end()
		}
		for i := bidStreams; i < bidStreamBurst; i++ {
			end, ok := g.openStream(id)
			if !ok {
				t.Fatalf("stream %d of %d in a row is refused", i+1, bidStreamBurst)
			}
			end()
		}
		if _, ok := g.openStream(id); ok {
			t.Error("one stream more in a row is open")
		}
		time.Sleep(time.Second / bidStreamRate)
		if _, ok := g.openStream(id); !ok {
			t.Error("after a pause a stream is refused")
		}
	})
}

// One peer has an eighth of the log streams, and one where there are fewer than eight.
func TestTheShareOfTheLogStreams(t *testing.T) {
	for streams, want := range map[int]int{64: 8, 17: 2, 8: 1, 4: 1} {
		g := newGuard(Config{Limits: Limits{LogStreams: streams}}.withDefaults())
		got := 0
		for ; got < 100; got++ {
			if _, ok := g.openLog(newID(1)); !ok {
				break
			}
		}
		if got != want {
			t.Errorf("of %d log streams one peer has %d, want %d", streams, got, want)
		}
	}
}

// What a peer may do in a row, and how soon it may do it again.
func TestHowOftenAPeerIsHeeded(t *testing.T) {
	for name, c := range map[string]struct {
		does  func(*guard, peer.ID) bool
		burst int
		again time.Duration
	}{
		"repeats its Hello": {(*guard).hello, 32, 2 * time.Second},
		"is late":           {(*guard).lateOwn, 64, time.Second},
		"names addresses":   {(*guard).tip, 128, time.Second},
		"strangers are named": {
			func(g *guard, _ peer.ID) bool { return g.follow.Allow() }, 20,
			time.Second / 4,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGuard(Config{
					Timing: Timing{Spread: 4 * time.Second}, Limits: Limits{Members: 10},
				}.withDefaults())
				for i := range c.burst {
					if !c.does(g, newID(1)) {
						t.Fatalf("time %d of %d is not heeded", i+1, c.burst)
					}
				}
				if c.does(g, newID(1)) {
					t.Error("one time more is heeded")
				}
				time.Sleep(c.again - time.Millisecond)
				if c.does(g, newID(1)) {
					t.Error("it is heeded again too early")
				}
				time.Sleep(time.Millisecond)
				if !c.does(g, newID(1)) {
					t.Errorf("after %s it is not heeded", c.again)
				}
			})
		})
	}
}

// A peer is read as fast as this site works in the long run, by messages and by bytes.
func TestHowFastAPeerIsRead(t *testing.T) {
	for name, c := range map[string]struct {
		size, burst int
		again       time.Duration
	}{
		"small messages": {1, messageBurst, time.Second / messageRate},
		"large ones":     {1 << 20, byteBurst >> 20, (1 << 20) * time.Second / byteRate},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, began := newGuard(Config{}.withDefaults()), time.Now()
				for range c.burst {
					if !g.pace(t.Context(), newID(1), c.size) {
						t.Fatal("a message is not read")
					}
				}
				if took := time.Since(began); took != 0 {
					t.Errorf("%d in a row took %s, want no pause", c.burst, took)
				}
				if !g.pace(t.Context(), newID(1), c.size) {
					t.Error("the next message is not read")
				}
				if took := time.Since(began); (took - c.again).Abs() > time.Microsecond {
					t.Errorf("the next message waits for %s, want %s", took, c.again)
				}
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				if g.pace(ctx, newID(1), c.size) {
					t.Error("a message is read after the end")
				}
			})
		})
	}
}

// Peers beyond the bound share an account. Accounts of peers that were quiet for longer than
// ledgerKept, with nothing open, are dropped for them, once a second at most.
func TestAccountsOfQuietPeersAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(Config{Limits: Limits{Peers: 4}}.withDefaults())
		has := func(i int) bool { return g.ledgers[newID(i)] != nil }
		g.openStream(newID(1))
		g.openLog(newID(2))
		g.hello(newID(3))
		time.Sleep(500 * time.Millisecond)
		g.hello(newID(4))
		if len(g.ledgers) != 4 {
			t.Fatalf("%d accounts, want those of four peers", len(g.ledgers))
		}

		time.Sleep(ledgerKept - 500*time.Millisecond)
		g.hello(newID(5))
		if !has(3) || has(5) {
			t.Error("an account is dropped when its peer was quiet for just as long as it is kept")
		}
		time.Sleep(time.Second)
		g.hello(newID(5)) // a second after the last look, not more
		if has(5) {
			t.Error("accounts are looked through twice within a second")
		}
		time.Sleep(time.Nanosecond)
		g.hello(newID(5))
		if !has(1) || !has(2) || has(3) || has(4) || !has(5) {
			t.Error("want the accounts of peers with open streams and of the one that is heard")
		}

		g.hello(newID(6))
		if !has(6) || g.of(newID(7)) != g.crowd {
			t.Error("want an account for each peer up to the bound, and one for all others")
		}
		time.Sleep(ledgerKept - time.Second)
		g.hello(newID(5))
		time.Sleep(2 * time.Second)
		g.hello(newID(7))
		if !has(5) || has(6) || !has(7) {
			t.Error("want that a peer which is heard keeps its account")
		}
	})
}

// Other services listen on the ports below 1024.
func TestWhichPortsAreDialledOnHearsay(t *testing.T) {
	for text, want := range map[string]bool{
		"/ip4/192.0.2.1/tcp/1023": false, "/ip4/192.0.2.1/tcp/1024": true,
		"/ip4/192.0.2.1/udp/1023/quic-v1": false, "/ip4/192.0.2.1/udp/1024/quic-v1": true,
		"/ip6/::/tcp/4601": false, "/ip6/ff02::1/udp/4601/quic-v1": false,
	} {
		if got := dialable(parseAddrs([]string{text})[0]); got != want {
			t.Errorf("%s: dialled %t, want %t", text, got, want)
		}
	}
}
