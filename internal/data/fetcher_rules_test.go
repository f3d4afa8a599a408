package data

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ipfs/boxo/ipld/unixfs"
	"github.com/ipfs/go-cid"
	ipld "github.com/ipfs/go-ipld-format"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// A holder that is silent is asked again after a twelfth of the stall timeout, then after
// twice as long each time, and given up when it has sent nothing for two whole ones.
func TestSilentHoldersAreAskedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, p := newPlayed(t, nil), somePeer(t)
		c := gridCID(hashed(t, cid.Raw, 0x12, 32))
		result, err := s.Fetch(t.Context(), c, []grid.SiteID{siteOf(p)}, nil)
		if !errors.Is(err, errNoHolder) || !strings.Contains(err.Error(), "sent nothing for 1m0s") {
			t.Errorf("Fetch = %v", err)
		}
		if want := (5 + 10 + 20 + 40 + 60 + 60) * time.Second; result.Took != want {
			t.Errorf("it took %s, want %s", result.Took, want)
		}
		if got := s.net.dialled(); got != 6 || s.requests() != 6 {
			t.Errorf("%d rounds with %d requests, want 6", got, s.requests())
		}
		wantIdle(t, s.Store)
		if len(s.roots) != 0 {
			t.Errorf("%d roots are noted", len(s.roots))
		}
	})
}

func (p *played) requests() int { return p.swap.requests() }

// A block that comes begins the patience anew, and what came waits for the next fetch.
func TestPatienceBeginsAnewWithABlock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, other, p := newPlayed(t, nil), newPlayed(t, nil), somePeer(t)
		ref := mustAdd(t, other.Store, noise(1, chunkBytes+1))
		give := from(other.Store)
		s.swap.give = func(ctx context.Context, c cid.Cid) ([]byte, error) {
			if s.requests() != 6 { // that of the round before it would be given up
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return give(ctx, c)
		}
		result, err := s.Fetch(t.Context(), ref.CID, []grid.SiteID{siteOf(p)}, nil)
		if !errors.Is(err, errNoHolder) {
			t.Errorf("Fetch = %v", err)
		}
		again := 5 + 10 + 20 + 40 + 60
		if want := time.Duration(again+60+again+60) * time.Second; result.Took != want {
			t.Errorf("it took %s, want %s", result.Took, want)
		}
		if got := s.net.dialled(); got != 12 {
			t.Errorf("%d rounds, want 12", got)
		}
		d := digestFor(t, rootOf(t, ref.CID))
		if size, here := s.blocks.size(d); !here || result.Bytes != size {
			t.Errorf("the first block of %d bytes is here: %t, moved %d", size, here, result.Bytes)
		}
		if r := s.roots[ref.CID]; r == nil || !r.Partial {
			t.Errorf("what came is noted as %+v, want it partial", r)
		}
		wantIdle(t, s.Store)
		s.swap.give = from(other.Store)
		mustFetch(t, s.Store, ref.CID, siteOf(p))
	})
}

// Each arrival winds up the clock that ends a round.
func TestArrivalsEndTheQuiet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, other, p := newPlayed(t, nil), newPlayed(t, nil), somePeer(t)
		ref := mustAdd(t, other.Store, noise(1, 3*chunkBytes))
		give := from(other.Store)
		var before atomic.Int64 // requests; the first one, for the root, is alone
		s.swap.give = func(ctx context.Context, c cid.Cid) ([]byte, error) {
			turn := max(before.Add(1)-1, 1)
			select { // one block after the other, each a moment before the round would end
			case <-time.After(time.Duration(turn*4999) * time.Millisecond):
				return give(ctx, c)
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		mustFetchAtLeisure(t, s, ref.CID, p)
		if got := s.net.dialled(); got != 1 {
			t.Errorf("%d rounds, want one", got)
		}
	})
}

// mustFetchAtLeisure is mustFetch that may take long.
func mustFetchAtLeisure(t *testing.T, s *played, c grid.CID, holders ...peer.ID) FetchResult {
	t.Helper()
	var sites []grid.SiteID
	for _, p := range holders {
		sites = append(sites, siteOf(p))
	}
	result, err := s.Fetch(t.Context(), c, sites, nil)
	if err != nil {
		t.Fatalf("Fetch: %v", err)
	}
	wantIdle(t, s.Store)
	return result
}

