package agent

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/store"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Past says how long the jobs of the history are kept. Zero spans and sizes are the defaults.
type Past struct {
	Outputs time.Duration // data that the tasks have left, from a job's end
	Jobs    time.Duration // all else, from a job's end
	Bytes   int64         // all else, together
}

func (p Past) withDefaults() Past {
	if p.Outputs == 0 {
		p.Outputs = 7 * 24 * time.Hour
	}
	if p.Jobs == 0 {
		p.Jobs = 90 * 24 * time.Hour
	}
	if p.Bytes == 0 {
		p.Bytes = 256 << 20
	}
	return p
}

const (
	expireEvery  = time.Hour
	archiveAgain = 10 * time.Second // pause after the history could not be written
	eventExpired = "jobs_expired"
)

// archivist writes ended jobs to the history, in the order in which they leave, and lets go
// of old ones. It has a goroutine of its own: no machine waits for that disk.
type archivist struct {
	a       *Agent
	history *store.History
	keep    Past
	retry   time.Duration

	mu    sync.Mutex
	queue []func() // guarded by mu
	wake  chan struct{}
}

func (a *Agent) openHistory() error {
	history, err := store.OpenHistory(a.cfg.StateDir, a.log)
	if err != nil {
		return err
	}
	if history.Damaged() {
		a.cfg.Notices = append(slices.Clone(a.cfg.Notices), view.Notice{
			Text:   "the history of ended jobs was damaged; a new one has begun",
			Action: "look at " + history.DamagedFile() + ", then move it away",
		})
	}
	a.archive = &archivist{
		a: a, history: history, keep: a.cfg.Past.withDefaults(), retry: archiveAgain,
		wake: make(chan struct{}, 1),
	}
	return nil
}

func (r *archivist) soon(do func()) {
	r.mu.Lock()
	r.queue = append(r.queue, do)
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *archivist) take() []func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	queue := r.queue
	r.queue = nil
	return queue
}

// run works until the agent ends; what is not written by then its machine still holds.
func (r *archivist) run() {
	tick := time.NewTicker(expireEvery)
	defer tick.Stop()
	r.expire()
	for {
		for _, do := range r.take() {
			if r.a.ctx.Err() == nil {
				do()
			}
		}
		select {
		case <-r.wake:
		case <-tick.C:
			r.expire()
		case <-r.a.ctx.Done():
			return
		}
	}
}

// add writes jobs until it has succeeded, and tells their machine.
func (r *archivist) add(jobs []step.ArchivedJob) {
	rows := make([]store.HistoryJob, 0, len(jobs))
	ids := make([]grid.JobID, 0, len(jobs))
	for _, j := range jobs {
		rows = append(rows, store.HistoryJob{ArchivedJob: j, Summary: r.summary(j)})
		ids = append(ids, j.Job)
	}
	for failed := false; ; failed = true {
		err := r.history.Add(rows)
		if err == nil {
			break
		}
		if !failed {
			r.a.reports.count("history_unwritable")
			r.a.log.Error("ended jobs cannot be written to the history; they stay in memory",
				"error", err)
		}
		select {
		case <-time.After(r.retry):
		case <-r.a.ctx.Done():
			return
		}
	}
	r.a.broker.tell(step.Archived{Jobs: ids})
	r.expire()
}

func (r *archivist) summary(j step.ArchivedJob) []byte {
	state, err := broker.ReadRecord(j.Job, j.Record)
	if err != nil {
		r.a.log.Error("an ended job is kept without a summary", "job", string(j.Job), "error", err)
	}
	if err != nil || r.a.cfg.Summary == nil {
		return nil
	}
	return r.a.cfg.Summary(state)
}

// expire lets go of what is kept for long enough.
func (r *archivist) expire() {
	now := r.a.clock.shows()
	r.forget(store.Keep{
		Outputs: now.Add(-r.keep.Outputs), Jobs: now.Add(-r.keep.Jobs), Bytes: r.keep.Bytes,
	})
}

// forget lets go of what is beyond bounds, and returns how many jobs that were.
func (r *archivist) forget(keep store.Keep) int {
	jobs := 0
	for more := true; more && r.a.ctx.Err() == nil; {
		f, left, err := r.history.Expire(keep)
		if err != nil {
			r.a.log.Warn("the history cannot be made shorter", "error", err)
			break
		}
		r.a.pins.letGo(f.Outputs)
		jobs, more = jobs+f.Jobs, left
	}
	if jobs > 0 {
		text := fmt.Sprintf("%d ended jobs left the history", jobs)
		r.a.reports.report(step.Report{Event: eventExpired, Level: step.LevelInfo, Text: text})
	}
	return jobs
}

// do runs something between two writes and waits for it.
func (r *archivist) do(what func() error) error {
	done := make(chan error, 1)
	r.soon(func() { done <- what() })
	select {
	case err := <-done:
		return err
	case <-r.a.ctx.Done():
		return errEnded
	}
}

// History returns the ended jobs that left their machine.
func (a *Agent) History() *store.History { return a.archive.history }

// ForgetArchived drops a job from the history, if it is there.
func (a *Agent) ForgetArchived(id grid.JobID) (known bool, err error) {
	err = a.archive.do(func() error {
		f, wrong := a.archive.history.Forget(id)
		a.pins.letGo(f.Outputs)
		known = f.Jobs > 0
		return wrong
	})
	return known, err
}

// ForgetArchivedBefore drops the jobs of the history that ended before a time, and returns how many
// those were.
func (a *Agent) ForgetArchivedBefore(before time.Time) (jobs int, err error) {
	if before.IsZero() {
		return 0, errors.Join(grid.ErrInvalid, errors.New("forget: want a time"))
	}
	err = a.archive.do(func() error {
		jobs = a.archive.forget(store.Keep{Jobs: before})
		return nil
	})
	return jobs, err
}
