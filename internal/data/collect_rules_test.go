package data

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ipfs/boxo/ipld/unixfs"
	"github.com/ipfs/go-cid"
	ipld "github.com/ipfs/go-ipld-format"

	"github.com/mrsmesh/mrsmesh/internal/obs"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// A graph is walked to 256 levels and to as many blocks as the limits allow; each block
// counts once, and what is damaged is missing.
func TestWalkingAGraph(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	chain := func(levels int) cid.Cid {
		c := pbNode(t, unixfs.FolderPBData())
		hostile(t, s.Store, c)
		for range levels {
			c = pbNode(t, unixfs.FolderPBData(), &ipld.Link{Name: "a", Cid: c.Cid()})
			hostile(t, s.Store, c)
		}
		return c.Cid()
	}
	for levels, want := range map[int]error{maxGraphDepth: nil, maxGraphDepth + 1: ErrTooLarge} {
		if blocks, sum, missing, err := s.walkLocal(chain(levels)); !errors.Is(err, want) || missing ||
			len(blocks) != levels+1 && want == nil || len(blocks)+int(sum) != 0 && want != nil {
			t.Errorf("%d levels: %d blocks, missing %t, %v", levels, len(blocks), missing, err)
		}
	}
	one, two := hostileLeaf(t, s.Store, "1"), hostileLeaf(t, s.Store, "22")
	dir := pbNode(t, unixfs.FolderPBData(), &ipld.Link{Name: "a", Cid: one},
		&ipld.Link{Name: "b", Cid: two}, &ipld.Link{Name: "c", Cid: one})
	hostile(t, s.Store, dir)
	size := int64(len(dir.RawData()))
	for nodes, want := range map[int]error{3: nil, 2: ErrTooLarge} {
		s.cfg.Limits.Nodes = nodes
		blocks, sum, missing, err := s.walkLocal(dir.Cid())
		if !errors.Is(err, want) || missing || want == nil && (len(blocks) != 3 || sum != size+3) ||
			want != nil && len(blocks)+int(sum) != 0 {
			t.Errorf("three blocks of %d: %d, %d bytes, missing %t, %v",
				nodes, len(blocks), sum, missing, err)
		}
	}
	s.cfg.Limits.Nodes = 10
	if err := s.blocks.remove(digestFor(t, two)); err != nil {
		t.Fatal(err)
	}
	if blocks, sum, missing, err := s.walkLocal(dir.Cid()); len(blocks) != 2 || sum != size+1 ||
		!missing || err != nil {
		t.Errorf("one is gone: %d blocks, %d bytes, missing %t, %v", len(blocks), sum, missing, err)
	}
	damage(t, s.Store, digestFor(t, dir.Cid()))
	if blocks, sum, missing, err := s.walkLocal(dir.Cid()); len(blocks) != 0 || sum != 0 ||
		!missing || err != nil {
		t.Errorf("damaged: %d blocks, %d bytes, missing %t, %v", len(blocks), sum, missing, err)
	}
	blocks, sum, missing, err := s.walkLocal(hashed(t, cid.Raw, 0x16, 32))
	if !errors.Is(err, ErrUnsupported) || len(blocks)+int(sum) != 0 || missing {
		t.Errorf("another hash: %d blocks, %d bytes, missing %t, %v", len(blocks), sum, missing, err)
	}
}

// collection is a store with a quota and its roots, one more second old each.
type collection struct {
	*played
	clock time.Time
	c     counters
	log   bytes.Buffer // of the site
}

func newCollection(t *testing.T) *collection {
	t.Helper()
	c := &collection{clock: time.Unix(1_800_000_000, 0), c: counters{obs.NewRegistry()}}
	c.played = newPlayed(t, func(cfg *Config) {
		cfg.QuotaBytes, cfg.Metrics = minQuota, c.c.reg
		cfg.Log = slog.New(slog.NewTextHandler(&c.log, nil))
	})
	c.now = func() time.Time { c.clock = c.clock.Add(time.Second); return c.clock }
	return c
}

