package broker

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/avail"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/index"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// TaskState is the broker's knowledge of a task.
type TaskState struct {
	ID    grid.TaskID
	Phase grid.Phase
	Token grid.Token  // of the latest attempt; 0 = none yet
	Site  grid.SiteID // of the latest attempt
	// Domain is the neighbouring domain that Site stands for; empty: it is of this one.
	Domain   grid.DomainID `json:",omitempty"`
	Distance float64       // at which that was awarded
	Done     int64         // bytes staged
	Total    int64         // bytes to stage
	// PlannedStart is when its place in the site's plan begins, on this site's clock;
	// zero: it is not known, or has come.
	PlannedStart time.Time
	Kept         float64 // how likely its promise is kept, 1 - z; 0 = not promised, or not known
	// Promise says what became of the promise of a time. StartLate and EndLate are by how much it
	// was missed, 0 = it was not (see PromiseTolerance), and PromiseNote says so for people, or
	// why the promise is broken.
	Promise            grid.Promise
	StartLate, EndLate time.Duration
	PromiseNote        string
	Standing           grid.Reason // frozen: why, as its site says; ReasonNone = its lease ended
	// Astray is the end of its lease while another machine, or another disk, speaks for its site:
	// until then it may be under way where the site was before, and is not placed again; zero: that
	// is not so.
	Astray    time.Time `json:",omitzero"`
	StartedAt time.Time
	Exit      *grid.Exit // when it has ended, or is about to
	Tries     []Try
	Saved     []Saved // checkpoints that count, the latest first
	Rivals    []Rival // the sites that queue it, while several do; Site is the first
	// Move is on its way to another site, or why it stays; nil: nobody wants it to move.
	Move *Move `json:",omitempty"`
	// Copies are those of a task that may run in several. All else is about one of them, RunsAs.
	Copies []CopyState `json:",omitempty"`
	RunsAs grid.TaskID `json:",omitzero"` // which copy runs, or has brought the result
}

// JobState is the broker's knowledge of a job.
type JobState struct {
	ID        grid.JobID
	Job       grid.Job
	Submitted time.Time
	Ended     time.Time // zero: it has not
	Probe     bool      // offers were asked for, nothing is placed
	Tasks     []TaskState
	Answers   []Answer     // nearest first, refusals last
	Awaits    []grid.JobID // jobs that have to be done before it is announced
	Held      bool         `json:",omitempty"` // it is not placed before it is released
	// Asked is the job as it was submitted, if it takes something of others; what of that has come
	// is among the inputs of Job. Nil: it takes nothing, and Job is what was submitted.
	Asked  *grid.Job   `json:",omitempty"`
	Ranks  []int       // for each answer: 1 is nearest, 0 a refusal
	Behind []index.Lag // for each answer: why it is not the nearest
	Round  bool        // offers are being collected
	// Abroad says what the own domain and each neighbour answered, once a neighbour was asked:
	// "own domain: too few cores; domain b: .41".
	Abroad string `json:",omitempty"`
	// Ordered says for which neighbouring domain it runs here.
	Ordered step.Ordered `json:",omitzero"`
}

// MemberState is the broker's knowledge of another site.
type MemberState struct {
	Site       grid.SiteID
	Name       string
	Capability grid.Capability
	Connected  bool
	LastSeen   time.Time
	Skew       time.Duration
	RoundTrip  time.Duration // 0 = not measured
	Fault      FaultState
	Since      time.Time // since when it has been connected or away; zero: not seen to change
	Ends       uint64    // how often it was seen to go
	UpHour     float64   // probability that it stays for an hour; 0 when it is away
}

// Saved is a checkpoint that counts.
type Saved struct {
	grid.Checkpoint
	Site grid.SiteID // that has taken it
	At   time.Time   // since when it counts
}

// Move says how a task that has a site is moved to another one, or why it was not.
type Move struct {
	Stage string      // seeking, saving or stopping; empty: it does not move
	Why   grid.Reason // its site's; ReasonNone: its user wants it
	Stays grid.Reason // why the last one came to nothing; ReasonNone: none has
	Note  string      // the same for people, with what can be done
}

// shownMove is nil unless a site has the task.
func (t *task) shownMove() *Move {
	mv := &t.moving
	if !t.active() || mv.stage == moveNone && mv.stays == grid.ReasonNone {
		return nil
	}
	return &Move{Stage: mv.stage.String(), Why: mv.why, Stays: mv.stays, Note: mv.note}
}

