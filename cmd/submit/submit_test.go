package main

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/api"
	"github.com/mrsmesh/mrsmesh/internal/api/apitest"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func clock() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// bench is an agent in memory behind a real socket, and a folder with a module.
type bench struct {
	agent  *apitest.Agent
	socket string
	dir    string
}

// jobs lists what the agent knows.
func (b *bench) jobs(t *testing.T) ([]view.JobView, error) {
	t.Helper()
	return b.agent.Jobs(t.Context(), view.JobQuery{Limit: 10})
}

// socketDir is a folder for sockets, which goes with the test.
func socketDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mrs") //nolint:usetesting // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func newBench(t *testing.T, onSubmit func(*apitest.Agent, grid.JobID, grid.Job)) *bench {
	t.Helper()
	b := &bench{
		agent: apitest.New(clock), socket: filepath.Join(socketDir(t), "s.sock"), dir: t.TempDir(),
	}
	b.agent.OnSubmit = onSubmit
	server, err := api.New(b.agent, api.Options{Socket: b.socket})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if err := server.Listen(ctx); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx) }()
	t.Cleanup(func() {
		b.agent.Wait()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	b.write(t, "w.wasm", "\x00asm")
	return b
}

func (b *bench) write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

// locked is a buffer that two goroutines may use.
type locked struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (b *bench) run(t *testing.T, stdin string, args ...string) (int, string, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var stdout, stderr locked
	args = append([]string{"--addr", b.socket}, args...)
	exit := run(ctx, args, strings.NewReader(stdin), &stdout, &stderr)
	return exit, stdout.String(), stderr.String()
}

// ends makes every task run and end with the code that codes has for it.
func ends(codes map[uint32]int) func(*apitest.Agent, grid.JobID, grid.Job) {
	return func(a *apitest.Agent, id grid.JobID, job grid.Job) {
		for i := range job.Count {
			status := codes[i]
			name := grid.TaskID{Job: id, Index: i}.String()
			a.Set(id, i, func(v *view.TaskView) {
				v.Phase, v.Started = view.PhaseRunning, view.At(clock())
				v.Site, v.SiteName, v.Token = "12D3KooWother", "other", 1
			})
			a.Print(name, "stdout", "out of "+name+"\n")
			a.Print(name, "stderr", "err of "+name+"\n")
			ref := a.Store([]byte("result of "+name), false)
			task := job.Spec.Expand(id, i, grid.Item{})
			a.Set(id, i, func(v *view.TaskView) {
				v.Phase, v.Code, v.Ended = view.PhaseDone, &status, view.At(clock())
				if status != 0 {
					v.Phase = view.PhaseFailed
					return
				}
				for _, out := range task.Outputs {
					v.Outputs = append(
						v.Outputs, view.OutputView{Path: out.Path, To: out.To, CID: ref.CID, Bytes: ref.Bytes},
					)
				}
			})
		}
	}
}

func refused(a *apitest.Agent, id grid.JobID, _ grid.Job) {
	a.Explain(id, "", "never fits: too little memory")
	a.Set(id, 0, func(v *view.TaskView) { v.Phase = view.PhaseRefused })
}

func waits(a *apitest.Agent, id grid.JobID, _ grid.Job) {
	a.Explain(id, "no site has capacity now; asked again in 1 s")
	a.Set(id, 0, func(v *view.TaskView) { v.Phase = view.PhaseWaiting })
}

func TestRunGivesTheProgramsCode(t *testing.T) {
	t.Parallel()
	for want, codes := range map[int]map[uint32]int{0: nil, 7: {0: 7}, 137: {0: 137}} {
		b := newBench(t, ends(codes))
		exit, stdout, stderr := b.run(
			t, "", "run", "--wasm", b.path("w.wasm"), "--runtime", "1s", "--", "-x",
		)
		if exit != want || !strings.HasPrefix(stdout, "out of ") || strings.Count(stdout, "\n") != 1 ||
			!strings.Contains(stderr, "err of ") {
			t.Errorf("run of %v = %d\nstdout %q\nstderr %q", codes, exit, stdout, stderr)
		}
		if job, _ := b.agent.Job0(); strings.Join(job.Spec.Args, " ") != "-x" {
			t.Errorf("args %q", job.Spec.Args)
		}
	}
}

func TestCodesBeforeTheStart(t *testing.T) {
	t.Parallel()
	b := newBench(t, refused)
	b.write(t, "bad.yaml", "wasm: gone.wasm\nruntime: 5\nresorces: {}\n")
	for name, c := range map[string]struct {
		args []string
		want int
		say  string
	}{
		"never": {
			[]string{"run", "--wasm", b.path("w.wasm")}, exitNever, "never fits: too little memory",
		},
		"bad file": {
			[]string{"job", b.path("bad.yaml")},
			exitUsage,
			"bad.yaml:3: resorces: no such key; did you mean resources?",
		},
		"no file":  {[]string{"job", b.path("none.yaml")}, exitUsage, "none.yaml"},
		"nothing":  {[]string{"run"}, exitUsage, "nothing to run"},
		"bad flag": {[]string{"run", "--wsam", "x"}, exitUsage, "unknown flag"},
		"bad verb": {[]string{"rnu"}, exitUsage, "unknown verb"},
		"bad rate": {
			[]string{"run", "--wasm", b.path("w.wasm"), "--bandwidth", "5MB/s"},
			exitUsage,
			"resources.bandwidth: want a rate with a unit",
		},
		"bad size": {
			[]string{"run", "--wasm", b.path("w.wasm"), "--memory", "5"},
			exitUsage,
			"resources.memory: want a size with a unit",
		},
		"bad input": {
			[]string{"run", "--wasm", b.path("w.wasm"), "-i", "x"}, exitUsage, "want HERE:THERE",
		},
		"bad output":   {[]string{"list", "-o", "xml"}, exitUsage, "output: want one of"},
		"no job":       {[]string{"describe", "zzz"}, exitNoJob, "submit list"},
		"no job, full": {[]string{"why", "aaaaaaaaaaaaaaaa"}, exitNoJob, "not found"},
		"no agent":     {[]string{"list", "--addr", "/nonexistent/s"}, exitUnreachable, "siteagent run"},
		"no domain": {
			[]string{"run", "--domain", "other", "--wasm", b.path("w.wasm")}, exitDenied, "domain home",
		},
	} {
		exit, stdout, stderr := b.run(t, "", c.args...)
		if exit != c.want || stdout != "" || !strings.Contains(stderr, c.say) {
			t.Errorf(
				"%s: %d, want %d\nstdout %q\nstderr %q, want %q", name, exit, c.want, stdout, stderr, c.say,
			)
		}
	}
}

func TestNoWaitGivesUp(t *testing.T) {
	t.Parallel()
	b := newBench(t, waits)
	exit, _, stderr := b.run(t, "", "run", "--wasm", b.path("w.wasm"), "--no-wait")
	if exit != exitNever || !strings.Contains(stderr, "no site has capacity now") {
		t.Errorf("run --no-wait = %d, %q", exit, stderr)
	}
	jobs, err := b.jobs(t)
	if err != nil || jobs[0].Phase != view.PhaseCancelled {
		t.Errorf("the job was not withdrawn: %+v %v", jobs, err)
	}
}

// interruptWhen runs the command and interrupts it once standard error says text.
func (b *bench) interruptWhen(t *testing.T, text string, args ...string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	reader, writer := io.Pipe()
	var stderr locked
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, err := reader.Read(buffer)
			_, _ = stderr.Write(buffer[:n])
			if strings.Contains(stderr.String(), text) {
				cancel()
			}
			if err != nil {
				return
			}
		}
	}()
	exit := run(
		ctx, append([]string{"--addr", b.socket}, args...), strings.NewReader(""), io.Discard, writer,
	)
	_ = writer.Close()
	return exit, stderr.String()
}

