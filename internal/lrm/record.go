package lrm

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// RecordEvent names a line of the run record.
type RecordEvent string

// The lines of a run record.
const (
	RecordStarted RecordEvent = "started" // written before the program can make a step
	RecordFrozen  RecordEvent = "frozen"  // written after the program was frozen
	RecordResumed RecordEvent = "resumed" // written before the program runs on
	RecordEnded   RecordEvent = "ended"   // written after the program was gone
)

// Record is one line of the run record: between started or resumed and frozen or
// ended the attempt may have run, outside it cannot have. A supervisor that was
// killed leaves an attempt without its end; it ended when its agent died at the
// latest.
type Record struct {
	Attempt    grid.AttemptID `json:"attempt"`
	Event      RecordEvent    `json:"event"`
	WallMillis int64          `json:"wall_ms"`             // wall clock, Unix time in ms
	BootNanos  BootTime       `json:"boot_ns"`             // the clock of leases
	Cause      string         `json:"cause,omitempty"`     // of the end, as grid.ExitCause says it
	Supervisor Identity       `json:"supervisor,omitzero"` // at started: the supervisor
}

// Identity names a process uniquely: process IDs are used again.
type Identity struct {
	PID   int    `json:"pid"`             // process ID
	Start uint64 `json:"start,omitempty"` // start time in clock ticks since boot; 0 = unknown
	Boot  string `json:"boot,omitempty"`  // ID of the boot; empty = unknown
}

// Recorder appends to a run record. Lines of several processes do not mix: each
// is one write to a file opened for appending.
type Recorder struct {
	file    *os.File
	attempt grid.AttemptID
}

// OpenRecorder opens the run record at path, which it creates, for one attempt.
func OpenRecorder(path string, attempt grid.AttemptID) (*Recorder, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open run record: %w", err)
	}
	return &Recorder{file: f, attempt: attempt}, nil
}

// Append writes a line and fills in attempt and times. Starts and ends are on
// disk when it returns.
func (r *Recorder) Append(rec Record) error {
	onDisk, err := r.AppendSoon(rec)
	if err != nil {
		return err
	}
	return onDisk()
}

// AppendSoon writes a line as Append does, which every process of the machine can read then. onDisk
// waits until a start or an end is on disk as well; it may be called more than once.
func (r *Recorder) AppendSoon(rec Record) (onDisk func() error, err error) {
	rec.Attempt, rec.WallMillis, rec.BootNanos = r.attempt, time.Now().UnixMilli(), BootNow()
	line, err := json.Marshal(rec)
	if err != nil {
		return nil, fmt.Errorf("encode run record: %w", err)
	}
	if rec.Event == RecordStarted {
		line = append([]byte{'\n'}, line...) // a torn line before it must not take it along
	}
	if _, err := r.file.Write(append(line, '\n')); err != nil {
		return nil, fmt.Errorf("write run record: %w", err)
	}
	if rec.Event != RecordStarted && rec.Event != RecordEnded {
		return func() error { return nil }, nil
	}
	onDisk = sync.OnceValue(r.sync)
	go func() { _ = onDisk() }() // who needs it asks for the error
	return onDisk, nil
}

func (r *Recorder) sync() error {
	if err := r.file.Sync(); err != nil {
		return fmt.Errorf("sync run record: %w", err)
	}
	return nil
}

// Close closes the file.
func (r *Recorder) Close() error { return r.file.Close() }

const maxRecordLine = 4 << 10

// RecordBefore names the run record that was put aside for the one at path.
func RecordBefore(path string) string { return path + ".1" }

// ReadRecords reads a run record in the order of writing, and the one before it. A file that is
// missing is an empty record. A line that is no record, as a crash of the machine may leave it, is
// skipped.
func ReadRecords(path string) ([]Record, error) {
	before, err := ReadRecordsBefore(path)
	if err != nil {
		return nil, err
	}
	records, err := readRecordFile(path)
	return append(before, records...), err
}

// ReadRecordsBefore reads the run record that was put aside for the one at path.
func ReadRecordsBefore(path string) ([]Record, error) { return readRecordFile(RecordBefore(path)) }

func readRecordFile(path string) ([]Record, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open run record: %w", err)
	}
	defer f.Close()
	return readRecords(f)
}

func readRecords(from io.Reader) ([]Record, error) {
	var records []Record
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, maxRecordLine), 1<<20)
	for lines.Scan() {
		var rec Record
		if json.Unmarshal(lines.Bytes(), &rec) == nil && rec.known() {
			records = append(records, rec)
		}
	}
	if err := lines.Err(); err != nil {
		return records, fmt.Errorf("read run record: %w", err)
	}
	return records, nil
}

func (r Record) known() bool {
	switch r.Event {
	case RecordStarted, RecordFrozen, RecordResumed, RecordEnded:
		return r.Attempt.Validate() == nil
	default:
		return false
	}
}

// Unended is the start of every attempt of the record that has no end, in the
// order of starting.
func Unended(records []Record) []Record {
	open := make(map[grid.AttemptID]int)
	for i, rec := range records {
		switch rec.Event {
		case RecordStarted:
			open[rec.Attempt] = i
		case RecordEnded:
			delete(open, rec.Attempt)
		case RecordFrozen, RecordResumed:
		}
	}
	var unended []Record
	for i, rec := range records {
		if at, isOpen := open[rec.Attempt]; isOpen && at == i {
			unended = append(unended, rec)
		}
	}
	return unended
}
