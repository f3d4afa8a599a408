package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/api/apitest"
	"github.com/mrsmesh/mrsmesh/internal/jobmap"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// endTask has a task print its number and end with a code, some seconds after the clock's time.
func endTask(a *apitest.Agent, id grid.JobID, index uint32, code, seconds int) {
	name := grid.TaskID{Job: id, Index: index}.String()
	number := strconv.Itoa(int(index) + 1)
	a.Print(name, "stdout", "task "+number+"\n")
	a.Print(name, "stderr", "first\nlast of "+number+"\n")
	a.Set(id, index, func(v *view.TaskView) {
		end := clock().Add(time.Duration(seconds) * time.Second)
		v.Started, v.Ended = view.At(clock()), view.At(end)
		v.Phase, v.Code = view.PhaseDone, &code
		v.Site, v.SiteName, v.Token = "12D3KooWother", "other", 1
		if code != 0 {
			v.Phase, v.Cause = view.PhaseFailed, grid.CauseExited.String()
		}
		if code > 128 {
			v.Cause = grid.CauseSignal.String()
		}
	})
}

// endAll ends three tasks, the last one first.
func endAll(a *apitest.Agent, id grid.JobID, job grid.Job) {
	for i := range job.Count {
		endTask(a, id, i, 0, int(job.Count-i))
	}
}

func TestMapShowsTasksInOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ flag, want string }{
		{"-k", "task 1\ntask 2\ntask 3\n"}, {"--keep-order=false", "task 3\ntask 2\ntask 1\n"},
	} {
		b := newBench(t, endAll)
		line := "map --runtime 1s " + c.flag + " echo ::: a b c"
		exit, stdout, stderr := b.run(t, "", strings.Fields(line)...)
		if exit != exitOK || stdout != c.want || !strings.Contains(stderr, "3 tasks: 3 done\n") {
			t.Errorf("%s: code %d, %q, %s", c.flag, exit, stdout, stderr)
		}
	}
}

// TestMapAsksForWhatWasPrinted: a stream of which the agent says that nothing was printed to it is
// not asked for.
func TestMapAsksForWhatWasPrinted(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(a *apitest.Agent, id grid.JobID, job grid.Job) {
		endAll(a, id, job)
		for i, p := range []view.Printed{{StdoutBytes: 7, StderrBytes: 16}, {StderrBytes: 16}, {}} {
			a.Set(id, uint32(i), func(v *view.TaskView) { v.Printed = &p })
		}
	})
	exit, stdout, stderr := b.run(t, "", strings.Fields("map --runtime 1s -k echo ::: a b c")...)
	if exit != exitOK || stdout != "task 1\n" {
		t.Errorf("code %d, %q", exit, stdout)
	}
	for i, want := range []bool{true, true, false} {
		if line := fmt.Sprintf("last of %d\n", i+1); strings.Contains(stderr, line) != want {
			t.Errorf("%q is shown: %v, want %v: %s", line, !want, want, stderr)
		}
	}
}

// TestRunAsksForWhatWasPrinted is the same for a single command.
func TestRunAsksForWhatWasPrinted(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]*view.Printed{
		"task 1\n": {StdoutBytes: 7}, "": {}, "task 1\nfirst\nlast of 1\n": nil,
	} {
		b := newBench(t, func(a *apitest.Agent, id grid.JobID, _ grid.Job) {
			endTask(a, id, 0, 0, 1)
			a.Set(id, 0, func(v *view.TaskView) { v.Printed = p })
		})
		exit, stdout, stderr := b.run(t, "", strings.Fields("run --runtime 1s -- echo")...)
		if _, last, found := strings.Cut(stderr, "first"); found {
			stdout += "first" + last
		}
		if exit != exitOK || stdout != want {
			t.Errorf("%+v: code %d, %q, want %q", p, exit, stdout, want)
		}
	}
}

// fileHolds wants a file with a text.
func fileHolds(t *testing.T, name, want string) {
	t.Helper()
	if got, err := os.ReadFile(name); err != nil || string(got) != want {
		t.Errorf("%s holds %q, %v, want %q", filepath.Base(name), got, err, want)
	}
}

// endFirst ends the first task, and says then why the others wait.
func endFirst(a *apitest.Agent, id grid.JobID, _ grid.Job) {
	endTask(a, id, 0, 0, 1)
	a.Explain(id, "no site has capacity now; asked again in 1 s")
}

