package data

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	bsmsg "github.com/ipfs/boxo/bitswap/message"
	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// The first holders that are named are asked, each once; what is no peer, or this site, is
// not asked and said to be so.
func TestWhoIsAsked(t *testing.T) {
	t.Parallel()
	self, one := somePeer(t), somePeer(t)
	named := []grid.SiteID{siteOf(one), siteOf(one), "nobody", siteOf(self)}
	for range grid.MaxHolders {
		named = append(named, siteOf(somePeer(t)))
	}
	got := newHolders(self, named)
	if len(got) != grid.MaxHolders {
		t.Fatalf("%d holders are asked, want %d", len(got), grid.MaxHolders)
	}
	for i, want := range slices.Concat(named[:1], named[2:])[:grid.MaxHolders] {
		h := got[i]
		bad := i == 1 || i == 2
		if h.site != want || h.bad != bad || (h.err != nil) != bad || h.up ||
			!bad && siteOf(h.id) != want {
			t.Errorf("holder %d is %+v, want %s, bad: %t", i, h, want, bad)
		}
	}
	text := holdersError(got).Error()
	for _, want := range []string{
		"nobody: not a peer id", string(siteOf(self)) + ": it is this site",
		string(siteOf(one)) + ": did not deliver; ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
	if err := holdersError(nil); !errors.Is(err, errNoHolder) ||
		!strings.Contains(err.Error(), "none was named") {
		t.Errorf("without holders: %v", err)
	}
	f := fetcher{holders: got}
	if ids := f.peers(); len(ids) != grid.MaxHolders-2 || ids[0] != one {
		t.Errorf("%d peers can be asked, the first %s", len(ids), ids[0])
	}
}

// say lets a peer say that it lacks a block.
func (p *played) say(from peer.ID, lacks ...cid.Cid) {
	msg := bsmsg.New(false)
	for _, c := range lacks {
		msg.AddDontHave(c)
	}
	p.Store.swap.MessageReceived(from, msg)
}

// A fetch ends when each holder lacks a block, or cannot be asked for it; not before.
func TestHoldersThatLackABlock(t *testing.T) {
	t.Parallel()
	const later = 3 * time.Second
	gone := errors.New("gone")
	for _, tt := range []struct {
		name       string
		dial       error // of the second holder, later
		both       bool  // both are reached immediately
		lacks      bool  // the second one lacks the block, too, later
		gives      bool  // the second one gives the block, later
		took       time.Duration
		first, and string // said of the two holders
	}{
		{
			name: "the other one gives it", both: true, gives: true, took: later,
		},
		{
			name: "the other one is reached later, and gives it", gives: true, took: later,
		},
		{
			name: "the other one cannot be reached", dial: gone, took: later,
			first: "does not hold block", and: "cannot be reached: gone",
		},
		{
			name: "the other one lacks it, too", both: true, lacks: true, took: later,
			first: "does not hold block", and: "does not hold block",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, other, a, b := newPlayed(t, nil), newPlayed(t, nil), somePeer(t), somePeer(t)
				ref := mustAdd(t, other.Store, noise(1, 100))
				root := rootOf(t, ref.CID)
				s.net.dial = func(_ context.Context, to peer.ID) error {
					if to == b && !tt.both {
						time.Sleep(later)
						return tt.dial
					}
					return nil
				}
				give := from(other.Store)
				s.swap.give = func(ctx context.Context, c cid.Cid) ([]byte, error) {
					s.say(a, c, hashed(t, cid.Raw, 0x12, 32)) // and of another block
					time.Sleep(later)
					if tt.lacks {
						s.say(b, c)
					}
					if !tt.gives {
						<-ctx.Done()
						return nil, ctx.Err()
					}
					return give(ctx, c)
				}
				result, err := s.Fetch(t.Context(), ref.CID, []grid.SiteID{siteOf(a), siteOf(b)}, nil)
				if (err == nil) != tt.gives || result.Took != tt.took {
					t.Errorf("after %s: %v, want %s", result.Took, err, tt.took)
				}
				if tt.gives {
					return
				}
				if !errors.Is(err, errNoHolder) {
					t.Fatal(err)
				}
				texts := strings.SplitN(err.Error(), ";", 2)
				if len(texts) != 2 || !strings.Contains(texts[0], tt.first) ||
					!strings.Contains(texts[1], tt.and) {
					t.Errorf("%v; want %q and %q", err, tt.first, tt.and)
				}
				if strings.Contains(tt.first, "hold") && !strings.Contains(texts[0], root.String()) {
					t.Errorf("%v does not name block %s", err, root)
				}
				wantIdle(t, s.Store)
			})
		})
	}
}

