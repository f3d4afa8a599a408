package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/data"
	"github.com/mrsmesh/mrsmesh/internal/durable"
	"github.com/mrsmesh/mrsmesh/internal/hostinfo"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// BallastFile is the name of the file in the state directory that keeps some room for the
// agent's own records. It is removed when the disk is full.
const BallastFile = "ballast"

// disk lives through a full disk: it gives up the ballast, so that facts can still be
// written, and closes the site, so that running jobs are frozen before they fail. When there
// is space again all of that ends by itself.
type disk struct {
	path  string                               // of the ballast
	bytes int64                                // of the ballast; 0 = none
	free  func() (int64, error)                // where the state is; -1 = unknown
	tell  func(full bool)                      // the site and the submitter
	log   func(text string, free int64)        // for people
	after func(time.Duration) <-chan time.Time // tests replace it

	mu    sync.Mutex
	full  bool          // guarded by mu
	times int           // guarded by mu; how often it has become full
	room  chan struct{} // guarded by mu; closed when there is space
}

// lookAtDisk is the pause between two looks at how much is free.
const lookAtDisk = time.Second

func (a *Agent) newDisk() *disk {
	d := &disk{
		path: filepath.Join(a.cfg.StateDir, BallastFile), bytes: a.cfg.Ballast,
		free: func() (int64, error) {
			room, err := hostinfo.ProbeRoom(a.ctx, a.cfg.StateDir)
			return room.FreeDiskBytes, err
		},
		tell: func(full bool) {
			if in := (step.SpaceChanged{Full: full}); a.site != nil && a.broker != nil {
				a.site.tell(in)
				a.tellBrokers(in)
			} // else it is not known to anybody yet
		},
		log: func(text string, free int64) {
			a.log.Warn("disk", "state", text, "dir", a.cfg.StateDir, "free", grid.FormatBytes(free))
		},
		after: time.After, room: make(chan struct{}),
	}
	close(d.room)
	return d
}

// watchDisk tells the machines what was found before they were there, and looks on.
func (a *Agent) watchDisk() {
	a.disk.mu.Lock()
	if a.disk.full {
		a.disk.tell(true)
	}
	a.disk.mu.Unlock()
	a.spawn(func() { a.disk.watch(a.ctx) })
}

// starved is told of a write that found no space.
func (d *disk) starved() {
	free, _ := d.free()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closeLocked(free)
}

// lacked reports whether something failed for want of space here, which is no fault of a job or
// of another site. A full disk is told before what failed is.
func (d *disk) lacked(err error) bool {
	if durable.NoRoom(err) {
		d.starved()
		return true
	}
	return data.Lacks(err)
}

// closeLocked gives up the ballast and closes the site; mu is held.
func (d *disk) closeLocked(free int64) {
	if err := os.Remove(d.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.log("the ballast could not be removed: "+err.Error(), free)
	}
	if d.full {
		return
	}
	d.full, d.room = true, make(chan struct{})
	d.times++
	d.log("the disk is full: nothing is promised or started, and running jobs are frozen", free)
	d.tell(true)
}

// look sees whether the disk became full, or has space again. Then the ballast is made,
// which shows that files can be written.
func (d *disk) look() {
	free, err := d.free()
	if err != nil || free < 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case free < view.FullDisk:
		d.closeLocked(free)
	case free < view.FullDisk+d.bytes:
		// Where the site is open it stays so, where it is closed likewise.
	case d.makeBallast() == nil && d.full:
		d.full = false
		close(d.room)
		d.log("the disk has space again: the site goes on", free)
		d.tell(false)
	}
}

// makeBallast writes the ballast unless it is there; mu is held. What it holds cannot be
// made smaller by any file system.
func (d *disk) makeBallast() error {
	if info, err := os.Stat(d.path); d.bytes == 0 || err == nil && info.Size() == d.bytes {
		return nil
	}
	noise := make([]byte, d.bytes)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	err := os.WriteFile(d.path, noise, 0o600)
	if err != nil {
		err = errors.Join(err, os.Remove(d.path))
	}
	return err
}

// mark is for fullSince.
func (d *disk) mark() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.times
}

// fullSince reports whether the disk is full or has been since a mark was taken.
func (d *disk) fullSince(mark int) bool {
	d.look()
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.full || d.times != mark
}

// watch looks at the disk until the context ends.
func (d *disk) watch(ctx context.Context) {
	for {
		d.look()
		select {
		case <-d.after(lookAtDisk):
		case <-ctx.Done():
			return
		}
	}
}

// awaitRoom waits until the disk has space.
func (d *disk) awaitRoom(ctx context.Context) error {
	d.mu.Lock()
	room := d.room
	d.mu.Unlock()
	select {
	case <-room:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// untilRoom does something again for as long as it finds the disk full.
func (d *disk) untilRoom(ctx context.Context, do func() error) error {
	for {
		err := do()
		if !durable.NoRoom(err) {
			return err
		}
		d.starved()
		if d.awaitRoom(ctx) != nil {
			return fmt.Errorf("wait for space on the disk: %w", err)
		}
	}
}