// TestMapGoesOn interrupts a map when the first of its tasks is written, and follows it again when
// the others have ended: what was written stays as it is.
func TestMapGoesOn(t *testing.T) {
	t.Parallel()
	b := newBench(t, endFirst)
	out, log := b.path("out"), b.path("log")
	exit, stderr := b.interruptWhen(t, "asked again", "map", "--runtime", "1s", "--results", out,
		"--joblog", log, "echo", ":::", "a", "b", "c")
	jobs, err := b.jobs(t)
	if err != nil || len(jobs) != 1 {
		t.Fatal(jobs, err)
	}
	id := jobs[0].ID
	again := "submit map --results " + out + " --joblog " + log + " --resume " + string(id)
	if exit != exitDetached || !strings.Contains(stderr, "`"+again+"`") {
		t.Fatalf("detached with code %d, %s", exit, stderr)
	}
	fileHolds(t, filepath.Join(out, "1", "stdout"), "task 1\n")
	b.write(t, "out/1/stdout", "mine\n")
	begun, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	b.write(t, "log", string(begun)+"2\toth") // a crash has cut a line short
	endTask(b.agent, id, 1, 137, 2)
	b.agent.Set(id, 2, func(v *view.TaskView) {
		v.Phase, v.Ended = view.PhaseCancelled, view.At(clock().Add(time.Minute))
	})
	exit, _, stderr = b.run(t, "", strings.Fields(again)[1:]...)
	last := "task 2 (" + string(id) + ".1) failed with code 137: last of 2\n"
	if exit != 137 || !strings.Contains(stderr, last) {
		t.Errorf("gone on: code %d, %s, want %q", exit, stderr, last)
	}
	for name, want := range map[string]string{
		"1/stdout": "mine\n", "2/stdout": "task 2\n", "2/stderr": "first\nlast of 2\n",
		"2/exit": "137\n", "3/stdout": "", "3/exit": "-1\n", "job": string(id) + "\n",
	} {
		fileHolds(t, filepath.Join(out, name), want)
	}
	fileHolds(t, log, jobmap.LogHeader+
		"1\tother\t"+logTime()+"\t     1.000\t0\t0\t0\t0\techo a\n"+
		"2\tother\t"+logTime()+"\t     2.000\t0\t0\t137\t9\techo b\n"+
		"3\t\t0.000\t     0.000\t0\t0\t-1\t0\techo c\n")
}

// logTime is the clock's time as the log has it.
func logTime() string { return strconv.FormatInt(clock().Unix(), 10) + ".000" }

// TestMapSaysWhatIsNotWritten blocks the place of a result, and frees it for a second try.
func TestMapSaysWhatIsNotWritten(t *testing.T) {
	t.Parallel()
	b := newBench(t, endAll)
	out := b.path("out")
	if err := os.MkdirAll(filepath.Join(out, "2"), 0o700); err != nil {
		t.Fatal(err)
	}
	line := "map --runtime 1s --results " + out + " echo ::: a b"
	exit, _, stderr := b.run(t, "", strings.Fields(line)...)
	again := regexp.MustCompile("`submit (map .*)` tries again").FindStringSubmatch(stderr)
	if exit != exitOurs || again == nil || !strings.Contains(stderr, "2 is there already; move") {
		t.Fatalf("code %d, %s", exit, stderr)
	}
	if err := os.Remove(filepath.Join(out, "2")); err != nil {
		t.Fatal(err)
	}
	if exit, _, stderr = b.run(t, "", strings.Fields(again[1])...); exit != exitOK {
		t.Errorf("tried again: code %d, %s", exit, stderr)
	}
	left, err := os.ReadDir(out)
	if err != nil || len(left) != 3 { // two results, and whose they are
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestMapIsLeftAlone submits a map without following it, and follows it then.
func TestMapIsLeftAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t, endAll)
	exit, stdout, stderr := b.run(t, "", strings.Fields("map -d --parsable echo ::: a b")...)
	id := strings.TrimSpace(stdout)
	if exit != exitOK || grid.JobID(id).Validate() != nil {
		t.Fatalf("code %d, %q, %s", exit, stdout, stderr)
	}
	exit, stdout, stderr = b.run(t, "", "map", "-k", "--resume", id[:8])
	if exit != exitOK || stdout != "task 1\ntask 2\n" {
		t.Errorf("followed: code %d, %q, %s", exit, stdout, stderr)
	}
}

