package history

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/durable"
	"github.com/mrsmesh/mrsmesh/pkg/avail"
)

// The files of the state directory.
const (
	FileName  = "history.log"         // what is known
	asideName = "history.log.damaged" // lines that could not be read
)

// Every is the pause between heartbeats: the time of a crash is known to within one.
const Every = time.Minute

// Bounds of the files.
const (
	maxBytes   = 1 << 20      // the file never grows beyond
	compactAt  = maxBytes / 2 // heartbeats are dropped when it has grown to this
	keepBytes  = maxBytes / 4 // and the oldest runs, if more than this is left
	keepFor    = 2 * 365 * 24 * time.Hour
	asideBytes = 1 << 16
)

// What counts as a suspend, and as a clock that was set: differences between clocks
// that are read one after the other, on a busy machine, stay below.
const (
	leastSuspend = 5 * time.Second
	leastJump    = 5 * time.Second
)

// Reading is all of a machine's clocks at one moment.
type Reading struct {
	Wall time.Time     // what people set
	Boot time.Duration // since boot, suspend included
	// Awake counts from any beginning that stays the same while the process lives, without
	// the time suspended.
	Awake  time.Duration
	BootID string // names the boot; empty = unknown
}

// Recorder is an open history. It may be used by several goroutines. Trouble with the
// file never stops its user: what cannot be written is counted and said once.
type Recorder struct {
	dir   string
	place *time.Location
	log   *slog.Logger

	mu      sync.Mutex
	entries []entry // guarded by mu, as all below
	file    *os.File
	size    int64
	last    Reading
	busy    bool
	closed  bool
	damaged int
	unsaved int
}

// Open reads the history in a directory, puts aside what is damaged, and writes that the
// site is up. place is the owner's time zone, for the hours of the week. A file that
// cannot be used is an error; the Recorder is usable nevertheless and remembers this run
// only.
func Open(dir string, place *time.Location, now Reading, log *slog.Logger) (*Recorder, error) {
	r := &Recorder{dir: dir, place: place, log: log, last: now}
	text, err := readBounded(r.path())
	if err == nil {
		var bad []string
		r.entries, bad = parse(text)
		r.putAside(bad)
		err = r.rewrite(now)
	}
	r.add(entryOf(kindStart, now), true)
	if err != nil {
		return r, fmt.Errorf("open history: %w", err)
	}
	return r, nil
}

func (r *Recorder) path() string { return filepath.Join(r.dir, FileName) }

// readBounded reads a file that may be absent. Of one that is far too long, which this
// package did not write, only the end is read.
func readBounded(path string) ([]byte, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: want a regular file; move it away", path)
	}
	text := make([]byte, min(info.Size(), 2*maxBytes))
	n, err := file.ReadAt(text, max(info.Size()-2*maxBytes, 0))
	if n < len(text) {
		return text[:n], err
	}
	return text, nil
}

// putAside keeps damaged lines in a file of their own.
func (r *Recorder) putAside(lines []string) {
	if len(lines) == 0 {
		return
	}
	r.damaged += len(lines)
	r.log.Warn("damaged lines of the history were put aside", "lines", len(lines), "file", asideName)
	var text []byte
	for _, l := range lines {
		if len(text)+len(l) < asideBytes {
			text = append(append(text, l...), '\n')
		}
	}
	if err := os.WriteFile(filepath.Join(r.dir, asideName), text, 0o600); err != nil {
		r.log.Warn("they could not be kept", "error", err)
	}
}

// rewrite replaces the file by what is worth keeping and goes on with that.
func (r *Recorder) rewrite(now Reading) error {
	after := int64(-maxMS)
	if now.Wall.Year() <= lastYear { // before the first year that is believed nothing is old
		after = now.Wall.Add(-keepFor).UnixMilli()
	}
	r.entries = youngest(compact(r.entries), after, keepBytes)
	var text []byte
	for _, e := range r.entries {
		text = append(text, e.line()...)
	}
	file, err := durable.Rewrite(r.file, r.path(), text)
	r.file = file // with what was there before, if there is an error
	if err == nil {
		r.size = int64(len(text))
	}
	return err
}

