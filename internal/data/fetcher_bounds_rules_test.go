package data

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ipfs/boxo/ipld/unixfs"
	"github.com/ipfs/go-cid"
	ipld "github.com/ipfs/go-ipld-format"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// A graph is fetched to 256 levels and to as many blocks as the limits allow.
func TestBoundsOfAFetch(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, func(c *Config) { c.Limits.Nodes = 3 })
	missing := hashed(t, cid.Raw, 0x12, 32)
	for _, tt := range []struct {
		depth, seen int
		want        error
	}{
		{maxGraphDepth, 2, nil},
		{maxGraphDepth + 1, 2, ErrTooLarge},
		{1, 3, ErrTooLarge},
	} {
		f := newTestFetcher(t, s, missing)
		f.todo = []want{{c: missing, depth: tt.depth}}
		for i := range tt.seen {
			f.seen[digest{byte(i)}] = true
		}
		asked := 0
		if err := f.advance(func(want) { asked++ }); !errors.Is(err, tt.want) ||
			(asked == 1) != (err == nil) {
			t.Errorf("depth %d after %d blocks: %v, asked for %d", tt.depth, tt.seen, err, asked)
		}
	}
	f := newTestFetcher(t, s, missing)
	dir := pbNode(t, unixfs.FolderPBData(), &ipld.Link{Name: "a", Cid: missing, Size: 9})
	f.todo = nil
	if err := f.grow(want{c: dir.Cid(), depth: 7}, digest{1}, dir.RawData()); err != nil ||
		len(f.todo) != 1 || f.todo[0].depth != 8 || f.todo[0].size != 9 {
		t.Errorf("below a block of depth 7: %+v, %v", f.todo, err)
	}
}

// What is here but cannot be read, or is more than the limits allow, ends a fetch.
func TestFetchOfWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	leaf := hostileLeaf(t, s.Store, "1")
	path := s.blocks.path(digestFor(t, leaf))
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	f := newTestFetcher(t, s, leaf)
	if err := f.advance(nil); err == nil || !strings.Contains(err.Error(), "read block") {
		t.Errorf("a directory in place of a block: %v", err)
	}
	whole := pbNode(t, unixfs.FolderPBData(),
		&ipld.Link{Name: "a", Cid: hostileLeaf(t, s.Store, "a"), Size: 1},
		&ipld.Link{Name: "b", Cid: hashed(t, cid.Raw, 0x12, 32), Size: 1})
	hostile(t, s.Store, whole)
	s.cfg.Limits.Nodes = 1
	f = newTestFetcher(t, s, whole.Cid())
	if err := f.grow(want{c: whole.Cid()}, digest{1}, whole.RawData()); !errors.Is(err, ErrTooLarge) {
		t.Errorf("more blocks are here than the limits allow: %v", err)
	}
}

// A block that came is asked for no longer, and nobody lacks it.
func TestArrivals(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	leaf, other := hostileLeaf(t, s.Store, "1"), hashed(t, cid.Raw, 0x12, 32)
	f := newTestFetcher(t, s, leaf)
	for _, c := range []cid.Cid{leaf, other} {
		f.pending[digestFor(t, c)] = want{c: c, depth: 1}
		f.lacking[digestFor(t, c)] = map[peer.ID]bool{"p": true}
	}
	broken := errors.New("broken")
	if err := f.arrived(arrival{w: want{c: leaf}, err: broken}); !errors.Is(err, broken) ||
		len(f.pending) != 2 {
		t.Errorf("a request for nothing: %v, %d are asked for", err, len(f.pending))
	}
	if err := f.arrived(arrival{w: want{c: leaf, depth: 1}, data: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	if d := digestFor(t, other); len(f.pending) != 1 || len(f.lacking) != 1 || !f.lacking[d]["p"] {
		t.Errorf("asked for %v, lacked %v", f.pending, f.lacking)
	}
	if f.moved != 1 || f.done != 1 {
		t.Errorf("%d bytes moved, %d are here", f.moved, f.done)
	}
}

// A round begins without what the one before it found.
func TestRoundsBeginAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newPlayed(t, func(c *Config) { c.ConnectTimeout = time.Minute })
		slow := &holder{id: "slow", up: true, err: errors.New("before")}
		quick := &holder{id: "quick", err: errors.New("before")}
		bad := &holder{id: "bad", bad: true, err: errors.New("no peer")}
		s.net.dial = func(ctx context.Context, to peer.ID) error {
			if to == "slow" {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		f := newTestFetcher(t, s, hashed(t, cid.Raw, 0x12, 32), slow, quick, bad)
		ctx, cancel := context.WithCancel(t.Context())
		results, up := f.connect(ctx)
		if !up || slow.up || slow.err != nil || !quick.up || quick.err != nil || bad.up ||
			bad.err == nil {
			t.Errorf("reached %t: %+v, %+v, %+v", up, slow, quick, bad)
		}
		cancel()
		if f.onReached(<-results); slow.up || !errors.Is(slow.err, context.Canceled) {
			t.Errorf("the other one, after the end: %+v", slow)
		}
		f.workers.Wait()
	})
}

// A connection that is lost again and again ends the fetch, which says so; each round is in
// the log of the site.
func TestConnectionsLostAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		s := newPlayed(t, func(c *Config) {
			c.Log = slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug}))
		})
		p := somePeer(t)
		s.net.dial = func(context.Context, peer.ID) error {
			time.AfterFunc(1100*time.Millisecond, func() { s.net.set(p, false) })
			return nil
		}
		result, err := s.Fetch(t.Context(), gridCID(hashed(t, cid.Raw, 0x12, 32)),
			[]grid.SiteID{siteOf(p)}, nil)
		if !errors.Is(err, errNoHolder) || !strings.Contains(err.Error(), "the connection was lost") ||
			result.Took != 2500*time.Millisecond {
			t.Errorf("after %s: %v", result.Took, err)
		}
		if got := strings.Count(text.String(), "fetch goes on"); got != 1 {
			t.Errorf("the log of the site tells of %d more rounds, want 1:\n%s", got, text.String())
		}
	})
}
