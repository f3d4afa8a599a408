package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/durable"
	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/owner"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// workshop carries out the site machine's effects on data and sandboxes.
type workshop struct {
	a       *Agent
	dir     string // attempts/, one directory for each attempt
	deaths  string // deaths/, where supervisors leave whom to tell of attempts that are gone
	spares  *spares
	modules *modules

	mu       sync.Mutex
	attempts map[grid.AttemptID]*work // guarded by mu
}

// work is one attempt on this machine, from staging until it is discarded.
type work struct {
	dir       string
	tenant    grid.SiteID // whose share of the data room it uses; empty = this site's own
	submitter grid.SiteID
	cancel    context.CancelFunc // ends staging
	idle      sync.WaitGroup     // staging, then starting and following
	cid       grid.CID           // of the module in use; written by staging, read after it
	module    string             // host path; likewise
	key       grid.JobKey        // of an encrypted job; likewise
	inputs    []lrm.Bind         // likewise
	mark      int                // of the disk when it was started
	statePath string             // that it goes on from; empty: none; written by staging
	vouched   bool               // it runs only as it was signed; written before it starts
	saves     chan step.Save     // checkpoints that are to be taken

	state     workState   // guarded by workshop.mu
	process   lrm.Process // guarded by workshop.mu; set while running
	lease     time.Time   // guarded by workshop.mu; its end
	stopped   bool        // guarded by workshop.mu; StopAttempt came
	suspended bool        // guarded by workshop.mu; the owner needs the machine

	// of processors, in the account of what was given; guarded by workshop.mu
	accounted time.Duration
}

// workState says who answers for an attempt when it is stopped.
type workState uint8

const (
	workStaging  workState = iota // the staging goroutine does
	workStaged                    // nobody works on it
	workStarting                  // the starting goroutine does
	workRunning                   // its process does
	workEnded                     // nobody has to
)

func newWorkshop(a *Agent, stateDir string) (*workshop, error) {
	shelf := filepath.Join(stateDir, "modules")
	w := &workshop{
		a: a, dir: filepath.Join(stateDir, "attempts"), deaths: filepath.Join(stateDir, "deaths"),
		spares:   &spares{dir: filepath.Join(stateDir, "spare")},
		modules:  newModules(shelf, a.data),
		attempts: make(map[grid.AttemptID]*work),
	}
	// What an earlier run left under these directories, which only this agent
	// writes, belongs to attempts that died with it.
	for _, dir := range []string{w.dir, w.deaths, w.spares.dir, shelf} {
		if err := lrm.RemoveTree(dir); err != nil {
			return nil, fmt.Errorf("clear %s: %w", dir, err)
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("make %s: %w", dir, err)
		}
	}
	return w, nil
}

func (w *workshop) attemptDir(id grid.AttemptID) string {
	return filepath.Join(w.dir, strings.ReplaceAll(id.String(), "#", "-"))
}

// scratch makes a directory beside those of attempts, and a way to remove it.
func (w *workshop) scratch() (string, func(), error) {
	dir, err := os.MkdirTemp(w.dir, "trial-")
	if err != nil {
		return "", nil, fmt.Errorf("make a directory: %w", err)
	}
	return dir, func() {
		if err := os.RemoveAll(dir); err != nil { // made above, and nobody else writes there
			w.a.log.Warn("a trial's directory could not be removed", "error", err)
		}
	}, nil
}

// submitters lists those of the attempts here.
func (w *workshop) submitters() []grid.SiteID {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := make([]grid.SiteID, 0, len(w.attempts))
	for _, job := range w.attempts {
		list = append(list, job.submitter)
	}
	return list
}

func (w *workshop) find(id grid.AttemptID) (*work, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	job, ok := w.attempts[id]
	return job, ok
}

