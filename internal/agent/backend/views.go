package backend

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// names maps sites to what people call them.
type names map[grid.SiteID]string

// namesNow is only called within a question to the submitter's machine.
func (b *Backend) namesNow(machine *broker.Machine) names {
	n := names{b.mesh.Self(): b.cfg.Name}
	for _, m := range machine.Members() {
		n[m.Site] = m.Name
	}
	for site, name := range b.agent.NeighbourNames() {
		n[site] = "domain " + string(name)
	}
	return n
}

// findJob reads one submission, with the names of the sites.
func (b *Backend) findJob(ctx context.Context, id grid.JobID) (broker.JobState, names, error) {
	var job broker.JobState
	var n names
	found := false
	err := b.agent.AskBroker(ctx, func(m *broker.Machine) {
		job, found = m.Job(id)
		n = b.namesNow(m)
	})
	if err == nil && !found {
		job, found, err = b.archived(id)
	}
	b.nameDomains(job.Tasks)
	if err == nil && !found {
		err = fmt.Errorf("%w: no such job: %s", view.ErrNotFound, id)
	}
	return job, n, err
}

// findTask reads one task, and the key of its job.
func (b *Backend) findTask(
	ctx context.Context, id grid.TaskID,
) (t broker.TaskState, key grid.JobKey, err error) {
	found := false
	err = b.agent.AskBroker(ctx, func(m *broker.Machine) { t, key, found = m.Task(id) })
	if err != nil || found {
		return t, key, err
	}
	job, _, err := b.findJob(ctx, id.Job) // which the history may have
	if err == nil && id.Index >= uint32(len(job.Tasks)) {
		err = fmt.Errorf("%w: no such task: %s", view.ErrNotFound, id)
	}
	if err != nil {
		return t, key, err
	}
	return job.Tasks[id.Index], job.Job.Encryption.Key, nil
}

// Job is one submission in full.
func (b *Backend) Job(ctx context.Context, id grid.JobID) (view.JobDetail, error) {
	job, _, err := b.findJob(ctx, id)
	if err != nil {
		return view.JobDetail{}, err
	}
	detail := view.JobDetail{Spec: view.FromJob(job.Job), Status: jobView(job)}
	if len(job.Job.After) > 0 {
		err = b.agent.AskBroker(ctx, func(m *broker.Machine) { detail.Status.After = earlier(m, job) })
		b.fillEarlier(detail.Status.After)
	}
	return detail, err
}

// earlier shows the state of the jobs that must be done before one starts.
func earlier(m *broker.Machine, job broker.JobState) []view.Earlier {
	var list []view.Earlier
	for _, id := range job.Job.After {
		e := view.Earlier{ID: id}
		if first, known := m.Job(id); known {
			e.Phase = jobView(first).Phase
		}
		list = append(list, e)
	}
	return list
}

// Tasks gives a page of a job's tasks.
func (b *Backend) Tasks(
	ctx context.Context, id grid.JobID, from uint32, limit int,
) ([]view.TaskView, error) {
	job, n, err := b.findJob(ctx, id)
	if err != nil {
		return nil, err
	}
	tasks := []view.TaskView{}
	for i := int(from); i < len(job.Tasks) && len(tasks) < limit; i++ {
		task := taskView(job, job.Tasks[i], n)
		task.Text = alsoSlowed(task.Text, b.slowed(job, job.Tasks[i]))
		tasks = append(tasks, task)
	}
	return tasks, nil
}

func jobView(job broker.JobState) view.JobView {
	v := view.JobView{
		ID: job.ID, Name: job.Job.Spec.Name, Kind: job.Job.Spec.Kind.String(), Count: job.Job.Count,
		Tasks: view.PhaseCounts{}, Submitted: view.At(job.Submitted), Ended: view.At(job.Ended),
		For: grid.DomainID(job.Ordered.Name), Held: job.Held,
	}
	var started time.Time
	var promises []*view.PromiseView
	for _, t := range job.Tasks {
		v.Tasks[shownPhase(job, t)]++
		promises = append(promises, promiseView(t))
		v.Moves += moves(t)
		if first := firstStart(t); !first.IsZero() && (started.IsZero() || first.Before(started)) {
			started = first
		}
	}
	v.Phase, v.Started, v.Promise = v.Tasks.Phase(), view.At(started), view.WorstPromise(promises)
	for _, answer := range job.Answers {
		if answer.Offer != nil {
			v.Offers++
		}
	}
	if v.Phase.Ended() {
		code, index := jobCode(job)
		v.Code, v.FailedIndex = &code, index
	}
	v.Hint = hint(job, v)
	if v.Phase == view.PhaseRefused {
		v.Reasons = refusalReasons(job)
	}
	return v
}

