package data

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Who closes a store waits for what is under way in it.
func TestClosingWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		s := newPlayed(t, func(c *Config) { c.OnChange = func(_, _ []grid.CID) { <-gate } })
		s.wg.Go(s.keep)
		mustAdd(t, s.Store, []byte("1"))
		synctest.Wait() // its keeper tells of the change
		closed := make(chan error, 1)
		go func() { closed <- s.Close() }()
		if synctest.Wait(); len(closed) != 0 {
			t.Error("the store is closed while its keeper tells of a change")
		}
		close(gate)
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
}

// A directory that cannot be written is no directory, whatever part of it is the last.
func TestAddingToAFullDisk(t *testing.T) {
	t.Parallel()
	s := newPlayed(t, nil)
	s.blocks.write = func(*os.File, []byte) error { return syscall.ENOSPC }
	var many []tarFileEntry
	for i := range shardBytes / 256 {
		many = append(many, tarFileEntry{name: strings.Repeat("n", 220) + string(rune('一'+i))})
	}
	for name, entries := range map[string][]tarFileEntry{
		"a file":                {{name: "x", content: "1"}},
		"a directory":           {{name: "x"}},
		"one in another":        {{name: "a/b/x"}},
		"one that is split":     many,
		"nothing":               nil,
		"a file in a directory": {{name: "a/x", content: "1"}},
	} {
		ref, err := s.AddTar(within(t), bytes.NewReader(tarOf(t, entries...)))
		if !errors.Is(err, ErrDiskFull) || ref != (Ref{}) {
			t.Errorf("%s: %+v, %v; want ErrDiskFull", name, ref, err)
		}
		wantIdle(t, s.Store)
	}
}
