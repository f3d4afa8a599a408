//go:build e2e

package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/audit"
	"github.com/mrsmesh/mrsmesh/internal/netlab"
	"github.com/mrsmesh/mrsmesh/internal/scenario"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// The cores and the computation of a scenario are divided by this, its sites'
// and its jobs' alike, because an owner cannot give more than the machine has
// and all sites are on one machine.
const shrink = 50

// A run may take grace longer than its scenario before it is judged, and is
// judged at the latest calm after its jobs have ended: by then sites that were
// cut off have dialled each other again.
const (
	grace = 30 * time.Second
	calm  = 75 * time.Second
)

// actor plays a scenario with real processes in real time.
type actor struct {
	*labMesh
	s      scenario.Scenario
	by     map[string]*labSite
	begin  time.Time
	jobs   []*actedJob
	ids    map[string]grid.JobID // of jobs, by their names
	follow *errgroup.Group       // commands that follow their jobs
}

type actedJob struct {
	name   string
	by     *labSite
	id     grid.JobID
	count  int
	gaveUp bool // submit --no-wait ended with code 4
	ended  bool
}

// act gives the outcome of a scenario, and what the agents told last.
func act(ctx context.Context, s scenario.Scenario) (o scenario.Outcome, told string, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.Run.For+5*time.Minute)
	defer cancel()
	mesh, err := newLabMesh(ctx)
	if err != nil {
		return o, "", err
	}
	a := &actor{
		labMesh: mesh, s: s, by: make(map[string]*labSite), ids: make(map[string]grid.JobID),
		follow: new(errgroup.Group),
	}
	defer func() {
		for _, site := range a.sites {
			told += "\nagent " + site.name + ":\n" + site.tail(1500)
		}
		err = errors.Join(err, a.close())
	}()
	if err = a.prepare(ctx); err != nil {
		return o, "", err
	}
	if err = a.playAll(ctx); err != nil {
		return o, "", err
	}
	if o, err = a.settle(ctx); err != nil {
		return o, "", err
	}
	err = errors.Join(a.checkCodes(ctx), a.stop())
	if err == nil {
		o.Doubled, err = a.audit()
	}
	return o, "", err
}

// prepare makes the sites of the scenario and waits until they are a mesh.
func (a *actor) prepare(ctx context.Context) error {
	if n := a.s.Net; n != (scenario.Net{}) {
		if err := a.lab.Impair(ctx, a.s.Run.Seed, netlab.Impairment{
			Latency: n.Latency, Jitter: n.Jitter, Loss: n.Loss, Duplicate: n.Duplicate, Reorder: n.Reorder,
		}); err != nil {
			return err
		}
	}
	for _, spec := range a.s.Sites {
		c := spec.Capability
		host, err := a.lab.Host(ctx, spec.Name, netlab.Link{UpBps: c.UpBps, DownBps: c.DownBps})
		if err != nil {
			return err
		}
		settings := fmt.Sprintf("domain: %s\nceilings: {cpus: %s, memory: %dB, disk: %dB, gflops: "+
			"%s}\nrates: {down: %dbit/s, up: %dbit/s}\n",
			spec.Domain, decimal(c.Total.MilliCPUs/shrink), c.Total.MemoryBytes, c.Total.DiskBytes,
			decimal(c.Total.MFLOPS/shrink), c.DownBps, c.UpBps)
		site, err := newLabSite(ctx, a.dir, spec.Name, host, settings)
		if err != nil {
			return err
		}
		a.sites = append(a.sites, site)
		a.by[spec.Name] = site
	}
	if err := errors.Join(a.acquaint(), a.start(ctx)); err != nil {
		return err
	}
	return until(ctx, time.Now().Add(2*time.Second)) // gossip grafts its mesh within a heartbeat
}

// decimal is a number of thousandths.
func decimal(thousandths int64) string {
	return fmt.Sprintf("%d.%03d", thousandths/1000, thousandths%1000)
}

