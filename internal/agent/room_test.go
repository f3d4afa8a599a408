package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

// How much must be free: FullDisk to stay open, that and the ballast to open again.
func TestTheBoundsOfAFullDisk(t *testing.T) {
	t.Parallel()
	p := pretend(t)
	said := ""
	p.log = func(text string, _ int64) { said += text + "\n" }
	p.left = view.FullDisk // without room for the ballast
	p.look()
	if p.ballast() || len(p.told) != 0 || said != "" {
		t.Errorf("ballast %t, told %v, said %q, want nothing", p.ballast(), p.told, said)
	}
	p.left = view.FullDisk + p.bytes
	p.look()
	if !p.ballast() || len(p.told) != 0 || said != "" {
		t.Errorf("ballast %t, told %v, said %q, want the ballast alone", p.ballast(), p.told, said)
	}
	p.left = view.FullDisk - 1
	p.look()
	p.look()
	if n := strings.Count(said, "the disk is full"); n != 1 || p.mark() != 1 {
		t.Errorf("it became full %d times and is said %d times, want once", p.mark(), n)
	}
	p.left = view.FullDisk + p.bytes
	p.look()
	p.look()
	if n := strings.Count(said, "the disk has space again"); n != 1 ||
		!slices.Equal(p.told, []bool{true, false}) {
		t.Errorf("that there is space is said %d times, told %v", n, p.told)
	}
}

// While less is free than the owner keeps the site alone is closed, and it opens again when there
// is some room beside that. A full disk closes it whatever the owner keeps.
func TestWhatTheOwnerKeeps(t *testing.T) {
	t.Parallel()
	p := pretend(t)
	const kept = 64 << 20
	p.keeps = kept
	said := ""
	p.log = func(text string, _ int64) { said += text + "\n" }
	for _, c := range []struct {
		left   int64
		closed []bool // what the site is told
		full   []bool // what the submitter is told
	}{
		{kept, nil, nil},
		{kept - 1, []bool{true}, nil},
		{kept - 2, nil, nil},
		{kept + kept/16 - 1, nil, nil},
		{kept + kept/16, []bool{false}, nil},
		{view.FullDisk - 1, []bool{true}, []bool{true}},
		{kept - 1, nil, []bool{false}},
		{kept * 2, []bool{false}, nil},
	} {
		p.closed, p.told, p.left = nil, nil, c.left
		p.look()
		p.look()
		if !slices.Equal(p.closed, c.closed) || !slices.Equal(p.told, c.full) {
			t.Errorf("%d free: the site is told %v, want %v; the submitter %v, want %v",
				c.left, p.closed, c.closed, p.told, c.full)
		}
	}
	if n := strings.Count(said, "than you keep (64.0 MiB, owner.free-disk)"); n != 2 {
		t.Errorf("it is said %d times, want 2:\n%s", n, said)
	}
	p.keeps, p.closed = 4*kept, nil // the owner wants more from now on
	p.look()
	if !slices.Equal(p.closed, []bool{true}) {
		t.Errorf("when the owner keeps more the site is told %v", p.closed)
	}
}

// A site offers of the disk only the part that is free beside the part that its owner keeps.
func TestSpareDisk(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ free, kept, want int64 }{
		{-1, 5, -1}, {0, 5, 0}, {5, 5, 0}, {6, 5, 1}, {6, 0, 6},
	} {
		if got := spareOf(c.free, c.kept); got != c.want {
			t.Errorf("of %d free with %d kept %d are spare, want %d", c.free, c.kept, got, c.want)
		}
	}
}

// What the system does not tell changes nothing.
func TestADiskThatTellsNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		free int64
		err  error
	}{
		{-1, nil}, {0, errForTest},
	} {
		p := pretend(t)
		p.free = func() (int64, error) { return c.free, c.err }
		p.look()
		if len(p.told) != 0 || p.ballast() {
			t.Errorf("%d free, %v: told %v, ballast %t", c.free, c.err, p.told, p.ballast())
		}
	}
	p := pretend(t)
	p.left = 0
	p.look()
	if !slices.Equal(p.told, []bool{true}) {
		t.Errorf("0 bytes are free: told %v", p.told)
	}
}