// Rival is one of several sites that queue the same task: the first whose turn it is
// runs it (Migol 6.2.2).
type Rival struct {
	Site     grid.SiteID
	Token    grid.Token
	Distance float64
}

// show turns the machine's times into those of the wall clock as it stands now, which is ahead
// by so much: all of them lie as far apart as they did.
func (s *JobState) show(ahead time.Duration) {
	if ahead == 0 {
		return
	}
	s.Submitted, s.Ended = onWall(s.Submitted, ahead), onWall(s.Ended, ahead)
	for i := range s.Answers {
		s.Answers[i].At = onWall(s.Answers[i].At, ahead)
	}
	for i := range s.Tasks {
		t := &s.Tasks[i]
		t.PlannedStart, t.StartedAt = onWall(t.PlannedStart, ahead), onWall(t.StartedAt, ahead)
		t.Tries = triesOnWall(t.Tries, ahead)
		for k := range t.Saved {
			t.Saved[k].At = onWall(t.Saved[k].At, ahead)
		}
		for k := range t.Copies {
			t.Copies[k].StartedAt = onWall(t.Copies[k].StartedAt, ahead)
		}
	}
}

// Jobs lists the submissions that are here, oldest first, then by ID; probes and what
// only the history has are left out.
func (m *Machine) Jobs() []grid.JobID { return m.jobs.submitted() }

// Open counts the jobs and probes that have not ended.
func (m *Machine) Open() int { return m.jobs.open() }

// Submitted is when a submission that is here was made.
func (m *Machine) Submitted(id grid.JobID) (time.Time, bool) {
	j, known := m.jobs.all[id]
	if !known {
		return timeZero, false
	}
	return m.onWall(j.submitted), true
}

// Members lists the other sites that were seen within a week, ascending.
func (m *Machine) Members() []MemberState { return m.peers.states() }

// Data lists all data of a job that is to be kept: its inputs and what its
// tasks have left.
func (m *Machine) Data(id grid.JobID) []grid.CID {
	if j, ok := m.enquiry(id); ok {
		return j.data()
	}
	return nil
}

// Awarded lists the sites that have tasks of the job or had them last, and the neighbouring domain
// that has ordered it: they may have its data.
func (s *JobState) Awarded() []grid.SiteID {
	sites := make(map[grid.SiteID]bool)
	for i := range s.Tasks {
		sites[s.Tasks[i].Site] = true
		for _, c := range s.Tasks[i].Copies {
			sites[c.Site] = true
		}
	}
	sites[s.Ordered.Domain] = true
	delete(sites, "")
	return sortedSites(sites)
}

// Hosted counts the tasks that each site has, or had last.
func (s *JobState) Hosted() map[grid.SiteID]uint32 {
	tasks := make(map[grid.SiteID]uint32)
	for i := range s.Tasks {
		if t := &s.Tasks[i]; t.Token > 0 && t.Phase >= grid.PhaseAwarded {
			tasks[t.Site]++
		}
	}
	return tasks
}

// Job returns a copy of what is known of a job or a probe.
func (m *Machine) Job(id grid.JobID) (JobState, bool) {
	j, ok := m.enquiry(id)
	if !ok {
		return JobState{}, false
	}
	s := j.state()
	s.show(m.ahead)
	s.locate(m, j)
	_, s.Probe = m.probes[id]
	s.Awaits = m.jobs.awaits(j)
	return s, true
}

// Task returns a copy of what is known of one task, and the key of its job, empty if that is not
// encrypted. Of a large job it takes a small part of the time of Job.
func (m *Machine) Task(id grid.TaskID) (TaskState, grid.JobKey, bool) {
	j, ok := m.enquiry(id.Job)
	if !ok || id.Index >= j.heads() {
		return TaskState{}, "", false
	}
	s := JobState{Tasks: []TaskState{j.taskState(id.Index, j.stage != nil)}}
	s.show(m.ahead)
	s.locate(m, j)
	return s.Tasks[0], j.spec.Encryption.Key, true
}

// locate says where the tasks are and were, as far as that is known of their sites.
func (s *JobState) locate(m *Machine, j *job) {
	for i := range s.Tasks {
		of := &s.Tasks[i]
		if t := &j.tasks[j.stands(of.ID.Index)]; t.active() && m.isAstray(t) {
			of.Astray = m.onWall(t.leaseEnd)
		}
		of.Domain = m.peers.domainOf(of.Site)
		for k, try := range of.Tries {
			of.Tries[k].Domain = m.peers.domainOf(try.Site)
		}
	}
}