// playAll does what the scenario says when it says so.
func (a *actor) playAll(ctx context.Context) error {
	a.begin = time.Now()
	for _, action := range a.s.Timeline() {
		if err := until(ctx, a.begin.Add(action.At)); err != nil {
			return err
		}
		if err := a.do(ctx, action); err != nil {
			return fmt.Errorf(
				"%s %s%s at %s: %w", action.Kind, action.Event.Site, action.Event.Job, action.At, err,
			)
		}
	}
	return nil
}

func (a *actor) do(ctx context.Context, action scenario.Action) error {
	site := a.by[action.Event.Site]
	switch action.Kind {
	case scenario.Crash:
		return site.kill(ctx)
	case scenario.Restart:
		return site.launch(ctx)
	case scenario.Isolate:
		return site.host.Isolate(ctx)
	case scenario.Rejoin:
		return site.host.Rejoin(ctx)
	case scenario.Silent:
		return site.host.Mute(ctx)
	case scenario.Speak:
		return site.host.Unmute(ctx)
	case scenario.Pause:
		return errors.Join(site.ready(ctx), site.client.Pause(ctx, 0))
	case scenario.Resume:
		return errors.Join(site.ready(ctx), site.client.Resume(ctx))
	case scenario.Submit:
		return a.submit(ctx, action.Event.Submit)
	case scenario.Cancel:
		var errs []error
		for _, j := range a.jobs {
			if j.name == action.Event.Job {
				errs = append(errs, j.by.client.Cancel(ctx, j.id))
			}
		}
		return errors.Join(errs...)
	case scenario.Migrate:
		var errs []error
		for _, j := range a.jobs {
			if j.name == action.Event.Job {
				errs = append(errs, j.by.client.Migrate(ctx, j.id, view.MoveRequest{Restart: true}))
			}
		}
		return errors.Join(errs...)
	case scenario.Busy, scenario.Away: // owner-busy.txt is not played
	case scenario.Upset, scenario.Settle:
		return fmt.Errorf("real processes know no %s", action.Event.Trouble.Word)
	}
	return fmt.Errorf("real processes know no %s", action.Kind)
}

// submit hands a submission over, with a module that sleeps for its time.
func (a *actor) submit(ctx context.Context, s scenario.Submission) error {
	by := a.by[s.By]
	if !by.alive() || !s.Ready(a.ids) {
		return nil // a user whose agent died has no job
	}
	job := s.Job(a.begin, a.ids)
	job.Spec.Need.MilliCPUs /= shrink
	job.Spec.Need.MFLOPS /= shrink
	module := sleeper(s.Name, s.Lasts(), int(job.Spec.Module.Bytes))
	if s.NoWait {
		window := job.Spec.Window != (grid.Window{})
		if window || len(s.Needs()) > 0 || job.Split != grid.SplitNone || job.Flood {
			return fmt.Errorf("%s: real processes know wait=no of a plain job alone", s.Name)
		}
		return a.submitNow(ctx, by, s, job, module)
	}
	store := func(in *grid.Input, content []byte) error {
		ref, err := by.client.PutData(ctx, false, bytes.NewReader(content))
		in.CID, in.Bytes = ref.CID, ref.Bytes
		return err
	}
	err := by.ready(ctx)
	if !s.Reserve {
		err = errors.Join(err, store(&job.Spec.Module, module))
	}
	for i := range job.Spec.Inputs {
		err = errors.Join(err, store(&job.Spec.Inputs[i], noise(s.Name+" data", int(s.Data))))
	}
	if err != nil {
		return err
	}
	for _, name := range s.Names() {
		id, err := by.client.Submit(ctx, job)
		if err != nil {
			return err
		}
		a.ids[name] = id
		a.jobs = append(a.jobs, &actedJob{name: name, by: by, id: id, count: int(s.Count)})
	}
	return nil
}

