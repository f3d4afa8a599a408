package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/jobfile"
	"github.com/mrsmesh/mrsmesh/internal/view"
)

// onScreen is submit on a terminal that is 60 columns wide, with a job of three tasks.
func onScreen(t *testing.T) (*bytes.Buffer, *app, view.JobView) {
	t.Helper()
	b := newBench(t, nil)
	b.write(t, "in", "input")
	b.write(t, "job.yaml", arrayFile)
	if exit, _, stderr := b.run(t, "", "job", b.path("job.yaml"), "--parsable"); exit != 0 {
		t.Fatal(exit, stderr)
	}
	jobs, err := b.agent.Jobs(t.Context(), view.JobQuery{Limit: 10})
	if err != nil || len(jobs) != 1 {
		t.Fatal(jobs, err)
	}
	b.agent.Set(jobs[0].ID, 1, func(v *view.TaskView) {
		v.Phase, v.Site = view.PhaseStaging, "12D3KooWother"
		v.SiteName = "ot\x1b[2Jher-" + strings.Repeat("long", 20)
		v.Progress = &view.Progress{DoneBytes: 2, TotalBytes: 5}
	})
	c, err := client.New(b.socket, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	status, err := c.Job(t.Context(), jobs[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	var screen bytes.Buffer
	a := &app{err: &screen, client: c, terminal: true, env: os.LookupEnv, now: clock}
	a.width = func() int { return 60 }
	return &screen, a, status.Status
}

// drawn are the lines of a picture without what moves the cursor.
func drawn(t *testing.T, text string, columns int) []string {
	t.Helper()
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		for _, order := range []string{"\x1b[2K", "\x1b[J", "\x1b[3A", "\x1b[1A"} {
			line = strings.ReplaceAll(line, order, "")
		}
		if n := utf8.RuneCountInString(line); n >= columns {
			t.Errorf("a line is %d wide, want less than %d: %q", n, columns, line)
		}
		lines = append(lines, line)
	}
	return lines
}

func TestProgressFitsTheTerminal(t *testing.T) {
	t.Parallel()
	screen, a, v := onScreen(t)
	v.Hint = "no site has capacity now; " + strings.Repeat("and that takes a while ", 5)
	p := progress{app: a}
	p.show(t.Context(), v)
	lines := drawn(t, screen.String(), 60)
	if lines[0] != "3 tasks  0 done 0 %  1 staging" ||
		!strings.HasPrefix(lines[1], "  1      staging    on ot?[2Jher-long") {
		t.Errorf("drawn\n%s", strings.Join(lines, "\n"))
	}
	if strings.Contains(screen.String(), "\x1b[2Jher") {
		t.Errorf("a site's name steers the terminal: %q", screen)
	}
	screen.Reset()
	v.Tasks = view.PhaseCounts{view.PhaseDone: 3}
	v.Phase = view.PhaseDone
	p.show(t.Context(), v)
	if got := screen.String(); !strings.HasPrefix(got, "\x1b[3A\x1b[2K3 tasks  3 done 100 %\n\x1b[J") {
		t.Errorf("redrawn as %q", got)
	}
}

func TestProgressOfAnArray(t *testing.T) {
	t.Parallel()
	v := view.JobView{
		ID: "aaaaaaaaaaaaaaaa", Count: 200, Phase: view.PhaseRunning,
		Started: view.At(clock().Add(-36 * time.Second)),
	}
	v.Tasks = view.PhaseCounts{view.PhaseDone: 34, view.PhaseRunning: 5, view.PhaseWaiting: 161}
	var said bytes.Buffer
	a := &app{err: &said, terminal: true, now: clock}
	p := progress{app: a}
	// 34 tasks took 36 s, so 166 take 176 s. Tasks are asked for only where there are few.
	v.Count = 1_200
	v.Tasks[view.PhaseWaiting] += 1_000
	p.show(t.Context(), v)
	if got, want := drawn(
		t, said.String(), usualColumns,
	)[0], "1200 tasks  34 done 2 %  5 running  ~21 min left"; got != want {
		t.Errorf("drawn %q, want %q", got, want)
	}
	v.Count = 200
	if got, want := tally(v)+"  "+a.timeLeft(v), "200 tasks  34 done 17 %  5 running  ~3 min "+
		"left"; got != want {
		t.Errorf("drawn %q, want %q", got, want)
	}
	said.Reset()
	plain := progress{app: &app{err: &said, now: clock}}
	for range 2 {
		plain.show(t.Context(), v)
	}
	if got, want := said.String(), "aaaaaaaaaaaaaaaa  200 tasks  34 done 17 %  5 "+
		"running\n"; got != want {
		t.Errorf("not on a terminal %q, want %q once", got, want)
	}
}

func TestLongUploadsTellBytes(t *testing.T) {
	t.Parallel()
	var screen bytes.Buffer
	a := &app{err: &screen, terminal: true, now: clock}
	shown := a.newTransfer([]jobfile.Source{{Bytes: 3 << 20}, {Bytes: 1 << 20}})
	body := shown.reader(bytes.NewReader(make([]byte, 1<<20)))
	shown.told = time.Time{} // long ago
	if _, err := io.Copy(io.Discard, io.LimitReader(body, 1<<20)); err != nil {
		t.Fatal(err)
	}
	shown.told = time.Time{}
	shown.add(0)
	shown.end()
	if got := strings.Join(
		drawn(t, screen.String(), usualColumns), "|",
	); !strings.Contains(got, "uploading 1.0 MiB of 4.0 MiB  25 %|") ||
		!strings.Contains(got, "uploaded 4.0 MiB") {
		t.Errorf("drawn %q", got)
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"short": "short", "123456789": "123456789", "1234567890": "123456789", "東京都庁舎": "東京都庁",
		"12345678 0": "12345678",
	} {
		if got := cut(line, 10); got != want {
			t.Errorf("%q is cut to %q, want %q", line, got, want)
		}
	}
}
