package store

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Why a journal cannot be read on.
var (
	errGap       = errors.New("an input is missing in the journal")
	errTruncated = errors.New("the journal's beginning was deleted to free space")
)

// Run is the journal of one machine from one start of its agent to the next: a
// row of segments.
type Run struct {
	Header          // of the first segment that is left
	Files  []string // the segments, in order
}

// Entry is one thing in a journal: a record, or facts that became durable.
type Entry struct {
	Number uint64      // of the record in the run, from 1; for facts that of the record before
	Time   time.Time   // when the machine got it; zero for facts
	Input  step.Input  // nil for facts
	Hash   uint64      // step.HashEffects(0, effects) of what it wanted done
	Facts  []step.Fact // in order; a nil Value removes a row
}

// Runs lists the journals of a state directory, oldest first. It changes
// nothing and works while the agent runs. A segment whose header never reached
// the disk is left out.
func Runs(dir string) ([]Run, error) {
	names, err := segmentNames(dir)
	if err != nil {
		return nil, err
	}
	var runs []Run
	last := map[string]int{} // place of each machine's last run
	for _, n := range names {
		h, err := readHeader(n.path)
		switch {
		case errors.Is(err, errTorn), errors.Is(err, io.EOF), errors.Is(err, os.ErrNotExist):
			continue
		case err != nil:
			return nil, fmt.Errorf("read journal %s: %w", n.path, err)
		}
		if i, known := last[h.Machine]; known && runs[i].continuedBy(h) {
			runs[i].Files = append(runs[i].Files, n.path)
			continue
		}
		last[h.Machine] = len(runs)
		runs = append(runs, Run{Header: h, Files: []string{n.path}})
	}
	return runs, nil
}

func (r Run) continuedBy(h Header) bool {
	return h.Incarnation == r.Incarnation && h.Term == r.Term &&
		int(h.Part) == int(r.Part)+len(r.Files)
}

func openSegment(path string) (*os.File, *frameReader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, &frameReader{in: bufio.NewReaderSize(f, 64<<10), left: info.Size()}, nil
}

func readHeader(path string) (h Header, err error) {
	f, frames, err := openSegment(path)
	if err != nil {
		return h, err
	}
	defer f.Close()
	kind, body, err := frames.next()
	if err != nil {
		return h, err
	}
	if kind != kindHeader {
		return h, fmt.Errorf("%w: it does not begin with a header", ErrCorrupt)
	}
	if err := json.Unmarshal(body, &h); err != nil {
		return h, fmt.Errorf("%w: header: %w", ErrCorrupt, err)
	}
	if h.Part == 0 || h.FirstRecord != 0 { // a first one, or of an earlier version
		return h, nil
	}
	return h, h.readBegin(frames)
}

// readBegin completes the header of a segment that continues a run. One that was never begun is
// torn.
func (h *Header) readBegin(frames *frameReader) error {
	kind, body, err := frames.next()
	switch {
	case errors.Is(err, io.EOF):
		return errTorn
	case err != nil:
		return err
	case kind != kindBegin || len(body) < 8:
		return fmt.Errorf("%w: its header has no end", ErrCorrupt)
	}
	table := step.NewFacts()
	for _, text := range [][]byte{h.Facts, body[8:]} {
		facts, err := readRows(text)
		if err != nil {
			return err
		}
		for _, f := range facts {
			table.Apply(f)
		}
	}
	h.FirstRecord, h.Facts = binary.LittleEndian.Uint64(body), table.Encode()
	return nil
}