// start runs a staged attempt and follows it to its end.
func (w *workshop) start(e step.StartAttempt) {
	job, ok := w.find(e.Attempt)
	if !ok {
		w.failed(e.Attempt, errors.New("it was not staged"))
		return
	}
	adapter, ok := w.a.adapters[e.Task.Kind]
	if !ok {
		w.failed(e.Attempt, fmt.Errorf("this site does not run %s", e.Task.Kind))
		return
	}
	need := e.Task.Need.Counted()
	attempt := lrm.Attempt{
		ID: e.Attempt, Task: e.Task, Dir: job.dir, Inputs: job.inputs, ModulePath: job.module,
		LeaseUntil: w.a.clock.toBoot(e.LeaseUntil), RecordPath: w.a.recordPath,
		Limits: lrm.Limits{
			MilliCPUs: need.MilliCPUs, MemoryBytes: need.MemoryBytes, DiskBytes: need.DiskBytes,
			OutputBytes: w.a.cfg.OutputBytes,
			WallTime:    w.wallTime(e.Task),
		},
	}
	if e.Task.OfMany {
		attempt.Series = string(job.submitter) + "/" + string(e.Task.ID.Job)
	}
	attempt.Farewell, attempt.StatePath = w.farewell(e.Attempt, job.submitter), job.statePath
	for _, out := range e.Task.Outputs {
		attempt.OutputPaths = append(attempt.OutputPaths, out.Path)
	}
	job.vouched = e.Vouched
	w.mu.Lock()
	job.lease = e.LeaseUntil
	w.mu.Unlock()
	if w.enter(job, workStarting) {
		return // the stop has answered
	}
	w.spawn(job, func() { w.run(adapter, attempt, job) })
}

func (w *workshop) run(adapter lrm.Adapter, attempt lrm.Attempt, job *work) {
	job.mark = w.a.disk.mark()
	process, err := w.startVouched(adapter, attempt, job)
	if err != nil {
		w.enter(job, workEnded)
		w.failed(attempt.ID, err)
		return
	}
	w.mu.Lock()
	job.process, job.state = process, workRunning
	stopped, suspended, lease := job.stopped, job.suspended, w.a.clock.toBoot(job.lease)
	w.mu.Unlock()
	if suspended { // since it was asked for
		w.setSuspended(attempt.ID, process, true)
	}
	if stopped {
		w.end(attempt.ID, process, "stopped by its submitter or the site's owner")
	} else if lease != attempt.LeaseUntil { // extended meanwhile
		w.setLease(attempt.ID, process, lease)
	}
	saving, end := context.WithCancel(w.a.ctx)
	var saver sync.WaitGroup
	if lrm.CanSave(attempt.Task) {
		saver.Go(func() { newSaver(w, attempt, job).run(saving) })
	}
	w.follow(attempt.ID, job, process, end, saver.Wait)
	saver.Wait()
}

func (w *workshop) end(id grid.AttemptID, process lrm.Process, why string) {
	if err := process.Stop(why); err != nil {
		w.a.log.Warn("an attempt could not be stopped", "attempt", id.String(), "error", err)
	}
}

func (w *workshop) wallTime(t grid.Task) time.Duration {
	most := w.a.Terms().MaxRuntime
	if t.TimeLimit > 0 && (most == 0 || t.TimeLimit < most) {
		return t.TimeLimit
	}
	return most
}

func (w *workshop) failed(id grid.AttemptID, err error) {
	w.a.site.tell(step.AttemptExited{
		Attempt: id, Exit: grid.Exit{Cause: grid.CauseSandbox, Text: lrm.ExitText(err.Error())},
	})
}