func TestInterruptDetachesOrCancels(t *testing.T) {
	t.Parallel()
	b := newBench(t, waits)
	exit, stderr := b.interruptWhen(t, "asked again", "run", "--wasm", b.path("w.wasm"))
	if exit != exitDetached || !strings.Contains(stderr, "submit wait") {
		t.Errorf("interrupted = %d, %q", exit, stderr)
	}
	jobs, err := b.jobs(t)
	if err != nil || jobs[0].Phase != view.PhaseWaiting {
		t.Errorf("after detaching: %+v %v", jobs, err)
	}
	exit, stderr = b.interruptWhen(
		t, "asked again", "run", "--cancel-on-interrupt", "--wasm", b.path("w.wasm"),
	)
	if exit != exitDetached || !strings.Contains(stderr, "cancelled") {
		t.Errorf("interrupted = %d, %q", exit, stderr)
	}
	jobs, err = b.jobs(t)
	if err != nil || jobs[0].Phase != view.PhaseCancelled {
		t.Errorf("after cancelling: %+v %v", jobs, err)
	}
}

const arrayFile = `
wasm: w.wasm
count: 3
runtime: 1m
inputs: [{path: /in, from: in}]
outputs: [{path: /out/r, to: "results/{{index}}.txt"}]
`

func TestArrayWritesOutputsBesideTheFile(t *testing.T) {
	t.Parallel()
	b := newBench(t, ends(nil))
	b.write(t, "in", "input")
	b.write(t, "job.yaml", arrayFile)
	exit, stdout, stderr := b.run(t, "", "job", b.path("job.yaml"), "--wait", "-o", "json")
	var got view.JobView
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || exit != 0 ||
		got.Phase != view.PhaseDone {
		t.Fatalf("job --wait = %d %v\n%s\n%s", exit, err, stdout, stderr)
	}
	data, err := os.ReadFile(b.path("results/2.txt"))
	if err != nil || string(data) != "result of "+string(got.ID)+".2" {
		t.Errorf("results/2.txt: %q, %v", data, err)
	}
	left, err := os.ReadDir(b.path("results"))
	if err != nil || len(left) != 3 {
		t.Errorf("left behind: %v %v", left, err)
	}
	to := filepath.Join(t.TempDir(), "new")
	if exit, _, stderr := b.run(t, "", "get", string(got.ID)[:5], "--to", to); exit != 0 {
		t.Errorf("get = %d, %s", exit, stderr)
	}
	if _, err := os.Stat(filepath.Join(to, "results/0.txt")); err != nil {
		t.Error(err)
	}
}