func entryOf(k kind, now Reading) entry {
	e := entry{
		kind: k, wallMS: min(max(now.Wall.UnixMilli(), -maxMS), maxMS), bootMS: now.Boot.Milliseconds(),
	}
	if k == kindStart && len(now.BootID) <= maxBootID {
		e.bootID = now.BootID
	}
	return e
}

// add remembers an entry and writes it. Heartbeats need not reach the disk right away.
func (r *Recorder) add(e entry, flush bool) {
	if n := len(r.entries); n > 0 && r.entries[n-1].kind == kindBeat && e.kind != kindStart {
		r.entries = r.entries[:n-1]
	}
	r.entries = append(r.entries, e)
	line := e.line()
	if r.file == nil || r.size+int64(len(line)) > maxBytes {
		r.unsaved++
		return
	}
	n, err := r.file.Write(line)
	if err == nil && flush {
		err = r.file.Sync()
	}
	if r.size += int64(n); err != nil {
		if r.unsaved == 0 {
			r.log.Warn("the history cannot be written; what the site learns is lost at its end",
				"error", err)
		}
		r.unsaved++
	}
}

// Beat says that the site lives. It notices that the machine slept, or that its clock was
// set, since the last reading.
func (r *Recorder) Beat(now Reading) { r.tell(now, kindBeat) }

// Owner records that the owner needs the machine, or leaves it again.
func (r *Recorder) Owner(busy bool, now Reading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy == busy {
		return
	}
	r.busy = busy
	if busy {
		r.note(now, kindBusy)
	} else {
		r.note(now, kindFree)
	}
}

func (r *Recorder) tell(now Reading, k kind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.note(now, k)
}

// note is only called with mu held.
func (r *Recorder) note(now Reading, k kind) {
	if r.closed {
		return
	}
	r.notice(now)
	r.add(entryOf(k, now), k != kindBeat)
	if r.size <= compactAt {
		return
	}
	if err := r.rewrite(now); err != nil {
		r.log.Warn("the history cannot be made shorter", "error", err)
	}
}

// notice compares the clocks with their last reading.
func (r *Recorder) notice(now Reading) {
	boot := now.Boot - r.last.Boot
	if asleep := boot - (now.Awake - r.last.Awake); asleep >= leastSuspend {
		e := entryOf(kindSuspend, now)
		e.value = asleep.Milliseconds()
		r.add(e, true)
		r.log.Info("the machine slept", "seconds", asleep.Seconds())
	}
	if by := now.Wall.Round(0).Sub(r.last.Wall.Round(0)) - boot; by >= leastJump || by <= -leastJump {
		e := entryOf(kindJump, now)
		e.value = by.Milliseconds()
		r.add(e, true)
		r.log.Info("the clock was set", "seconds", by.Seconds())
	}
	r.last = now
}

// Known is the history as of one moment.
type Known struct {
	History avail.History
	Counts  Counts
	Up      time.Duration // for how long the site has been up, or awake
	Free    time.Duration // for how long it has been available; 0 while its owner wants it
	Busy    bool          // the owner wants it
}

// Known reads the whole history.
func (r *Recorder) Known(now Reading) Known {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := summarize(r.entries, entryOf(kindBeat, now), r.place)
	s.counts.Damaged, s.counts.Unwritten = r.damaged, r.unsaved
	k := Known{
		History: s.history, Counts: s.counts, Busy: s.busy, Up: since(s.up, now),
		Free: since(s.free, now),
	}
	if s.busy {
		k.Free = 0
	}
	return k
}

func since(bootMS int64, now Reading) time.Duration {
	return max(now.Boot-time.Duration(bootMS)*time.Millisecond, 0)
}

// Close writes that the site ends in order. Later calls are ignored.
func (r *Recorder) Close(now Reading) error {
	r.tell(now, kindStop)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.file == nil {
		return nil
	}
	file := r.file
	r.file = nil
	if err := file.Close(); err != nil {
		return fmt.Errorf("close history: %w", err)
	}
	return nil
}
