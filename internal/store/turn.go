package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mrsmesh/mrsmesh/internal/durable"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// successor is a segment whose header is written while the journal still goes on in the one
// before: all facts may be many megabytes, and the machine does not wait for them. It counts
// from the frame of kindBegin on, with what became durable meanwhile.
type successor struct {
	file *os.File
	path string
	head int64       // bytes of the header's frame
	late []step.Fact // became durable since the header's; guarded by the journal's mu
}

// turn begins to write the next segment, for who holds mu. The snapshot is taken now: none of the
// machine's facts is on its way to the disk.
func (j *Journal) turn() error {
	view, err := j.store.snapshot()
	if err != nil {
		return j.fail(fmt.Errorf("continue journal of %s: %w", j.header.Machine, err))
	}
	next, header := &successor{}, j.header
	header.Part++
	header.FirstRecord = 0 // kindBegin tells
	j.next = next
	j.turning.Go(func() { j.prepare(next, header, view) })
	return nil
}

// prepare writes the next segment's header and goes on there. On a full disk it is tried again
// later; another error ends the journal.
func (j *Journal) prepare(next *successor, header Header, view snapshot) {
	err := next.write(j.store, header, view)
	j.flushLate() // so that little is left for the lock
	j.mu.Lock()
	defer j.mu.Unlock()
	if err == nil && j.failed == nil {
		err = j.goOn(next, header.Part)
	}
	j.next = nil
	switch {
	case err == nil && j.failed == nil:
		j.turning.Go(func() { j.store.deleteOldSegments() })
		return
	case durable.NoRoom(err):
		j.notBefore = j.written + j.store.options.SegmentBytes/16 + 1
	case j.failed == nil:
		_ = j.fail(err) // it is logged, and Record returns it
	}
	next.discard()
}

// write makes the file and brings its header to disk, with all facts of the snapshot.
func (n *successor) write(s *Store, h Header, view snapshot) error {
	facts, err := view.read(h.Machine)
	if err != nil {
		return fmt.Errorf("load facts of %s from %s: %w", h.Machine, s.dir, err)
	}
	text, err := encodeHeader(h, step.EncodeFacts(facts))
	if err != nil {
		return fmt.Errorf("begin journal of %s: configuration: %w", h.Machine, err)
	}
	dir := filepath.Join(s.dir, journalDir)
	n.path = filepath.Join(dir, fmt.Sprintf(segmentNumberFn, s.nextSegment(), h.Machine))
	const once = os.O_CREATE | os.O_EXCL | os.O_WRONLY | os.O_APPEND
	n.file, err = os.OpenFile(n.path, once, fileMode)
	if err != nil {
		return fmt.Errorf("begin journal: %w", err)
	}
	frame := appendFrame(nil, kindHeader, text)
	n.head = int64(len(frame))
	if _, err = n.file.Write(frame); err != nil {
		return fmt.Errorf("begin journal: %w", err)
	}
	return errors.Join(n.file.Sync(), durable.SyncDir(dir))
}

// goOn ends the present segment and continues in the next, for who holds mu.
func (j *Journal) goOn(next *successor, part uint32) error {
	if err := j.sync(); err != nil {
		return err
	}
	if len(j.buffer) > 0 {
		return errHeldBack
	}
	if err := j.file.Close(); err != nil {
		return fmt.Errorf("close journal %s: %w", j.path, err)
	}
	j.header.Part, j.header.FirstRecord = part, j.records+1
	j.enter(next)
	first := binary.LittleEndian.AppendUint64(nil, j.header.FirstRecord)
	j.append(kindBegin, first, step.AppendFacts(nil, latest(next.late)))
	j.head = j.written
	_ = j.write() // fail has logged it
	return nil
}

// enter makes a segment the one that is written.
func (j *Journal) enter(n *successor) {
	j.file, j.path, j.gap, j.notBefore = n.file, n.path, false, 0
	j.written, j.head, j.size = n.head, n.head, n.head
	j.store.setOpen(j.header.Machine, n.path)
}

// discard removes a segment that was never begun.
func (n *successor) discard() {
	if n.file != nil {
		_ = n.file.Close() // what stays behind counts as no segment and goes with the old ones
		_ = os.Remove(n.path)
	}
}

// latest leaves the last value of each row.
func latest(facts []step.Fact) []step.Fact {
	place := make(map[[2]string]int, len(facts))
	var rows []step.Fact
	for _, f := range facts {
		key := [2]string{f.Kind, f.Key}
		if at, known := place[key]; known {
			rows[at] = f
			continue
		}
		place[key] = len(rows)
		rows = append(rows, f)
	}
	return rows
}
