package tui

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// JobsAgent is the agent whose own jobs are shown.
type JobsAgent interface {
	Jobs(ctx context.Context, q view.JobQuery) ([]view.JobView, error)
	Tasks(ctx context.Context, id grid.JobID, from uint32, limit int) ([]view.TaskView, error)
	TaskLog(ctx context.Context, task grid.TaskID, q view.LogQuery) (io.ReadCloser, error)
	Cancel(ctx context.Context, id grid.JobID) error
}

// JobsFacts are what `submit top` shows.
type JobsFacts struct {
	Jobs []view.JobView `json:"jobs"`
}

// JobsTop is `submit top`.
type JobsTop struct {
	Agent JobsAgent
	// Left says how long a job will still take, as "~3 min left"; empty: unknown.
	Left func(v view.JobView) string
	// Why says in sentences why a job and its tasks are where they are.
	Why func(v view.JobView, tasks []view.TaskView) []string
}

const (
	jobsAPage  = 100   // of the own jobs that are asked for
	tasksAPage = 50    // of one job likewise
	filtered   = 1_000 // the newest jobs, among which a filter looks
)

// Facts asks the agent for what is shown first: the newest jobs.
func (t JobsTop) Facts(ctx context.Context) (JobsFacts, error) {
	return t.page(ctx, "", jobsAPage)
}

func (t JobsTop) page(ctx context.Context, before grid.JobID, limit int) (JobsFacts, error) {
	jobs, err := t.Agent.Jobs(ctx, view.JobQuery{Before: before, Limit: limit})
	if jobs == nil {
		jobs = []view.JobView{}
	}
	return JobsFacts{Jobs: jobs}, err
}

// taskFacts are a page of a job's tasks.
type taskFacts struct {
	job   view.JobView
	tasks []view.TaskView
}

// jobsSubject holds the own jobs on a screen.
type jobsSubject struct {
	top    JobsTop
	facts  JobsFacts
	before []grid.JobID // where each earlier page began, the first one left out
	filter string

	open  grid.JobID // the job whose tasks are shown; empty: none
	job   view.JobView
	tasks []view.TaskView
	from  uint32 // the first task shown

	log *logPage // of a task; nil: none is shown
}

func (v *jobsSubject) look() func(context.Context) (any, error) {
	top := v.top
	switch {
	case v.log != nil:
		return v.log.look(top.Agent)
	case v.open != "":
		return v.lookAtTasks()
	case v.filter != "":
		return func(ctx context.Context) (any, error) { return top.page(ctx, "", filtered) }
	default:
		before := v.start()
		return func(ctx context.Context) (any, error) { return top.page(ctx, before, jobsAPage) }
	}
}

// start is the job after which the page begins.
func (v *jobsSubject) start() grid.JobID {
	if len(v.before) == 0 {
		return ""
	}
	return v.before[len(v.before)-1]
}

// lookAtTasks asks for the job and a page of its tasks, once if it has ended.
func (v *jobsSubject) lookAtTasks() func(context.Context) (any, error) {
	agent, id, from := v.top.Agent, v.open, v.from
	if v.job.Phase.Ended() && len(v.tasks) > 0 && v.tasks[0].Index == from {
		known := taskFacts{v.job, v.tasks}
		return func(context.Context) (any, error) { return known, nil }
	}
	return func(ctx context.Context) (any, error) {
		jobs, err := agent.Jobs(ctx, view.JobQuery{Prefix: string(id), Limit: 1})
		if err != nil {
			return nil, err
		}
		if len(jobs) == 0 {
			return nil, &view.Problem{Title: fmt.Sprintf("job %s is forgotten; esc goes back", id)}
		}
		tasks, err := agent.Tasks(ctx, id, from, tasksAPage)
		return taskFacts{jobs[0], tasks}, err
	}
}

func (v *jobsSubject) take(facts any) {
	switch f := facts.(type) {
	case JobsFacts:
		v.facts = f
	case taskFacts:
		v.job, v.tasks = f.job, f.tasks
	case logFacts:
		v.log.take(f)
	}
}

