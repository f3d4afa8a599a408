package supervise

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// recorded appends an attempt to a run record, under this process.
func recorded(t *testing.T, path string, n uint32, ends bool) {
	t.Helper()
	id := grid.AttemptID{Task: grid.TaskID{Job: "mfrggzdfmztwq2lk", Index: n}, Token: 1}
	rec, err := lrm.OpenRecorder(path, id)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	if err := rec.Append(lrm.Record{
		Event: lrm.RecordStarted, Supervisor: ownIdentity(),
	}); err != nil {
		t.Fatal(err)
	}
	if ends {
		if err := rec.Append(lrm.Record{Event: lrm.RecordEnded}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestARunRecordIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.jsonl")
	const above = 2 << 10
	rotate := func(want bool) {
		t.Helper()
		if did, err := Rotate(path, above); err != nil || did != want {
			t.Fatalf("rotated %v, %v; want %v", did, err, want)
		}
	}
	rotate(false) // there is none
	var largest int64
	for n := range uint32(200) {
		recorded(t, path, n, true)
		if _, err := Rotate(path, above); err != nil {
			t.Fatal(err)
		}
		var sum int64
		for _, file := range []string{path, lrm.RecordBefore(path)} {
			if info, err := os.Stat(file); err == nil {
				sum += info.Size()
			}
		}
		largest = max(largest, sum)
	}
	if largest > 3*above {
		t.Errorf("the files grew to %d bytes, want at most %d", largest, 3*above)
	}
}

// What lives is known after any number of rotations, or a later agent would not end it.
func TestRotatingKeepsWhatStillRuns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.jsonl")
	recorded(t, path, 999, false)
	if did, err := Rotate(path, 0); err != nil || !did {
		t.Fatalf("rotated %v, %v", did, err)
	}
	for n := range uint32(20) {
		recorded(t, path, n, true)
		if did, err := Rotate(path, 0); err != nil || did {
			t.Fatalf("rotated %v, %v while an attempt of the one before lives", did, err)
		}
	}
	records, err := lrm.ReadRecords(path)
	if err != nil {
		t.Fatal(err)
	}
	if left := lrm.Unended(records); len(left) != 1 || left[0].Attempt.Task.Index != 999 {
		t.Errorf("%d attempts are known to live, want one", len(left))
	}
}

// A start reads the record and the one before it whole, so a long one of an earlier version
// delays one start only.
func TestALongRunRecordDoesNotDelayEveryStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.jsonl")
	recorded(t, path, 1, true)
	run, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write := func(bytes int) {
		t.Helper()
		if err := os.WriteFile(path, slices.Repeat(run, bytes/len(run)+1), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(30 << 20)
	for range 2 { // the first moves it aside, the second drops it
		if _, err := Rotate(path, RotateAbove); err != nil {
			t.Fatal(err)
		}
		write(RotateAbove)
	}
	if err := Recover(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, lrm.RecordBefore(path)} {
		info, err := os.Stat(name)
		if err != nil || info.Size() > RotateAbove+int64(len(run)) {
			t.Errorf("%s: %v, %v, want at most %d bytes", name, info, err, RotateAbove)
		}
	}
}
