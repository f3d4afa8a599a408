package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/audit"
	"github.com/mrsmesh/mrsmesh/internal/localmesh"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// judge finds out what became of every job.
type judge struct {
	mesh  *mesh
	crowd *crowd
	story *story
}

// verdict holds the findings.
type verdict struct {
	accepted int // jobs that an agent said to have taken
	ended    int // of these: ended, each task once
	stranded int // of these: called off, as they would wait for a lost disk
	lost     []string
	doubled  []string
	orphans  []string
	leaked   []string
	late     []string
	phases   map[view.Phase]int // how the jobs ended
	moved    int                // tasks that ran at more than one site
	acted    int                // times that an agent began to act for a submitter with standbys
	applied  map[string]int     // troubles
	refused  map[string]int     // why submissions were not taken
	byItself []string           // agents that ended without being killed
}

// sit waits for the jobs, looks at their results, ends the agents, and reads what all left.
func (j judge) sit(
	ctx context.Context, out *localmesh.Screen, limit time.Duration,
) (verdict, error) {
	v := verdict{
		phases: make(map[view.Phase]int), applied: j.story.applied, refused: j.crowd.refused,
		orphans: j.story.orphans, byItself: j.story.ended,
	}
	jobs := j.crowd.all()
	v.accepted = len(jobs)
	open := slices.Clone(jobs)
	err := localmesh.Await(ctx, limit, "the jobs to end", func(ctx context.Context) (bool, error) {
		open = slices.DeleteFunc(open, func(a accepted) bool { return j.hasEnded(ctx, a) })
		out.Progress("%d of %d jobs have not ended", len(open), v.accepted)
		return len(open) == 0, ctx.Err()
	})
	if err != nil && ctx.Err() != nil {
		return v, err
	}
	var stranded []accepted
	open = slices.DeleteFunc(open, func(a accepted) bool {
		is := j.isStranded(ctx, a) && j.callOff(ctx, a)
		if is {
			stranded = append(stranded, a)
		}
		return is
	})
	v.stranded = len(stranded)
	for _, a := range open {
		v.lost = append(v.lost, fmt.Sprintf("%s: not ended %s after all was well again", a, limit))
	}
	for _, a := range jobs {
		if !isAmong(open, a) && !isAmong(stranded, a) {
			j.judgeJob(ctx, a, &v)
		}
	}
	if err := j.awaitTidy(ctx, out, limit); err != nil {
		return v, err
	}
	askWhy(open)
	if err := j.mesh.stopAll(ctx); err != nil {
		return v, err
	}
	j.lookAtMachine(&v)
	v.acted = j.mesh.acted()
	return v, j.audit(&v)
}

// awaitTidy gives the sites time to hear that nobody needs any more what they hold: a result that
// has come elsewhere, or whose job was called off while they were away. What is still there after
// the limit has leaked.
func (j judge) awaitTidy(ctx context.Context, out *localmesh.Screen, limit time.Duration) error {
	_ = localmesh.Await(ctx, limit, "the sites to tidy up", func(ctx context.Context) (bool, error) {
		left := 0
		for _, s := range j.mesh.sites {
			left += len(attemptsBelow(s.Config.StateDir))
		}
		out.Progress("%d attempts have not been tidied up", left)
		return left == 0, ctx.Err()
	})
	return ctx.Err()
}

func isAmong(list []accepted, a accepted) bool {
	return slices.ContainsFunc(list, func(o accepted) bool { return o.id == a.id })
}

// isStranded reports whether all that is left of a job waits for leases of attempts whose disks
// were lost after they had begun, and says so: with unattended: finish these are of eight hours,
// and nobody can know that such a disk was not copied.
func (j judge) isStranded(ctx context.Context, a accepted) bool {
	if a.job.Spec.Unattended != grid.UnattendedFinish {
		return false
	}
	detail, err := a.by.API.Job(ctx, a.id)
	if err != nil {
		return false
	}
	tasks, err := a.by.API.AllTasks(ctx, a.id)
	if err != nil {
		return false
	}
	return !slices.ContainsFunc(tasks, func(t view.TaskView) bool {
		return !t.Phase.Ended() && (!strings.Contains(t.Text, "placed again") ||
			!j.hasLost(t, detail.Status.Submitted))
	})
}

