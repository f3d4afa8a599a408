package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mrsmesh/mrsmesh/examples/quickstart/census/count"
	"github.com/mrsmesh/mrsmesh/internal/audit"
	"github.com/mrsmesh/mrsmesh/internal/localmesh"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// showTable shows who ran what at which distance.
func showTable(
	out *localmesh.Screen, m *localmesh.Mesh, tasks []view.TaskView, victim *localmesh.Agent,
) {
	w := tabwriter.NewWriter(out.Rows(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SITE\tCORES\tGFLOPS\tMEMORY\tTASKS\tDISTANCE\tNOTE")
	for _, a := range m.Agents {
		var distances []float64
		for _, t := range tasks {
			if t.Site == a.ID && t.Phase == view.PhaseDone && t.Distance != nil {
				distances = append(distances, *t.Distance)
			}
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%d\t%s\t%s\n", a.Name, a.Cores, a.GFLOPS,
			grid.FormatBytes(a.Memory<<20),
			len(distances), span(distances), note(m, a, tasks, victim))
	}
	_ = w.Flush() // a screen that is gone needs no table
	if !out.Verbose() {
		return
	}
	for _, t := range movedFrom(tasks, victim.ID) {
		out.Detail("%s %s: %s", t.ID, t.Item, journey(t))
	}
}

func span(values []float64) string {
	if len(values) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f to %.3f", slices.Min(values), slices.Max(values))
}

func note(
	m *localmesh.Mesh, a *localmesh.Agent, tasks []view.TaskView, victim *localmesh.Agent,
) string {
	switch a {
	case m.Submitter():
		return "submitter"
	case victim:
		return fmt.Sprintf("killed; %s moved", plural(len(movedFrom(tasks, a.ID)), "task"))
	default:
		took := 0
		for _, t := range movedFrom(tasks, victim.ID) {
			if t.Site == a.ID {
				took++
			}
		}
		if took == 0 {
			return ""
		}
		return fmt.Sprintf("took over %d", took)
	}
}

// journey is the way of a task through its attempts.
func journey(t view.TaskView) string {
	var stops []string
	for _, a := range t.Attempts {
		stops = append(stops, fmt.Sprintf("%s at %.3f (%s)", a.SiteName, a.Distance, a.Cause))
	}
	return strings.Join(stops, ", then ")
}

// result is the outcome of the quickstart.
type result struct {
	tasks   int
	matched int
	moved   int
	audit   audit.Report
}

// compare fetches the outputs and sets them against a local run of the same
// code. It shows the merged census, and what differs.
func (j *job) compare(
	ctx context.Context, tasks []view.TaskView, out *localmesh.Screen,
) (result, error) {
	out.Say("counting the same packages here, to compare")
	local, err := countLocally(ctx, j.packages)
	if err != nil {
		return result{}, err
	}
	found := result{tasks: len(j.packages)}
	var parts []count.Census
	for _, t := range tasks {
		remote, text, err := j.fetch(ctx, t)
		if err != nil {
			out.Say("task %s, %s: %v", t.ID, t.Item, err)
			continue
		}
		parts = append(parts, remote)
		want, err := local[t.Index].JSON()
		if err != nil {
			return found, err
		}
		if text == string(want) {
			found.matched++
			continue
		}
		out.Say(
			"task %s, %s: the mesh counted %+v, the local run %+v", t.ID, t.Item, remote, local[t.Index],
		)
	}
	sum := count.Merge("all", parts)
	out.Say("%s: %d files, %d lines, %d functions; the longest is %s in %s with %d lines",
		plural(
			len(parts), "package",
		), sum.Files, sum.Lines, sum.Functions, sum.Longest.Name, sum.Longest.File, sum.Longest.Lines)
	return found, nil
}

func countLocally(ctx context.Context, packages []sourcePackage) ([]count.Census, error) {
	counted := make([]count.Census, len(packages))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, p := range packages {
		group.Go(func() (err error) {
			if err = ctx.Err(); err == nil {
				counted[i], err = count.Directory(os.DirFS(p.dir), p.name, 1)
			}
			return err
		})
	}
	return counted, group.Wait()
}

const maxResult = 1 << 20 // bytes

// fetch gets a task's output from the submitter's agent.
func (j *job) fetch(ctx context.Context, t view.TaskView) (count.Census, string, error) {
	var census count.Census
	if t.Phase != view.PhaseDone {
		return census, "", fmt.Errorf("%s: %s %s", t.Phase, t.Cause, t.Text)
	}
	at := slices.IndexFunc(t.Outputs, func(o view.OutputView) bool { return o.Path == resultPath })
	if at < 0 {
		return census, "", errors.New("left no " + resultPath)
	}
	_, body, err := j.api.GetData(ctx, t.Outputs[at].CID)
	if err != nil {
		return census, "", fmt.Errorf("fetch output: %w", err)
	}
	defer func() { _ = body.Close() }() // only read from
	text, err := io.ReadAll(io.LimitReader(body, maxResult))
	if err == nil {
		err = json.Unmarshal(text, &census)
	}
	if err != nil {
		return census, "", fmt.Errorf("read output: %w", err)
	}
	return census, string(text), nil
}

// auditAll asks all sites' records, the killed one's too, what became of the tasks.
func auditAll(m *localmesh.Mesh, out *localmesh.Screen) (audit.Report, error) {
	var sources []audit.Source
	for _, a := range m.Agents {
		sources = append(sources, audit.Source{
			Site: a.Name, StateDir: a.Config.StateDir, RunRecord: a.RunRecord(), Ends: []time.Time{a.Ended},
		})
	}
	records, err := audit.Collect(sources)
	if err != nil {
		return audit.Report{}, err
	}
	report := audit.Audit(records)
	if out.Verbose() || !report.Clean() {
		return report, report.Write(out.Rows())
	}
	return report, nil
}

// verdict is the last line. Anything but a full success is an error.
func (r result) verdict(out *localmesh.Screen) error {
	line := fmt.Sprintf("%d/%d results match the local run; 1 agent killed, %d tasks moved, %d "+
		"lost, %d doubled",
		r.matched, r.tasks, r.moved, r.audit.Total.Lost, r.audit.Total.Doubled)
	if r.matched != r.tasks || r.moved < 1 || !r.audit.Clean() || r.audit.Total.Done != r.tasks {
		return errors.New(
			line + ": this is not what was promised; run it again with -keep and look at the logs",
		)
	}
	out.Final("quickstart: " + line)
	return nil
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
