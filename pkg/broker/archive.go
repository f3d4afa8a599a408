package broker

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// archive lets ended jobs leave the machine for the history.
type archive struct {
	*run
	jobs *jobs
}

// giveSome gives jobs that have ended to the history when many are here. They stay until
// it holds them, so that a crash at any time leaves each in one of the two, or in both.
func (a archive) giveSome() {
	l := &a.jobs.tail
	if !l.changed || l.leaving || !l.tooLong(a.cfg.MaxEnded) {
		return
	}
	l.changed = false
	var batch []step.ArchivedJob
	for _, j := range a.jobs.leavers(a.cfg.MaxEnded) {
		batch = append(batch, a.archived(j))
	}
	if l.leaving = len(batch) > 0; l.leaving {
		a.out.Emit(step.Archive{Jobs: batch})
	}
}

// onArchived drops the jobs that the history holds.
func (a archive) onArchived(in step.Archived) {
	a.jobs.tail.leaving, a.jobs.tail.changed = false, true
	for _, id := range in.Jobs {
		if j, known := a.jobs.all[id]; known && j.open == 0 {
			a.drop(j)
		}
	}
}

// drop takes an ended job out of the machine.
func (a archive) drop(j *job) {
	delete(a.jobs.all, j.id)
	delete(a.jobs.byKey, j.key)
	a.jobs.tail.remove(j)
	a.jobs.independ(j)
	a.out.Emit(step.Hold{Job: j.id, CIDs: j.data(), Release: true})
	a.persistRemoval(factJob, string(j.id))
	for i := range j.tasks {
		a.persistRemoval(factTask, j.taskID(uint32(i)).String())
	}
}

// leavers picks the jobs that are given to the history: the ones that ended first, without
// those that an open job depends on.
func (l *jobs) leavers(most int) []*job {
	var batch []*job
	left, tasks := len(l.tail.ids), 0
	for _, id := range l.tail.ids {
		if left <= most && l.tail.tasks-tasks <= maxTailTasks {
			break
		}
		if len(batch) == batchJobs || tasks > maxTailTasks {
			break
		}
		if j := l.all[id]; !l.isNeeded(j) {
			batch, left, tasks = append(batch, j), left-1, tasks+len(j.tasks)
		}
	}
	return batch
}

// isNeeded reports whether an open job waits for one, or runs inside it, or another domain has
// ordered it: the border says when it may be forgotten.
func (l *jobs) isNeeded(j *job) bool {
	return j.ordered.Foreign() || slices.ContainsFunc(l.dependants[j.id], func(id grid.JobID) bool {
		return l.all[id].open > 0
	})
}

// restoreTail finds the ended jobs among those that an earlier run left.
func (l *jobs) restoreTail() {
	var ended []*job
	for _, id := range l.ids() {
		if j := l.all[id]; j.open == 0 {
			ended = append(ended, j)
		}
	}
	slices.SortStableFunc(ended, func(a, b *job) int {
		return cmp.Or(a.ended.Compare(b.ended), a.submitted.Compare(b.submitted))
	})
	for _, j := range ended {
		l.tail.add(j)
	}
}

// jobRecord holds what the history keeps of a job: its facts, and what answers told of it.
type jobRecord struct {
	Facts   json.RawMessage `json:"facts"` // as step.EncodeFacts writes them
	Answers []Answer        `json:"answers,omitempty"`
}

const maxKeptAnswers = 32

func (a archive) archived(j *job) step.ArchivedJob {
	rows := []step.Fact{{Kind: factJob, Key: string(j.id)}}
	for i := range j.tasks {
		rows = append(rows, step.Fact{Kind: factTask, Key: j.taskID(uint32(i)).String()})
	}
	for i := range rows {
		rows[i].Value = a.out.Facts().Get(rows[i].Kind, rows[i].Key)
	}
	rows = slices.DeleteFunc(rows, func(f step.Fact) bool { return f.Value == nil })
	answers := slices.SortedFunc(maps.Values(j.answers), compareAnswers)
	for i := range answers {
		answers[i].At = a.onWall(answers[i].At)
	}
	record := jobRecord{
		Facts: step.AppendFacts(nil, rows), Answers: answers[:min(len(answers), maxKeptAnswers)],
	}
	text, err := json.Marshal(record)
	if err != nil { // facts are JSON, answers plain structs with finite numbers
		panic(fmt.Sprintf("encode job %s: %v", j.id, err))
	}
	return step.ArchivedJob{
		Job: j.id, Submitted: a.onWall(j.submitted), Ended: a.onWall(j.ended),
		Outputs: j.left(), Key: j.key, Record: text,
	}
}

// ReadRecord reads what the history keeps of a job, as Job showed it when it was here.
func ReadRecord(id grid.JobID, record []byte) (JobState, error) {
	wrong := func(err error) (JobState, error) {
		return JobState{}, fmt.Errorf("record of job %s: %w", id, err)
	}
	var kept jobRecord
	if err := json.Unmarshal(record, &kept); err != nil {
		return wrong(err)
	}
	facts, err := step.DecodeFacts(kept.Facts)
	if err != nil {
		return wrong(err)
	}
	cfg, l := Default(grid.SiteID(id)), newJobs()
	for _, f := range facts { // the job's comes first
		restore := l.restoreTask
		if f.Kind == factJob {
			restore = l.restoreJob
		}
		if err := restore(f, &cfg); err != nil {
			return wrong(err)
		}
	}
	j, known := l.all[id]
	if !known {
		return wrong(fmt.Errorf("%w: it is about another one", grid.ErrInvalid))
	}
	j.req = j.spec.Requirement("", "", grid.Capability{}, 0)
	for _, answer := range kept.Answers {
		j.note(answer)
	}
	for i := range j.tasks {
		j.tasks[i].remind()
	}
	return j.state(), nil
}

// remind takes from the record of its attempts when the last one began.
func (t *task) remind() {
	if n := len(t.tries); n > 0 && t.tries[n-1].Token == t.token && t.startedAt.IsZero() {
		t.startedAt = t.tries[n-1].StartedAt
	}
}