// A site without ballast closes and opens as well. The ballast is for its user alone, of the
// size that was asked for, and of nothing that a file system could make smaller.
func TestTheBallast(t *testing.T) {
	t.Parallel()
	p := pretend(t)
	p.bytes = 0
	p.left = view.FullDisk - 1
	p.look()
	p.left = view.FullDisk
	p.look()
	if _, err := os.Stat(p.path); !errors.Is(err, os.ErrNotExist) ||
		!slices.Equal(p.told, []bool{true, false}) {
		t.Errorf("without ballast: told %v, its file %v", p.told, err)
	}
	p = pretend(t)
	if err := os.WriteFile(p.path, make([]byte, p.bytes-1), 0o600); err != nil {
		t.Fatal(err)
	}
	p.look() // of another size, from an earlier configuration
	text, err := os.ReadFile(p.path)
	if err != nil || int64(len(text)) != p.bytes {
		t.Fatalf("%d bytes of ballast, %v, want %d", len(text), err, p.bytes)
	}
	if zeros := strings.Count(string(text), "\x00"); zeros > len(text)/100 {
		t.Errorf("%d of %d bytes are 0", zeros, len(text))
	}
	before, err := os.Stat(p.path)
	if err != nil || before.Mode().Perm() != 0o600 {
		t.Fatalf("the ballast is %v, %v", before, err)
	}
	p.look()
	if after, err := os.Stat(p.path); err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the ballast was written again: %v", err)
	}
}

// A ballast that cannot be written does not open the site: files cannot be written there.
func TestABallastThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	p := pretend(t)
	said := ""
	p.log = func(text string, _ int64) { said += text }
	p.left = view.FullDisk - 1
	p.look()
	p.path = filepath.Join(p.path, "below", "nothing")
	p.left = view.FullDisk + p.bytes
	p.look()
	if !slices.Equal(p.told, []bool{true}) || strings.Contains(said, "space again") {
		t.Errorf("told %v, said %q; want that it stays closed", p.told, said)
	}
	// One that cannot be removed is said, and the site closes nevertheless.
	p = pretend(t)
	p.log = func(text string, _ int64) { said += text }
	if err := os.MkdirAll(filepath.Join(p.path, "below"), 0o700); err != nil {
		t.Fatal(err)
	}
	p.starved()
	if !strings.Contains(said, "the ballast could not be removed") ||
		!slices.Equal(p.told, []bool{true}) {
		t.Errorf("told %v, said %q", p.told, said)
	}
	p = pretend(t)
	said = ""
	p.log = func(text string, _ int64) { said += text }
	p.starved() // there is none to be removed
	if strings.Contains(said, "ballast") {
		t.Errorf("without ballast it says %q", said)
	}
}

// The disk is looked at each second until the agent ends.
func TestTheDiskIsWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pretend(t)
		looks := 0
		p.free = func() (int64, error) { looks++; return -1, nil }
		p.after = time.After
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { p.watch(ctx); close(done) }()
		const seconds = 10
		time.Sleep(seconds*time.Second + time.Millisecond)
		cancel()
		<-done
		if looks != seconds+1 {
			t.Errorf("%d looks in %d seconds", looks, seconds)
		}
	})
}

// Who waits for room gets it when there is some, and otherwise waits until the agent ends; then
// what was wrong is said.
func TestWaitingForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pretend(t)
		p.starved()
		tries := 0
		done := make(chan error, 1)
		go func() {
			done <- p.untilRoom(t.Context(), func() error {
				if tries++; tries == 1 {
					return errFull
				}
				return nil
			})
		}()
		synctest.Wait()
		if tries != 1 {
			t.Errorf("%d tries while the disk is full, want one", tries)
		}
		p.look()
		if err := <-done; err != nil || tries != 2 {
			t.Errorf("with room: %v after %d tries", err, tries)
		}
		p.left = 0
		ctx, cancel := context.WithCancel(t.Context())
		go func() { done <- p.untilRoom(ctx, func() error { return errFull }) }()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, errFull) {
			t.Errorf("when the agent ends: %v, want what was wrong", err)
		}
	})
}
