package data

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ipfs/go-cid"
)

// Want of space is no fault of anybody, whatever space it is.
func TestWantOfSpace(t *testing.T) {
	t.Parallel()
	for _, err := range []error{ErrDiskFull, ErrQuota, errShare} {
		if !Lacks(fmt.Errorf("fetch: %w", err)) {
			t.Errorf("%v is no want of space", err)
		}
	}
	for _, err := range []error{nil, errNoHolder, io.EOF} {
		if Lacks(err) {
			t.Errorf("%v is want of space", err)
		}
	}
}

// What is settled is not settled again, and what is lost before is no acknowledgement.
func TestSettling(t *testing.T) {
	t.Parallel()
	s := onDisk(t, t.TempDir())
	defer func() { _ = s.log.close() }()
	c := count(s)
	ref := mustAdd(t, s, []byte("small"))
	c.take()
	if err := s.settle(rootOf(t, ref.CID)); err != nil || len(c.take()) != 0 {
		t.Errorf("it is settled once more: %v", err)
	}
	leaf := hostileLeaf(t, s, "lost")
	if err := os.Remove(s.blocks.path(digestFor(t, leaf))); err != nil {
		t.Fatal(err)
	}
	if err := s.settle(leaf); !errors.Is(err, ErrNotHeld) {
		t.Errorf("a block that was lost: %v, want ErrNotHeld", err)
	}
	if err := s.settleHeld(t.Context(), gridCID(leaf)); !errors.Is(err, ErrNotHeld) {
		t.Errorf("what is no root: %v, want ErrNotHeld", err)
	}
	if err := s.compactLog(); err != nil {
		t.Fatal(err)
	}
	if err := s.settle(hashed(t, cid.Raw, 0x16, 32)); err != nil {
		t.Errorf("nothing is to be settled: %v", err)
	}
	hostileLeaf(t, s, "unsettled")
	if err := s.settle(hashed(t, cid.Raw, 0x16, 32)); !errors.Is(err, ErrUnsupported) {
		t.Errorf("a root of another hash: %v", err)
	}
	wantIdle(t, s)
}

// A log that was rewritten while its sync went on is on disk, whatever became of the sync.
func TestRewrittenDuringASync(t *testing.T) {
	t.Parallel()
	s := onDisk(t, t.TempDir())
	defer func() { _ = s.log.close() }()
	broken := errors.New("broken")
	s.blocks.disk.sync = func(*os.File) error {
		return errors.Join(s.rewriteLog(), broken)
	}
	mustAdd(t, s, []byte("1"))
	if s.log.broken || s.log.synced != s.log.written {
		t.Errorf("broken: %t, %d of %d lines are on disk", s.log.broken, s.log.synced, s.log.written)
	}
	s.blocks.disk.sync = func(*os.File) error { return broken }
	if _, err := s.AddFile(t.Context(), bytes.NewReader([]byte("2"))); !errors.Is(err, broken) {
		t.Errorf("a sync that fails: %v", err)
	}
	if !s.log.broken {
		t.Error("the log is believed after a sync that failed")
	}
	if err := s.settleLog(0); err != nil || s.log.broken {
		t.Errorf("the log is written anew: %v, broken %t", err, s.log.broken)
	}
}

// The number of lines that a sync brought to disk is that from before it.
func TestLinesWrittenDuringASync(t *testing.T) {
	t.Parallel()
	s := onDisk(t, t.TempDir())
	defer func() { _ = s.log.close() }()
	ref := mustAdd(t, s, []byte("1"))
	syncs := 0
	s.blocks.disk.sync = func(*os.File) error {
		if syncs++; syncs == 1 {
			return s.Pin(ref.CID, time.Time{}) // a line more
		}
		return nil
	}
	mustAdd(t, s, []byte("2"))
	if syncs != 1 || s.log.synced != s.log.written-1 {
		t.Errorf("%d syncs, %d of %d lines are on disk", syncs, s.log.synced, s.log.written)
	}
	if err := s.settleLog(s.log.written); err != nil || syncs != 2 || s.log.synced != s.log.written {
		t.Errorf("%v: %d syncs, %d of %d lines are on disk", err, syncs, s.log.synced, s.log.written)
	}
}

// Blocks fill the log until the keeper is woken to rewrite it, and a log that cannot be
// written acknowledges nothing.
func TestBlocksFillTheLog(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	mustAdd(t, s.Store, []byte("1"))
	for len(s.wake) > 0 {
		<-s.wake
	}
	if s.compact.Load() {
		t.Error("a new log is to be rewritten")
	}
	s.log.bytes = rootLogFull
	d := digestFor(t, hostileLeaf(t, s.Store, "2"))
	if upTo, err := s.logBlocks([]digest{d}); err != nil || upTo != s.log.written || upTo == 0 {
		t.Errorf("up to line %d of %d, %v", upTo, s.log.written, err)
	}
	if !s.compact.Load() || len(s.wake) != 1 || !slices.Contains(s.blocks.inLog(), d) {
		t.Errorf("to be rewritten: %t, woken: %d", s.compact.Load(), len(s.wake))
	}
	if err := s.log.close(); err != nil {
		t.Fatal(err)
	}
	other := digestFor(t, hostileLeaf(t, s.Store, "3"))
	if upTo, err := s.logBlocks([]digest{other}); !errors.Is(err, os.ErrClosed) || upTo != 0 ||
		slices.Contains(s.blocks.inLog(), other) {
		t.Errorf("up to line %d, %v", upTo, err)
	}
	if upTo, err := s.logBlocks([]digest{{1}}); !errors.Is(err, ErrNotHeld) || upTo != 0 {
		t.Errorf("a block that is not here: up to line %d, %v", upTo, err)
	}
}

