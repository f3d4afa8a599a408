package lrm

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
	files, missing := CollectOutputs(a)
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