func TestArrayGivesTheLowestFailingCode(t *testing.T) {
	t.Parallel()
	b := newBench(t, ends(map[uint32]int{1: 9, 2: 4}))
	b.write(t, "in", "input")
	b.write(t, "job.yaml", arrayFile)
	exit, _, stderr := b.run(t, "", "job", b.path("job.yaml"), "--wait")
	if exit != 9 || !strings.Contains(stderr, ".1 failed with code 9") &&
		!strings.Contains(stderr, ".1`") {
		t.Errorf("job --wait = %d, %q", exit, stderr)
	}
}

func TestDescribeAndSubmitAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, ends(nil))
	b.write(t, "in", "input")
	b.write(t, "job.yaml", arrayFile)
	exit, id, stderr := b.run(t, "", "job", b.path("job.yaml"), "--parsable")
	id = strings.TrimSpace(id)
	if exit != 0 || grid.JobID(id).Validate() != nil {
		t.Fatalf("job --parsable = %d %q %q", exit, id, stderr)
	}
	first, _ := b.agent.Job0()
	for _, format := range []string{"json", "yaml"} {
		exit, text, stderr := b.run(t, "", "describe", id, "-o", format)
		if exit != 0 {
			t.Fatalf("describe = %d %s", exit, stderr)
		}
		exit, again, stderr := b.run(t, text, "job", "-", "--parsable")
		if exit != 0 || strings.TrimSpace(again) == id {
			t.Fatalf("job - of\n%s= %d %q %q", text, exit, again, stderr)
		}
		second, _ := b.agent.Job0()
		x, errX := json.Marshal(first)
		y, errY := json.Marshal(second)
		if errX != nil || errY != nil || !bytes.Equal(x, y) {
			t.Errorf("submitted again as %s\nwant\n%s", y, x)
		}
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	b := newBench(t, ends(map[uint32]int{0: 3}))
	_, id, _ := b.run(t, "", "run", "-d", "--parsable", "--wasm", b.path("w.wasm"))
	if exit, _, stderr := b.run(t, "", "wait", strings.TrimSpace(id)); exit != 3 {
		t.Errorf("wait = %d, %s", exit, stderr)
	}
	slow := newBench(t, waits)
	_, id, _ = slow.run(t, "", "run", "-d", "--parsable", "--wasm", slow.path("w.wasm"))
	if exit, _, stderr := slow.run(t, "", "wait", "--timeout", "50ms",
		strings.TrimSpace(id)); exit != exitTimeout {
		t.Errorf("wait --timeout = %d, %s", exit, stderr)
	}
	if exit, _, stderr := slow.run(t, "", "cancel", strings.TrimSpace(id)[:8]); exit != 0 {
		t.Errorf("cancel = %d, %s", exit, stderr)
	}
	if exit, _, _ := slow.run(t, "", "wait", strings.TrimSpace(id)); exit != exitOther {
		t.Errorf("wait for a cancelled job = %d", exit)
	}
}

