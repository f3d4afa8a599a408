package store

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/durable"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Header says how a machine was made, which is all that a replay needs besides
// the records.
type Header struct {
	Build       string          // identifies the program; only the same build replays
	Machine     string          // the machine's name: letters and digits
	Seed        uint64          // of the machine's randomness
	Incarnation uint64          // number of the agent's start
	Term        uint64          `json:",omitempty"` // of a machine that a group runs; 0: none does
	Config      json.RawMessage // the machine's configuration, the caller's own
	Facts       json.RawMessage // all facts when the segment begins, as step.EncodeFacts writes them
	Part        uint32          // 0 for the first segment of a run, then 1, 2, ...
	FirstRecord uint64          // number of the segment's first record in the run, from 1
}

// Journal records the inputs of one machine, from its start to its end. Its owner is the
// machine's driver; its methods may be called from several goroutines.
type Journal struct {
	store *Store

	mu      sync.Mutex // guards the fields below
	header  Header
	file    *os.File
	path    string
	buffer  []byte
	written int64  // bytes of the segment, with the buffer
	head    int64  // of these, the header's, which holds all facts
	records uint64 // records of the run
	timer   *time.Timer
	writes  uint64 // how often the buffer was written to the file
	synced  uint64 // of these, how many are known to be on disk
	failed  error  // the first error of the file; nothing more is written then
	size    int64  // bytes of the file that are known to be written
	full    bool   // the disk is: what was recorded waits in the buffer
	gap     bool   // some of it was dropped: the next segment begins with all facts again

	next      *successor     // the next segment, while it is made
	notBefore int64          // bytes of the segment before the next is made: the disk was full
	turning   sync.WaitGroup // what makes it, and lets old segments go
}

// Begin starts the journal of a machine, of each name one at a time. Incarnation and Facts of
// the header are filled in. A name begins again, after End, in a higher term only.
func (s *Store) Begin(h Header) (*Journal, error) {
	if !plainName(h.Machine) {
		return nil, fmt.Errorf("begin journal: machine %q: want letters and digits", h.Machine)
	}
	h.Incarnation, h.Part, h.FirstRecord = s.incarnation, 0, 1
	view, err := s.snapshot()
	if err != nil {
		return nil, fmt.Errorf("begin journal of %s: %w", h.Machine, err)
	}
	first := &successor{}
	if err := first.write(s, h, view); err != nil {
		first.discard()
		return nil, err
	}
	j := &Journal{store: s, header: h}
	j.enter(first)
	s.deleteOldSegments()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.journals[h.Machine] != nil {
		return nil, errors.Join(fmt.Errorf("begin journal of %s: begun before, or closed", h.Machine),
			j.file.Close())
	}
	s.journals[h.Machine] = j
	return j, nil
}

// End ends the journal before its store: its machine was thrown away.
func (j *Journal) End() error {
	j.store.mu.Lock()
	if j.store.journals[j.header.Machine] == j {
		delete(j.store.journals, j.header.Machine)
	}
	j.store.mu.Unlock()
	return j.close()
}

func plainName(name string) bool {
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}

// Record writes down one step: when it happened, what the machine was told, and
// the hash of what it wanted done. It reaches the disk within
// Options.FlushEvery, or before the next Apply for the machine. An input that
// cannot be encoded leaves a gap that a replay stops at.
func (j *Journal) Record(now time.Time, in step.Input, effects []step.Effect) error {
	text, encodeErr := step.EncodeInput(in)
	hash := step.HashEffects(0, effects)
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failed != nil {
		return j.failed
	}
	if encodeErr != nil {
		j.append(kindGap, []byte(encodeErr.Error()))
		return fmt.Errorf("journal: %w", encodeErr)
	}
	j.records++
	fixed := binary.LittleEndian.AppendUint64(nil, uint64(now.UnixNano()))
	j.append(kindRecord, binary.LittleEndian.AppendUint64(fixed, hash), text)
	if !j.isFull() {
		return nil
	}
	return j.turn()
}

// isFull reports whether the segment is to be continued in a new one. The next one
// begins with all facts again, so there must be as much besides them: otherwise,
// with many facts, each record would begin a segment.
func (j *Journal) isFull() bool {
	if j.next != nil || j.full || j.written < j.notBefore {
		return false
	}
	return j.gap || j.written >= j.store.options.SegmentBytes && j.written-j.head >= j.head
}

func (j *Journal) noteFacts(facts []step.Fact) {
	text := step.AppendFacts(nil, facts)
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failed != nil {
		return
	}
	j.append(kindFacts, text)
	if j.next != nil {
		j.next.late = append(j.next.late, facts...)
	}
}

// append buffers a frame and makes sure that the buffer reaches the disk.
func (j *Journal) append(kind byte, parts ...[]byte) {
	before := len(j.buffer)
	j.buffer = appendFrame(j.buffer, kind, parts...)
	j.written += int64(len(j.buffer) - before)
	if j.timer == nil {
		j.timer = time.AfterFunc(j.store.options.FlushEvery, j.flushLate)
	}
}

