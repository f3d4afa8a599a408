package data

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func TestFetchFile(t *testing.T) {
	a, b := newSite(t, nil), newSite(t, nil)
	b.knows(a)
	data := noise(1, 5<<20+17)
	ref := mustAdd(t, a.Store, data)
	if ref.Dir || ref.Bytes != int64(len(data)) {
		t.Errorf("Ref = %+v, want a file of %d bytes", ref, len(data))
	}
	var last, total int64
	res, err := b.Fetch(within(t), ref.CID, []grid.SiteID{a.id}, func(done, all int64) {
		if done < last {
			t.Errorf("progress falls from %d to %d", last, done)
		}
		last, total = done, all
	})
	if err != nil {
		t.Fatal(err)
	}
	if last != total || last != res.Bytes || res.Bytes < ref.Bytes {
		t.Errorf("progress ends at %d of %d, moved %d, content %d", last, total, res.Bytes, ref.Bytes)
	}
	if got, err := b.Stat(ref.CID); err != nil || got != ref {
		t.Errorf("Stat = %+v, %v; want %+v", got, err, ref)
	}
	if !bytes.Equal(mustCat(t, b.Store, ref.CID), data) {
		t.Error("other content arrived")
	}
	if again := mustFetch(t, b.Store, ref.CID); again.Bytes != 0 {
		t.Errorf("a second fetch moved %d bytes, want 0", again.Bytes)
	}
	t.Logf("%d bytes in %s", res.Bytes, res.Took)
}

func TestFetchGoesOnWhereItWasCut(t *testing.T) {
	a, b := newSite(t, nil), newSite(t, nil)
	b.knows(a)
	data := noise(2, 8<<20)
	ref := mustAdd(t, a.Store, data)
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	first, err := b.Fetch(ctx, ref.CID, []grid.SiteID{a.id}, func(done, _ int64) {
		if done > 2<<20 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("cut fetch: %v, want it cancelled", err)
	}
	if first.Bytes == 0 || first.Bytes >= ref.Bytes || b.Has(ref.CID) {
		t.Fatalf("cut fetch moved %d of %d, held %v", first.Bytes, ref.Bytes, b.Has(ref.CID))
	}
	if err = b.Close(); err != nil {
		t.Fatal(err)
	}
	b2, err := Open(b.cfg, b.host) // what arrived stays across a restart
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b2.Close() }()
	second := mustFetch(t, b2, ref.CID, a.id)
	whole := a.UsedBytes()
	if first.Bytes+second.Bytes != whole {
		t.Errorf("moved %d, then %d, together %d; want %d",
			first.Bytes, second.Bytes, first.Bytes+second.Bytes, whole)
	}
	if !bytes.Equal(mustCat(t, b2, ref.CID), data) {
		t.Error("other content arrived")
	}
}