// follow tells what happens to a running attempt until its end. When the agent
// ends it ends the attempt, too. quiet waits, after ended, until nobody reads its state.
func (w *workshop) follow(
	id grid.AttemptID, job *work, process lrm.Process, ended context.CancelFunc, quiet func(),
) {
	leaving := context.AfterFunc(w.a.ctx, func() { w.end(id, process, "the site's agent ended") })
	defer leaving()
	for e := range process.Events() {
		switch e.Kind {
		case lrm.Started:
			w.a.site.tell(step.AttemptStarted{Attempt: id})
		case lrm.Preparing:
			w.a.site.tell(step.AttemptStarted{Attempt: id, Preparing: true})
		case lrm.Prepared:
			w.a.site.tell(step.AttemptStarted{Attempt: id})
		case lrm.Frozen:
			w.a.site.tell(step.AttemptFrozen{Attempt: id})
		case lrm.Resumed:
			w.a.site.tell(step.AttemptResumed{Attempt: id})
		}
	}
	result, err := process.Wait(w.a.ctx)
	ended()
	agentEnds := err != nil || w.a.ctx.Err() != nil
	if agentEnds {
		w.tally() // nobody settles it
	}
	w.enter(job, workEnded)
	if agentEnds {
		return
	}
	if result.Exit.Cause.Final() && w.a.disk.fullSince(job.mark) {
		// What it wrote may be cut short, whether it looked at the error or not.
		result = lrm.Result{CPU: result.CPU, Exit: grid.Exit{
			Cause: grid.CauseStopped, Text: "the site's disk was full while it ran", Wall: result.Exit.Wall,
		}}
	}
	w.settle(job, result)
	exit, err := w.keepWhenRoom(id, job, result)
	if v, ok := process.(lrm.Vacater); ok {
		quiet()
		v.Vacate() // before the end is told: the next task may come by that
	}
	if err == nil {
		w.a.site.tell(step.AttemptExited{Attempt: id, Exit: exit})
	}
}

// keepWhenRoom is keep that waits for space on the disk: a full one is no fault of the
// attempt, and what it computed is still in its directory. An error: the agent is ending.
func (w *workshop) keepWhenRoom(
	id grid.AttemptID, job *work, r lrm.Result,
) (exit grid.Exit, err error) {
	err = w.a.disk.untilRoom(w.a.ctx, func() error {
		var full error
		exit, full = w.keep(id, job, r)
		return full
	})
	return exit, err
}

// keep stores what an attempt left, so that its end can be told with content
// identifiers that hold. The error says that the disk is full.
func (w *workshop) keep(id grid.AttemptID, job *work, r lrm.Result) (grid.Exit, error) {
	exit := r.Exit
	holder, tenant := attemptOwner(id), job.tenant
	add := func(f lrm.File) (grid.Produced, error) {
		if f.HostPath == "" {
			return grid.Produced{}, nil
		}
		ref, err := w.a.addPath(w.a.ctx, job.key, f.HostPath, f.Dir)
		if err != nil {
			return grid.Produced{}, err
		}
		if err := w.a.data.Charge(tenant, ref.CID); err != nil {
			return grid.Produced{}, err
		}
		w.a.pins.charged(holder, tenant, ref.CID)
		w.a.pins.hold(holder, ref.CID)
		return grid.Produced{Path: f.SandboxPath, CID: ref.CID, Bytes: ref.Bytes, Dir: f.Dir}, nil
	}
	var problems []error
	note := func(p grid.Produced, err error) grid.Produced {
		if err != nil {
			problems = append(problems, err)
		}
		return p
	}
	exit.Stdout, exit.Stderr = note(add(r.Stdout)), note(add(r.Stderr))
	for _, f := range r.Outputs {
		if p := note(add(f)); p.CID != "" {
			exit.Outputs = append(exit.Outputs, p)
		}
	}
	if err := errors.Join(problems...); durable.NoRoom(err) {
		return grid.Exit{}, err
	}
	if len(problems) > 0 {
		text := "its outputs cannot be stored: " + errors.Join(problems...).Error()
		return grid.Exit{Cause: grid.CauseData, Text: lrm.ExitText(text), Wall: exit.Wall}, nil
	}
	return exit, nil
}

