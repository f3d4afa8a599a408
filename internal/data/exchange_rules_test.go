package data

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	bsmsg "github.com/ipfs/boxo/bitswap/message"
	bsnetwork "github.com/ipfs/boxo/bitswap/network"
	blocks "github.com/ipfs/go-block-format"
	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/peer"
	"golang.org/x/time/rate"

	"github.com/mrsmesh/mrsmesh/internal/obs"
)

// Blocks are for members; others are counted.
func TestMembersAreServed(t *testing.T) {
	t.Parallel()
	c := counters{obs.NewRegistry()}
	s := newPlayed(t, func(cfg *Config) {
		cfg.Allow, cfg.Metrics = func(p peer.ID) bool { return p == "member" }, c.reg
		cfg.Trades = func(p peer.ID) bool { return p == "neighbour" }
	})
	if !s.Store.swap.allow("member", cid.Undef) || !s.Store.swap.allow("neighbour", cid.Undef) ||
		s.Store.swap.allow("stranger", cid.Undef) {
		t.Error("a member or a neighbour is not served, or a stranger is")
	}
	if got := c.of(t, "data_denied_requests_total"); got != 1 {
		t.Errorf("%g requests are counted as denied, want 1", got)
	}
}

// A session's holders are those that its fetch named.
func TestSessionsKnowTheirHolders(t *testing.T) {
	t.Parallel()
	holders := []peer.ID{"a", "b"}
	ctx := context.WithValue(t.Context(), holdersKey{}, holders)
	var got []peer.ID
	for info := range (holderFinder{}).FindProvidersAsync(ctx, cid.Undef, 1) {
		got = append(got, info.ID)
	}
	if len(got) != 2 || got[0] != "a" || got[1] != "b" {
		t.Errorf("the holders are %v, want %v", got, holders)
	}
	for info := range (holderFinder{}).FindProvidersAsync(t.Context(), cid.Undef, 1) {
		t.Errorf("without a fetch there is a holder: %v", info)
	}
}

// A cap is in bit/s, 0 is none, and it can be changed.
func TestCapsAreInBits(t *testing.T) {
	t.Parallel()
	if got := bytesPerSecond(0); got != rate.Inf {
		t.Errorf("no cap is %f", got)
	}
	if got := bytesPerSecond(20); got != 2.5 {
		t.Errorf("20 bit/s are %f byte/s, want 2.5", got)
	}
	s := newPlayed(t, func(c *Config) { c.UploadBps, c.DownloadBps = 80, 800 })
	x := s.Store.swap
	if x.upLimit.Limit() != 10 || x.downLimit.Limit() != 100 || x.upLimit.Burst() != maxBlockBytes {
		t.Errorf("caps of %f and %f, burst %d", x.upLimit.Limit(), x.downLimit.Limit(), x.upLimit.Burst())
	}
	s.Cap(16, 24)
	if x.upLimit.Limit() != 2 || x.downLimit.Limit() != 3 {
		t.Errorf("changed to %f and %f, want 2 and 3", x.upLimit.Limit(), x.downLimit.Limit())
	}
}

// What is more than a burst waits for its turn in parts; nothing does not wait.
func TestWaitingBelowACap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, l := time.Now(), newLimiter(bitsPerByte*limitBurst) // a burst each second
		for _, tt := range []struct {
			n    int
			took time.Duration
		}{
			{0, 0},
			{limitBurst, 0},
			{2*limitBurst + limitBurst/2, 2500 * time.Millisecond},
			{0, 2500 * time.Millisecond},
		} {
			if err := waitLimit(t.Context(), l, tt.n); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took.Round(time.Millisecond) != tt.took {
				t.Errorf("after %d bytes more %s have passed, want %s", tt.n, took, tt.took)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := waitLimit(ctx, l, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("after its context: %v", err)
		}
	})
}

// sink takes messages.
type sink struct {
	bsnetwork.BitSwapNetwork
	sent []bsmsg.BitSwapMessage
}

func (s *sink) SendMessage(_ context.Context, _ peer.ID, msg bsmsg.BitSwapMessage) error {
	s.sent = append(s.sent, msg)
	return nil
}

// messageOf is a message with blocks.
func messageOf(contents ...[]byte) bsmsg.BitSwapMessage {
	msg := bsmsg.New(false)
	for _, content := range contents {
		msg.AddBlock(blocks.NewBlock(content))
	}
	return msg
}

// A message goes out when its bytes are below the cap, and is counted then.
func TestMessagesWaitForTheCap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := counters{obs.NewRegistry()}
		s := newPlayed(t, func(cfg *Config) { cfg.Metrics = c.reg })
		out := new(sink)
		n := &cappedNetwork{
			BitSwapNetwork: out, limit: newLimiter(bitsPerByte * 1000), metrics: s.metrics,
		}
		msg := messageOf(noise(1, 1000))
		began := time.Now()
		if err := n.limit.WaitN(t.Context(), limitBurst); err != nil {
			t.Fatal(err)
		}
		if err := n.SendMessage(t.Context(), "p", msg); err != nil || len(out.sent) != 1 {
			t.Errorf("%d messages are sent, %v", len(out.sent), err)
		}
		want := time.Duration(msg.Size()) * time.Millisecond
		if took := time.Since(began); took.Round(time.Millisecond) != want {
			t.Errorf("%d bytes at 1 kB/s took %s", msg.Size(), took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := n.SendMessage(ctx, "p", msg); !errors.Is(err, context.Canceled) || len(out.sent) != 1 {
			t.Errorf("after its context: %v, %d are sent", err, len(out.sent))
		}
		if got := c.of(t, "data_sent_bytes_total"); got != float64(msg.Size()) {
			t.Errorf("%g bytes are counted, want %d", got, msg.Size())
		}
	})
}

// All blocks of the messages behind the first one measure the link, in the time until the
// last of them.
func TestMessagesMeasureTheLink(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, p := newPlayed(t, nil), somePeer(t)
		end := s.meter.begin([]peer.ID{p})
		for range 3 {
			s.Store.swap.MessageReceived(p, messageOf(noise(1, 1<<20), noise(2, 1<<18)))
			time.Sleep(time.Second)
		}
		s.Store.swap.MessageReceived(p, messageOf()) // no blocks, no measurement
		end()
		if got, want := s.Link(siteOf(p)).DownBps, int64(8*(1<<20+1<<18)); got != want {
			t.Errorf("%d bit/s, want %d", got, want)
		}
	})
}

// Who fetches hears who lacks what, until the fetch ends; who lacks nothing is not heard.
func TestWordsReachFetches(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	c := hashed(t, cid.Raw, 0x12, 32)
	f := newTestFetcher(t, s, c)
	unwatch := s.Store.swap.watch(f)
	s.say("p", c)
	s.say("p")
	if len(f.lacks) != 1 {
		t.Fatalf("%d words, want 1", len(f.lacks))
	}
	if l := <-f.lacks; l.p != "p" || len(l.cids) != 1 || !l.cids[0].Equals(c) {
		t.Errorf("heard %+v", l)
	}
	unwatch()
	if s.say("p", c); len(f.lacks) != 0 {
		t.Error("words reach a fetch that has ended")
	}
}