func TestMapIsRefusedBeforeItBegins(t *testing.T) {
	t.Parallel()
	b := newBench(t, endAll)
	b.write(t, "text", "some text\n")
	b.write(t, "log", jobmap.LogHeader+"1\tx\n")
	many := strings.Repeat("x\n", grid.MaxTasks+1)
	for want, c := range map[string]struct{ line, stdin string }{
		"want a log of tasks":         {line: "--joblog @/text echo ::: a"},
		"the tasks of another job":    {line: "--joblog @/log echo ::: a"},
		"--results: make folder":      {line: "--results @/text echo ::: a"},
		"leave the command out":       {line: "--resume aaaaaaaaaaaaaaaa echo"},
		"no such file or directory":   {line: "echo :::: @/none"},
		"more than 100000 arguments":  {line: "echo", stdin: many},
		"line 1 is longer than 4096":  {line: "echo", stdin: strings.Repeat("x", 1<<20)},
		"resources.memory: want":      {line: "--memory much echo ::: a"},
		"want one list of arguments":  {line: "echo ::: a ::: b"},
		"retries: want a whole numbe": {line: "--retries 101 echo ::: a"},
		"as many tasks run at a time": {line: "-j 4 echo ::: a"},
		"add --results DIR or --deta": {line: "--parsable echo ::: a"},
	} {
		args := append([]string{"map"}, strings.Fields(strings.ReplaceAll(c.line, "@", b.dir))...)
		exit, stdout, stderr := b.run(t, c.stdin, args...)
		if exit != exitUsage || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%s: code %d, %s, want %q", c.line, exit, stderr, want)
		}
	}
	if jobs, err := b.jobs(t); err != nil || len(jobs) != 0 {
		t.Errorf("submitted: %v, %v", jobs, err)
	}
}

// TestWhatComesBackStaysHere refuses what would be written through a link or is none of files
// and directories.
func TestWhatComesBackStaysHere(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Skip("this user may make no symbolic links on this system: ", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	place := func(kind byte, name string) error {
		header := &tar.Header{Typeflag: kind, Mode: 0o755, Size: 4}
		return placeEntry(root, filepath.FromSlash(name), header, strings.NewReader("text"))
	}
	for _, name := range []string{"a", "d/e/f", "a"} { // the second a replaces the first
		if err := place(tar.TypeReg, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		fileHolds(t, filepath.Join(dir, filepath.FromSlash(name)), "text")
	}
	if err := place(tar.TypeDir, "empty"); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "empty")); err != nil || !info.IsDir() {
		t.Errorf("the directory is %v, %v", info, err)
	}
	for _, c := range []struct {
		kind byte
		name string
	}{
		{tar.TypeReg, "link/x"},
		{tar.TypeReg, "link"},
		{tar.TypeDir, "link/x"},
		{tar.TypeSymlink, "y"},
	} {
		if err := place(c.kind, c.name); err == nil {
			t.Errorf("%c %s is written", c.kind, c.name)
		}
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
		t.Errorf("written outside: %v, %v", left, err)
	}
}

// What tasks wait for is shown while none goes on.
func TestMapLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		others view.Phase
		want   []string
	}{
		{view.PhaseRunning, []string{"37/200 done, 1 failed, 4 running, ~3 min left"}},
		{view.PhaseStaging, []string{"37/200 done, 1 failed, ~3 min left"}},
		{view.PhaseSuspended, []string{"37/200 done, 1 failed, ~3 min left", "  full"}},
	} {
		var screen bytes.Buffer
		a := &app{err: &screen, terminal: true, now: clock}
		m := &mapping{app: a}
		m.show(view.JobView{
			Count: 200, Phase: c.others, Started: view.At(clock().Add(-38 * time.Second)),
			Hint:  "full",
			Tasks: view.PhaseCounts{view.PhaseDone: 37, view.PhaseFailed: 1, c.others: 4},
		})
		got := drawn(t, screen.String(), usualColumns)
		if lines := len(c.want); !slices.Equal(got[:lines], c.want) || got[lines] != "" {
			t.Errorf("%s: drawn %q, want %q", c.others, got, c.want)
		}
		screen.Reset()
		m.erase()
		if got := screen.String(); got != fmt.Sprintf("\x1b[%dA\x1b[J", len(c.want)) {
			t.Errorf("%s: erased by %q", c.others, got)
		}
	}
}

func TestLastLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "one": "one", "one\ntwo\n\n": "two", "\n": "",
		"one\n" + strings.Repeat("x", 3*maxLastLine): strings.Repeat("x", maxLastLine),
	} {
		for _, size := range []int{1, 700, 1 << 20} {
			var last lastLine
			for rest := text; rest != ""; rest = rest[min(size, len(rest)):] {
				_, _ = last.Write([]byte(rest[:min(size, len(rest))]))
			}
			if got := last.String(); got != want {
				t.Errorf("%.10q in pieces of %d: %.20q, want %.20q", text, size, got, want)
			}
		}
	}
}