func (w *workshop) extend(e step.ExtendLease) {
	w.mu.Lock()
	job, ok := w.attempts[e.Attempt]
	var process lrm.Process
	if ok {
		job.lease, process = e.LeaseUntil, job.process
	}
	w.mu.Unlock()
	if process != nil { // else its start finds the lease
		w.setLease(e.Attempt, process, w.a.clock.toBoot(e.LeaseUntil))
	}
}

func (w *workshop) setLease(id grid.AttemptID, process lrm.Process, until lrm.BootTime) {
	if err := process.SetLease(until); err != nil {
		w.a.log.Debug("a lease could not be set", "attempt", id.String(), "error", err)
	}
}

// suspend freezes an attempt for the owner's sake, or ends that.
func (w *workshop) suspend(id grid.AttemptID, on bool) {
	w.mu.Lock()
	job, ok := w.attempts[id]
	var process lrm.Process
	if ok {
		job.suspended, process = on, job.process
	}
	w.mu.Unlock()
	if process != nil { // else its start finds it suspended
		w.setSuspended(id, process, on)
	}
}

// setSuspended stops an attempt that cannot be suspended: the owner comes first,
// and its submitter moves it.
func (w *workshop) setSuspended(id grid.AttemptID, process lrm.Process, on bool) {
	if err := process.Suspend(on); err != nil {
		w.a.log.Warn("an attempt could not be suspended or continued",
			"attempt", id.String(), "error", err)
		w.end(id, process, "it could not be suspended for the site's owner")
	}
}

// use returns what this agent and its attempts have used, and whether they work now.
// Ended attempts count with the agent's children.
func (w *workshop) use() owner.Use {
	self, known := owner.SelfTime()
	use := owner.Use{CPU: self, Known: known}
	var meters []lrm.Meter
	w.mu.Lock()
	for _, job := range w.attempts {
		if job.state == workEnded {
			continue
		}
		use.Live = true
		use.Working = use.Working || !job.suspended
		if m, ok := job.process.(lrm.Meter); ok {
			meters = append(meters, m)
		}
	}
	w.mu.Unlock()
	for _, m := range meters {
		if used, ok := m.CPUTime(); ok {
			use.CPU += used
		}
	}
	return use
}

// stop ends an attempt in any state; the goroutine that works on it answers.
func (w *workshop) stop(e step.StopAttempt) {
	w.mu.Lock()
	job, ok := w.attempts[e.Attempt]
	if !ok {
		w.mu.Unlock()
		w.stoppedIdle(e.Attempt)
		return
	}
	job.stopped = true
	state, process := job.state, job.process
	w.mu.Unlock()
	switch state {
	case workStaging:
		job.cancel()
	case workStaged:
		w.stoppedIdle(e.Attempt)
	case workRunning:
		w.end(e.Attempt, process, "stopped by its submitter or the site's owner")
	case workStarting, workEnded:
	}
}

// over reports whether the attempt writes no more: its process has ended, or
// the attempt is gone.
func (w *workshop) over(id grid.AttemptID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	job, ok := w.attempts[id]
	return !ok || job.state == workEnded
}

// discard removes all that an attempt left, once nobody works on it any more.
func (w *workshop) discard(e step.Discard) {
	w.mu.Lock()
	job, ok := w.attempts[e.Attempt]
	delete(w.attempts, e.Attempt)
	w.mu.Unlock()
	holder := attemptOwner(e.Attempt)
	w.a.pins.release(holder)
	w.a.readers.forget(holder)
	if !ok {
		return
	}
	w.a.spawn(func() {
		job.idle.Wait()
		if job.cid != "" {
			if err := w.modules.drop(job.cid); err != nil {
				w.a.log.Warn("a module could not be removed", "cid", string(job.cid), "error", err)
			}
		}
		if err := w.spares.give(job.dir); err != nil { // a directory that stage made, and nobody else
			w.a.log.Warn("an attempt's directory could not be removed",
				"attempt", e.Attempt.String(), "error", err)
		}
	})
}
