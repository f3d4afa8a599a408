package supervise

import (
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	lookEvery = 25 * time.Millisecond // between two looks at files or processes, at least
	// the same while the file system tells that nothing was written
	lookCalm   = 250 * time.Millisecond
	lookShare  = 20          // a pause is this many times what the last look took,
	lookLatest = time.Second // but no more than this
	// a program may take 1/calmPart of what is left to it unseen
	calmPart    = 8
	calmEntries = 1000 // likewise, in files and directories
)

// watcher looks at what a runner takes. All fields belong to the goroutine of look.
type watcher struct {
	*runner
	looked  time.Time // when it looked last
	counted time.Time // when it last looked at all processes of the machine
	lowered time.Time
	files   int64 // what the tree's files took on disk, at the last walk through them
	use     int64 // of the disk, at the last look
	room    room  // before the last look
	known   bool  // the file system tells its free space

	seen      time.Time // when it last looked at processes
	machine   machine   // before that look
	told      bool      // the machine tells what it has
	memory    int64     // of the tree then, in bytes
	processes int       // of the tree then
}

// look looks at what the runner takes now and then, until it is gone.
func (r *runner) look() {
	w := &watcher{runner: r, looked: time.Now()}
	w.room, w.known = roomOf(r.spec.WatchDir)
	wait := lookEvery
	for {
		select {
		case <-r.gone:
			return
		case <-time.After(wait):
		}
		if w.calm() {
			wait = lookEvery
			continue
		}
		began := time.Now()
		if report, over := w.measure(began); over {
			r.exceed(report)
			return
		}
		wait = pauseAfter(time.Since(began))
	}
}

// pauseAfter is the time until the next look after one that took so long.
func pauseAfter(took time.Duration) time.Duration {
	return max(lookEvery, min(lookShare*took, lookLatest), took)
}

// calm reports that there is nothing to be looked for yet. To ask how much of the whole machine
// has gone takes a twentieth of a look at two processes.
func (w *watcher) calm() bool { return w.rests() && w.idles() }

// idles reports whether the processes need no look yet, as rests does of the files: the last
// was not long ago, and since then the machine has lost hardly any memory to anyone, and has
// hardly more processes.
func (w *watcher) idles() bool {
	if w.spec.Processes == 0 && !w.spec.WatchMemory {
		return true
	}
	if !w.told || time.Since(w.seen) >= lookCalm {
		return false
	}
	now, ok := machineNow()
	return ok &&
		(!w.spec.WatchMemory ||
			w.machine.memory-now.memory <= (w.spec.Limits.MemoryBytes-w.memory)/calmPart) &&
		(w.spec.Processes == 0 ||
			now.processes-w.machine.processes <= (w.spec.Processes-w.processes)/calmPart)
}

// rests reports whether the files need no walk yet: the last was not long ago, and since then
// their file system, which answers quickly, has lost hardly any free space to anyone.
func (w *watcher) rests() bool {
	if !w.known || time.Since(w.looked) >= lookCalm {
		return false
	}
	now, ok := roomOf(w.spec.WatchDir)
	return ok && hardlyTaken(w.room, now, w.spec.Limits.DiskBytes-w.use)
}

// hardlyTaken reports whether hardly any of a file system's free space has gone meanwhile, for
// a program that may write so many bytes more.
func hardlyTaken(before, now room, left int64) bool {
	return before.bytes-now.bytes <= left/calmPart && before.files-now.files <= calmEntries
}

// measure reports what the runner has taken too much of.
func (w *watcher) measure(now time.Time) (Report, bool) {
	limits := w.spec.Limits
	rests := w.rests()
	if !rests {
		w.room, w.known = roomOf(w.spec.WatchDir)
		w.looked = now
	}
	if w.spec.Processes > 0 || w.spec.WatchMemory {
		w.machine, w.told = machineNow()
		w.seen = now
	}
	tree := w.tree(now)
	w.processes = len(tree)
	if report, over := w.disk(tree, !rests); over {
		return report, true
	}
	if w.spec.Processes > 0 && len(tree) > w.spec.Processes {
		return Report{
			Cause: grid.CauseBadWork, Text: fmt.Sprintf("started more than %d processes", w.spec.Processes),
		}, true
	}
	if w.spec.WatchMemory {
		if w.memory = w.memoryOf(tree); w.memory > limits.MemoryBytes {
			return Report{
				Cause: grid.CauseMemory,
				Text:  "wanted more than its " + grid.FormatBytes(limits.MemoryBytes) + " of memory",
			}, true
		}
	}
	if w.spec.Tree && w.spec.MeterCPU && now.Sub(w.lowered) > lookLatest {
		w.lowered = now // a sandbox begins sessions of its own
		lowerTree(tree, w.spec.Idle)
	}
	return Report{}, false
}

// tree are the processes of a sandbox, found once for all that is asked of them. Now
// and then none may be missed.
func (w *watcher) tree(now time.Time) []member {
	switch {
	case !w.spec.Tree:
		return nil
	case now.Sub(w.counted) > lookLatest && !w.counted.IsZero():
		w.counted = now
		return descendants(w.pid())
	case w.counted.IsZero():
		w.counted = now
	default:
	}
	return nearby(w.pid())
}

// disk reports that the runner writes more than it may, or hides what it writes. Without a
// walk through its files they count as at the last one; files without a name, which may be
// memory, are looked at each time.
func (w *watcher) disk(tree []member, walk bool) (Report, bool) {
	limits := w.spec.Limits
	if w.spec.WatchDir == "" {
		return Report{}, false
	}
	if walk {
		var wild string
		if w.files, wild = treeUse(w.spec.WatchDir); wild != "" {
			return Report{Cause: grid.CauseDisk, Text: wild}, true
		}
	}
	use := w.files
	if use <= limits.DiskBytes {
		disk, memory := namelessUse(tree)
		use += disk
		if w.spec.OwnMemory == 0 { // memory that has a descriptor may be mapped nowhere
			use += memory
		}
	}
	w.use = use
	return Report{Cause: grid.CauseDisk, Text: diskText(limits)}, use > limits.DiskBytes
}

// memoryOf is the memory of the tree's programs, in bytes.
func (w *watcher) memoryOf(tree []member) int64 {
	if w.spec.OwnMemory > 0 {
		return ownMemory(tree) - w.spec.OwnMemory
	}
	return treeMemory(tree, w.spec.Limits.MemoryBytes)
}
