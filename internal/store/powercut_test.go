package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/powercut"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// nothingLost is a seed of a cut that loses no write, as when only the agent is killed.
const nothingLost = 1

// TestPowerFails: whatever the disk has when the power fails, the state opens, the facts
// that were given as durable are there, and the start that comes next has a new number.
func TestPowerFails(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv(powercut.Role); dir != "" {
		applyAndAcknowledge(t, dir)
		return
	}
	tape := powercut.Record(t, "TestPowerFails", t.TempDir())
	points := tape.Syncs()
	t.Logf("%d events, %d points at syncs, %d acknowledged",
		tape.Len(), len(points), len(tape.Acked(tape.Len())))
	if len(tape.Acked(tape.Len())) < 40 {
		t.Fatal("too little was acknowledged for a test")
	}
	for point := range 30 { // the first start
		cutAndOpen(t, tape, point, uint64(point%3+1))
	}
	for i, point := range points {
		cutAndOpen(t, tape, point, uint64(i%5))
	}
	for seed := range uint64(20) {
		cutAndOpen(t, tape, tape.Len()*int(seed+1)/20, seed+5)
	}
}

// applyAndAcknowledge lives twice in the directory. Facts change a counter, and some are
// large, so that the files grow; segments are small, so that journals go on in new ones, and so is
// facts.log, so that it is often begun again.
func applyAndAcknowledge(t *testing.T, dir string) {
	for life := range 2 {
		options := Options{SegmentBytes: 4 << 10, RedoBytes: 16 * sector}
		s, err := OpenWith(dir, options, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		j, err := s.Begin(Header{Build: "test", Machine: "site", Config: json.RawMessage("{}")})
		if err != nil {
			t.Fatal(err)
		}
		say(t, "start %d", s.Incarnation())
		for n := range 20 {
			now := time.Unix(int64(n), 0).UTC()
			if err := j.Record(now, step.OwnerAway{}, nil); err != nil {
				t.Fatal(err)
			}
			count := life*20 + n + 1
			big := step.NewFact("big/1", fmt.Sprint(count%5), strings.Repeat("x", 1<<10))
			counter := step.Fact{Kind: "count/1", Value: []byte(fmt.Sprint(count))}
			if err := s.Apply("site", []step.Fact{counter, big}); err != nil {
				t.Fatal(err)
			}
			say(t, "count %d", count)
		}
		if life == 1 {
			return // killed
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func say(t *testing.T, format string, n any) {
	t.Helper()
	if err := powercut.Ack(fmt.Sprintf(format, n)); err != nil {
		t.Error(err)
	}
}

// segmentsAgree reads all journals: each segment begins with the facts that those before it have
// led to, and with the record that follows theirs. It counts the records.
func segmentsAgree(dir string) (records uint64, err error) {
	runs, err := Runs(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil // before the first start
	}
	for _, run := range runs {
		for n := 1; n <= len(run.Files); n++ {
			part, table, last := Run{Header: run.Header, Files: run.Files[:n]}, step.NewFacts(), uint64(0)
			for facts, err := range part.FactChanges() {
				if err != nil {
					return records, err
				}
				for _, f := range facts {
					table.Apply(f)
				}
			}
			for e, err := range part.Entries() {
				if err != nil {
					return records, err
				}
				last = e.Number
			}
			if n == len(run.Files) {
				records += last
				break
			}
			var next Header
			if next, err = readHeader(run.Files[n]); err != nil {
				return records, err
			}
			if !bytes.Equal(next.Facts, table.Encode()) || next.FirstRecord != last+1 {
				return records, fmt.Errorf(
					"%s begins with record %d and %.200s, the one before leads to %d and %.200s",
					run.Files[n], next.FirstRecord, next.Facts, last, table.Encode())
			}
		}
	}
	return records, err
}

func cutAndOpen(t *testing.T, tape *powercut.Tape, point int, seed uint64) {
	t.Helper()
	dir := t.TempDir()
	if err := tape.Cut(dir, point, seed); err != nil {
		t.Fatal(err)
	}
	records, err := segmentsAgree(dir)
	if err != nil {
		t.Errorf("the power fails at event %d, seed %d: journals: %v", point, seed, err)
	}
	s, err := Open(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Errorf("the power fails at event %d, seed %d: %v", point, seed, err)
		return
	}
	defer func() { _ = s.Close() }()
	var start, count, have uint64
	for _, text := range tape.Acked(point) {
		_, _ = fmt.Sscanf(text, "start %d", &start)
		_, _ = fmt.Sscanf(text, "count %d", &count)
	}
	facts, err := s.Load("site")
	for _, f := range facts {
		if f.Kind == "count/1" {
			_, _ = fmt.Sscan(string(f.Value), &have)
		}
	}
	if err != nil || have < count || have > count+1 {
		t.Errorf("the power fails at event %d, seed %d: count %d (%v), %d was acknowledged",
			point, seed, have, err, count)
	}
	recorded := count // each count was recorded before it was given as durable
	if seed == nothingLost {
		recorded = max(count, have) // and written before it was a fact
	}
	if records < recorded {
		t.Errorf("the power fails at event %d, seed %d: %d records of %d counts",
			point, seed, records, recorded)
	}
	if s.Incarnation() <= start {
		t.Errorf("the power fails at event %d, seed %d: start %d comes again", point, seed, start)
	}
	_, err = s.Begin(Header{Build: "test", Machine: "site", Config: json.RawMessage("{}")})
	if err != nil {
		t.Errorf("the power fails at event %d, seed %d: journal: %v", point, seed, err)
	}
}
