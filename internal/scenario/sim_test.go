package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/audit"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/sim"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// simulation plays a scenario in pkg/sim.
type simulation struct {
	s      Scenario
	w      *sim.World
	jobs   []simulated
	ids    map[string]grid.JobID
	names  map[string][]int // places in jobs, by the submission's name
	story  *story           // nil: nobody wants to read it
	oracle *sim.Oracle      // nil: nobody asks it
	errs   []error

	troubles map[string]int  // that met a site which was up, by their words
	backups  map[string]bool // sites that have one
}

type simulated struct {
	name  string
	by    grid.SiteID
	id    grid.JobID
	count int
}

func newSimulation(s Scenario) *simulation {
	return &simulation{
		s: s, names: make(map[string][]int), ids: make(map[string]grid.JobID),
		troubles: make(map[string]int), backups: make(map[string]bool),
	}
}

// play gives the outcome of a scenario in the simulation.
func play(s Scenario, tune func(*sim.Config)) (Outcome, error) {
	return newSimulation(s).play(tune)
}

// tell plays a scenario and tells what happened.
func tell(s Scenario) (Outcome, *story, error) {
	p := newSimulation(s)
	p.story = newStory(s)
	o, err := p.play(func(c *sim.Config) { c.Watch = p.story.watch })
	return o, p.story, err
}

func (p *simulation) play(tune func(*sim.Config)) (Outcome, error) {
	s := p.s
	cfg := sim.Config{
		Seed: s.Run.Seed, CheckFacts: s.tasks() <= 60, CheckEvery: 1 + s.tasks()/20,
		Network: sim.Network{
			Latency: s.Net.Latency, Jitter: s.Net.Jitter, Loss: s.Net.Loss, Duplicate: s.Net.Duplicate,
			Reorder: s.Net.Reorder, Detect: 5 * time.Millisecond,
		},
	}
	for _, site := range s.Sites {
		cfg.Sites = append(cfg.Sites,
			sim.SiteSpec{ID: grid.SiteID(site.Name), Capability: site.Capability, Skew: site.Skew})
	}
	if slices.ContainsFunc(s.Submissions(), func(s Submission) bool { return s.Takes > 0 }) {
		cfg.Run = runs
	}
	if tune != nil {
		tune(&cfg)
	}
	p.consult(&cfg)
	p.w = sim.New(cfg)
	for _, a := range s.Timeline() {
		p.w.At(a.At, func() { p.do(a) })
	}
	if err := p.w.Run(s.Run.For); err != nil {
		return Outcome{}, err
	}
	return p.outcome(), errors.Join(p.errs...)
}

// runs lets a task run for as long as its argument says, if it has one.
func runs(task grid.Task, estimate time.Duration, _ sim.SiteSpec) (time.Duration, grid.Exit) {
	if len(task.Args) > 0 {
		estimate, _ = time.ParseDuration(task.Args[0]) // submit wrote it
	}
	return estimate, grid.Exit{Cause: grid.CauseExited}
}

func (s Scenario) tasks() int {
	n := 0
	for _, sub := range s.Submissions() {
		n += sub.Jobs * int(sub.Count)
	}
	return n
}

func (p *simulation) do(a Action) {
	site := grid.SiteID(a.Event.Site)
	p.count(a)
	switch a.Kind {
	case Crash:
		if a.Event.Amid {
			p.w.CrashInStep(site)
			return
		}
		p.w.Crash(site)
	case Restart:
		p.w.Restart(site)
	case Isolate:
		p.w.Isolate(site)
	case Rejoin:
		p.w.Rejoin(site)
	case Silent:
		p.w.Silence(site)
	case Speak:
		p.w.Unsilence(site)
	case Pause:
		p.w.Input(site, step.Pause{})
	case Resume:
		p.w.Input(site, step.Resume{})
	case Busy:
		p.w.Input(site, step.OwnerBusy{Reason: grid.ReasonOwnerBusy, Text: "as the scenario says"})
	case Away:
		p.w.Input(site, step.OwnerAway{})
	case Upset:
		p.upset(site, a.Event.Trouble)
	case Settle:
		p.settle(site, a.Event.Trouble)
	case Submit:
		p.submit(a.Event.Submit)
	case Cancel:
		for _, i := range p.names[a.Event.Job] {
			if p.oracle != nil {
				p.oracle.Cancelled(p.jobs[i].id)
			}
			p.errs = append(p.errs, p.w.Cancel(p.jobs[i].by, p.jobs[i].id))
		}
	}
}

func (p *simulation) submit(s Submission) {
	if !s.Ready(p.ids) {
		return
	}
	if p.oracle != nil && len(p.jobs) == 0 {
		p.oracle.Begin(p.w)
	}
	job := s.Job(p.begin(s.By), p.ids)
	if s.Takes > 0 {
		job.Spec.Args = []string{s.Takes.String()}
	}
	for _, name := range s.Names() {
		do := p.w.Submit
		if s.NoWait {
			do = p.w.SubmitNow
		}
		id, err := do(grid.SiteID(s.By), job)
		if len(s.Needs()) > 0 && errors.Is(err, grid.ErrInvalid) {
			continue // what it comes after or runs in was refused or is over: its user is told
		}
		if err != nil && p.oracle != nil {
			continue // its user is told why
		}
		if err != nil && !errors.Is(err, sim.ErrDown) {
			p.errs = append(p.errs, fmt.Errorf("submit %s: %w", name, err))
			continue
		}
		if err == nil { // a user whose agent died has no job
			p.ids[name] = id
			p.swear(s, id)
			p.names[s.Name] = append(p.names[s.Name], len(p.jobs))
			p.jobs = append(p.jobs,
				simulated{name: name, by: grid.SiteID(s.By), id: id, count: int(s.Count)})
			if p.story != nil {
				p.story.names[id] = name
			}
		}
	}
}