// A connection that is lost is noticed within a quarter of a second and made anew.
func TestLostConnections(t *testing.T) {
	t.Parallel()
	gone := errors.New("gone for good")
	for _, again := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s, other, p := newPlayed(t, nil), newPlayed(t, nil), somePeer(t)
			ref := mustAdd(t, other.Store, noise(1, 100))
			s.net.dial = func(context.Context, peer.ID) error {
				if s.net.dialled() == 1 {
					time.AfterFunc(1100*time.Millisecond, func() { s.net.set(p, false) })
				} else if !again {
					return gone
				}
				return nil
			}
			give := from(other.Store)
			s.swap.give = func(ctx context.Context, c cid.Cid) ([]byte, error) {
				if s.requests() == 1 {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return give(ctx, c)
			}
			result, err := s.Fetch(t.Context(), ref.CID, []grid.SiteID{siteOf(p)}, nil)
			if again && err != nil || !again && (!errors.Is(err, errNoHolder) ||
				!strings.Contains(err.Error(), "cannot be reached: gone for good")) {
				t.Errorf("it comes again: %t; %v", again, err)
			}
			if result.Took != 1250*time.Millisecond || s.net.dialled() != 2 {
				t.Errorf("it took %s and %d dials, want 1.25 s and 2", result.Took, s.net.dialled())
			}
			wantIdle(t, s.Store)
		})
	}
}

// The window opens by one with each block and halves with one that took more than 4 s,
// between 4 and 64.
func TestWindow(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	leaf := hostileLeaf(t, s.Store, "1")
	for _, tt := range []struct {
		before, after int
		took          time.Duration
	}{
		{startWindow, startWindow + 1, 0},
		{startWindow, startWindow + 1, slowBlock},
		{startWindow, startWindow / 2, slowBlock + 1},
		{maxWindow, maxWindow, 0},
		{maxWindow - 1, maxWindow, 0},
		{minWindow, minWindow, slowBlock + 1},
		{2*minWindow + 2, minWindow + 1, slowBlock + 1},
	} {
		f := newTestFetcher(t, s, leaf)
		f.window = tt.before
		if err := f.arrived(arrival{
			w: want{c: leaf, depth: 1}, data: []byte("1"), took: tt.took,
		}); err != nil {
			t.Fatal(err)
		}
		if f.window != tt.after {
			t.Errorf("of %d after %s: %d, want %d", tt.before, tt.took, f.window, tt.after)
		}
	}
}

// newTestFetcher is a fetcher of a graph that nobody runs.
func newTestFetcher(t testing.TB, s *played, c cid.Cid, holders ...*holder) *fetcher {
	t.Helper()
	_, op, err := s.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(op.end)
	return newFetcher(s.Store, op, c, holders, func(int64, int64) {})
}

// As many blocks are asked for at the same time as the window has places, none twice, and
// those at the front of a file first.
func TestBlocksAskedForTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, other, p := newPlayed(t, nil), newPlayed(t, nil), somePeer(t)
		ref := mustAdd(t, other.Store, noise(1, 30*chunkBytes))
		root := rootOf(t, ref.CID)
		n, err := other.node(root)
		if err != nil {
			t.Fatal(err)
		}
		give, gate := from(other.Store), make(chan struct{})
		s.swap.give = func(ctx context.Context, c cid.Cid) ([]byte, error) {
			if !c.Equals(root) {
				<-gate
			}
			return give(ctx, c)
		}
		done := make(chan error)
		go func() {
			_, err := s.Fetch(t.Context(), ref.CID, []grid.SiteID{siteOf(p)}, nil)
			done <- err
		}()
		synctest.Wait()
		first := slices.Clone(s.swap.asked)
		if len(first) != 1+startWindow+1 { // the root opened the window by one
			t.Errorf("%d blocks were asked for, want the first and %d", len(first), startWindow+1)
		}
		for _, c := range first[1:] {
			if i := slices.IndexFunc(n.links, func(l *ipld.Link) bool { return l.Cid.Equals(c) }); i < 0 ||
				i > startWindow {
				t.Errorf("block %d is among the first ones asked for", i)
			}
		}
		close(gate)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got := s.requests(); got != 31 {
			t.Errorf("%d requests for 31 blocks", got)
		}
		told := slices.Clone(s.swap.told)
		if len(told) != 31 {
			t.Errorf("who waits for them was told of %d blocks, want 31", len(told))
		}
	})
}