// A holder may have what others lack unless it is none, was lost or could not be reached, or
// lacks the block itself.
func TestWhoMayHaveABlock(t *testing.T) {
	t.Parallel()
	s, p := newPlayed(t, nil), somePeer(t)
	broken := errors.New("broken")
	for _, tt := range []struct {
		h         holder
		connected bool
		lacks     bool
		want      bool
	}{
		{h: holder{}, want: true}, // it is still being reached
		{h: holder{up: true}, connected: true, want: true},
		{h: holder{err: broken}, connected: true, want: true},
		{h: holder{up: true}, want: false},
		{h: holder{err: broken}, want: false},
		{h: holder{bad: true}, connected: true, want: false},
		{h: holder{up: true}, connected: true, lacks: true, want: false},
		{h: holder{}, lacks: true, want: false},
	} {
		s.net.set(p, tt.connected)
		tt.h.id = p
		f := newTestFetcher(t, s, hashed(t, cid.Raw, 0x12, 32), &tt.h)
		if got := f.mayHave(&tt.h, map[peer.ID]bool{p: tt.lacks}); got != tt.want {
			t.Errorf("%+v, connected: %t, lacks it: %t: %t, want %t",
				tt.h, tt.connected, tt.lacks, got, tt.want)
		}
		if got := f.connected(&tt.h); got != (tt.connected && !tt.h.bad) {
			t.Errorf("%+v, connected: %t: %t", tt.h, tt.connected, got)
		}
		if got := f.worthAnother(); got != tt.h.up {
			t.Errorf("%+v is worth another round: %t", tt.h, got)
		}
	}
}

// A word about a block counts while it is asked for.
func TestWordsOfLacks(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	asked, other := hashed(t, cid.Raw, 0x12, 32), hostileLeaf(t, s.Store, "1")
	f := newTestFetcher(t, s, asked, &holder{id: "a", up: true}, &holder{id: "b", up: true})
	s.net.set("b", true)
	f.pending[digestFor(t, asked)] = want{c: asked}
	f.noteLack(lack{p: "b", cids: []cid.Cid{other, hashed(t, cid.Raw, 0x16, 32)}})
	if len(f.lacking) != 0 || f.hopeless() != nil {
		t.Errorf("words about others count: %v", f.lacking)
	}
	f.noteLack(lack{p: "c", cids: []cid.Cid{asked}})
	if err := f.hopeless(); err != nil {
		t.Errorf("one that is no holder lacks it: %v", err)
	}
	f.noteLack(lack{p: "b", cids: []cid.Cid{asked}})
	if err := f.hopeless(); !errors.Is(err, errLack) {
		t.Errorf("one is lost, the other one lacks it: %v, want errLack", err)
	}
	if f.holders[0].err != nil || f.holders[1].err == nil {
		t.Errorf("blamed: %v and %v, want the second one alone", f.holders[0].err, f.holders[1].err)
	}
}

// More words than can be kept are dropped, and nobody waits.
func TestWordsAreDropped(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	f := newTestFetcher(t, s, hashed(t, cid.Raw, 0x12, 32))
	for range lacksBacklog + 1 {
		f.onLacks("a", nil)
	}
	if len(f.lacks) != lacksBacklog {
		t.Errorf("%d words are kept", len(f.lacks))
	}
}

// Holders that refuse end the fetch immediately, those that do not answer after
// the connect timeout.
func TestHoldersThatCannotBeReached(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		dial func(context.Context, peer.ID) error
		took time.Duration
	}{
		"refused": {func(context.Context, peer.ID) error { return errors.New("refused") }, 0},
		"deadline exceeded": {
			func(ctx context.Context, _ peer.ID) error { <-ctx.Done(); return ctx.Err() }, 7 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newPlayed(t, func(c *Config) { c.ConnectTimeout = 7 * time.Second })
				s.net.dial = tt.dial
				result, err := s.Fetch(t.Context(), gridCID(hashed(t, cid.Raw, 0x12, 32)),
					[]grid.SiteID{siteOf(somePeer(t)), siteOf(somePeer(t)), "nobody"}, nil)
				if !errors.Is(err, errNoHolder) ||
					strings.Count(err.Error(), "cannot be reached") != 2 || !strings.Contains(err.Error(), name) {
					t.Errorf("Fetch = %v", err)
				}
				if result.Took != tt.took || s.net.dialled() != 2 || s.requests() != 0 {
					t.Errorf("it took %s, %d dials and %d requests, want %s, two and none",
						result.Took, s.net.dialled(), s.requests(), tt.took)
				}
				wantIdle(t, s.Store)
			})
		})
	}
}

// heard notes which peers bitswap is told of.
type heard struct{ up, down chan peer.ID }

func (h heard) PeerConnected(p peer.ID) { h.up <- p }

func (h heard) PeerDisconnected(p peer.ID) { h.down <- p }

// A holder that is reached may be asked, whatever bitswap thought of it before.
func TestReachedHoldersMayBeAsked(t *testing.T) {
	t.Parallel()
	s, other, p := newPlayed(t, nil), newPlayed(t, nil), somePeer(t)
	s.swap.give = from(other.Store)
	told := heard{up: make(chan peer.ID, 2), down: make(chan peer.ID, 1)}
	peers := s.Store.swap.peers
	peers.SetListeners(told)
	peers.Start()
	defer peers.Stop()
	hear := func(what chan peer.ID) {
		t.Helper()
		select {
		case got := <-what:
			if got != p {
				t.Errorf("bitswap is told of %s, want %s", got, p)
			}
		case <-within(t).Done():
			t.Fatal("bitswap is not told")
		}
	}
	mustFetch(t, s.Store, mustAdd(t, other.Store, []byte("1")).CID, siteOf(p))
	hear(told.up)
	peers.MarkUnresponsive(p)
	hear(told.down)
	mustFetch(t, s.Store, mustAdd(t, other.Store, []byte("2")).CID, siteOf(p))
	hear(told.up)
}