// flushLate runs on the timer's goroutine. It waits for the disk without the lock:
// on a busy disk that takes seconds, and a machine that waited with it would renew
// its leases too late. An error was logged by fail, and Record returns it.
func (j *Journal) flushLate() {
	j.mu.Lock()
	err := j.write()
	file, writes := j.file, j.writes
	j.mu.Unlock()
	if err != nil {
		return
	}
	err = file.Sync()
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case file != j.file || errors.Is(err, os.ErrClosed): // it was synced when the segment was ended
	case err != nil && j.failed == nil:
		_ = j.fail(j.writeError(err))
	case err == nil:
		j.synced = max(j.synced, writes)
	}
}

// fail ends the journal, but not the agent: a site that can still keep its
// promises does so without one.
func (j *Journal) fail(err error) error {
	j.failed, j.buffer = err, nil
	j.store.log.Error("journal ended early", "machine", j.header.Machine, "error", err)
	return err
}

// hand writes what was recorded to the operating system, where it survives the agent.
func (j *Journal) hand() {
	j.mu.Lock()
	defer j.mu.Unlock()
	_ = j.write() // fail has logged it
}

// flush brings everything to disk that was recorded.
func (j *Journal) flush() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.sync()
}

// sync is flush for who holds mu.
func (j *Journal) sync() error {
	if err := j.write(); err != nil || j.synced == j.writes {
		return err
	}
	if err := j.file.Sync(); err != nil {
		return j.fail(j.writeError(err))
	}
	j.synced = j.writes
	return nil
}

// write hands the buffer to the system, which may keep it from the disk for a
// while yet.
func (j *Journal) write() error {
	if j.timer != nil {
		j.timer.Stop()
		j.timer = nil
	}
	if j.failed != nil || len(j.buffer) == 0 {
		return j.failed
	}
	n, err := j.file.Write(j.buffer)
	if durable.NoRoom(err) {
		return j.waitForRoom(n, err)
	}
	if err != nil {
		return j.fail(j.writeError(err))
	}
	if j.full {
		j.full = false
		j.store.log.Info("the journal is written again", "machine", j.header.Machine)
	}
	j.size += int64(n)
	j.writes++
	j.buffer = j.buffer[:0]
	if cap(j.buffer) > 1<<20 { // after a burst
		j.buffer = nil
	}
	return nil
}

// errHeldBack says that the disk takes nothing more: the next segment waits for that.
var errHeldBack = fmt.Errorf("the journal waits for space: %w", syscall.ENOSPC)

// gapDisk is the reason of a gap in which facts are missing, too.
const gapDisk = "the disk was full"

// heldBack bounds what is kept of a journal while the disk is full.
const heldBack = 4 << 20

// waitForRoom keeps what the full disk does not take, for the next write; what got to the file
// of it is cut off. Beyond a bound it is dropped, and the journal says that it has a gap.
func (j *Journal) waitForRoom(took int, cause error) error {
	if took > 0 {
		if err := j.file.Truncate(j.size); err != nil {
			return j.fail(j.writeError(errors.Join(cause, err)))
		}
	}
	if !j.full {
		j.full = true
		j.store.log.Error("the journal waits for space on the disk", "machine", j.header.Machine,
			"error", j.writeError(cause))
	}
	switch {
	case len(j.buffer) <= heldBack:
	case j.size < j.head: // without its beginning nobody can read what follows
		return j.fail(j.writeError(cause))
	default:
		j.buffer, j.gap = appendFrame(nil, kindGap, []byte(gapDisk)), true
	}
	return nil
}

func (j *Journal) writeError(err error) error {
	return fmt.Errorf("write journal %s: %w; is the disk full?", j.path, err)
}

func (j *Journal) close() error {
	defer j.turning.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	err := j.sync()
	j.failed = fmt.Errorf("journal %s: %w", j.path, os.ErrClosed)
	return errors.Join(err, j.file.Close())
}

// encodeHeader writes a header with its facts, which may be many megabytes and
// are not gone through again.
func encodeHeader(h Header, facts []byte) ([]byte, error) {
	head, err := json.Marshal(struct {
		Header
		Facts *struct{} `json:"Facts,omitempty"` // hides the header's own
	}{Header: h})
	if err != nil {
		return nil, err
	}
	head = append(head[:len(head)-1], `,"Facts":`...)
	return append(append(head, facts...), '}'), nil
}

func (s *Store) nextSegment() uint64 {
	s.counting.Lock()
	defer s.counting.Unlock()
	s.segment++
	return s.segment
}

// setOpen notes the segment that a machine's journal is written to.
func (s *Store) setOpen(machine, path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[machine] = path
}

// deleteOldSegments deletes the oldest segments beyond the limit. The newest one of each machine
// stays, and the one that is written. What cannot be deleted is tried again with the next segment.
func (s *Store) deleteOldSegments() {
	names, err := segmentNames(s.dir)
	if err != nil {
		s.log.Error("old journals cannot be deleted", "error", err)
		return
	}
	s.mu.Lock()
	kept := slices.Collect(maps.Values(s.open))
	s.mu.Unlock()
	newest := map[string]string{}
	var sum int64
	for _, n := range names {
		newest[n.machine] = n.path
		sum += n.bytes
	}
	for _, n := range names {
		if sum <= s.options.JournalBytes || newest[n.machine] == n.path || slices.Contains(kept, n.path) {
			continue
		}
		if err := os.Remove(n.path); err != nil && !errors.Is(err, os.ErrNotExist) {
			s.log.Error("old journals cannot be deleted", "error", err)
			return
		}
		sum -= n.bytes
	}
}

func (s *Store) journal(machine string) *Journal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.journals[machine]
}
