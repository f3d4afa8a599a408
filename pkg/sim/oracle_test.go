package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// trial is a world that an oracle watches.
type trial struct {
	*World
	*Oracle
	t *testing.T
}

func newTrial(t *testing.T, cfg Config) *trial {
	t.Helper()
	x := &trial{Oracle: NewOracle(), t: t}
	cfg.Watch, cfg.Network = x.Watch, lan()
	if cfg.Sites == nil {
		cfg.Sites = fleet(5)
	}
	x.World = New(cfg)
	_ = x.Run(time.Second)
	x.Begin(x.World)
	return x
}

// submit hands a job to s0.
func (x *trial) submit(job grid.Job) grid.JobID {
	x.t.Helper()
	id := mustSubmit(x.t, x.World, "s0", job)
	x.Submitted(x.World, id, Truth{Run: job.Spec.Runtime})
	return id
}

// flaws lets the world go on for three hours and lists the kinds of flaws, each once.
func (x *trial) flaws(well time.Duration) []Flaw {
	x.t.Helper()
	if err := x.Run(x.elapsed + 3*time.Hour); err != nil {
		x.t.Fatal(err)
	}
	var kinds []Flaw
	for _, f := range x.Judge(x.World, well) {
		x.t.Log(f)
		kinds = append(kinds, f.Flaw)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

func (x *trial) want(well time.Duration, want ...Flaw) {
	x.t.Helper()
	if got := x.flaws(well); !slices.Equal(got, want) {
		x.t.Errorf("found %v, want %v", got, want)
	}
}

// victim is a site other than the submitter's own that runs a task of a job.
func (x *trial) victim(id grid.JobID) grid.SiteID {
	s, _ := x.Broker("s0").Job(id)
	for _, task := range s.Tasks {
		if task.Site != "" && task.Site != "s0" {
			return task.Site
		}
	}
	x.t.Fatalf("job %s runs at no other site", id)
	return ""
}

func TestAnOracleFindsNothingWhereNothingIsWrong(t *testing.T) {
	x := newTrial(t, Config{Seed: 1})
	id := x.submit(wasmJob(30, 10*time.Second))
	called := x.submit(wasmJob(3, time.Hour))
	_ = x.Run(5 * time.Second)
	x.Crash(x.victim(id))
	if err := x.Cancel("s0", called); err != nil {
		t.Fatal(err)
	}
	x.Cancelled(called)
	x.At(20*time.Second, func() {
		for _, s := range x.World.order {
			x.Restart(s)
		}
	})
	x.want(20 * time.Second)
}

// One identity on two machines runs a task twice.
func TestAnOracleSeesATwin(t *testing.T) {
	for _, off := range []bool{false, true} {
		x := newTrial(t, Config{Seed: 1, NoRuns: off})
		x.submit(wasmJob(16, 60*time.Second))
		_ = x.Run(10 * time.Second)
		x.Twin("s0")
		x.At(40*time.Second, func() { x.EndTwin("s0") })
		if got := x.flaws(40 * time.Second); slices.Contains(got, flawOverlap) != off {
			t.Errorf("switched off %t: found %v", off, got)
		}
	}
}

func TestAnOracleSeesAJobThatIsStuck(t *testing.T) {
	x := newTrial(t, Config{Seed: 1})
	id := x.submit(elsewhere(20 * time.Second))
	_ = x.Run(5 * time.Second)
	x.Stick(x.victim(id), -1)
	_ = x.Run(x.elapsed + 10*time.Minute)
	found := x.Judge(x.World, 6*time.Second)
	if len(found) != 1 || found[0].Flaw != flawUnended || found[0].Job != id {
		t.Errorf("found %v, want one job that goes on", found)
	}
}

// What a job's own programs do is told from what the mesh does to it.
func TestAnOracleWantsACauseAndAnOutput(t *testing.T) {
	for want, exit := range map[Flaw]grid.Exit{
		flawNoCause: {Cause: grid.CauseExited, Code: 1},
		flawOutput:  {Cause: grid.CauseExited},
	} {
		x := newTrial(t, Config{Seed: 1, Run: func(
			grid.Task, time.Duration, SiteSpec,
		) (time.Duration, grid.Exit) {
			return time.Second, exit
		}})
		x.submit(elsewhere(time.Second))
		x.want(time.Second, want)
	}
	x := newTrial(t, Config{Seed: 1})
	id := x.submit(elsewhere(time.Hour))
	_ = x.Run(5 * time.Second)
	if err := x.Cancel("s0", id); err != nil {
		t.Fatal(err)
	}
	x.want(5*time.Second, flawNoCause) // the oracle was not told who called it off
}

// Why a job was refused can be read, also where the agent was killed before it told.
func TestAnOracleWantsAReasonForARefusal(t *testing.T) {
	o, j := NewOracle(), &judged{Truth: Truth{MayRefuse: true}}
	for text, want := range map[string]int{"": 1, "not now: paused by its owner": 0} {
		exit := &grid.Exit{Cause: grid.CauseStopped, Text: text}
		for _, phase := range []grid.Phase{grid.PhaseRefused, grid.PhaseFailed} {
			if got := o.judgeTask(nil, j, phase, exit); len(got) != want {
				t.Errorf("%s with the reason %q: found %v, want %d", phase, text, got, want)
			}
		}
	}
	if got := o.judgeTask(nil, j, grid.PhaseRefused, nil); len(got) != 1 {
		t.Errorf("refused without an end: found %v", got)
	}
}

// A promised time that passes silently is a flaw; one that was kept is none.
func TestAnOracleKnowsWhatWasPromised(t *testing.T) {
	for _, c := range []struct {
		start, deadline time.Duration
		want            []Flaw
	}{
		{start: 3 * time.Second, deadline: 20 * time.Second},
		{start: 0, deadline: 9 * time.Second, want: []Flaw{flawPromise}},
	} {
		x := newTrial(t, Config{Seed: 1})
		job := elsewhere(10 * time.Second)
		job.Spec.Window.At = x.now().Add(2 * time.Second)
		id := mustSubmit(t, x.World, "s0", job)
		x.Submitted(x.World, id, Truth{Run: 10 * time.Second, Start: c.start, Deadline: c.deadline})
		x.want(time.Second, c.want...)
	}
	x := newTrial(t, Config{Seed: 1})
	job := elsewhere(time.Second)
	job.Spec.Window.At = x.now().Add(20 * time.Second)
	id := mustSubmit(t, x.World, "s0", job)
	x.Submitted(x.World, id, Truth{Run: time.Second, Start: 10 * time.Second})
	x.want(time.Second, flawPromise)
}

// What a submitter says of a promise is compared with what became of it.
func TestAnOracleReadsTheOutcomeOfAPromise(t *testing.T) {
	x := newTrial(t, Config{Seed: 1})
	job, at := elsewhere(10*time.Second), x.elapsed+20*time.Second
	job.Spec.Window.At = x.now().Add(20 * time.Second)
	id := mustSubmit(t, x.World, "s0", job)
	s := mustEnd(t, x.World, time.Minute, "s0", id)
	run, _ := x.trace.runOf(grid.AttemptID{Task: s.Tasks[0].ID, Token: s.Tasks[0].Token})
	for name, c := range map[string]struct {
		start, deadline time.Duration // as the user knows them
		change          func(*broker.TaskState)
		flawed          bool
	}{
		"kept":                 {start: at, deadline: run.ended},
		"kept, began late":     {start: at - 5*time.Second, flawed: true},
		"kept, ended late":     {deadline: run.ended - 5*time.Second, flawed: true},
		"late, as is said":     {start: at - 5*time.Second, change: late(5 * time.Second)},
		"late, which was kept": {start: at, change: late(5 * time.Second), flawed: true},
		"late by more":         {start: at - 9*time.Second, change: late(5 * time.Second), flawed: true},
		"late by less":         {start: at - 2*time.Second, change: late(5 * time.Second), flawed: true},
		"late by nothing":      {start: at, change: late(0), flawed: true},
		"nothing said": {start: at, flawed: true, change: func(s *broker.TaskState) {
			s.Promise = grid.PromiseNone
		}},
		"open": {start: at, flawed: true, change: func(s *broker.TaskState) {
			s.Promise = grid.PromiseOpen
		}},
		"broken and done": {start: at, flawed: true, change: func(s *broker.TaskState) {
			s.Promise = grid.PromiseBroken
		}},
		"broken and failed": {start: at, change: func(s *broker.TaskState) {
			s.Promise, s.Phase = grid.PromiseBroken, grid.PhaseFailed
		}},
	} {
		j := &judged{
			Truth: Truth{Start: c.start, Deadline: c.deadline}, submitted: time.Second,
			ended: run.ended + time.Second, accepted: map[uint32]bool{0: true},
		}
		task := s.Tasks[0]
		if c.change != nil {
			c.change(&task)
		}
		if text := x.judgePromise(x.World, j, task); (text != "") != c.flawed {
			t.Errorf("%s: found %q, want a flaw: %t", name, text, c.flawed)
		}
	}
}

func late(by time.Duration) func(*broker.TaskState) {
	return func(s *broker.TaskState) { s.Promise, s.StartLate = grid.PromiseLate, by }
}

func TestAnOracleSeesWhatIsLeft(t *testing.T) {
	left := func(leave func(*trial, grid.JobID)) []Flaw {
		x := newTrial(t, Config{Seed: 1})
		id := x.submit(elsewhere(time.Second))
		_ = x.Run(30 * time.Second)
		leave(x, id)
		return x.flaws(30 * time.Second)
	}
	ofJob := func(id grid.JobID) grid.AttemptID {
		return grid.AttemptID{Task: grid.TaskID{Job: id}, Token: 1}
	}
	for name, leave := range map[string]func(*trial, grid.JobID){
		"data": func(x *trial, id grid.JobID) { x.hosts["s1"].disk.pin("bout", ofJob(id).String()) },
		"a job's data at another site": func(x *trial, id grid.JobID) {
			x.hosts["s1"].disk.pin("bout", jobPin(id))
		},
		"a sandbox": func(x *trial, id grid.JobID) {
			x.hosts["s1"].attempts[ofJob(id)] = &attempt{id: ofJob(id)}
		},
		"a timer": func(x *trial, id grid.JobID) {
			x.hosts["s1"].setTimer(timerID{key: step.TimerKey{Name: "lease", ID: ofJob(id).String()}},
				x.now().Add(24*time.Hour))
		},
	} {
		if got := left(leave); !slices.Equal(got, []Flaw{flawLeftOver}) {
			t.Errorf("%s: found %v, want what is left", name, got)
		}
	}
	if got := left(func(x *trial, _ grid.JobID) {
		x.hosts["s1"].setTimer(timerID{key: step.TimerKey{Name: "lease", ID: "of something else"}},
			x.now().Add(24*time.Hour))
	}); len(got) > 0 {
		t.Errorf("another timer: found %v", got)
	}
	grown := left(func(x *trial, _ grid.JobID) { x.Oracle.sizes["s1 site.roster.all"]-- })
	if !slices.Equal(grown, []Flaw{flawGrown}) {
		t.Errorf("found %v, want a table that has grown", grown)
	}
}