// Where files cannot be brought to disk, the log keeps what it has of them.
func TestLogThatCannotBeCompacted(t *testing.T) {
	t.Parallel()
	s := onDisk(t, t.TempDir())
	defer func() { _ = s.log.close() }()
	mustAdd(t, s, []byte("1"))
	broken := errors.New("broken")
	for _, spoil := range []func(){
		func() { s.blocks.disk.sync = func(*os.File) error { return broken } },
		func() {
			*s.blocks.disk = disk{sync: realDisk().sync, syncDir: func(string) error { return broken }}
		},
	} {
		spoil()
		lines := s.log.lines
		if err := s.compactLog(); !errors.Is(err, broken) || s.log.lines != lines {
			t.Errorf("%v: %d lines, were %d", err, s.log.lines, lines)
		}
		if len(s.blocks.inLog()) != 1 || s.UsedBytes() != 1 {
			t.Errorf("the log has %d blocks, %d bytes are here", len(s.blocks.inLog()), s.UsedBytes())
		}
	}
	*s.blocks.disk = *realDisk()
	if err := s.compactLog(); err != nil || len(s.blocks.inLog()) != 0 || s.blocks.anyUnsynced() {
		t.Errorf("%v: the log has %d blocks", err, len(s.blocks.inLog()))
	}
}

// A rewritten log has the content of the blocks that are still here.
func TestRewriteWithoutLostBlocks(t *testing.T) {
	t.Parallel()
	s := onDisk(t, t.TempDir())
	defer func() { _ = s.log.close() }()
	kept, lost := mustAdd(t, s, []byte("kept")), mustAdd(t, s, []byte("lost"))
	if err := os.Remove(s.blocks.path(digestFor(t, rootOf(t, lost.CID)))); err != nil {
		t.Fatal(err)
	}
	if err := s.rewriteLog(); err != nil || s.log.lines != 3 || s.log.bytes != 4 {
		t.Errorf("%v: %d lines and %d bytes, want two roots and a block", err, s.log.lines, s.log.bytes)
	}
	if !s.Has(kept.CID) {
		t.Error("the other one is gone")
	}
}

// What the log has of a block is written to its file, unless that is whole.
func TestBlocksComeBackFromTheLog(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, func(c *Config) { c.QuotaBytes = minQuota })
	content := []byte("content")
	d := digest(sha256.Sum256(content))
	look := func(what string) {
		t.Helper()
		have, err := os.ReadFile(s.blocks.path(d))
		if size, here := s.blocks.size(d); err != nil || !bytes.Equal(have, content) || !here ||
			size != int64(len(content)) || s.UsedBytes() != size {
			t.Errorf("%s: %q, %v, %d bytes are here: %t", what, have, err, size, here)
		}
	}
	restore := func(what string) {
		t.Helper()
		if err := s.blocks.restore(content); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		look(what)
	}
	restore("without a file")
	if !slices.Equal(s.blocks.inLog(), []digest{d}) {
		t.Error("it is not noted that the log has it")
	}
	if err := s.blocks.syncFiles([]digest{d}); err != nil {
		t.Fatal(err)
	}
	write := s.blocks.write
	s.blocks.write = func(*os.File, []byte) error { return errors.New("written again") }
	restore("whole")
	if len(s.blocks.inLog()) != 0 {
		t.Error("what is on disk is called doubtful")
	}
	s.blocks.write = write
	damage(t, s.Store, d)
	restore("damaged")
	if err := os.Truncate(s.blocks.path(d), 3); err != nil {
		t.Fatal(err)
	}
	restore("cut short")
	if err := s.blocks.remove(d); err != nil {
		t.Fatal(err)
	}
	s.blocks.write = func(*os.File, []byte) error { return errors.New("broken") }
	if err := s.blocks.restore(content); err == nil {
		t.Error("a block that cannot be written is restored")
	}
	s.blocks.write = write
	for i := range 2 {
		full := noise(uint64(i), maxBlockBytes)
		if err := s.blocks.put(sha256.Sum256(full), full); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.blocks.restore(content); err != nil { // its root is no longer whole then
		t.Errorf("without room: %v", err)
	}
}