// hasLost reports whether the site that a task runs at has lost its disk since it began. A
// submitter that started again and has heard nothing of the site since does not know when that was:
// then it may have begun when its job was submitted.
func (j judge) hasLost(t view.TaskView, submitted view.Time) bool {
	began := t.Started
	if began.IsZero() {
		began = submitted
	}
	return slices.ContainsFunc(j.mesh.sites, func(s *site) bool {
		return s.Name == t.SiteName && slices.ContainsFunc(s.lost, func(l lost) bool {
			return l.ends[len(l.ends)-1].After(began.Time)
		})
	})
}

// callOff reports whether a job ends when its user calls it off.
func (j judge) callOff(ctx context.Context, a accepted) bool {
	const patience = 10 * time.Second
	if err := a.by.API.Cancel(ctx, a.id); err != nil {
		return false
	}
	return localmesh.Await(ctx, patience, "a job that is called off to end",
		func(ctx context.Context) (bool, error) { return j.hasEnded(ctx, a), nil }) == nil
}

// askWhy has the agents whose jobs have not ended write down what their goroutines do, and die.
func askWhy(open []accepted) {
	asked := make(map[*site]bool)
	for _, a := range open {
		if !asked[a.by] && a.by.Running() {
			asked[a.by] = true
			_ = a.by.Process.Signal(syscall.SIGQUIT)
		}
	}
}

// hasEnded looks for a few seconds at most: an agent that does not answer for one job is not to
// hide what became of the others.
func (j judge) hasEnded(ctx context.Context, a accepted) bool {
	const patience = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	detail, err := a.by.API.Job(ctx, a.id)
	return err == nil && !detail.Status.Ended.IsZero()
}

// judgeJob counts one ended job, and names the first thing that is wrong with it.
func (j judge) judgeJob(ctx context.Context, a accepted, v *verdict) {
	detail, err := a.by.API.Job(ctx, a.id)
	if err == nil {
		v.phases[detail.Status.Phase]++
		err = j.look(ctx, a)
	}
	if err != nil {
		v.lost = append(v.lost, fmt.Sprintf("%s: %v", a, err))
		return
	}
	v.ended++
}

// look checks that each task has one end, and that what is done has its result.
func (j judge) look(ctx context.Context, a accepted) error {
	tasks, err := a.by.API.AllTasks(ctx, a.id)
	if err != nil {
		return err
	}
	for _, t := range tasks {
		var err error
		switch {
		case !t.Phase.Ended():
			err = fmt.Errorf("%s though the job has ended", t.Phase)
		case t.Phase == view.PhaseDone && a.job.Spec.Kind == grid.KindWasm:
			err = j.lookAtResult(ctx, a, t)
		case t.Phase != view.PhaseDone && !a.mayFail():
			err = fmt.Errorf("%s without cause: %s %s", t.Phase, t.Cause, t.Text)
		}
		if err != nil {
			return fmt.Errorf("task %d: %w", t.Index, err)
		}
	}
	return nil
}

func (j judge) lookAtResult(ctx context.Context, a accepted, t view.TaskView) error {
	if len(t.Outputs) != 1 {
		return fmt.Errorf("done with %d results, want 1", len(t.Outputs))
	}
	_, content, err := a.by.API.GetData(ctx, t.Outputs[0].CID)
	if err != nil {
		return fmt.Errorf("its result: %w", err)
	}
	defer content.Close()
	got, err := io.ReadAll(content)
	if err != nil || !bytes.Equal(got, []byte(resultText)) {
		return fmt.Errorf("its result is %q (%w)", got, err)
	}
	return nil
}

