package lrm

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func attemptID(token grid.Token) grid.AttemptID {
	return grid.AttemptID{Task: grid.TaskID{Job: "mfrggzdfmztwq2lk"}, Token: token}
}

func appendAll(t *testing.T, path string, id grid.AttemptID, events ...RecordEvent) {
	t.Helper()
	r, err := OpenRecorder(path, id)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, e := range events {
		if err := r.Append(Record{Event: e}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRecordSurvivesTornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs")
	appendAll(t, path, attemptID(1), RecordStarted, RecordFrozen, RecordResumed, RecordEnded)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = f.WriteString(`{"attempt":{"Task":{"Jo`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	appendAll(t, path, attemptID(2), RecordStarted)
	records, err := ReadRecords(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(records) != 5 {
		t.Fatalf("%d records, want 5: %+v", len(records), records)
	}
	unended := Unended(records)
	if len(unended) != 1 || unended[0].Attempt != attemptID(2) {
		t.Errorf("unended = %+v, want the second attempt", unended)
	}
}

func TestReadRecordsOfNothing(t *testing.T) {
	records, err := ReadRecords(filepath.Join(t.TempDir(), "runs"))
	if err != nil || records != nil {
		t.Errorf("%v, %v; want nothing", records, err)
	}
}

// A line of a run record says whose it is and when it was written, by both clocks; a start stands
// on a line of its own, whatever an earlier one left.
func TestALineOfTheRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs")
	wall, boot := time.Now().UnixMilli(), BootNow()
	appendAll(t, path, attemptID(1), RecordStarted, RecordFrozen, RecordResumed, RecordEnded)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) != 6 || lines[0] != "" || lines[5] != "" || strings.Contains(string(text), "\n\n") {
		t.Errorf("the record is %q", text)
	}
	records, err := ReadRecords(path)
	if err != nil || len(records) != 4 {
		t.Fatalf("%+v, %v", records, err)
	}
	for _, r := range records {
		if r.Attempt != attemptID(1) || r.WallMillis < wall || r.WallMillis > time.Now().UnixMilli() ||
			r.BootNanos < boot || r.BootNanos > BootNow() {
			t.Errorf("%+v was written between %d and now", r, boot)
		}
	}
	if info, err := os.Stat(path); err != nil ||
		info.Mode().Perm() != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("the record is %v, %v", info, err)
	}
	if _, err := OpenRecorder(t.TempDir(), attemptID(1)); err == nil {
		t.Error("a directory is a record")
	}
}

// Starts and ends are on disk when they count, or it is said that they are not; what is between
// them does not wait for the disk.
func TestWhatWaitsForTheDisk(t *testing.T) {
	read, write, err := os.Pipe() // which no disk holds
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	r := Recorder{file: write, attempt: attemptID(1)}
	for event, waits := range map[RecordEvent]bool{
		RecordStarted: true, RecordFrozen: false, RecordResumed: false, RecordEnded: true,
	} {
		err := r.Append(Record{Event: event})
		if (err != nil) != waits || waits && !strings.HasPrefix(err.Error(), "sync run record: ") {
			t.Errorf("%s: %v", event, err)
		}
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if err := r.Append(Record{Event: RecordFrozen}); err == nil ||
		!strings.HasPrefix(err.Error(), "write run record: ") {
		t.Errorf("after its end: %v", err)
	}
}

// A record is read with the one before it, in the order of writing. What is too long to be a
// line, or no file, is an error.
func TestReadingRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs")
	appendAll(t, RecordBefore(path), attemptID(1), RecordStarted)
	appendAll(t, path, attemptID(2), RecordStarted, RecordEnded)
	var got []grid.Token
	records, err := ReadRecords(path)
	for _, r := range records {
		got = append(got, r.Attempt.Token)
	}
	if err != nil || !slices.Equal(got, []grid.Token{1, 2, 2}) {
		t.Errorf("attempts %v, %v", got, err)
	}
	if before, err := ReadRecordsBefore(path); err != nil || len(before) != 1 {
		t.Errorf("before it were %+v, %v", before, err)
	}
	line := func(length int) string {
		start := `{"attempt":{"Task":{"Job":"mfrggzdfmztwq2lk"},"Token":3},"event":"ended","cause":"`
		return start + strings.Repeat("x", length-len(start)-len(`"}`)) + `"}`
	}
	for length, want := range map[int]bool{
		100: true, 5000: true, 100_000: true, 1<<20 - 1: true, 1<<20 + 1: false, 3 << 19: false,
	} {
		records, err := readRecords(strings.NewReader(line(length) + "\n"))
		if (err == nil) != want || (len(records) == 1) != want {
			t.Errorf("a line of %d bytes: %d records, %v", length, len(records), err)
		}
	}
	for _, file := range []string{path, RecordBefore(path)} {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(file, 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadRecords(path); err == nil {
			t.Errorf("%s is a directory, and a record", file)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
}

// Of attempts that have begun those are open that have not ended since; each once, by its last
// start.
func TestWhatHasNotEnded(t *testing.T) {
	rec := func(token grid.Token, event RecordEvent, at BootTime) Record {
		return Record{Attempt: attemptID(token), Event: event, BootNanos: at}
	}
	var got []BootTime
	for _, r := range Unended([]Record{
		rec(9, RecordEnded, 1), rec(1, RecordStarted, 2), rec(2, RecordStarted, 3),
		rec(1, RecordFrozen, 4), rec(2, RecordEnded, 5), rec(3, RecordStarted, 6),
		rec(3, RecordEnded, 7), rec(3, RecordStarted, 8), rec(1, RecordResumed, 9),
		rec(4, RecordStarted, 10), rec(4, RecordStarted, 11), rec(8, RecordFrozen, 12),
	}) {
		got = append(got, r.BootNanos)
	}
	if want := []BootTime{2, 8, 11}; !slices.Equal(got, want) {
		t.Errorf("open are the starts at %d, want %d", got, want)
	}
}

func FuzzReadRecords(f *testing.F) {
	f.Add([]byte(`{"attempt":{"Task":{"Job":"mfrggzdfmztwq2lk","Index":0},"Token":1},` +
		`"event":"started","wall_ms":1,"boot_ns":2}` + "\n"))
	f.Add([]byte("{}\nnull\n[]\n\x00"))
	f.Fuzz(func(t *testing.T, content []byte) {
		records, err := readRecords(bytes.NewReader(content))
		for _, r := range records {
			if r.Attempt.Validate() != nil {
				t.Errorf("record of no attempt: %+v, %v", r, err)
			}
		}
		if len(Unended(records)) > len(records) {
			t.Error("more open than there are")
		}
	})
}

func TestCollectOutputs(t *testing.T) {
	dir := t.TempDir()
	a := Attempt{
		Dir:         dir,
		OutputPaths: []string{"/file", "/dir", "/link", "/through/file", "/tainted", "/none", "/dir/a/b"},
	}
	if err := PrepareDir(a); err != nil {
		t.Fatal(err)
	}
	work := a.WorkDir()
	for _, d := range []string{"dir/a", "tainted"} {
		if err := os.MkdirAll(filepath.Join(work, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string]string{"file": "12345", "dir/one": "1", "dir/a/b": "22"} {
		if err := os.WriteFile(filepath.Join(work, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	os.Remove(filepath.Join(work, "through"))
	for name, target := range map[string]string{
		"link": "file", "through": ".", "tainted/link": "/etc/passwd",
	} {
		if err := os.Symlink(target, filepath.Join(work, name)); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
	files, missing := collectOutputs(a)
	want := []File{
		{SandboxPath: "/file", HostPath: filepath.Join(work, "file"), Bytes: 5},
		{SandboxPath: "/dir", HostPath: filepath.Join(work, "dir"), Bytes: 3, Dir: true},
		{SandboxPath: "/dir/a/b", HostPath: filepath.Join(work, "dir/a/b"), Bytes: 2},
	}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"/link", "/through/file", "/tainted", "/none"}, missing); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
}

func TestExitText(t *testing.T) {
	for _, text := range []string{
		"", "short", strings.Repeat("ü", 2000), "bad \xff byte", strings.Repeat("\xff", 3000),
	} {
		got := ExitText(text)
		if len(got) > maxExitText || !utf8.ValidString(got) {
			t.Errorf("ExitText(%.20q) has %d bytes, valid %v", text, len(got), utf8.ValidString(got))
		}
	}
}

func TestValidate(t *testing.T) {
	good := Attempt{
		ID: attemptID(1), Dir: "/d", RecordPath: "/r",
		Inputs: []Bind{{SandboxPath: "/in", HostPath: "/h"}},
	}
	if err := good.Validate(); err != nil {
		t.Errorf("good: %v", err)
	}
	for name, spoil := range map[string]func(*Attempt){
		"id":      func(a *Attempt) { a.ID.Token = 0 },
		"dir":     func(a *Attempt) { a.Dir = "d" },
		"record":  func(a *Attempt) { a.RecordPath = "" },
		"sandbox": func(a *Attempt) { a.Inputs = []Bind{{SandboxPath: "in", HostPath: "/h"}} },
		"host":    func(a *Attempt) { a.Inputs = []Bind{{SandboxPath: "/in", HostPath: "h"}} },
		"limits":  func(a *Attempt) { a.Limits.DiskBytes = -1 },
	} {
		bad := good
		spoil(&bad)
		if bad.Validate() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestBootNow(t *testing.T) {
	first := BootNow()
	if second := BootNow(); second < first || first <= 0 {
		t.Errorf("boot time went from %d to %d", first, second)
	}
}