// phaseOf is the phase as users see it: fetching the outputs is the end of
// running to them.
func phaseOf(t broker.TaskState) view.Phase {
	switch {
	case t.Phase == grid.PhaseCollecting:
		return view.PhaseRunning
	case t.Phase == grid.PhaseRunning && t.Standing == grid.ReasonPreparing:
		return view.PhasePreparing
	case t.Phase == grid.PhaseFrozen && t.Standing != grid.ReasonNone:
		return view.PhaseSuspended
	default:
		return view.Phase(t.Phase.String())
	}
}

// standingText says why a task is suspended, and what happens next.
func standingText(t broker.TaskState) string {
	return t.Standing.String() +
		"; it resumes when that is over, and moves to another site if it lasts"
}

// moves counts the attempts that were begun again elsewhere.
func moves(t broker.TaskState) uint32 {
	var n uint32
	for i, try := range t.Tries {
		last := i == len(t.Tries)-1
		if !try.StartedAt.IsZero() && (!last || !t.Phase.Ended() || try.Token != t.Token) {
			n++
		}
	}
	return n
}

func firstStart(t broker.TaskState) time.Time {
	for _, try := range t.Tries {
		if !try.StartedAt.IsZero() {
			return try.StartedAt
		}
	}
	return t.StartedAt
}

// jobCode is 0, or the code of the lowest failing task. Those that were stopped because others had
// failed count if no other does.
func jobCode(job broker.JobState) (int, *uint32) {
	failing := func(t broker.TaskState) bool { return t.Phase != grid.PhaseDone }
	at := slices.IndexFunc(job.Tasks, func(t broker.TaskState) bool {
		return failing(t) && (t.Exit == nil || t.Exit.Cause != grid.CauseStopped)
	})
	if at < 0 {
		at = slices.IndexFunc(job.Tasks, failing)
	}
	if at < 0 {
		return 0, nil
	}
	code, index := 125, job.Tasks[at].ID.Index
	if exit := job.Tasks[at].Exit; exit != nil {
		code = exit.Status()
	}
	return code, &index
}

func taskView(job broker.JobState, t broker.TaskState, n names) view.TaskView {
	v := view.TaskView{
		ID: t.ID.String(), Index: t.ID.Index, Phase: shownPhase(job, t), Token: t.Token.Number(),
	}
	var item grid.Item
	if len(job.Job.Items) > 0 {
		item = job.Job.Items[t.ID.Index]
		v.Item = item.Value
	}
	if t.Site != "" && t.Phase >= grid.PhaseAwarded {
		distance := t.Distance
		v.Site, v.SiteName, v.Distance, v.Domain = t.Site, n[t.Site], &distance, t.Domain
	}
	v.Started, v.Planned = view.At(t.StartedAt), plannedStart(job, t)
	if t.Kept > 0 {
		v.Kept = &t.Kept
	}
	v.Promise = promiseView(t)
	v.Text = situation(v.Phase, t)
	if t.Phase == grid.PhaseStaging && t.Total > 0 {
		v.Progress = &view.Progress{DoneBytes: t.Done, TotalBytes: t.Total}
	}
	v.Saved, v.Move, v.Copies = savedView(t, n), moveView(t), copiesView(t, n)
	for _, try := range t.Tries {
		v.Attempts = append(v.Attempts, view.AttemptView{
			Token: try.Token.Number(), Site: try.Site, SiteName: n[try.Site], Domain: try.Domain,
			Distance: try.Distance,
			Awarded:  view.At(try.AwardedAt), Started: view.At(try.StartedAt),
			Ended: view.At(try.EndedAt), Cause: try.Outcome,
		})
	}
	if t.Phase.Ended() && t.Exit != nil {
		fillEnd(&v, job, t, item)
	}
	return v
}

// situation says what a person should know of a task that has not ended.
func situation(shown view.Phase, t broker.TaskState) string {
	switch {
	case !t.Astray.IsZero():
		return fmt.Sprintf("its site is back on another disk, or another machine, and knows "+
			"nothing of it; as it may still run on the old one until %s, it is placed again then; "+
			"submit cancel ends it now", t.Astray.Local().Format("15:04 on Jan 2"))
	case t.Phase == grid.PhaseCollecting && t.Standing != grid.ReasonNone:
		return "it has ended; its outputs wait at their site for space on this machine's disk"
	case shown == view.PhaseSuspended:
		return standingText(t)
	case shown == view.PhasePreparing:
		return t.Standing.String()
	default:
		return ""
	}
}