// submitNow submits as a user does who does not want to wait: the user's command
// gives the job up.
func (a *actor) submitNow(
	ctx context.Context, by *labSite, s scenario.Submission, job grid.Job, module []byte,
) error {
	file := filepath.Join(a.dir, s.Name+".wasm")
	if err := os.WriteFile(file, module, 0o600); err != nil {
		return err
	}
	need := job.Spec.Need
	cmd := a.command(ctx, by, "run", "--no-wait", "--name", s.Name, "--wasm", file, "--count",
		fmt.Sprint(s.Count),
		"--cpus", decimal(need.MilliCPUs), "--gflops", decimal(need.MFLOPS), "--memory",
		fmt.Sprintf("%dB", need.MemoryBytes),
		"--disk", fmt.Sprintf("%dB", need.DiskBytes), "--bandwidth", fmt.Sprintf(
			"%dbit/s", need.NetBps,
		), "--runtime", s.Run.String(), "--ttl", s.TTL.String())
	if err := cmd.Start(); err != nil {
		return err
	}
	j := &actedJob{name: s.Name, by: by, count: int(s.Count)}
	a.jobs = append(a.jobs, j)
	a.follow.Go(func() error {
		_ = cmd.Wait() // the code is looked at when the group has ended
		j.gaveUp = cmd.ProcessState.ExitCode() == 4
		return nil
	})
	return await(ctx, patience, "the agent has the job "+s.Name, func() (bool, error) {
		jobs, err := by.client.Jobs(ctx, view.JobQuery{})
		for _, v := range jobs {
			if v.Name == s.Name {
				j.id = v.ID
			}
		}
		return j.id != "", err
	})
}

// command is the user's command line at a site.
func (a *actor) command(ctx context.Context, by *labSite, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, bin.submit, args...)
	cmd.Dir = a.dir
	cmd.Env = append(os.Environ(), "MRS_ADDR="+by.socket, "XDG_CONFIG_HOME="+a.dir, "NO_COLOR=1")
	return cmd
}

// settle waits until every job has ended and what is expected holds, but not
// longer than the scenario goes on.
func (a *actor) settle(ctx context.Context) (o scenario.Outcome, err error) {
	ended := false
	for end := a.begin.Add(a.s.Run.For + grace); ; {
		if a.allEnded(ctx) {
			if soon := time.Now().Add(calm); !ended && soon.Before(end) {
				end = soon
			}
			ended = true
			if err = a.follow.Wait(); err != nil {
				return o, err
			}
			if o, err = a.outcome(ctx); err != nil || a.s.Expect.Check(o) == nil {
				return o, err
			}
		}
		if time.Now().After(end) {
			return a.outcome(ctx)
		}
		if err = until(ctx, time.Now().Add(500*time.Millisecond)); err != nil {
			return o, err
		}
	}
}

func (a *actor) allEnded(ctx context.Context) bool {
	for _, j := range a.jobs {
		if j.ended {
			continue
		}
		detail, err := j.by.client.Job(ctx, j.id)
		if err != nil || detail.Status.Ended.IsZero() {
			return false
		}
		j.ended = true
	}
	return true
}

// outcome asks the agents that live.
func (a *actor) outcome(ctx context.Context) (scenario.Outcome, error) {
	o := scenario.Outcome{
		Peers: make(map[string]int), Heard: make(map[string]int), Sites: make(map[string]int),
		Announced: len(a.jobs),
	}
	names := make(map[grid.SiteID]string)
	for _, site := range a.sites {
		names[site.id] = site.name
		for event, n := range site.counts {
			o.Sites[event] += n
		}
		if !site.alive() {
			continue
		}
		status, err := site.client.Status(ctx)
		if err != nil {
			return o, err
		}
		for event, n := range status.Counters {
			o.Sites[event] += int(n)
		}
		o.Peers[site.name] = status.Peers
		o.Heard[site.name], err = site.counter(ctx, `mrs_p2p_messages_in_total{type="Announce"}`)
		if err != nil {
			return o, err
		}
	}
	o.Brokers = o.Sites // an agent counts the events of its machines together
	for _, j := range a.jobs {
		job, err := j.outcome(ctx, a.begin, names)
		if err != nil {
			return o, fmt.Errorf("job %s: %w", j.name, err)
		}
		o.Jobs = append(o.Jobs, job)
	}
	return o, nil
}