// Small blocks that the log lacks go to it, large ones to disk.
func TestWhatIsLoose(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	put := func(n int) digest {
		content := noise(uint64(n), n)
		d := digest(sha256.Sum256(content))
		if err := s.blocks.put(d, content); err != nil {
			t.Fatal(err)
		}
		return d
	}
	settled, logged := put(1), put(2)
	atBound, beyond := put(loggedBlock), put(loggedBlock+1)
	unasked := put(3)
	if err := s.blocks.syncFiles([]digest{settled}); err != nil {
		t.Fatal(err)
	}
	s.blocks.logged(logged)
	s.blocks.logged(settled) // it needs no log
	small, large := s.blocks.loose(map[digest]bool{
		settled: true, logged: true, atBound: true, beyond: true,
	})
	if !slices.Equal(small, []digest{atBound}) || !slices.Equal(large, []digest{beyond}) {
		t.Errorf("%d small ones, %d large ones", len(small), len(large))
	}
	if got := s.blocks.inLog(); !slices.Equal(got, []digest{logged}) {
		t.Errorf("the log has %d", len(got))
	}
	if s.blocks.doubtful(settled) || !s.blocks.doubtful(unasked) || !s.blocks.doubtful(logged) {
		t.Error("what is on disk is doubtful, or what is not is none")
	}
}

// A file that is gone needs no sync; one that cannot be opened is no reason to forget it;
// one whose sync fails is forgotten, unless the log has it.
func TestSyncingFiles(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	broken := errors.New("broken")
	var synced []string
	fails := false
	*s.blocks.disk = disk{
		sync: func(f *os.File) error {
			synced = append(synced, filepath.Base(f.Name()))
			if fails {
				return broken
			}
			return nil
		},
		syncDir: func(dir string) error { synced = append(synced, filepath.Base(dir)); return nil },
	}
	one := digestFor(t, hostileLeaf(t, s.Store, "one"))
	file := filepath.Base(s.blocks.path(one))
	if err := s.blocks.syncFiles(nil); err != nil || len(synced) != 0 {
		t.Errorf("nothing: %v, synced %v", err, synced)
	}
	if err := s.blocks.syncFiles([]digest{one}); err != nil ||
		!slices.Equal(synced, []string{file, file[:2]}) || s.blocks.doubtful(one) {
		t.Errorf("one: %v, synced %v", err, synced)
	}
	synced = nil
	gone := digestFor(t, hostileLeaf(t, s.Store, "gone"))
	if err := os.Remove(s.blocks.path(gone)); err != nil {
		t.Fatal(err)
	}
	if err := s.blocks.syncFile(gone); err != nil || len(synced) != 0 {
		t.Errorf("gone: %v, synced %v", err, synced)
	}
	if err := os.Mkdir(s.blocks.path(gone), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.blocks.syncFiles([]digest{gone}); err == nil || !s.blocks.doubtful(gone) {
		t.Errorf("what cannot be opened: %v", err)
	}
	fails = true
	inLog := digestFor(t, hostileLeaf(t, s.Store, "logged"))
	s.blocks.logged(inLog)
	loose := digestFor(t, hostileLeaf(t, s.Store, "loose"))
	for d, want := range map[digest]bool{inLog: true, loose: false} {
		if err := s.blocks.syncFile(d); !errors.Is(err, broken) {
			t.Errorf("a sync that fails: %v", err)
		}
		if _, here := s.blocks.size(d); here != want {
			t.Errorf("after a sync that failed it is here: %t, want %t", here, want)
		}
	}
}

// Eight are synced at the same time, all of them, and every error is told.
func TestInParallel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		values := make([]int, 2*syncsAtOnce+1)
		for i := range values {
			values[i] = i
		}
		one, two := errors.New("one"), errors.New("two")
		done, began := make([]bool, len(values)), time.Now()
		err := inParallel(values, func(i int) error {
			time.Sleep(time.Second)
			done[i] = true
			switch i {
			case 3:
				return one
			case 3 + syncsAtOnce:
				return two
			default:
				return nil
			}
		})
		if !errors.Is(err, one) || !errors.Is(err, two) || slices.Contains(done, false) {
			t.Errorf("%v, done %v", err, done)
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("%d of them took %s, want 3 s", len(values), took)
		}
		began = time.Now()
		err = inParallel(values[:2], func(int) error { time.Sleep(time.Second); return nil })
		if took := time.Since(began); err != nil || took != time.Second {
			t.Errorf("two: %v after %s", err, took)
		}
	})
}

// A result is settled while an operation keeps its blocks.
func TestSettledResultsAreKept(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	leaf := hostileLeaf(t, s.Store, "result")
	if _, err := s.enter(leaf); err != nil {
		t.Fatal(err)
	}
	var busy int
	s.blocks.disk.sync = func(*os.File) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		busy = s.roots[gridCID(leaf)].busy
		return nil
	}
	if err := s.settleHeld(context.Background(), gridCID(leaf)); err != nil || busy != 1 {
		t.Errorf("%v, used by %d", err, busy)
	}
	wantIdle(t, s.Store)
}
