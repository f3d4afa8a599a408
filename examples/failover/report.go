package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/mrsmesh/mrsmesh/internal/audit"
	"github.com/mrsmesh/mrsmesh/internal/localmesh"
	"github.com/mrsmesh/mrsmesh/internal/view"
)

// result is the outcome.
type result struct {
	lost    int    // machines
	began   int    // percent, at which the attempt began that brought the result
	text    []byte // the result
	matches bool   // the local run's
	audit   audit.Report
}

const maxResult = 1 << 16 // bytes

// fetch gets what the job has left from the submitter's agent.
func (s *story) fetch(ctx context.Context) error {
	t, err := s.task(ctx)
	if err != nil {
		return err
	}
	if t.Phase != view.PhaseDone {
		return fmt.Errorf("the task is %s, though the job has ended", t.Phase)
	}
	if s.result.text, err = s.output(ctx, t, resultPath); err != nil {
		return err
	}
	began, err := s.output(ctx, t, beganPath)
	if err != nil {
		return err
	}
	if s.result.began, err = strconv.Atoi(strings.TrimSpace(string(began))); err != nil {
		return fmt.Errorf("read where the job went on: %w", err)
	}
	s.out.Say("the result is delivered to %s: %s", s.owner.Name,
		strings.TrimSpace(string(s.result.text)))
	return nil
}

func (s *story) output(ctx context.Context, t view.TaskView, path string) ([]byte, error) {
	at := slices.IndexFunc(t.Outputs, func(o view.OutputView) bool { return o.Path == path })
	if at < 0 {
		return nil, errors.New("the job left no " + path)
	}
	_, body, err := s.owner.API.GetData(ctx, t.Outputs[at].CID)
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w", path, err)
	}
	defer func() { _ = body.Close() }() // only read from
	text, err := io.ReadAll(io.LimitReader(body, maxResult))
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w", path, err)
	}
	return text, nil
}

// auditAll asks the records of all sites but the one whose disk is gone what became of the job.
func auditAll(m *localmesh.Mesh, out *localmesh.Screen) (audit.Report, error) {
	var sources []audit.Source
	for _, a := range m.Agents {
		sources = append(sources, audit.Source{
			Site: a.Name, StateDir: a.Config.StateDir, RunRecord: a.RunRecord(),
			Ends: append(slices.Clone(a.Deaths), a.Ended),
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

// attempts counts how often the job was begun: once, and again when the first machine was lost.
// The loss of the second must not begin it anew.
const attempts = 2

// verdict is the last line. Anything but a full success is an error.
func (r result) verdict(out *localmesh.Screen) error {
	matches := "matches"
	if !r.matches {
		matches = "differs from"
	}
	total := r.audit.Total
	line := fmt.Sprintf(
		"%d job, %d machines lost, continued at %d %%, result %s the local run, %d lost, "+
			"%d doubled",
		total.Done, r.lost, r.began, matches, total.Lost, total.Doubled)
	var wrong []string
	for _, check := range []struct {
		wrong bool
		what  string
	}{
		{!r.matches, "the result is another one"},
		{r.began < 1, "it began anew"},
		{!r.audit.Clean(), "the audit is not clean"},
		{total.Done != 1 || total.Tasks != 1, "the records do not know of one job that is done"},
		{total.Attempts != attempts, fmt.Sprintf("it was begun %d times", total.Attempts)},
	} {
		if check.wrong {
			wrong = append(wrong, check.what)
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%s: %s; run it again with -keep and look at the logs", line,
			strings.Join(wrong, ", "))
	}
	out.Final("failover: " + line)
	return nil
}