// state is a copy of what is known of a job by itself.
func (j *job) state() JobState {
	s := JobState{
		ID: j.id, Job: j.spec, Held: j.held && j.open > 0, Submitted: j.submitted, Ended: j.ended,
		Round:   j.stage != nil,
		Ordered: j.ordered,
		Answers: slices.SortedFunc(maps.Values(j.answers), compareAnswers),
	}
	if len(j.asked.Takes) > 0 {
		s.Asked = &j.asked
	}
	s.Ranks, s.Abroad = ranks(s.Answers), byDomain(s.Answers)
	s.Behind = lags(s.Answers, j.req)
	for i := range j.heads() {
		s.Tasks = append(s.Tasks, j.taskState(i, s.Round))
	}
	return s
}

// state is a copy of what is known of a task; asked: offers for its job are being collected.
func (t *task) state(id grid.TaskID, asked bool) TaskState {
	phase := t.phase
	if phase == grid.PhaseWaiting && asked {
		phase = grid.PhaseAnnounced
	}
	s := TaskState{
		ID: id, Phase: phase, Token: t.token, Site: t.site, Distance: t.distance,
		Done: t.done, Total: t.total, StartedAt: t.startedAt, Exit: t.exit, Tries: slices.Clone(t.tries),
		Standing: t.standing, PlannedStart: t.startsAt, Kept: t.kept,
		Promise: t.shown(), StartLate: t.startLate, EndLate: t.endLate, PromiseNote: t.note,
		Move: t.shownMove(),
	}
	for _, c := range t.counted {
		s.Saved = append(s.Saved, Saved{Checkpoint: c.Checkpoint, Site: c.site, At: c.at})
	}
	for _, r := range t.rivals {
		s.Rivals = append(s.Rivals, Rival{Site: r.site, Token: r.token, Distance: r.distance})
	}
	return s
}

// ranks counts the offers from 1, nearest first; those equally near share a rank, since chance
// decides between them.
func ranks(answers []Answer) []int {
	all, first := make([]int, len(answers)), 0
	for i, a := range answers {
		if a.Offer == nil {
			break // refusals come after all offers
		}
		if a.Offer.Parts.Distance-answers[first].Offer.Parts.Distance > index.EqualDistance {
			first = i
		}
		all[i] = first + 1
	}
	return all
}

// lags says for each answer why it is not the nearest; answers are ascending.
func lags(answers []Answer, req grid.Requirement) []index.Lag {
	all := make([]index.Lag, len(answers))
	for i, a := range answers {
		if a.Offer != nil && i > 0 {
			all[i] = index.Behind(a.Offer.Parts, answers[0].Offer.Parts, req)
		}
	}
	return all
}

func compareAnswers(a, b Answer) int {
	switch {
	case a.Offer != nil && b.Offer != nil:
		return cmp.Or(
			cmp.Compare(a.Offer.Parts.Distance, b.Offer.Parts.Distance), cmp.Compare(a.Site, b.Site),
		)
	case a.Offer != nil:
		return -1
	case b.Offer != nil:
		return 1
	default:
		return cmp.Compare(a.Site, b.Site)
	}
}

// Forecast returns how many sites, this one included, are to be expected that far from now,
// by the thesis' equation (11) in both modes: members seen within a week that are up
// may leave, those that are down may come back. errorTerm is the mean error of earlier
// forecasts, see avail.ForecastError. The second result counts all sites there are. It only
// reads.
func (m *Machine) Forecast(
	now time.Time, ahead time.Duration, errorTerm float64,
) (avail.Forecast, int, error) {
	each := forecastStep.Seconds()
	up := []avail.UpNode{{Reliability: 1}} // this site
	var down []avail.DownNode
	for _, id := range m.peers.sorted() {
		p := m.peers.all[id]
		steps := int64(p.standing(now) / forecastStep)
		switch {
		case p.connected:
			up = append(up, avail.UpNode{FailuresPerStep: p.leaving(now).Rate() * each, UpSteps: steps})
		case p.known(now):
			down = append(down, avail.DownNode{
				RecoveriesPerStep: p.returning(now).Rate() * each, DownSteps: steps,
			})
		}
	}
	steps := int64(math.Round(ahead.Seconds() / each))
	forecast, err := avail.CapacityForecast(up, down, steps, errorTerm)
	return forecast, len(up) + len(down), err
}

// forecastStep is the step of time of the thesis' sums, short against all rates.
const forecastStep = time.Minute
