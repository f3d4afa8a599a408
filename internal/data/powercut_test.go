package data

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/powercut"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// onDisk opens a store without a network.
func onDisk(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := openLocal(Config{Dir: filepath.Join(dir, "data"), Allow: everybody})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestPowerFails: whatever the disk has when the power fails, the store opens, and what it
// said to hold is whole.
func TestPowerFails(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv(powercut.Role); dir != "" {
		addAndAcknowledge(t, onDisk(t, dir))
		return
	}
	tape := powercut.Record(t, "TestPowerFails", t.TempDir())
	points := tape.Syncs()
	t.Logf("%d events, %d points at syncs, %d acknowledged",
		tape.Len(), len(points), len(tape.Acked(tape.Len())))
	if len(tape.Acked(tape.Len())) < 8 {
		t.Fatal("too little was acknowledged for a test")
	}
	step := max(1, len(points)/12)
	for i := 0; i < len(points); i += step {
		for seed := range uint64(3) {
			cutAndLook(t, tape, points[i], seed)
		}
	}
	for seed := range uint64(6) {
		cutAndLook(t, tape, tape.Len()*int(seed+1)/6, seed+3)
	}
}

// addAndAcknowledge stores files of several sizes, some at the same time.
func addAndAcknowledge(t *testing.T, s *Store) {
	add := func(seed uint64, size int) {
		ref, err := s.AddFile(t.Context(), bytes.NewReader(noise(seed, size)))
		if err == nil {
			err = powercut.Ack(string(ref.CID))
		}
		if err != nil {
			t.Error(err)
		}
	}
	for i, size := range []int{100, loggedBlock + 1, 3 * chunkBytes, 100} {
		add(uint64(i), size)
	}
	add(0, 100) // the same once more
	var together sync.WaitGroup
	for i := range 4 {
		together.Go(func() { add(uint64(10+i), 200*i+1) })
	}
	together.Wait()
	if err := s.compactLog(); err != nil {
		t.Error(err)
	}
	add(20, 300)
}

func cutAndLook(t *testing.T, tape *powercut.Tape, point int, seed uint64) {
	t.Helper()
	dir := t.TempDir()
	if err := tape.Cut(dir, point, seed); err != nil {
		t.Fatal(err)
	}
	s := onDisk(t, dir)
	defer func() { _ = s.log.close() }()
	for _, cid := range tape.Acked(point) {
		if err := readWhole(t, s, grid.CID(strings.TrimSpace(cid))); err != nil {
			t.Errorf("the power fails at event %d, seed %d: %s was acknowledged: %v",
				point, seed, cid, err)
		}
	}
}

func readWhole(t *testing.T, s *Store, c grid.CID) error {
	t.Helper()
	if !s.Has(c) {
		return fmt.Errorf("%w", ErrNotHeld)
	}
	r, err := s.Cat(t.Context(), c)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(io.Discard, r)
	return err
}