func TestDamagedBlockIsFetchedAgain(t *testing.T) {
	a := newSite(t, nil)
	var log changeLog
	b := newSite(t, func(c *Config) { c.OnChange = log.onChange })
	b.knows(a)
	data := noise(3, 3<<20)
	ref := mustAdd(t, a.Store, data)
	mustFetch(t, b.Store, ref.CID, a.id)
	eventually(t, "listener hears of the data", func() bool { return log.has(ref.CID) })

	root, err := parseCID(ref.CID)
	if err != nil {
		t.Fatal(err)
	}
	n, err := b.node(root)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := digestOf(n.links[5].Cid)
	if err != nil {
		t.Fatal(err)
	}
	if err = os.WriteFile(b.blocks.path(leaf), noise(4, chunkBytes), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := b.Cat(within(t), ref.CID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := new(bytes.Buffer).ReadFrom(r); !errors.Is(err, ErrNotHeld) {
		t.Errorf("reading damaged data: %v, want ErrNotHeld", err)
	}
	_ = r.Close()
	if b.Has(ref.CID) {
		t.Error("damaged data is still called held")
	}
	eventually(t, "listener hears of the damage", func() bool { return !log.has(ref.CID) })
	if res := mustFetch(t, b.Store, ref.CID, a.id); res.Bytes != chunkBytes {
		t.Errorf("fetching again moved %d bytes, want the one block of %d", res.Bytes, chunkBytes)
	}
	if !bytes.Equal(mustCat(t, b.Store, ref.CID), data) {
		t.Error("other content arrived")
	}
	eventually(t, "listener hears of the repair", func() bool { return log.has(ref.CID) })
}

func TestStrangerGetsNothing(t *testing.T) {
	var member atomic.Value
	member.Store(peer.ID(""))
	a := newSite(t, func(c *Config) { c.Allow = func(p peer.ID) bool { return p == member.Load() } })
	b := newSite(t, nil)
	b.knows(a)
	ref := mustAdd(t, a.Store, noise(5, 1<<20))
	start := time.Now()
	res, err := b.Fetch(within(t), ref.CID, []grid.SiteID{a.id}, nil)
	if !errors.Is(err, errNoHolder) || !strings.Contains(err.Error(), "does not serve") ||
		!strings.Contains(err.Error(), string(a.id)) {
		t.Errorf("stranger's fetch: %v, want ErrNoHolder with the holder and the reason", err)
	}
	if res.Bytes != 0 || b.UsedBytes() != 0 {
		t.Errorf("the stranger got %d bytes", res.Bytes)
	}
	if took := time.Since(start); took > deadline/4 {
		t.Errorf("the refusal took %s", took)
	}
	member.Store(b.host.ID())
	mustFetch(t, b.Store, ref.CID, a.id)
}

func TestHolderThatDiesIsReplaced(t *testing.T) {
	a, c := newSite(t, nil), newSite(t, nil)
	b := newSite(t, nil)
	b.knows(a, c)
	data := noise(6, 16<<20)
	ref := mustAdd(t, a.Store, data)
	mustAdd(t, c.Store, data)
	killed := false
	res, err := b.Fetch(within(t), ref.CID, []grid.SiteID{a.id, c.id}, func(done, _ int64) {
		if !killed && done > 2<<20 {
			killed = true
			_ = a.host.Close()
		}
	})
	if err != nil {
		t.Fatalf("Fetch: %v", err)
	}
	if !killed || !bytes.Equal(mustCat(t, b.Store, ref.CID), data) {
		t.Errorf("killed %v, moved %d", killed, res.Bytes)
	}
	t.Logf("%d bytes in %s", res.Bytes, res.Took)
}

func TestOnlyHolderDies(t *testing.T) {
	a, b := newSite(t, nil), newSite(t, nil)
	b.knows(a)
	ref := mustAdd(t, a.Store, noise(7, 16<<20))
	killed := false
	_, err := b.Fetch(within(t), ref.CID, []grid.SiteID{a.id}, func(done, _ int64) {
		if !killed && done > 2<<20 {
			killed = true
			_ = a.host.Close()
		}
	})
	if !errors.Is(err, errNoHolder) || !strings.Contains(err.Error(), string(a.id)) {
		t.Errorf("Fetch = %v, want ErrNoHolder with the holder's name", err)
	}
}

func TestFetchErrors(t *testing.T) {
	b := newSite(t, func(c *Config) { c.ConnectTimeout = 300 * time.Millisecond })
	a := newSite(t, nil)
	b.knows(a)
	gone := newHost(t)
	b.host.Peerstore().AddAddrs(gone.ID(), gone.Addrs(), time.Hour)
	_ = gone.Close()
	unreachable := grid.SiteID(gone.ID().String())
	missing := grid.CID("bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy")
	tests := []struct {
		name    string
		c       grid.CID
		holders []grid.SiteID
		want    error
		text    string
	}{
		{name: "nobody named", c: missing, want: errNoHolder, text: "none was named"},
		{
			name: "no peer", c: missing, holders: []grid.SiteID{"nobody"}, want: errNoHolder,
			text: "not a peer id",
		},
		{name: "self", c: missing, holders: []grid.SiteID{b.id}, want: errNoHolder, text: "this site"},
		{
			name: "unreachable", c: missing, holders: []grid.SiteID{unreachable},
			want: errNoHolder, text: "cannot be reached",
		},
		{
			name: "not there", c: missing, holders: []grid.SiteID{a.id}, want: errNoHolder,
			text: "does not hold",
		},
		{
			name: "one without it, one unreachable", c: missing, holders: []grid.SiteID{a.id, unreachable},
			want: errNoHolder, text: "cannot be reached",
		},
		{name: "no cid", c: "hello", want: ErrUnsupported, text: "hello"},
		{
			name: "other hash", c: "bafyaaiakamfxe2lom5xw4z3bo5sxe2dfnrwg6", want: ErrUnsupported,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := b.Fetch(within(t), tt.c, tt.holders, nil)
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("Fetch = %v, want %v with %q", err, tt.want, tt.text)
			}
		})
	}
	if len(b.roots) != 0 {
		t.Errorf("failed fetches left %d roots", len(b.roots))
	}
}

func TestFetchTogether(t *testing.T) {
	a, b := newSite(t, nil), newSite(t, nil)
	b.knows(a)
	ref := mustAdd(t, a.Store, noise(8, 4<<20))
	results := make(chan int64, 4)
	for range cap(results) {
		go func() {
			res, err := b.Fetch(within(t), ref.CID, []grid.SiteID{a.id}, nil)
			if err != nil {
				t.Errorf("Fetch: %v", err)
			}
			results <- res.Bytes
		}()
	}
	var moved int64
	for range cap(results) {
		moved += <-results
	}
	if moved != a.UsedBytes() {
		t.Errorf("four fetches of one file moved %d bytes, want %d", moved, a.UsedBytes())
	}
}

func TestCaps(t *testing.T) {
	const bps = 32 << 20 // 4 MiB/s beyond the first 2 MiB
	for _, side := range []string{"upload", "download"} {
		t.Run(side, func(t *testing.T) {
			a := newSite(t, func(c *Config) {
				if side == "upload" {
					c.UploadBps = bps
				}
			})
			b := newSite(t, func(c *Config) {
				if side == "download" {
					c.DownloadBps = bps
				}
			})
			b.knows(a)
			ref := mustAdd(t, a.Store, noise(9, 4<<20))
			res := mustFetch(t, b.Store, ref.CID, a.id)
			if res.Took < 400*time.Millisecond || res.Took > 5*time.Second {
				t.Errorf("4 MiB at 4 MiB/s with a burst of 2 MiB took %s, want about 500 ms", res.Took)
			}
		})
	}
}
