package store

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// filled gives a journal a file that takes nothing, as on a full disk; back undoes it.
func filled(t *testing.T, j *Journal) (back func()) {
	t.Helper()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("this system has no /dev/full: %v", err)
	}
	swap := func(file *os.File) (was *os.File) {
		j.mu.Lock()
		defer j.mu.Unlock()
		was, j.file = j.file, file
		return was
	}
	own := swap(full)
	return func() {
		swap(own)
		if err := full.Close(); err != nil {
			t.Error(err)
		}
	}
}

func count(t *testing.T, dir string) (records int, err error) {
	t.Helper()
	runs, err := Runs(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range runs {
		for e, err := range run.Entries() {
			if err != nil {
				return records, err
			}
			if e.Input != nil {
				records++
			}
		}
	}
	return records, nil
}

// A full disk ends no journal: what it did not take follows when there is space.
func TestJournalWaitsForRoom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	j, err := s.Begin(Header{Build: "b", Machine: "site", Config: json.RawMessage("{}")})
	if err != nil {
		t.Fatal(err)
	}
	record := func() {
		t.Helper()
		if err := j.Record(time.Unix(1, 0), step.OwnerAway{}, nil); err != nil {
			t.Error(err)
		}
		if err := j.flush(); err != nil {
			t.Error(err)
		}
		j.turning.Wait()
	}
	record()
	back := filled(t, j)
	record()
	back()
	record()
	if n, err := count(t, dir); n != 3 || err != nil {
		t.Errorf("%d records, %v; want 3", n, err)
	}
	back = filled(t, j)
	j.mu.Lock()
	j.append(kindFacts, bytes.Repeat([]byte(" "), heldBack+1))
	j.mu.Unlock()
	record()
	back()
	record()
	record()
	if n, err := count(t, dir); n != 3 || err == nil {
		t.Errorf("%d records, %v; want 3 and a gap", n, err)
	}
	runs, failed := Runs(dir)
	if failed != nil || len(runs) != 1 || len(runs[0].Files) != 2 {
		t.Errorf("%v, %v; want a new segment behind the gap", runs, failed)
	}
	if _, err := runs[0].finalFacts(); err != nil {
		t.Errorf("facts behind the gap: %v", err)
	}
	closed(t, s)
}
