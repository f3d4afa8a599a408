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
// is space again all of that ends by itself. The site alone closes before, when less is free than
// the owner keeps: whatever a job does to hide what it writes, that stays the owner's.
type disk struct {
	path  string                               // of the ballast
	bytes int64                                // of the ballast; 0 = none
	free  func() (int64, error)                // where the state is; -1 = unknown
	kept  func() int64                         // bytes that stay free for the owner
	site  func(closed bool)                    // the site is told
	tell  func(full bool)                      // the submitter is told
	log   func(text string, free int64)        // for people
	after func(time.Duration) <-chan time.Time // tests replace it

	mu    sync.Mutex
	full  bool          // guarded by mu
	low   bool          // guarded by mu; less is free than the owner keeps
	shut  bool          // guarded by mu; what the site was told last
	times int           // guarded by mu; how often it has become full
	room  chan struct{} // guarded by mu; closed when there is space
}

// keptBeside is the part of what the owner keeps that must be free beside it to begin again.
const keptBeside = 16

// lookAtDisk is the pause between two looks at how much is free.
const lookAtDisk = time.Second

func (a *Agent) newDisk() *disk {
	d := &disk{
		path: filepath.Join(a.cfg.StateDir, BallastFile), bytes: a.cfg.Ballast,
		free: func() (int64, error) {
			_, free, err := hostinfo.ProbeDisk(a.ctx, a.cfg.StateDir)
			return free, err
		},
		kept: func() int64 { return a.Terms().Owner.FreeDisk },
		site: func(closed bool) {
			if a.site != nil && a.broker != nil {
				a.site.tell(step.SpaceChanged{Full: closed})
			} // else it is not known to anybody yet
		},
		tell: func(full bool) {
			if a.site != nil && a.broker != nil {
				a.tellBrokers(step.SpaceChanged{Full: full})
			}
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
	if a.disk.shut {
		a.disk.site(true)
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
	d.shutLocked()
}

// shutLocked closes or opens the site, if that changes; mu is held.
func (d *disk) shutLocked() {
	if shut := d.full || d.low; shut != d.shut {
		d.shut = shut
		d.site(shut)
	}
}

// regardOwner sees whether less is free than the owner keeps. It opens the site again
// when there is some room beside that, so that it does not close with the next write; mu is held.
func (d *disk) regardOwner(free int64) {
	kept := d.kept()
	switch {
	case !d.low && free < kept:
		d.low = true
		d.log("less is free than you keep ("+grid.FormatBytes(kept)+", owner.free-disk): "+
			"nothing is promised or started, and running jobs are frozen", free)
	case d.low && free >= kept+kept/keptBeside:
		d.low = false
		d.log("as much of the disk is free again as you keep: the site goes on", free)
	}
	d.shutLocked()
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
	defer d.regardOwner(free)
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