func TestShowVerbs(t *testing.T) {
	t.Parallel()
	b := newBench(t, ends(map[uint32]int{0: 5}))
	offer := grid.Offer{
		ID: 1, Site: "12D3KooWother", Parts: grid.Parts{X: 0.25, Distance: 0.75}, TasksNow: 2,
	}
	never := grid.Refusal{Reason: grid.ReasonMemory, Never: true, Want: 4 << 30, Have: 2 << 30}
	b.agent.Table = view.OfferTable{
		Members: 2, Answered: 2, Counterfactuals: view.Counterfactuals([]grid.Refusal{never}),
		Rows: []view.OfferRow{
			view.FromOffer(offer, "other", 1), view.FromRefusal("12D3KooWself", "se\x1blf", never),
		},
	}
	_, id, _ := b.run(t, "", "run", "-d", "--parsable", "--wasm", b.path("w.wasm"))
	id = strings.TrimSpace(id)
	b.agent.Wait()
	b.write(t, "job.yaml", "wasm: w.wasm\n")
	for _, c := range []struct {
		args string
		want []string
	}{
		{"list", []string{"ID", id, "failed", "1 failed", "5"}},
		{"list -o name", []string{id + "\n"}},
		{"list -o json", []string{"[\n", `"phase": "failed"`}},
		{"list -o yaml", []string{"- id: " + id, "phase: failed"}},
		{"list -o wide", []string{"HINT"}},
		{"status", []string{"DOMAIN", "home"}},
		{"status " + id, []string{id + ".0", "other"}},
		{"status " + id + " --watch", []string{`{"id":"` + id}},
		{"describe " + id, []string{"ATTEMPT"}},
		{"describe " + id + " -o json", []string{`"wasm": "cid:`, `"task_list"`}},
		{"why " + id, []string{
			"other", "0.75", "never fits: too little memory",
			"fits if the job asks for at most 2.0 GiB of memory", "se?lf",
		}},
		{"plan " + b.path("job.yaml"), []string{"offers"}},
		{"sites", []string{"this site", "connected"}},
		{"logs " + id, []string{"out of " + id + ".0\n"}},
		{"logs --stderr " + id + ".0", []string{"err of " + id + ".0\n"}},
		{"events -n 2", []string{"job_submitted", "running"}},
		{"events -n 2 -o json", []string{`{"id":1,`, "\n{\"id\":2,"}},
		{"version", []string{"submit "}},
		{"--help", []string{"Exit codes", "124", "submit run --wasm"}},
		{"run --help", []string{"Examples:", "--memory"}},
		{"completion bash", []string{"complete"}},
	} {
		exit, stdout, stderr := b.run(t, "", strings.Fields(c.args)...)
		if exit != 0 {
			t.Errorf("%s = %d %s", c.args, exit, stderr)
		}
		for _, want := range c.want {
			if !strings.Contains(stdout, want) {
				t.Errorf("%s: no %q in\n%s", c.args, want, stdout)
			}
		}
	}
}