// skew is a site's clock minus the true time.
func (p *simulation) skew(site string) time.Duration {
	for _, s := range p.s.Sites {
		if s.Name == site {
			return s.Skew
		}
	}
	return 0
}

func (p *simulation) outcome() Outcome {
	trace := p.w.Trace()
	o := Outcome{
		Doubled: len(audit.Audit(p.records()).Doubled),
		Peers:   make(map[string]int), Heard: make(map[string]int), Announced: len(p.jobs),
		Faults: p.faults(),
		Sites:  trace.Sites, Brokers: trace.Brokers, Messages: p.w.Messages(), Hash: p.w.Hash(),
	}
	for _, site := range p.s.Sites {
		if m := p.w.Site(grid.SiteID(site.Name)); m != nil {
			o.Peers[site.Name] = len(m.Status().Peers)
			o.Heard[site.Name] = trace.Heard[grid.SiteID(site.Name)]
		}
	}
	for _, j := range p.jobs {
		o.Jobs = append(o.Jobs, p.jobOutcome(j))
	}
	if p.oracle != nil {
		for _, f := range p.oracle.Judge(p.w, p.s.well()) {
			o.Flaws = append(o.Flaws, f.String())
		}
	}
	return o
}

// records returns what the audit needs, from an observer that saw everything.
func (p *simulation) records() audit.Records {
	var records audit.Records
	for _, j := range p.jobs {
		sub := audit.Submission{Job: j.id, Count: uint32(j.count)}
		if p.w.Broker(j.by) != nil {
			s, held := p.w.Job(j.by, j.id)
			sub.Held, sub.Closed = held, !s.Ended.IsZero()
			for _, t := range s.Tasks {
				records.Tasks = append(records.Tasks, audit.Task{ID: t.ID, Phase: t.Phase})
			}
		}
		records.Submissions = append(records.Submissions, sub)
	}
	runs := make(map[grid.AttemptID]int)
	for _, i := range p.w.Trace().Intervals {
		at, known := runs[i.Attempt]
		if !known {
			at = len(records.Runs)
			runs[i.Attempt] = at
			records.Runs = append(records.Runs, audit.Run{Attempt: i.Attempt, Site: string(i.Site)})
		}
		to := i.To
		if to < 0 {
			to, records.Runs[at].Unended = p.s.Run.For, true
		}
		records.Runs[at].Spans = append(records.Runs[at].Spans, audit.Span{From: i.From, To: to})
	}
	return records
}

func (p *simulation) jobOutcome(j simulated) JobOutcome {
	o := JobOutcome{Name: j.name, Took: -1, Count: j.count}
	s, known := p.w.Job(j.by, j.id)
	if !known {
		return o
	}
	if !s.Ended.IsZero() {
		o.Took = s.Ended.Sub(s.Submitted)
	}
	o.Answers = len(s.Answers)
	o.Awards, o.Placed = p.awards(j.id)
	begin := sim.Epoch().Add(p.skew(string(j.by)))
	for _, e := range p.s.Events { // what people are shown is by the clock as it stands
		if e.Trouble.Word == "set" && e.Site == string(j.by) && known {
			begin = begin.Add(e.Trouble.By)
		}
	}
	for _, t := range s.Tasks {
		o.Tasks = append(o.Tasks, taskOutcome(t, begin))
	}
	return o
}

// awards counts to whom attempts of a job went, and says after what time the first one did.
func (p *simulation) awards(job grid.JobID) (to map[string]int, first time.Duration) {
	to, first = make(map[string]int), -1
	var submitted time.Time
	for _, n := range p.w.Trace().Notes {
		switch {
		case !n.Broker || n.Report.Attempt.Task.Job != job:
		case n.Report.Event == "job_submitted":
			submitted = n.At
		case n.Report.Event == "awarded", n.Report.Event == "awarded_rival":
			if to[string(n.Report.Site)]++; first < 0 {
				first = n.At.Sub(submitted)
			}
		}
	}
	return to, first
}

// faults are the fault indices of the sites, where they are highest.
func (p *simulation) faults() map[string]int64 {
	all := make(map[string]int64)
	for _, s := range p.s.Sites {
		if b := p.w.Broker(grid.SiteID(s.Name)); b != nil {
			for _, m := range b.Members() {
				all[string(m.Site)] = max(all[string(m.Site)], m.Fault)
			}
		}
	}
	return all
}

func taskOutcome(t broker.TaskState, begin time.Time) TaskOutcome {
	o := TaskOutcome{
		Phase: t.Phase, Site: string(t.Site), First: string(t.Site), Token: int(t.Token.Number()),
	}
	o.NoteStart(t.StartedAt, begin)
	tokens := make(map[grid.Token]bool)
	for i, try := range t.Tries {
		o.NoteStart(try.StartedAt, begin)
		if i == 0 {
			o.First = string(try.Site)
		}
		if !strings.HasPrefix(try.Outcome, "declined") {
			tokens[try.Token] = true
		}
	}
	if t.Phase >= grid.PhaseAwarded && t.Phase <= grid.PhaseCollecting {
		tokens[t.Token] = true
	}
	o.Moves = max(0, len(tokens)-1)
	return o
}