// savedView is the checkpoint that a task would go on from, nil if there is none.
func savedView(t broker.TaskState, n names) *view.SavedView {
	if len(t.Saved) == 0 {
		return nil
	}
	last := t.Saved[0]
	return &view.SavedView{
		At: view.At(last.At), Number: last.Number, Site: last.Site, SiteName: n[last.Site],
		Bytes: last.Bytes, WorkedSeconds: last.Worked.Seconds(), Percent: int(last.Percent),
	}
}

// moveView says how a task is moved to another site, nil if it is not.
func moveView(t broker.TaskState) *view.MoveView {
	switch move := t.Move; {
	case move == nil:
		return nil
	case move.Stage == "":
		return &view.MoveView{Phase: view.MoveStays, Reason: move.Stays.String(), Text: move.Note}
	case move.Why == grid.ReasonNone:
		return &view.MoveView{Phase: move.Stage}
	default:
		return &view.MoveView{Phase: move.Stage, Reason: move.Why.String()}
	}
}

// promiseView tells what became of the time that a task was promised, nil if there is none.
func promiseView(t broker.TaskState) *view.PromiseView {
	if t.Promise == grid.PromiseNone {
		return nil
	}
	return &view.PromiseView{
		State: t.Promise.String(), Text: t.PromiseNote,
		StartLateSeconds: t.StartLate.Seconds(), EndLateSeconds: t.EndLate.Seconds(),
	}
}

func fillEnd(v *view.TaskView, job broker.JobState, t broker.TaskState, item grid.Item) {
	code := t.Exit.Status()
	v.Code, v.Cause, v.Text = &code, t.Exit.Cause.String(), t.Exit.Text
	v.Printed = &view.Printed{StdoutBytes: t.Exit.Stdout.Bytes, StderrBytes: t.Exit.Stderr.Bytes}
	if len(t.Tries) > 0 {
		v.Ended = view.At(t.Tries[len(t.Tries)-1].EndedAt)
	}
	to := make(map[string]string)
	for _, out := range job.Job.Spec.Expand(job.ID, t.ID.Index, item).Outputs {
		to[out.Path] = out.To
	}
	for _, out := range t.Exit.Outputs {
		v.Outputs = append(v.Outputs, view.OutputView{
			Path: out.Path, To: to[out.Path], CID: out.CID, Bytes: out.Bytes, Dir: out.Dir,
			Encrypted: job.Job.Spec.Encrypted,
		})
	}
}

// Sites lists the known sites by name, this one first.
func (b *Backend) Sites(ctx context.Context) ([]view.SiteRow, error) {
	members, err := b.membersNow(ctx)
	if err != nil {
		return nil, err
	}
	known := b.agent.Known()
	own := siteRow(b.mesh.Self(), b.cfg.Name, known.Nominal)
	rest := view.FromResources(known.Left.Total)
	own.Left = &rest
	own.Self, own.Connected, own.Domain, own.Addresses = true, true, b.cfg.P2P.Domain, b.mesh.Addrs()
	rows := []view.SiteRow{}
	for _, m := range members {
		row := siteRow(m.Site, m.Name, m.Capability)
		skew := m.Skew.Seconds()
		row.Domain, row.Connected, row.LastSeen = b.cfg.P2P.Domain, m.Connected, view.At(m.LastSeen)
		row.SkewSeconds = &skew
		if faults := faultRow(m); !faults.IsEmpty() {
			row.FaultIndex, row.Fault = faults.Index, &faults
		}
		row.Since, row.Ends = view.At(m.Since), m.Ends
		if m.Connected {
			z := 1 - m.UpHour
			row.ZHour = &z
		}
		if m.RoundTrip > 0 {
			ms := m.RoundTrip.Seconds() * 1000
			row.RoundTripMS = &ms
		}
		l := b.data.Link(m.Site)
		row.DownBps, row.UpBps = l.DownBps, l.UpBps
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(x, y view.SiteRow) int {
		if c := strings.Compare(x.Name, y.Name); c != 0 {
			return c
		}
		return strings.Compare(string(x.ID), string(y.ID))
	})
	return append([]view.SiteRow{own}, rows...), nil
}

func siteRow(id grid.SiteID, name string, c grid.Capability) view.SiteRow {
	total := view.FromResources(c.Total)
	return view.SiteRow{
		ID: id, Name: name, Total: &total, CoreMFLOPS: c.CoreMFLOPS, Kinds: kindNames(c.Kinds), OS: c.OS,
		Arch: c.Arch,
	}
}

func kindNames(kinds []grid.WorkKind) []string {
	list := []string{}
	for _, k := range kinds {
		list = append(list, k.String())
	}
	return list
}