// Content that a graph has twice is asked for once, and progress ends where all is here.
func TestRepeatedContentMovesOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, other, p := newPlayed(t, nil), newPlayed(t, nil), somePeer(t)
		text := strings.Repeat("x", 2*chunkBytes) // two leaves of the same content
		ref, err := other.AddTar(t.Context(), bytes.NewReader(tarOf(t,
			tarFileEntry{name: "a/f", content: text}, tarFileEntry{name: "b/g", content: text})))
		if err != nil {
			t.Fatal(err)
		}
		s.swap.give = from(other.Store)
		var done, total int64
		result, err := s.Fetch(t.Context(), ref.CID, []grid.SiteID{siteOf(p)}, func(d, all int64) {
			if d < done || d > all {
				t.Errorf("progress from %d to %d of %d", done, d, all)
			}
			done, total = d, all
		})
		if err != nil {
			t.Fatal(err)
		}
		if used := other.UsedBytes(); result.Bytes != used || done != used || total != used {
			t.Errorf("moved %d, progress %d of %d; want %d", result.Bytes, done, total, used)
		}
		var asked []string
		for _, c := range s.swap.asked {
			asked = append(asked, c.String())
		}
		slices.Sort(asked)
		if got := len(slices.Compact(asked)); got != len(s.swap.asked) {
			t.Errorf("%d requests for %d blocks", len(s.swap.asked), got)
		}
	})
}

// What is here is believed, but where its file may have suffered, or is not as long as it
// should be, it is read; a damaged one is asked for again.
func TestWhatIsHereIsTaken(t *testing.T) {
	t.Parallel()
	s, seed := newPlayed(t, nil), uint64(0)
	for name, tt := range map[string]struct {
		settled bool // on disk for sure
		damaged bool
		size    int64 // as its parent claims
		taken   bool
	}{
		"settled":                     {true, false, 100, true},
		"settled, not looked at":      {true, true, 100, true},
		"settled, of another size":    {true, false, 99, true},
		"another size, damaged":       {true, true, 99, false},
		"a power cut may have hit it": {false, false, 100, true},
		"and has":                     {false, true, 100, false},
	} {
		seed++
		leaf := hostileLeaf(t, s.Store, string(noise(seed, 100)))
		d := digestFor(t, leaf)
		if tt.settled {
			if err := s.blocks.syncFiles([]digest{d}); err != nil {
				t.Fatal(err)
			}
		}
		if tt.damaged {
			damage(t, s.Store, d)
		}
		f := newTestFetcher(t, s, leaf)
		f.todo = []want{{c: leaf, size: tt.size, depth: 1}}
		var asked []want
		if err := f.advance(func(w want) { asked = append(asked, w) }); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if taken := len(asked) == 0; taken != tt.taken || taken != (f.done == 100) ||
			taken != f.complete() || !f.seen[d] {
			t.Errorf("%s: taken %t, %d bytes here; want it taken: %t", name, taken, f.done, tt.taken)
		}
	}
}

