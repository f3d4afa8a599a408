package lrmtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func basicCases() []testCase {
	return []testCase{
		{name: "probe", test: testProbe},
		{
			name: "exit 0",
			test: func(t *testing.T, b *bench) { wantExit(t, b.run(t, b.attempt(t, "exit", "0")), 0) },
		},
		{name: "exit 7", test: testExit7},
		{name: "args, env and stdin", test: testSurroundings},
		{name: "input file and directory", test: testInputs},
		{name: "output file and directory", test: testOutputs},
		{name: "output missing", test: testOutputMissing},
		{name: "two attempts side by side", test: testSideBySide},
		{name: "bad attempt", test: testBadAttempt},
		{name: "record", test: testRecord},
		{name: "recover from nothing", test: testRecoverNothing},
	}
}

func testProbe(t *testing.T, b *bench) {
	s := b.h.New(t, b.record).Probe(t.Context())
	if len(s.Kinds) != 1 || s.Kinds[0] != b.h.Kind {
		t.Errorf("kinds = %v, want only %v; notes: %v", s.Kinds, b.h.Kind, s.Notes)
	}
}

func testExit7(t *testing.T, b *bench) {
	p := b.start(t, b.attempt(t, "exit", "7"))
	await(t, p, lrm.Started)
	r := Wait(t, p)
	wantExit(t, r, 7)
	if r.Exit.Wall <= 0 {
		t.Errorf("wall = %v, want more than 0", r.Exit.Wall)
	}
	if r.Stdout.HostPath != "" || r.Stderr.HostPath != "" {
		t.Errorf("streams = %+v %+v, want none of a silent program", r.Stdout, r.Stderr)
	}
	for e := range p.Events() {
		if e.Kind != lrm.Preparing && e.Kind != lrm.Prepared { // as slow as it was
			t.Errorf("event %q after the end", e.Kind)
		}
	}
	if again := Wait(t, p); again.Exit.Code != 7 {
		t.Errorf("the second Wait says %+v", again.Exit)
	}
	if err := p.Stop("late"); err != nil {
		t.Errorf("Stop after the end: %v", err)
	}
	if err := p.SetLease(0); err != nil {
		t.Errorf("SetLease after the end: %v", err)
	}
}

func testSurroundings(t *testing.T, b *bench) {
	a := b.attempt(t, "say", "one", "two words", "")
	a.Task.Env = []grid.EnvVar{{Name: "GREETING", Value: "hello=world"}}
	r := b.run(t, a)
	wantExit(t, r, 0)
	want := "args=one|two words|\nGREETING=hello=world\nHOME=" + b.h.Home + "\nstdin=\"\"\n"
	if got := Text(t, r.Stdout); got != want {
		t.Errorf("stdout = %q, want %q", got, want)
	}
	if got := Text(t, r.Stderr); got != "on stderr\n" {
		t.Errorf("stderr = %q", got)
	}
}

