package data

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// What cannot be used of a directory keeps the store from opening; what is only measured
// does not.
func TestOpeningADirectory(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		spoil func(dir string) error
		opens bool
	}{
		"nothing is there": {func(string) error { return nil }, true},
		"a file":           {func(dir string) error { return os.WriteFile(dir, nil, 0o600) }, false},
		"a file for the blocks": {func(dir string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "blocks"), nil, 0o600))
		}, false},
		"a directory for the log": {func(dir string) error {
			return os.MkdirAll(filepath.Join(dir, rootLogName), 0o700)
		}, false},
		"nonsense for the links": {func(dir string) error {
			return errors.Join(os.Mkdir(dir, 0o700),
				os.WriteFile(filepath.Join(dir, linkFile), []byte("x"), 0o600))
		}, true},
	} {
		dir := filepath.Join(t.TempDir(), "data")
		if err := tt.spoil(dir); err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		s, err := openLocal(Config{
			Dir: dir, Allow: everybody, Log: slog.New(slog.NewTextHandler(&text, nil)),
		})
		if (err == nil) != tt.opens || name == "a file" && !strings.Contains(err.Error(), "make data") {
			t.Errorf("%s: %v", name, err)
		}
		warned := strings.Contains(text.String(), "links are not usable")
		if warned != strings.HasSuffix(name, "for the links") {
			t.Errorf("%s: the log of the site says %q", name, text.String())
		}
		if err != nil {
			continue
		}
		for _, below := range []string{"", "tmp", "blocks/ff"} {
			path := filepath.Join(dir, below)
			if info, err := os.Stat(path); err != nil || info.Mode() != fs.ModeDir|0o700 {
				t.Errorf("%s: %s has mode %s, %v", name, path, info.Mode(), err)
			}
		}
		if len(s.changes) != 0 {
			t.Errorf("%s: %d changes are to be told", name, len(s.changes))
		}
		_ = s.log.close()
	}
}

// A root that was damaged while the store was closed is held no longer, and nobody was told
// that it was.
func TestOpeningLooksAtTheRoots(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := onDisk(t, dir)
	ref, other := mustAdd(t, s, []byte("1")), mustAdd(t, s, []byte("2"))
	if err := s.compactLog(); err != nil { // else the log has the block
		t.Fatal(err)
	}
	if err := errors.Join(
		s.log.close(), os.Remove(s.blocks.path(digestFor(t, rootOf(t, ref.CID)))),
	); err != nil {
		t.Fatal(err)
	}
	again := onDisk(t, dir)
	defer func() { _ = again.log.close() }()
	if again.Has(ref.CID) || !again.Has(other.CID) || len(again.changes) != 0 {
		t.Errorf("held: %t and %t, %d changes are to be told",
			again.Has(ref.CID), again.Has(other.CID), len(again.changes))
	}
}

// A pin is only made longer; one without end has none, and ends when it is taken away.
func TestPinsGrow(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	at := time.Unix(1_800_000_000, 0)
	s.now = func() time.Time { return at }
	ref := mustAdd(t, s.Store, []byte("1"))
	for _, tt := range []struct {
		until, want time.Time
		longer      bool
	}{
		{at.Add(time.Hour), at.Add(time.Hour), true},
		{at.Add(time.Minute), at.Add(time.Hour), false},
		{at.Add(time.Hour), at.Add(time.Hour), false},
		{at.Add(time.Hour + 1), at.Add(time.Hour + 1), true},
		{time.Time{}, time.Time{}, true},
		{at.Add(2 * time.Hour), time.Time{}, false},
		{time.Time{}, time.Time{}, false},
	} {
		before := s.log.written
		if err := s.Pin(ref.CID, tt.until); err != nil {
			t.Fatal(err)
		}
		r := s.Roots()[0]
		if !r.Pinned || !r.PinnedUntil.Equal(tt.want) {
			t.Errorf("pinned until %s: %+v, want %s", tt.until, r, tt.want)
		}
		if noted := s.log.written > before; noted != tt.longer {
			t.Errorf("pinned until %s: written %t", tt.until, noted)
		}
	}
	before := s.log.written
	for range 2 {
		if err := s.Unpin(ref.CID); err != nil {
			t.Fatal(err)
		}
	}
	if r := s.Roots()[0]; r.Pinned || !r.PinnedUntil.IsZero() || s.log.written != before+1 {
		t.Errorf("unpinned: %+v, %d lines", r, s.log.written-before)
	}
	if err := s.Pin(ref.CID, at.Add(1)); err != nil || !s.Roots()[0].PinnedUntil.Equal(at.Add(1)) {
		t.Errorf("pinned anew: %v, %+v", err, s.Roots()[0])
	}
	at = at.Add(1)
	if r := s.Roots()[0]; r.Pinned {
		t.Errorf("at its end: %+v", r)
	}
	s.mu.Lock()
	err := s.setPartialLocked(ref.CID)
	s.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Pin(ref.CID, time.Time{}); !errors.Is(err, ErrNotHeld) {
		t.Errorf("what is not whole: %v", err)
	}
	if _, err := s.Stat(ref.CID); !errors.Is(err, ErrNotHeld) {
		t.Errorf("what is not whole: %v", err)
	}
	if s.Has(ref.CID) || len(s.Roots()) != 0 {
		t.Error("what is not whole is held")
	}
}

