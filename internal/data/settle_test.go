package data

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// syncs counts the calls that wait for the disk, in their order.
type syncs struct {
	mu    sync.Mutex
	calls []string
	fail  error         // of the next sync of a file
	gate  chan struct{} // nil = open
}

// count puts the double between a store and the disk.
func count(s *Store) *syncs {
	c := &syncs{}
	note := func(what string) error {
		c.mu.Lock()
		c.calls = append(c.calls, what)
		gate, fail := c.gate, c.fail
		c.fail = nil
		c.mu.Unlock()
		if gate != nil {
			<-gate
		}
		return fail
	}
	*s.blocks.disk = disk{
		sync: func(f *os.File) error {
			what := "block"
			if filepath.Base(f.Name()) == rootLogName {
				what = "log"
			}
			return note(what)
		},
		syncDir: func(string) error { return note("names") },
	}
	return c
}

func (c *syncs) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() { c.calls = nil }()
	return slices.Clone(c.calls)
}

// What is stored is on disk when it is acknowledged: a small file by one sync of the log,
// a large one by its blocks, their names and then the log.
func TestAcknowledgedIsOnDisk(t *testing.T) {
	t.Parallel()
	s := onDisk(t, t.TempDir())
	defer func() { _ = s.log.close() }()
	c := count(s)
	small := mustAdd(t, s, noise(1, loggedBlock))
	if got := c.take(); !slices.Equal(got, []string{"log"}) {
		t.Errorf("a small file: %v, want one sync of the log", got)
	}
	mustAdd(t, s, noise(2, loggedBlock+1))
	if got := c.take(); !slices.Equal(got, []string{"block", "names", "log"}) {
		t.Errorf("a large block: %v", got)
	}
	mustAdd(t, s, noise(1, loggedBlock))
	if got := len(c.take()); got > 1 {
		t.Errorf("what is on disk already took %d syncs", got)
	}
	if err := s.Pin(small.CID, s.now()); err != nil || len(c.take()) != 0 {
		t.Errorf("a pin waits for the disk, or fails: %v", err)
	}
}

// What many operations wait for at the same time is one sync.
func TestOneSyncForMany(t *testing.T) {
	t.Parallel()
	s := onDisk(t, t.TempDir())
	defer func() { _ = s.log.close() }()
	c := count(s)
	gate := make(chan struct{})
	c.gate = gate
	const many = 16
	var wait sync.WaitGroup
	for i := range many {
		wait.Go(func() { mustAdd(t, s, noise(uint64(i), 100)) })
	}
	lines := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.log.written
	}
	eventually(t, "all lines to be in the log", func() bool { return lines() >= 2*many })
	close(gate)
	wait.Wait()
	if got := len(c.take()); got > 2 {
		t.Errorf("%d files took %d syncs, want 2 at most", many, got)
	}
}

// What an attempt needs can be had again and waits for no disk; a result does.
func TestResultsAreFetchedToDisk(t *testing.T) {
	t.Parallel()
	from, to := newSite(t, nil), newSite(t, nil)
	to.knows(from)
	ref := mustAdd(t, from.Store, noise(1, 300))
	c := count(to.Store)
	if _, err := to.FetchFor(
		t.Context(), from.id, ref.CID, []grid.SiteID{from.id}, nil,
	); err != nil {
		t.Fatal(err)
	}
	if got := c.take(); len(got) != 0 {
		t.Errorf("an input waited for the disk: %v", got)
	}
	mustFetch(t, to.Store, ref.CID, from.id)
	if got := c.take(); !slices.Equal(got, []string{"log"}) {
		t.Errorf("a result: %v, want one sync of the log", got)
	}
}

// A sync that fails is no acknowledgement, and nothing is believed of that file after it.
func TestSyncFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := onDisk(t, dir)
	c := count(s)
	broken := errors.New("broken")
	for _, size := range []int{100, loggedBlock + 1} {
		c.fail = broken
		if _, err := s.AddFile(t.Context(), bytes.NewReader(noise(1, size))); !errors.Is(err, broken) {
			t.Errorf("%d bytes: %v, want the disk's error", size, err)
		}
		ref := mustAdd(t, s, noise(1, size))
		if err := readWhole(t, s, ref.CID); err != nil {
			t.Errorf("%d bytes, tried again: %v", size, err)
		}
	}
	if s.log.broken {
		t.Error("the log was not written anew")
	}
	if err := s.log.close(); err != nil {
		t.Error(err)
	}
	again := onDisk(t, dir)
	defer func() { _ = again.log.close() }()
	if len(again.Roots()) != 2 {
		t.Errorf("held after a restart: %v", again.Roots())
	}
}

// The log lets go of blocks whose files are on disk.
func TestLogIsCompacted(t *testing.T) {
	t.Parallel()
	s := onDisk(t, t.TempDir())
	defer func() { _ = s.log.close() }()
	ref := mustAdd(t, s, noise(1, 100))
	inLog := func() bool {
		text, err := os.ReadFile(s.log.path)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(text), `"block":`)
	}
	if !inLog() {
		t.Error("the log has no block")
	}
	c := count(s)
	if err := s.compactLog(); err != nil {
		t.Fatal(err)
	}
	if got := c.take(); !slices.Equal(got, []string{"block", "names"}) {
		t.Errorf("before the log is written anew: %v", got)
	}
	if inLog() {
		t.Error("the log still has the block")
	}
	if err := readWhole(t, s, ref.CID); err != nil {
		t.Error(err)
	}
}
