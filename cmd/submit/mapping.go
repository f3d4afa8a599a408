package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/jobmap"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// runMap submits a map and follows it.
func (a *app) runMap(ctx context.Context, f *mapFlags, order jobmap.Order) error {
	made, err := order.Make(".")
	if err != nil {
		return usage("%w", err)
	}
	if f.dryRun {
		return a.printCommands(made.Commands)
	}
	if a.parsable && !f.detach && f.follow.results == "" {
		return usage("--parsable prints ids alone, and tasks print too; add --results DIR or " +
			"--detach")
	}
	for _, note := range made.Notes {
		a.say("%s", note)
	}
	plan, err := a.planOfDocument(f.document(made))
	if err != nil {
		return err
	}
	m := &f.follow
	defer m.close()
	if err = m.open(""); err != nil {
		return err
	}
	id, count, err := a.hand(ctx, plan)
	if err != nil {
		return err
	}
	if err = m.own(id); err != nil {
		return err
	}
	if f.detach {
		return a.leave(ctx, id, following{})
	}
	if a.parsable {
		if err := a.show(result{names: []string{string(id)}}); err != nil {
			return err
		}
	} else {
		a.say("job %s submitted: %d %s", id, count, plural(count, "task"))
	}
	return m.follow(ctx, id)
}

// resumeMap follows a map that was submitted before.
func (a *app) resumeMap(ctx context.Context, f *mapFlags, args []string) error {
	if len(args) > 0 || f.dryRun {
		return usage("--resume goes on with a job that was submitted; leave the command out")
	}
	id, err := a.findJob(ctx, f.resume)
	if err != nil {
		return err
	}
	m := &f.follow
	defer m.close()
	if err := m.open(id); err != nil {
		return err
	}
	if err := m.own(id); err != nil {
		return err
	}
	return m.follow(ctx, id)
}

// mapping follows the tasks of a map and writes what each has left when it has ended.
type mapping struct {
	app *app

	results, joblog string // as on the command line; empty = none
	keepOrder       bool

	sinks
	job     grid.JobID
	spec    view.JobSpec
	handled map[uint32]bool // tasks that have ended and are written
	pages   map[uint32]int  // how many of them, by page
	first   uint32          // all below are handled
	failed  []string        // the first tasks that failed, and why
	wrong   uint32          // tasks of which not everything could be written
	screen  redraw
	hint    string
}

// follow goes on until the job has ended and everything is written.
func (m *mapping) follow(ctx context.Context, id grid.JobID) error {
	a := m.app
	detail, err := a.client.Job(ctx, id)
	if err != nil {
		return err
	}
	m.job, m.spec = id, detail.Spec
	m.handled, m.pages = map[uint32]bool{}, map[uint32]int{}
	var last view.JobView
	err = a.watch(ctx, id, func(v view.JobView) (bool, error) {
		last = v
		complete, wrong := m.look(ctx, v)
		if errors.Is(wrong, client.ErrUnreachable) {
			return false, nil // it is watched for with patience
		}
		if wrong == nil {
			m.show(v)
		}
		return complete && v.Phase.Ended(), wrong
	})
	switch {
	case err != nil && ctx.Err() != nil:
		a.say("\ndetached; job %s goes on. `%s` follows it again, `submit cancel %s` ends it.", id,
			m.again(id), id)
		return &codeError{code: exitDetached}
	case err != nil:
		cause := fmt.Errorf("follow job %s: %w; it goes on, `%s` follows it again", id, err,
			m.again(id))
		return &codeError{code: exitOurs, cause: cause}
	}
	return m.end(ctx, last)
}

// end says how the map has ended.
func (m *mapping) end(ctx context.Context, v view.JobView) error {
	if v.Started.IsZero() {
		return errors.Join(m.app.ending(ctx, v), m.disown(v))
	}
	if !m.app.parsable {
		m.app.say("%d %s: %s", v.Count, plural(v.Count, "task"), counts(v.Tasks))
	}
	for _, line := range m.failed {
		m.app.say("%s", line)
	}
	err := m.app.ending(ctx, v)
	if err == nil && m.wrong > 0 {
		return &codeError{
			code: exitOurs,
			cause: fmt.Errorf("of %d %s not everything could be written; `%s` tries again", m.wrong,
				plural(m.wrong, "task"), m.again(v.ID)),
		}
	}
	return err
}

// taskPage counts the tasks that are asked for at a time.
const taskPage = 200