// lookAtMachine finds what should be gone when all agents are.
func (j judge) lookAtMachine(v *verdict) {
	v.orphans = append(v.orphans, processesBelow(j.mesh.place.Dir)...)
	for _, s := range j.mesh.sites {
		v.leaked = append(v.leaked, mountsBelow(s.Config.StateDir)...)
		v.leaked = append(v.leaked, attemptsBelow(s.Config.StateDir)...)
	}
}

// audit reads the journals.
func (j judge) audit(v *verdict) error {
	var sources []audit.Source
	for _, s := range j.mesh.sites {
		sources = append(sources, audit.Source{
			Site: s.Name, StateDir: s.Config.StateDir, RunRecord: s.RunRecord(),
			Ends: append(slices.Clone(s.Deaths), s.Ended),
		})
		for _, l := range s.lost {
			sources = append(sources, l.source(s))
		}
	}
	records, err := audit.Collect(sources)
	if err != nil {
		return err
	}
	report := audit.Audit(records)
	v.moved = report.Total.Moved
	for _, id := range report.Lost {
		v.lost = append(v.lost, fmt.Sprintf("task %s, say the journals", id))
	}
	for _, id := range report.Missing {
		v.lost = append(v.lost, fmt.Sprintf("the result of task %s, say the journals", id))
	}
	for _, l := range report.SilentlyLate() {
		v.late = append(v.late, fmt.Sprintf(
			"task %s began %s and ended %s behind its time, and its submitter says nothing of it",
			l.Task, l.Start.Round(time.Millisecond), l.End.Round(time.Millisecond)))
	}
	for _, d := range report.Doubled {
		v.doubled = append(v.doubled, fmt.Sprintf("%s on %s and %s on %s ran together for %s",
			d.A, d.SiteA, d.B, d.SiteB, d.Overlap))
	}
	return nil
}

func (v verdict) clean() bool {
	return len(v.lost)+len(v.doubled)+len(v.orphans)+len(v.leaked)+len(v.late) == 0 &&
		v.ended+v.stranded == v.accepted && v.accepted > 0
}

// shown bounds the findings of a kind that are written out.
const shown = 30

// write says what was found, the summary last.
func (v verdict) write(out *localmesh.Screen) {
	out.Say("troubles: %s", counts(v.applied))
	out.Say("jobs: %s; %d tasks moved; agents began to act %d times for a submitter with standbys",
		counts(v.phases), v.moved, v.acted)
	if v.stranded > 0 {
		out.Say("called off, as they would wait for the leases of lost disks: %d", v.stranded)
	}
	if len(v.refused) > 0 {
		out.Say("submissions not taken: %s", counts(v.refused))
	}
	if len(v.byItself) > 0 {
		out.Say("agents that ended by themselves: %s", strings.Join(v.byItself, ", "))
	}
	for _, kind := range []struct {
		name string
		list []string
	}{
		{"lost", v.lost},
		{"doubled", v.doubled},
		{"orphan", v.orphans},
		{"leaked", v.leaked},
		{"late", v.late},
	} {
		for _, what := range kind.list[:min(shown, len(kind.list))] {
			out.Say("%s: %s", kind.name, what)
		}
		if more := len(kind.list) - shown; more > 0 {
			out.Say("%s: ... and %d more", kind.name, more)
		}
	}
	out.Final(fmt.Sprintf(
		"chaos: %d accepted, %d ended once, %d lost, %d doubled, %d orphans, %d leaked, %d late",
		v.accepted, v.ended, len(v.lost), len(v.doubled), len(v.orphans), len(v.leaked), len(v.late)))
}

// counts writes a table of counts on one line, by name.
func counts[K ~string](table map[K]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(table)) {
		parts = append(parts, fmt.Sprintf("%d %s", table[name], name))
	}
	return strings.Join(parts, ", ")
}