// What is needed is freed to the byte: first what belongs to nothing, then what was not
// used for the longest time. Where it cannot be freed all stays.
func TestRoomIsMade(t *testing.T) {
	t.Parallel()
	s := newCollection(t)
	const part = minQuota / 4
	oldest := mustAdd(t, s.Store, noise(1, part/4))
	older := mustAdd(t, s.Store, noise(2, part/4))
	stray := hostileLeaf(t, s.Store, string(noise(3, part/4)))
	newest := mustAdd(t, s.Store, noise(4, part/4))
	free := minQuota - s.UsedBytes()
	held := func(what string, want ...bool) {
		t.Helper()
		_, strayHere := s.blocks.size(digestFor(t, stray))
		got := []bool{strayHere, s.Has(oldest.CID), s.Has(older.CID), s.Has(newest.CID)}
		if !slices.Equal(got, want) {
			t.Errorf("%s: here are the stray one, and from the oldest %v, want %v", what, got, want)
		}
	}
	if err := s.makeRoom(free); err != nil {
		t.Error(err)
	}
	held("what is free", true, true, true, true)
	if err := s.makeRoom(minQuota + 1); !errors.Is(err, ErrQuota) {
		t.Errorf("more than the quota: %v", err)
	}
	held("more than the quota", true, true, true, true)
	if err := s.makeRoom(free + 1); err != nil {
		t.Error(err)
	}
	held("a byte more than is free", false, true, true, true)
	if err := s.makeRoom(free + part/4); err != nil {
		t.Error(err)
	}
	held("what the stray one took", false, true, true, true)
	if err := s.makeRoom(free + part/4 + 1); err != nil {
		t.Error(err)
	}
	held("a byte more", false, false, true, true)
	if got := s.c.of(t, "data_collected_bytes_total"); got != part/2 {
		t.Errorf("%g bytes are counted as collected, want %d", got, part/2)
	}
	if got := s.c.of(t, "data_collected_roots_total"); got != 1 {
		t.Errorf("%g roots are counted as collected, want 1", got)
	}
	if !strings.Contains(s.log.String(), string(oldest.CID)) {
		t.Errorf("the log of the site lacks what was collected:\n%s", s.log.String())
	}
	if err := s.Pin(newest.CID, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if err := s.makeRoom(minQuota - s.UsedBytes() + part/4 + 1); !errors.Is(err, ErrQuota) {
		t.Errorf("more than may go: %v", err)
	}
	held("more than may go", false, false, true, true)
	if err := s.makeRoom(minQuota - s.UsedBytes() + part/4); err != nil {
		t.Error(err)
	}
	held("all that may go", false, false, false, true)
	if err := s.makeRoom(minQuota); !errors.Is(err, ErrQuota) {
		t.Errorf("the whole quota beside what is pinned: %v", err)
	}
	if err := s.Unpin(newest.CID); err != nil {
		t.Fatal(err)
	}
	if err := s.makeRoom(minQuota); err != nil || s.UsedBytes() != 0 {
		t.Errorf("the whole quota: %v, %d bytes are here", err, s.UsedBytes())
	}
	s.cfg.QuotaBytes = 0
	if err := s.makeRoom(1 << 60); err != nil {
		t.Errorf("without a quota: %v", err)
	}
}

// A block goes with the last root that has it, and neither a block that is claimed nor a
// root that is used goes at all.
func TestWhatMayGo(t *testing.T) {
	t.Parallel()
	s := newCollection(t)
	shared := noise(9, chunkBytes)
	a := mustAdd(t, s.Store, slices.Concat(shared, noise(1, 100)))
	b := mustAdd(t, s.Store, slices.Concat(shared, noise(2, 100)))
	used := mustAdd(t, s.Store, noise(3, 100))
	claimed := hostileLeaf(t, s.Store, "claimed")
	_, op, err := s.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	op.claim(digestFor(t, claimed))
	if err := op.use(used.CID); err != nil {
		t.Fatal(err)
	}
	own := func(ref Ref) int64 { return s.roots[ref.CID].Stored - chunkBytes }
	s.gcMu.Lock()
	first := s.planCollection(1)
	both := s.planCollection(own(a) + 1)
	all := s.planCollection(minQuota)
	s.gcMu.Unlock()
	if !slices.Equal(first.roots, []grid.CID{a.CID}) || first.freed != own(a) {
		t.Errorf("for a byte go %v, %d bytes; want %s, %d bytes", first.roots, first.freed, a.CID, own(a))
	}
	want := own(a) + own(b) + chunkBytes
	for _, p := range []plan{both, all} {
		if !slices.Equal(p.roots, []grid.CID{a.CID, b.CID}) || p.freed != want || len(p.blocks) != 5 {
			t.Errorf("%d blocks of %v go, %d bytes; want 5 of %s and %s, %d bytes",
				len(p.blocks), p.roots, p.freed, a.CID, b.CID, want)
		}
	}
	op.end()
	if after := s.planCollection(minQuota); after.freed != s.UsedBytes() || len(after.roots) != 3 {
		t.Errorf("then %d of %d bytes go, %d roots", after.freed, s.UsedBytes(), len(after.roots))
	}
}

// Of roots used at the same time those go first whose CID is first.
func TestOrderOfWhatGoes(t *testing.T) {
	t.Parallel()
	s := newCollection(t)
	now := s.clock
	s.now = func() time.Time { return now }
	var want []grid.CID
	for i := range 5 {
		want = append(want, mustAdd(t, s.Store, noise(uint64(i), 10)).CID)
	}
	slices.Sort(want)
	_, candidates := s.countBlocks()
	var got []grid.CID
	for _, c := range candidates {
		got = append(got, c.r.CID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the order is %v, want %v", got, want)
	}
	for _, tt := range []struct {
		a, b grid.CID
		want int
	}{{"a", "b", -1}, {"b", "a", 1}, {"a", "a", 0}} {
		if got := compareCID(tt.a, tt.b); got != tt.want {
			t.Errorf("%s beside %s is %d", tt.a, tt.b, got)
		}
	}
}

// Where the index cannot be written no block goes.
func TestNothingGoesUnnoted(t *testing.T) {
	t.Parallel()
	s := newCollection(t)
	mustAdd(t, s.Store, noise(1, 100))
	if err := s.Store.log.close(); err != nil {
		t.Fatal(err)
	}
	if err := s.makeRoom(minQuota); err == nil || s.UsedBytes() != 100 {
		t.Errorf("%v, %d bytes are here", err, s.UsedBytes())
	}
	if !s.mu.TryLock() {
		t.Fatal("the store is locked")
	}
	s.mu.Unlock()
}

// What is forgotten goes with the blocks that only it has, also when it is pinned; not
// while it is used.
func TestForgetting(t *testing.T) {
	t.Parallel()
	s := newCollection(t)
	shared := noise(9, chunkBytes)
	a := mustAdd(t, s.Store, slices.Concat(shared, noise(1, 100)))
	b := mustAdd(t, s.Store, slices.Concat(shared, noise(2, 100)))
	if err := s.Pin(a.CID, time.Time{}); err != nil {
		t.Fatal(err)
	}
	_, op, err := s.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err = op.use(a.CID); err != nil {
		t.Fatal(err)
	}
	if err = s.forget(a.CID); err == nil || !s.Has(a.CID) {
		t.Errorf("while it is used: %v, held %t", err, s.Has(a.CID))
	}
	op.end()
	leaves := leavesOf(t, s.Store, a.CID)
	_, op, err = s.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	op.claim(leaves[1])
	before := s.UsedBytes()
	if err := s.forget(a.CID); err != nil || s.Has(a.CID) || !s.Has(b.CID) {
		t.Errorf("%v, held %t and %t", err, s.Has(a.CID), s.Has(b.CID))
	}
	root := s.roots[b.CID].Stored - chunkBytes - 100 // as long as that of a
	if gone := before - s.UsedBytes(); gone != root {
		t.Errorf("%d bytes went, want %d: one block is claimed, one is shared", gone, root)
	}
	if got := s.c.of(t, "data_collected_bytes_total"); got != float64(root) {
		t.Errorf("%g bytes are counted", got)
	}
	op.end()
	if len(mustCat(t, s.Store, b.CID)) != chunkBytes+100 {
		t.Error("the other one is not whole")
	}
	for _, c := range []grid.CID{a.CID, "no-cid"} {
		if err := s.forget(c); err != nil {
			t.Errorf("what is not held: %v", err)
		}
	}
}
