package play

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/audit"
	"github.com/mrsmesh/mrsmesh/internal/scenario"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/sim"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// simulation plays a scenario in pkg/sim.
type simulation struct {
	s      scenario.Scenario
	w      *sim.World
	jobs   []simulated
	ids    map[string]grid.JobID
	names  map[string][]int // places in jobs, by the submission's name
	record *Record          // nil: nobody wants to read it
	tell   func(float64)    // nil: nobody waits for it
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

func newSimulation(s scenario.Scenario) *simulation {
	return &simulation{
		s: s, names: make(map[string][]int), ids: make(map[string]grid.JobID),
		troubles: make(map[string]int), backups: make(map[string]bool),
	}
}

// Play plays a scenario in the simulator, and records what happens. An error is a scenario that
// asks what cannot be, or an invariant of a machine that broke; whether its expectations were
// met is for Expectations.Check to say.
//
// tell, which may be nil, is told now and then how much of the scenario's time is over, as a share.
// It stops when ctx is done.
func Play(
	ctx context.Context, s scenario.Scenario, tell func(share float64),
) (scenario.Outcome, *Record, error) {
	p := newSimulation(s)
	p.record, p.tell = newRecord(s), tell
	o, err := p.play(ctx, func(c *sim.Config) { c.Watch = p.record.watch })
	return o, p.record, err
}

func (p *simulation) play(
	ctx context.Context, tune func(*sim.Config),
) (scenario.Outcome, error) {
	s := p.s
	cfg := sim.Config{
		Seed: s.Run.Seed, CheckFacts: tasksOf(s) <= 60, CheckEvery: 1 + tasksOf(s)/20,
		Network: sim.Network{
			Latency: s.Net.Latency, Jitter: s.Net.Jitter, Loss: s.Net.Loss, Duplicate: s.Net.Duplicate,
			Reorder: s.Net.Reorder, Detect: 5 * time.Millisecond,
		},
	}
	for _, site := range s.Sites {
		cfg.Sites = append(cfg.Sites,
			sim.SiteSpec{ID: grid.SiteID(site.Name), Capability: site.Capability, Skew: site.Skew})
	}
	cfg.Realms = realms(s)
	if slices.ContainsFunc(s.Submissions(), func(s scenario.Submission) bool { return s.Takes > 0 }) {
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
	p.tear()
	if err := p.run(ctx); err != nil {
		return scenario.Outcome{}, err
	}
	return p.outcome(), errors.Join(p.errs...)
}

// pieces is in how many pieces a scenario's time goes by, between which one may stop.
const pieces = 100

// run lets the scenario's time go by.
func (p *simulation) run(ctx context.Context) error {
	all, piece := p.s.Run.For, max(p.s.Run.For/pieces, 1)
	for at := piece; ; at = min(at+piece, all) {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("stopped at %s of %s: %w", p.w.Elapsed(), all, err)
		}
		if err := p.w.Run(at); err != nil {
			return err
		}
		if p.tell != nil {
			p.tell(float64(at) / float64(all))
		}
		if at == all {
			return nil
		}
	}
}

// runs lets a task run for as long as its argument says, if it has one.
func runs(task grid.Task, estimate time.Duration, _ sim.SiteSpec) (time.Duration, grid.Exit) {
	if len(task.Args) > 0 {
		estimate, _ = time.ParseDuration(task.Args[0]) // submit wrote it
	}
	return estimate, grid.Exit{Cause: grid.CauseExited}
}

func tasksOf(s scenario.Scenario) int {
	n := 0
	for _, sub := range s.Submissions() {
		n += sub.Jobs * int(sub.Count)
	}
	return n
}

func (p *simulation) do(a scenario.Action) {
	site := grid.SiteID(a.Event.Site)
	p.count(a)
	switch a.Kind {
	case scenario.Crash:
		if a.Event.Amid {
			p.w.CrashInStep(site)
			return
		}
		p.w.Crash(site)
	case scenario.Upset:
		upsets()[a.Event.Trouble.Word](p.w, site, a.Event.Trouble)
	case scenario.Settle:
		if end := settlements()[a.Event.Trouble.Word]; end != nil {
			end(p.w, site, a.Event.Trouble)
		}
	case scenario.Submit:
		p.submit(a.Event.Submit)
	case scenario.Cancel:
		p.cancel(a.Event.Job)
	case scenario.Migrate:
		p.migrate(a.Event.Job)
	default:
		changes()[a.Kind](p.w, site)
	}
}

// changes are the actions that are about a site alone.
func changes() map[scenario.Kind]func(*sim.World, grid.SiteID) {
	input := func(in step.Input) func(*sim.World, grid.SiteID) {
		return func(w *sim.World, site grid.SiteID) { w.Input(site, in) }
	}
	return map[scenario.Kind]func(*sim.World, grid.SiteID){
		scenario.Restart: (*sim.World).Restart,
		scenario.Isolate: (*sim.World).Isolate, scenario.Rejoin: (*sim.World).Rejoin,
		scenario.Silent: (*sim.World).Silence, scenario.Speak: (*sim.World).Unsilence,
		scenario.Pause: input(step.Pause{}), scenario.Resume: input(step.Resume{}),
		scenario.Busy: input(step.OwnerBusy{
			Reason: grid.ReasonOwnerBusy, Text: "as the scenario says",
		}),
		scenario.Away: input(step.OwnerAway{}),
	}
}

// cancel calls off all jobs of a submission.
func (p *simulation) cancel(name string) {
	for _, i := range p.names[name] {
		if p.oracle != nil {
			p.oracle.Cancelled(p.jobs[i].id)
		}
		p.errs = append(p.errs, p.w.Cancel(p.jobs[i].by, p.jobs[i].id))
	}
}

// migrate moves the running tasks of all jobs of a submission. A refusal is an answer.
func (p *simulation) migrate(name string) {
	for _, i := range p.names[name] {
		if p.w.Move(p.jobs[i].by, p.jobs[i].id, true) == nil {
			p.troubles[scenario.Migrate.String()]++
		}
	}
}

func (p *simulation) submit(s scenario.Submission) {
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
			if p.record != nil {
				p.record.names[id] = name
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

func (p *simulation) outcome() scenario.Outcome {
	trace := p.w.Trace()
	o := scenario.Outcome{
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
	o.Favours = p.favours()
	for _, j := range p.jobs {
		o.Jobs = append(o.Jobs, p.jobOutcome(j))
	}
	if p.oracle != nil {
		for _, f := range p.oracle.Judge(p.w, wellFrom(p.s)) {
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

func (p *simulation) jobOutcome(j simulated) scenario.JobOutcome {
	o := scenario.JobOutcome{Name: j.name, Took: -1, Count: j.count}
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
				all[string(m.Site)] = max(all[string(m.Site)], int64(math.Round(m.Fault.Own)))
			}
		}
	}
	return all
}

func taskOutcome(t broker.TaskState, begin time.Time) scenario.TaskOutcome {
	o := scenario.TaskOutcome{
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