func TestDefaultsAreSaidOnSubmission(t *testing.T) {
	t.Parallel()
	b := newBench(t, ends(nil))
	if _, _, stderr := b.run(t, "", "run", "--wasm", b.path("w.wasm")); !strings.Contains(
		stderr, "no runtime given: planning with 10m",
	) {
		t.Errorf("stderr %q", stderr)
	}
	if _, _, stderr := b.run(t, "", "run", "-d", "--", "ls"); !strings.Contains(
		stderr, "WebAssembly only",
	) {
		t.Errorf("stderr %q", stderr)
	}
	if job, _ := b.agent.Job0(); job.Spec.Kind != grid.KindCommand || job.Spec.Args[0] != "ls" {
		t.Errorf("job %+v", job)
	}
}

func tarOf(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, h.Size)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestOutputsStayInside lets a site answer with every trick.
func TestOutputsStayInside(t *testing.T) {
	t.Parallel()
	file := tar.Header{Name: "a/b", Typeflag: tar.TypeReg, Size: 3, Mode: 0o644}
	for name, c := range map[string]struct {
		to  string
		tar []byte
		ok  bool
	}{
		"folder":       {"d", tarOf(t, file), true},
		"tar leaves":   {"d", tarOf(t, tar.Header{Name: "../x", Typeflag: tar.TypeReg}), false},
		"tar absolute": {"d", tarOf(t, tar.Header{Name: "/x", Typeflag: tar.TypeReg}), false},
		"tar link": {
			"d", tarOf(t, tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "/"}), false,
		},
		"tar twice":       {"d", tarOf(t, file, file), false},
		"half a tar":      {"d", tarOf(t, file)[:514], false},
		"to leaves":       {"../d", tarOf(t, file), false},
		"through a link":  {"link/d", tarOf(t, file), false},
		"onto a link":     {"link", tarOf(t, file), false},
		"onto a folder":   {"there", tarOf(t, file), false},
		"to is absolute":  {"/tmp/mrs-never", tarOf(t, file), false},
		"nested and made": {"x/y/d", tarOf(t, file), true},
	} {
		b := newBench(t, func(a *apitest.Agent, id grid.JobID, _ grid.Job) {
			ref := a.Store(c.tar, true)
			zero := 0
			a.Set(id, 0, func(v *view.TaskView) {
				v.Phase, v.Code, v.Started = view.PhaseDone, &zero, view.At(clock())
				v.Outputs = []view.OutputView{{Path: "/out", To: c.to, CID: ref.CID, Dir: true}}
			})
		})
		_, id, _ := b.run(t, "", "run", "-d", "--parsable", "--wasm", b.path("w.wasm"))
		b.agent.Wait()
		to, outside := t.TempDir(), t.TempDir()
		if err := os.Symlink(outside, filepath.Join(to, "link")); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(to, "there"), 0o700); err != nil {
			t.Fatal(err)
		}
		exit, _, stderr := b.run(t, "", "get", strings.TrimSpace(id), "--to", to)
		if (exit == 0) != c.ok {
			t.Errorf("%s: %d %s", name, exit, stderr)
		}
		if c.ok {
			if _, err := os.Stat(filepath.Join(to, c.to, "a/b")); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
			t.Errorf("%s: written outside: %v %v", name, left, err)
		}
		if left, err := filepath.Glob(filepath.Join(to, ".mrs-*")); err != nil || len(left) > 0 {
			t.Errorf("%s: left behind: %v %v", name, left, err)
		}
	}
}