// Entries goes through the run in order. A torn end of the last segment, as a
// crash leaves it, ends the run without an error. The errors are ErrGap,
// ErrCorrupt, step.ErrBadInput (another build wrote it) and those of the file
// system; after an error nothing more comes.
func (r Run) Entries() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		number := r.FirstRecord - 1
		for f, err := range r.frames() {
			var e Entry
			if err == nil {
				e, err = readEntry(f, &number)
			}
			if err != nil {
				err = fmt.Errorf("read journal of %s, start %d, after record %d: %w",
					r.Machine, r.Incarnation, number, err)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// FactChanges goes through the facts that became durable, in order: first those
// there were when the run began, then one list for each Apply, in which a nil
// Value removes a row. It reads the journals of other builds too. The errors are
// those of Entries but ErrGap and step.ErrBadInput.
func (r Run) FactChanges() iter.Seq2[[]step.Fact, error] {
	return func(yield func([]step.Fact, error) bool) {
		facts, err := step.DecodeFacts(r.Facts)
		if err != nil {
			err = fmt.Errorf("%w: facts of the header: %w", ErrCorrupt, err)
		}
		if !yield(facts, err) || err != nil {
			return
		}
		for f, err := range r.frames() {
			if err == nil && f.kind != kindFacts {
				continue
			}
			if err == nil {
				facts, err = readRows(f.body)
			}
			if err != nil {
				err = fmt.Errorf("read journal of %s, start %d: %w", r.Machine, r.Incarnation, err)
			}
			if !yield(facts, err) || err != nil {
				return
			}
		}
	}
}

// Times are the times of the first and the last record that are left of the run,
// between which the agent surely lived. Both are zero if there is none. The
// errors are those of FactChanges.
func (r Run) Times() (first, last time.Time, err error) {
	for f, err := range r.frames() {
		if err != nil {
			return first, last, fmt.Errorf("read journal of %s, start %d: %w", r.Machine, r.Incarnation, err)
		}
		if f.kind != kindRecord || len(f.body) < recordHead {
			continue
		}
		last = recordTime(f.body)
		if first.IsZero() {
			first = last
		}
	}
	return first, last, nil
}

type frame struct {
	kind byte
	body []byte
}

// frames goes through all segments, headers left out.
func (r Run) frames() iter.Seq2[frame, error] {
	return func(yield func(frame, error) bool) {
		for i, path := range r.Files {
			for f, err := range segmentFrames(path) {
				if errors.Is(err, errTorn) && i == len(r.Files)-1 {
					return
				}
				if errors.Is(err, errTorn) {
					err = fmt.Errorf("%w: %s: a frame is broken", ErrCorrupt, path)
				}
				if !yield(f, err) || err != nil {
					return
				}
			}
		}
	}
}

func segmentFrames(path string) iter.Seq2[frame, error] {
	return func(yield func(frame, error) bool) {
		file, frames, err := openSegment(path)
		if err != nil {
			yield(frame{}, err)
			return
		}
		defer file.Close()
		for {
			kind, body, err := frames.next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err == nil && (kind == kindHeader || kind == kindBegin) {
				continue
			}
			if !yield(frame{kind, body}, err) || err != nil {
				return
			}
		}
	}
}

func readEntry(f frame, number *uint64) (Entry, error) {
	switch f.kind {
	case kindRecord:
		*number++
		return readRecord(f.body, *number)
	case kindFacts:
		facts, err := readRows(f.body)
		return Entry{Number: *number, Facts: facts}, err
	case kindGap:
		return Entry{}, fmt.Errorf("%w: %s", errGap, f.body)
	default:
		return Entry{}, fmt.Errorf("%w: frame of kind %q", ErrCorrupt, f.kind)
	}
}

func readRecord(body []byte, number uint64) (Entry, error) {
	if len(body) < recordHead {
		return Entry{}, fmt.Errorf("%w: record of %d bytes", ErrCorrupt, len(body))
	}
	e := Entry{Number: number, Time: recordTime(body), Hash: binary.LittleEndian.Uint64(body[8:])}
	var err error
	e.Input, err = step.DecodeInput(body[recordHead:])
	return e, err
}

func recordTime(body []byte) time.Time {
	return time.Unix(0, int64(binary.LittleEndian.Uint64(body))).UTC()
}

func readRows(body []byte) ([]step.Fact, error) {
	facts, err := step.DecodeFacts(body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return facts, nil
}

// finalFacts is the machine's table of facts at the end of the run.
func (r Run) finalFacts() (*step.Facts, error) {
	// The last segment's header holds all that became durable before it.
	tail := Run{Files: slices.Clone(r.Files[len(r.Files)-1:])}
	var err error
	if tail.Header, err = readHeader(tail.Files[0]); err != nil {
		return nil, fmt.Errorf("read journal %s: %w", tail.Files[0], err)
	}
	for f, err := range tail.frames() {
		if err == nil && f.kind == kindGap && string(f.body) == gapDisk {
			err = fmt.Errorf("%w: %s", errGap, gapDisk)
		}
		if err != nil {
			return nil, err
		}
	}
	table := step.NewFacts()
	for facts, err := range tail.FactChanges() {
		if err != nil {
			return nil, err
		}
		for _, f := range facts {
			table.Apply(f)
		}
	}
	return table, nil
}