// damage changes a block's file and keeps its length.
func damage(t testing.TB, s *Store, d digest) {
	t.Helper()
	content, err := os.ReadFile(s.blocks.path(d))
	if err != nil {
		t.Fatal(err)
	}
	content[0] ^= 1
	if err := os.WriteFile(s.blocks.path(d), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// What is here of a graph is read first, its children too; without a way to ask, looking
// ends at the first block that is missing, which is looked at again.
func TestWhatIsHereIsLookedAtFirst(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	here := hostileLeaf(t, s.Store, "here")
	missing := hashed(t, cid.Raw, 0x12, 32)
	dir := pbNode(t, unixfs.FolderPBData(),
		&ipld.Link{Name: "a", Cid: here, Size: 4}, &ipld.Link{Name: "b", Cid: missing, Size: 7},
		&ipld.Link{Name: "c", Cid: here, Size: 4})
	hostile(t, s.Store, dir)
	f := newTestFetcher(t, s, dir.Cid())
	if err := f.advance(nil); err != nil || f.complete() {
		t.Errorf("advance = %v, complete: %t", err, f.complete())
	}
	size := int64(len(dir.RawData()))
	if f.done != size+4 || f.total != size+4+7 || f.moved != 0 {
		t.Errorf("%d of %d bytes are here, %d moved", f.done, f.total, f.moved)
	}
	var asked []want
	if err := f.advance(func(w want) { asked = append(asked, w) }); err != nil {
		t.Error(err)
	}
	if len(asked) != 1 || !asked[0].c.Equals(missing) || asked[0].size != 7 || len(f.todo) != 0 ||
		f.complete() {
		t.Errorf("asked for %+v, %d to look at", asked, len(f.todo))
	}
	odd := newTestFetcher(t, s, hashed(t, cid.Raw, 0x16, 32))
	if err := odd.advance(nil); !errors.Is(err, ErrUnsupported) {
		t.Errorf("a block of another hash: %v", err)
	}
}

// What comes after a round is taken, and what is still missing is asked for in the next.
func TestEndOfARound(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	leaf, missing := hostileLeaf(t, s.Store, "1"), hashed(t, cid.Raw, 0x12, 32)
	f := newTestFetcher(t, s, leaf)
	f.todo = nil
	for _, c := range []cid.Cid{leaf, missing} {
		d := digestFor(t, c)
		f.pending[d], f.seen[d] = want{c: c, depth: 1}, true
		f.lacking[d] = map[peer.ID]bool{"p": true}
	}
	f.arrivals <- arrival{err: errRound}
	f.arrivals <- arrival{err: ErrDiskFull}
	f.arrivals <- arrival{w: f.pending[digestFor(t, leaf)], data: []byte("1")}
	err := f.drain()
	if !errors.Is(err, ErrDiskFull) || errors.Is(err, errRound) {
		t.Errorf("drain = %v, want the one that counts", err)
	}
	if len(f.pending)+len(f.lacking) != 0 || f.moved != 1 || f.done != 1 {
		t.Errorf("%d are asked for, %d lacked, %d moved, %d here",
			len(f.pending), len(f.lacking), f.moved, f.done)
	}
	if len(f.todo) != 1 || !f.todo[0].c.Equals(missing) || f.seen[digestFor(t, missing)] ||
		!f.seen[digestFor(t, leaf)] {
		t.Errorf("to be looked at: %+v", f.todo)
	}
}

// Of a disk that was full when the round ended the caller hears, not of the end.
func TestLateErrorsCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, other, p := newPlayed(t, nil), newPlayed(t, nil), somePeer(t)
		give, write := from(other.Store), s.blocks.write
		s.blocks.write = func(f *os.File, data []byte) error {
			if len(data) == 1 {
				return syscall.ENOSPC
			}
			return write(f, data)
		}
		for i := range 20 {
			ref := mustAdd(t, other.Store, noise(uint64(i), chunkBytes+1))
			ctx, cancel := context.WithCancel(t.Context())
			last := make(chan struct{}) // closed when the last block may come, of one byte
			s.swap.give = func(ctx context.Context, c cid.Cid) ([]byte, error) {
				data, err := give(ctx, c)
				if len(data) == 1 {
					<-last
				}
				return data, err
			}
			_, err := s.Fetch(ctx, ref.CID, []grid.SiteID{siteOf(p)}, func(done, _ int64) {
				if done > chunkBytes { // the large block came
					close(last)
					synctest.Wait()
					cancel()
				}
			})
			cancel()
			if !errors.Is(err, ErrDiskFull) {
				t.Fatalf("fetch %d: %v, want ErrDiskFull", i, err)
			}
			wantIdle(t, s.Store)
		}
	})
}

// Each request waits for its turn below the cap: for what its parent said, one byte at
// least and a leaf at most.
func TestRequestsKeepToTheCap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newPlayed(t, func(c *Config) { c.DownloadBps = 8 * limitBurst })
		other, p := newPlayed(t, nil), somePeer(t)
		s.swap.give = from(other.Store)
		ref := mustAdd(t, other.Store, noise(1, 2*chunkBytes+5))
		result := mustFetchAtLeisure(t, s, ref.CID, p)
		if left := s.Store.swap.downLimit.Tokens(); left != limitBurst-1-2*chunkBytes-5 {
			t.Errorf("%f bytes of the burst of %d are left after %d", left, limitBurst, result.Bytes)
		}
		if result.Took != 0 {
			t.Errorf("within the burst it took %s", result.Took)
		}
		large := mustAdd(t, other.Store, noise(2, 16*chunkBytes))
		if got := mustFetchAtLeisure(t, s, large.CID, p); got.Took < time.Second ||
			got.Took > 2*time.Second {
			t.Errorf("4 MiB at 2 MiB/s with a part of a burst took %s", got.Took)
		}
	})
}