// What is held is listed by CID, with its size and when it was used.
func TestListOfRoots(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	at := time.Unix(1_800_000_000, 0)
	s.now = func() time.Time { return at }
	a := mustAdd(t, s.Store, noise(1, chunkBytes+1))
	b, err := s.AddExecutable(within(t), strings.NewReader("1"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[grid.CID]Ref{a.CID: a, b.CID: b}
	roots := s.Roots()
	if len(roots) != 2 || roots[0].CID > roots[1].CID {
		t.Fatalf("listed %+v", roots)
	}
	var stored int64
	for _, r := range roots {
		if r.Ref != want[r.CID] || !r.LastUsed.Equal(at) || r.Pinned {
			t.Errorf("listed %+v, want %+v used at %s", r, want[r.CID], at)
		}
		stored += r.StoredBytes
	}
	if stored != s.UsedBytes() {
		t.Errorf("%d bytes are stored, %d used", stored, s.UsedBytes())
	}
	at = at.Add(time.Hour)
	mustCat(t, s.Store, a.CID)
	for _, r := range s.Roots() {
		if r.LastUsed.Equal(at) != (r.CID == a.CID) {
			t.Errorf("%s was used at %s", r.CID, r.LastUsed)
		}
	}
}

// Roots that come, go and lack a block are told once each, and are noted on disk.
func TestChangesOfRoots(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	at := time.Unix(1_800_000_000, 0)
	s.now = func() time.Time { return at }
	c := gridCID(hashed(t, cid.Raw, 0x12, 32))
	ref := Ref{CID: c, Bytes: 3, Executable: true}
	for i, step := range []struct {
		do      func() error
		told    int // -1: no longer held
		partial bool
		known   bool
	}{
		{func() error { return s.dropLocked(c) }, 0, false, false},
		{func() error { return s.setPartialLocked(c) }, 0, true, true},
		{func() error { return s.setHeldLocked(c, ref, 5) }, 1, false, true},
		{func() error { return s.setHeldLocked(c, ref, 5) }, 0, false, true},
		{func() error { return s.setPartialLocked(c) }, -1, true, true},
		{func() error { return s.setPartialLocked(c) }, 0, true, true},
		{func() error { return s.dropLocked(c) }, 0, false, false},
		{func() error { return s.setHeldLocked(c, ref, 5) }, 1, false, true},
		{func() error { return s.dropLocked(c) }, -1, false, false},
	} {
		at = at.Add(time.Second)
		clear(s.changes)
		s.mu.Lock()
		err := step.do()
		s.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		held, told := s.changes[c]
		if told != (step.told != 0) || held != (step.told > 0) {
			t.Errorf("step %d: told %t, held %t", i, told, held)
		}
		r := s.roots[c]
		if (r != nil) != step.known {
			t.Fatalf("step %d: known as %+v", i, r)
		}
		if step.known && (r.Partial != step.partial || !r.Used.Equal(at) ||
			(r.Stored == 5) == step.partial) {
			t.Errorf("step %d: known as %+v", i, r)
		}
		if step.known && !step.partial && (r.Bytes != 3 || !r.Exec || r.Dir) {
			t.Errorf("step %d: known as %+v", i, r)
		}
		roots, err := readRoots(s.log.path, nil)
		if err != nil || (roots[c] != nil) != step.known ||
			step.known && roots[c].Partial != step.partial {
			t.Errorf("step %d: on disk %+v, %v", i, roots[c], err)
		}
	}
}

// A log that has grown wakes the keeper.
func TestChangesFillTheLog(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	ref := mustAdd(t, s.Store, []byte("1"))
	for len(s.wake) > 0 {
		<-s.wake
	}
	s.log.lines = 2 + rootLogSlack - 1
	for i, want := range []bool{false, true} {
		if err := s.Pin(ref.CID, time.Unix(1_800_000_000+int64(i), 0)); err != nil {
			t.Fatal(err)
		}
		if s.compact.Load() != want || len(s.wake) == 1 != want {
			t.Errorf("with %d lines: to be rewritten %t, woken %d",
				s.log.lines, s.compact.Load(), len(s.wake))
		}
	}
}

// A block that two operations claim is claimed until both have ended, and an operation that
// has ended claims nothing.
func TestClaims(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	ref, d := mustAdd(t, s.Store, []byte("1")), digest(sha256.Sum256([]byte("1")))
	ctx, one, err := s.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, two, err := s.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if size, here := one.here(d); size != 1 || !here || s.holds[d] != 1 {
		t.Errorf("%d bytes are here: %t, claimed %d times", size, here, s.holds[d])
	}
	one.claim(d) // it has it already
	if err := two.put(ctx, d, []byte("1")); err != nil || s.holds[d] != 2 {
		t.Errorf("%v, claimed %d times, want 2", err, s.holds[d])
	}
	if err := errors.Join(one.use(ref.CID), two.use(ref.CID), two.use(ref.CID)); err != nil {
		t.Fatal(err)
	}
	if got := s.roots[ref.CID].busy; got != 3 {
		t.Errorf("used %d times, want 3", got)
	}
	one.end()
	one.end()
	one.claim(d)
	if s.holds[d] != 1 || s.roots[ref.CID].busy != 2 || len(s.running) != 1 || ctx.Err() == nil {
		t.Errorf("after the first one: claimed %d times, used %d times, %d under way, its context %v",
			s.holds[d], s.roots[ref.CID].busy, len(s.running), ctx.Err())
	}
	two.end()
	wantIdle(t, s.Store)
	if err := two.use("no-cid"); !errors.Is(err, ErrNotHeld) {
		t.Errorf("what is not held: %v", err)
	}
}

// A block that does not fit waits for nothing where its operation has ended, or
// nothing may go.
func TestBlocksWithoutRoom(t *testing.T) {
	t.Parallel()
	s := newCollection(t)
	pinned := mustAdd(t, s.Store, noise(1, minQuota-chunkBytes))
	if err := s.Pin(pinned.CID, time.Time{}); err != nil {
		t.Fatal(err)
	}
	ctx, op, err := s.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer op.end()
	content := noise(2, chunkBytes+1)
	if err := op.put(ctx, sha256.Sum256(content), content); !errors.Is(err, ErrQuota) {
		t.Errorf("nothing may go: %v", err)
	}
	if err := s.Unpin(pinned.CID); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := op.put(ended, sha256.Sum256(content), content); !errors.Is(err, context.Canceled) ||
		!s.Has(pinned.CID) {
		t.Errorf("after its end: %v, held %t", err, s.Has(pinned.CID))
	}
	if err := op.put(ctx, sha256.Sum256(content), content); err != nil || s.Has(pinned.CID) {
		t.Errorf("%v, held %t", err, s.Has(pinned.CID))
	}
}

// A node that is not here, or damaged, is not held; one of another kind is not carried.
func TestReadingANode(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	if n, err := s.node(hashed(t, cid.Raw, 0x12, 32)); !errors.Is(err, ErrNotHeld) {
		t.Errorf("not here: %+v, %v", n, err)
	}
	if n, err := s.node(hashed(t, cid.Raw, 0x16, 32)); !errors.Is(err, ErrUnsupported) {
		t.Errorf("another hash: %+v, %v", n, err)
	}
	leaf := hostileLeaf(t, s.Store, "1")
	if n, err := s.node(leaf); err != nil || string(n.data) != "1" {
		t.Errorf("here: %+v, %v", n, err)
	}
}

// A store that is closed ends what is under way, and an index that cannot be rewritten then
// is written at the next start.
func TestClosing(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	h := newHost(t)
	s, err := Open(Config{
		Dir: t.TempDir(), Allow: everybody, Log: slog.New(slog.NewTextHandler(&text, nil)),
	}, h)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(h.Mux().Protocols()); got == 0 || !serves(h.Mux().Protocols()) {
		t.Errorf("it serves %v", h.Mux().Protocols())
	}
	ref := mustAdd(t, s, []byte("1"))
	ctx, op, err := s.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err = s.log.file.Close(); err != nil { // so that closing it once more fails
		t.Fatal(err)
	}
	if err = s.Close(); err != nil || ctx.Err() == nil {
		t.Errorf("%v; what was under way: %v", err, ctx.Err())
	}
	op.end()
	if err = s.log.file.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("its log is open: %v", err)
	}
	if !strings.Contains(text.String(), "root index not rewritten") {
		t.Errorf("the log of the site lacks the error:\n%s", text.String())
	}
	if serves(h.Mux().Protocols()) {
		t.Errorf("after its end it serves %v", h.Mux().Protocols())
	}
	again, err := openLocal(s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = again.log.close() }()
	if !again.Has(ref.CID) {
		t.Error("after the next start it is not held")
	}
}

// serves reports whether a protocol of the data is among these.
func serves(protocols []protocol.ID) bool {
	return slices.ContainsFunc(protocols, func(p protocol.ID) bool {
		return p == probeID || strings.HasPrefix(string(p), string(protocolPrefix)+"/ipfs/bitswap")
	})
}