func (j *actedJob) outcome(
	ctx context.Context, begin time.Time, names map[grid.SiteID]string,
) (scenario.JobOutcome, error) {
	o := scenario.JobOutcome{Name: j.name, Took: -1, Count: j.count}
	if !j.by.alive() {
		return o, nil
	}
	detail, err := j.by.client.Job(ctx, j.id)
	if err != nil {
		return o, err
	}
	if v := detail.Status; !v.Ended.IsZero() {
		o.Took = v.Ended.Sub(v.Submitted.Time)
	}
	offers, err := j.by.client.Offers(ctx, j.id)
	if err != nil {
		return o, err
	}
	o.Answers = int(offers.Answered)
	tasks, err := j.by.client.AllTasks(ctx, j.id)
	for _, t := range tasks {
		task := actedTask(t, begin, names)
		if j.gaveUp && task.Phase == grid.PhaseCancelled {
			task.Phase = grid.PhaseRefused // as code 4 says
		}
		o.Tasks = append(o.Tasks, task)
	}
	return o, err
}

// actedTask reads a task as its user sees it.
func actedTask(
	t view.TaskView, begin time.Time, names map[grid.SiteID]string,
) scenario.TaskOutcome {
	phases := map[view.Phase]grid.Phase{
		view.PhaseDone: grid.PhaseDone, view.PhaseFailed: grid.PhaseFailed,
		view.PhaseCancelled: grid.PhaseCancelled, view.PhaseRefused: grid.PhaseRefused,
		// The words for a reservation.
		view.PhaseOver: grid.PhaseDone, view.PhaseLost: grid.PhaseFailed,
		view.PhaseReleased: grid.PhaseCancelled,
	}
	o := scenario.TaskOutcome{
		Phase: phases[t.Phase], Site: names[t.Site], First: names[t.Site],
		Token: int(t.Token.Number()),
	}
	o.NoteStart(t.Started.Time, begin)
	for i, attempt := range t.Attempts {
		o.NoteStart(attempt.Started.Time, begin)
		if i == 0 {
			o.First = names[attempt.Site]
		}
		if attempt.Token < t.Token && !strings.HasPrefix(attempt.Cause, "declined") {
			o.Moves++
		}
	}
	return o
}

// checkCodes waits for the first job of each submission as a user does, and
// wants the code that goes with its end.
func (a *actor) checkCodes(ctx context.Context) error {
	var errs []error
	for _, j := range a.jobs {
		if !j.ended || strings.Contains(j.name, "#") && !strings.HasSuffix(j.name, "#1") {
			continue
		}
		detail, err := j.by.client.Job(ctx, j.id)
		if err != nil {
			return err
		}
		want, known := map[view.Phase]int{view.PhaseDone: 0, view.PhaseRefused: 4}[detail.Status.Phase]
		cmd := a.command(ctx, j.by, "wait", string(j.id))
		out, _ := cmd.CombinedOutput() // the code is looked at
		if code := cmd.ProcessState.ExitCode(); known && code != want {
			errs = append(
				errs, fmt.Errorf("submit wait %s ends with %d, want %d: %s", j.name, code, want, out),
			)
		}
	}
	return errors.Join(errs...)
}

// audit reads what all agents left on disk, and counts what ran twice.
func (a *actor) audit() (doubled int, err error) {
	var sources []audit.Source
	for _, s := range a.sites {
		sources = append(sources, audit.Source{
			Site: s.name, StateDir: s.state, RunRecord: filepath.Join(s.state, agent.RecordFile),
			Ends: s.deaths,
		})
	}
	records, err := audit.Collect(sources)
	if err != nil {
		return 0, err
	}
	report := audit.Audit(records)
	if len(report.Lost) > 0 {
		err = fmt.Errorf("the audit counts %d lost tasks", len(report.Lost))
	}
	return len(report.Doubled), err
}
