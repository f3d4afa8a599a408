package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/data"
	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/fake"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// pretended is a disk of which a test says how much is free.
type pretended struct {
	*disk
	mu   sync.Mutex
	left int64
	told []bool // that it is full

	keeps  int64  // what the owner keeps
	closed []bool // what the site is told
}

func pretend(t *testing.T) *pretended {
	t.Helper()
	p := &pretended{left: 100 << 20}
	p.disk = &disk{
		path: filepath.Join(t.TempDir(), BallastFile), bytes: 1 << 20,
		free: func() (int64, error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.left, nil
		},
		kept: func() int64 { return p.keeps },
		site: func(closed bool) { p.closed = append(p.closed, closed) },
		tell: func(full bool) { p.told = append(p.told, full) },
		log:  func(string, int64) {},
		room: make(chan struct{}),
	}
	close(p.room)
	return p
}

func (p *pretended) ballast() bool {
	info, err := os.Stat(p.path)
	return err == nil && info.Size() == p.bytes
}

// A disk that gets full is told and takes the ballast; with room again that is told, and the
// ballast is made again.
func TestDiskFullAndRoomAgain(t *testing.T) {
	t.Parallel()
	p := pretend(t)
	p.look()
	if !p.ballast() || len(p.told) != 0 {
		t.Fatalf("ballast %t, told %v", p.ballast(), p.told)
	}
	p.left = view.FullDisk - 1
	p.look()
	p.look()
	if p.ballast() {
		t.Error("the ballast is still there")
	}
	p.left = view.FullDisk + p.bytes - 1 // room, but not for the ballast
	p.look()
	if want := []bool{true}; !slices.Equal(p.told, want) {
		t.Errorf("told %v, want %v", p.told, want)
	}
	p.left = view.FullDisk + p.bytes
	p.look()
	if want := []bool{true, false}; !p.ballast() || !slices.Equal(p.told, want) {
		t.Errorf("ballast %t, told %v, want %v", p.ballast(), p.told, want)
	}
}

// What fails for want of space is the site's own problem, and a full disk is told first. What
// else fails is not.
func TestWhatFailsForWantOfSpace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err         error
		local, full bool
	}{
		{&os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, true, true},
		{fmt.Errorf("fetch: %w: %w", data.ErrDiskFull, syscall.ENOSPC), true, true},
		{fmt.Errorf("fetch: %w", data.ErrQuota), true, false},
		{errors.New("no holder answers"), false, false},
	} {
		p := pretend(t)
		if got := p.lacked(c.err); got != c.local || slices.Contains(p.told, true) != c.full {
			t.Errorf("%v: its own is %t, told %v; want %t, told of a full disk: %t",
				c.err, got, p.told, c.local, c.full)
		}
	}
}

// A result that finds no space waits for it: the attempt has done nothing wrong.
// What ran while the disk was full may have been cut short: also when it is full only now, and
// when it has space again.
func TestWhatRanOnAFullDiskIsKnown(t *testing.T) {
	t.Parallel()
	p := pretend(t)
	before := p.mark()
	if p.fullSince(before) {
		t.Error("an empty disk counts as full")
	}
	p.left = view.FullDisk - 1
	if !p.fullSince(before) || !p.fullSince(p.mark()) {
		t.Error("a full disk was not noticed")
	}
	p.left = 100 << 20
	if !p.fullSince(before) {
		t.Error("that the disk was full meanwhile is forgotten")
	}
	if p.fullSince(p.mark()) {
		t.Error("the disk counts as full after it has space again")
	}
}

func TestResultsWaitForRoom(t *testing.T) {
	t.Parallel()
	b := newBench(t, fake.New(fake.Config{}))
	tries := make(chan int, 10)
	done := make(chan error, 1)
	go func() {
		n := 0
		done <- b.disk.untilRoom(t.Context(), func() error {
			if n++; n < 3 {
				tries <- n
				return &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
			}
			return nil
		})
	}()
	<-tries
	if err := <-done; err != nil || len(tries) != 1 {
		t.Errorf("%v after %d more tries", err, len(tries))
	}
	other := errors.New("other")
	if err := b.disk.untilRoom(t.Context(), func() error { return other }); !errors.Is(err, other) {
		t.Errorf("%v, want that nothing else is tried again", err)
	}
	out := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(out, []byte("result"), 0o600); err != nil {
		t.Fatal(err)
	}
	exit, err := b.work.keepWhenRoom(testAttempt, &work{}, lrm.Result{
		Exit: grid.Exit{Cause: grid.CauseExited}, Outputs: []lrm.File{{SandboxPath: "/o", HostPath: out}},
	})
	if err != nil || exit.Cause != grid.CauseExited || len(exit.Outputs) != 1 {
		t.Errorf("%+v, %v", exit, err)
	}
}