// look handles the tasks that have ended since the last look. It reports whether all
// have that ended so far.
func (m *mapping) look(ctx context.Context, v view.JobView) (bool, error) {
	var ended uint32
	for phase, n := range v.Tasks {
		if phase.Ended() {
			ended += n
		}
	}
	if v.Phase == view.PhaseRefused && v.Started.IsZero() {
		return true, nil
	}
	for from := m.first - m.first%taskPage; from < v.Count; from += taskPage {
		if m.pages[from] == taskPage {
			continue
		}
		if uint32(len(m.handled)) >= ended || m.keepOrder && m.first < from {
			break
		}
		tasks, err := m.app.client.Tasks(ctx, m.job, from, taskPage)
		if err != nil {
			return false, err
		}
		if err := m.handleEnded(ctx, tasks); err != nil {
			return false, err
		}
	}
	return uint32(len(m.handled)) >= ended, nil
}

// handleEnded handles some tasks that follow each other: in the order in which they have
// ended, or up to the first that goes on.
func (m *mapping) handleEnded(ctx context.Context, tasks []view.TaskView) error {
	if !m.keepOrder {
		slices.SortStableFunc(tasks, func(a, b view.TaskView) int {
			return cmp.Compare(a.Ended.UnixNano(), b.Ended.UnixNano())
		})
	}
	for _, t := range tasks {
		if !t.Phase.Ended() {
			continue
		}
		if m.handled[t.Index] || m.keepOrder && t.Index > m.first {
			continue
		}
		if err := m.handle(ctx, t); err != nil {
			return err
		}
		m.handled[t.Index] = true
		m.pages[t.Index-t.Index%taskPage]++
		for m.handled[m.first] {
			m.first++
		}
	}
	return nil
}

// maxFailed bounds the failed tasks that are named at the end.
const maxFailed = 10

// handle writes what one task has left.
func (m *mapping) handle(ctx context.Context, t view.TaskView) error {
	if m.isWritten(t) {
		return nil
	}
	m.erase()
	last, err := m.write(ctx, t)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, client.ErrUnreachable) || errors.Is(err, errOutput) {
		return err
	}
	if t.Phase == view.PhaseFailed && len(m.failed) < maxFailed {
		line := fmt.Sprintf("task %d (%s) failed with code %s", t.Index+1, t.ID, code(t.Code))
		if t.Cause == grid.CauseNoOutput.String() {
			last = t.Text // what it has printed does not say why it failed
		}
		if text := cmp.Or(last, t.Text); text != "" {
			line += ": " + clean(text)
		}
		m.failed = append(m.failed, line)
	}
	if err != nil {
		m.wrong++
		if m.wrong <= maxFailed {
			m.app.say("task %d (%s): %v", t.Index+1, t.ID, err)
		}
		return nil // the others are written all the same
	}
	return m.logEnded(t)
}

// erase removes the line of progress.
func (m *mapping) erase() {
	if m.screen.lines > 0 {
		m.screen.print(m.app.err, nil, m.app.columns())
	}
}

// show draws how far the map is. Without a terminal it says only why it waits.
func (m *mapping) show(v view.JobView) {
	a := m.app
	if hint := whyStill(v); hint != m.hint {
		if m.hint = hint; m.hint != "" && !a.terminal && !a.parsable {
			a.say("%s", clean(m.hint))
		}
	}
	if !a.terminal || a.parsable {
		return
	}
	lines := []string{mapLine(v, a.timeLeft(v))}
	if m.hint != "" {
		lines = append(lines, "  "+clean(m.hint))
	}
	m.screen.print(a.err, lines, a.columns())
}

// whyStill says why nothing goes on. That some tasks wait while others run is as it should be:
// there are more of them than places.
func whyStill(v view.JobView) string {
	under := v.Tasks[view.PhaseAwarded] + v.Tasks[view.PhaseStaging] +
		v.Tasks[view.PhasePreparing] + v.Tasks[view.PhaseRunning]
	if v.Phase.Ended() || under > 0 {
		return ""
	}
	return v.Hint
}

// mapLine is "37/200 done, 1 failed, 5 running, ~3 min left".
func mapLine(v view.JobView, left string) string {
	parts := []string{fmt.Sprintf("%d/%d done", v.Tasks[view.PhaseDone], v.Count)}
	for _, phase := range []view.Phase{view.PhaseFailed, view.PhaseCancelled, view.PhaseRunning} {
		if n := v.Tasks[phase]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, phase))
		}
	}
	if left != "" {
		parts = append(parts, left)
	}
	return strings.Join(parts, ", ")
}

// commandOf gives the command that a task runs.
func (m *mapping) commandOf(t view.TaskView) string {
	text := jobmap.CommandOf(m.spec.Args, t.Item)
	if m.spec.Kind == grid.KindWasm.String() {
		return strings.TrimSpace("module.wasm " + text)
	}
	return text
}
