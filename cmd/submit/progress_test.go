package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/view"
)

func TestProgressOnATerminal(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.write(t, "in", "input")
	b.write(t, "job.yaml", arrayFile)
	_, id, _ := b.run(t, "", "job", b.path("job.yaml"), "--parsable")
	jobs, err := b.agent.Jobs(t.Context())
	if err != nil || len(jobs) != 1 {
		t.Fatal(jobs, err)
	}
	distance := 0.25
	b.agent.Set(jobs[0].ID, 1, func(v *view.TaskView) {
		v.Phase, v.Site, v.SiteName, v.Distance = view.PhaseStaging, "12D3KooWother", "ot\x1b[2Jher", &distance
		v.Progress = &view.Progress{DoneBytes: 2, TotalBytes: 5}
	})
	c, err := client.New(b.socket, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var screen bytes.Buffer
	a := &app{err: &screen, client: c, terminal: true, env: os.LookupEnv, now: time.Now}
	p := progress{app: a}
	status, err := c.Job(t.Context(), jobs[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	status.Status.Hint = "no site has room"
	p.show(t.Context(), status.Status)
	first := screen.String()
	for _, want := range []string{strings.TrimSpace(id), "2 announced, 1 staging", "[....................]", "distance 0.25", "40 %", "no site has room"} {
		if !strings.Contains(first, want) {
			t.Errorf("no %q in %q", want, first)
		}
	}
	if strings.Contains(first, "\x1b[2Jher") {
		t.Errorf("a site's name steers the terminal: %q", first)
	}
	screen.Reset()
	status.Status.Tasks = view.PhaseCounts{view.PhaseDone: 3}
	status.Status.Phase = view.PhaseDone
	p.show(t.Context(), status.Status)
	if got := screen.String(); !strings.HasPrefix(got, "\x1b[3A") || !strings.Contains(got, "[####################]") {
		t.Errorf("redrawn as %q", got)
	}
}