// putFile writes a host file below the bench.
func (b *bench) putFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(b.dir, "host", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// withInputs is an attempt that sees /in/file.txt and the directory /in/dir.
func (b *bench) withInputs(t *testing.T, args ...string) lrm.Attempt {
	t.Helper()
	file := b.putFile(t, "some-file", "of a file\n")
	b.putFile(t, "some-dir/inner/x.txt", "of a directory\n")
	a := b.attempt(t, args...)
	a.Inputs = append(a.Inputs,
		lrm.Bind{SandboxPath: "/in/file.txt", HostPath: file},
		lrm.Bind{SandboxPath: "/in/dir", HostPath: filepath.Join(b.dir, "host", "some-dir"), Dir: true})
	return a
}

func testInputs(t *testing.T, b *bench) {
	r := b.run(t, b.withInputs(t, "cat", "/in/file.txt", "/in/dir/inner/x.txt"))
	wantExit(t, r, 0)
	if got, want := Text(t, r.Stdout), "of a file\nof a directory\n"; got != want {
		t.Errorf("stdout = %q, want %q", got, want)
	}
	r = b.run(t, b.withInputs(t, "ls", "/in"))
	wantExit(t, r, 0)
	want := "/in/\n/in/dir/\n/in/dir/inner/\n/in/dir/inner/x.txt\n/in/file.txt\n"
	if got := Text(t, r.Stdout); got != want {
		t.Errorf("tree = %q, want %q", got, want)
	}
}

func testOutputs(t *testing.T, b *bench) {
	a := b.attempt(t, "put", "/out/deep/result.txt", "result")
	a.OutputPaths = []string{"/out/deep/result.txt", "/out/deep"}
	r := b.run(t, a)
	wantExit(t, r, 0)
	if len(r.Outputs) != 2 {
		t.Fatalf("outputs = %+v, want two", r.Outputs)
	}
	file, dir := r.Outputs[0], r.Outputs[1]
	if file.SandboxPath != "/out/deep/result.txt" || file.Dir || Text(t, file) != "result" {
		t.Errorf("file = %+v", file)
	}
	if !dir.Dir || dir.Bytes != int64(len("result")) || dir.HostPath != filepath.Dir(file.HostPath) {
		t.Errorf("directory = %+v", dir)
	}
	if !strings.HasPrefix(file.HostPath, a.Dir+string(filepath.Separator)) {
		t.Errorf("%s is outside the attempt's directory %s", file.HostPath, a.Dir)
	}
}

func testOutputMissing(t *testing.T, b *bench) {
	a := b.attempt(t, "exit", "0")
	a.OutputPaths = []string{"/out/never.txt"}
	r := b.run(t, a)
	wantCause(t, r, grid.CauseNoOutput)
	if len(r.Outputs) != 0 || !strings.Contains(r.Exit.Text, "/out/never.txt") {
		t.Errorf("outputs = %+v, text %q; want none and its name in the text", r.Outputs, r.Exit.Text)
	}
}

func testSideBySide(t *testing.T, b *bench) {
	first := b.attempt(t, "put", "/shared.txt", "first")
	second := b.attempt(t, "put", "/shared.txt", "second")
	first.OutputPaths, second.OutputPaths = []string{"/shared.txt"}, []string{"/shared.txt"}
	p, q := b.start(t, first), b.start(t, second)
	for want, r := range map[string]lrm.Result{"first": Wait(t, p), "second": Wait(t, q)} {
		wantExit(t, r, 0)
		if len(r.Outputs) != 1 || Text(t, r.Outputs[0]) != want {
			t.Errorf("outputs of the %s = %+v", want, r.Outputs)
		}
	}
	r := b.run(t, b.attempt(t, "cat", "/shared.txt"))
	if r.Exit.Cause == grid.CauseExited && r.Exit.Code == 0 {
		t.Errorf("a third attempt read %q", Text(t, r.Stdout))
	}
}

func testBadAttempt(t *testing.T, b *bench) {
	a := b.attempt(t, "exit", "0")
	a.Dir = "relative"
	if _, err := b.h.New(t, b.record).Start(t.Context(), a); err == nil {
		t.Error("an attempt with a relative directory was started")
	}
}

func testRecord(t *testing.T, b *bench) {
	a := b.attempt(t, "exit", "7")
	b.run(t, a)
	records, err := lrm.ReadRecords(b.record)
	if err != nil {
		t.Fatal(err)
	}
	if len(records) != 2 || records[0].Event != lrm.RecordStarted ||
		records[1].Event != lrm.RecordEnded {
		t.Fatalf("records = %+v, want a start and an end", records)
	}
	for _, rec := range records {
		if rec.Attempt != a.ID || rec.WallMillis == 0 || rec.BootNanos == 0 {
			t.Errorf("record = %+v", rec)
		}
	}
	if got, want := records[1].Cause, grid.CauseExited.String(); got != want {
		t.Errorf("cause = %q, want %q", got, want)
	}
}

func testRecoverNothing(t *testing.T, b *bench) {
	if err := b.h.New(t, b.record).Recover(t.Context()); err != nil {
		t.Errorf("Recover without a record: %v", err)
	}
}