func (v *jobsSubject) back() bool {
	switch {
	case v.log != nil:
		v.log = nil
	case v.open != "":
		v.open, v.tasks, v.from = "", nil, 0
	case v.filter != "":
		v.filter = ""
	default:
		return false
	}
	return true
}

func (v *jobsSubject) bindings() []binding {
	logs := binding{"l", "logs", "read what a task has printed; of a job, its first task"}
	if v.log != nil {
		return []binding{{"tab", "other stream", "standard output, or standard error"}}
	}
	cancel := binding{"c", "cancel", "withdraw the job; asks before"}
	if v.open != "" {
		return []binding{logs, cancel}
	}
	return []binding{
		{"enter", "tasks", "the job's tasks, their sites, and why"},
		logs, cancel,
		{"/", "filter", "jobs whose name, id or state has a text; esc shows all again"},
	}
}

func (v *jobsSubject) press(s *screen, key, row string) {
	switch {
	case v.log != nil:
		if key == "tab" {
			v.log = v.log.other()
			s.turn()
		}
	case key == keyBeyond || key == keyBefore:
		v.leaf(s, key == keyBeyond)
	case key == "l":
		v.readLog(s, row)
	case key == "c":
		v.cancel(s, row)
	case key == "/" && v.open == "":
		s.askFor("Filter: ", v.filter, func(text string) {
			v.filter, v.before = text, nil
			s.turn()
		})
	case key == "enter" && v.open == "" && row != "":
		v.open, v.from = grid.JobID(row), 0
		v.job, _ = v.find(v.open)
		s.turn()
	}
}

// leaf turns to the next page of what is longer than one, or to the one before.
func (v *jobsSubject) leaf(s *screen, forward bool) {
	switch {
	case v.open != "" && forward && v.from+tasksAPage < v.job.Count:
		v.from += tasksAPage
	case v.open != "" && !forward && v.from > 0:
		v.from -= min(v.from, tasksAPage)
	case v.open != "" || v.filter != "":
		return
	case forward && len(v.facts.Jobs) == jobsAPage:
		v.before = append(v.before, v.facts.Jobs[jobsAPage-1].ID)
	case !forward && len(v.before) > 0:
		v.before = v.before[:len(v.before)-1]
	default:
		return
	}
	s.turn()
}

// readLog opens the log of a task, or of a job's first one.
func (v *jobsSubject) readLog(s *screen, row string) {
	if v.open == "" && row != "" {
		row += ".0"
	}
	task, err := grid.ParseTaskID(row)
	if err != nil {
		return // there is no row
	}
	v.log = &logPage{task: task, stream: stdout}
	s.turn()
}

func (v *jobsSubject) cancel(s *screen, row string) {
	id := grid.JobID(row)
	if v.open != "" {
		id = v.open
	}
	job, known := v.find(id)
	switch {
	case !known:
		return
	case job.Phase.Ended():
		s.note = said{"job " + jobName(job) + " has ended", warn}
		return
	}
	s.ask("Cancel job "+jobName(job)+"?", func() {
		s.do("job "+jobName(job)+" cancelled", func(ctx context.Context) error {
			return v.top.Agent.Cancel(ctx, id)
		})
	})
}

// find looks for a job among those that are known.
func (v *jobsSubject) find(id grid.JobID) (view.JobView, bool) {
	if v.open == id && v.job.ID == id {
		return v.job, true
	}
	for _, j := range v.facts.Jobs {
		if j.ID == id {
			return j, true
		}
	}
	return view.JobView{ID: id}, false
}

func jobName(j view.JobView) string { return nameOr(j.Name, string(j.ID)) }

// shows reports whether a job passes the filter.
func (v *jobsSubject) shows(j view.JobView) bool {
	text := strings.ToLower(v.filter)
	for _, in := range []string{j.Name, string(j.ID), string(j.Phase)} {
		if strings.Contains(strings.ToLower(in), text) {
			return true
		}
	}
	return false
}
