package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Flaw says what went wrong in a world.
type Flaw string

// The flaws. None of them may be found, whatever trouble there was.
const (
	flawOverlap  Flaw = "overlap"  // two attempts of one task ran at the same time
	flawUnended  Flaw = "unended"  // a job goes on although all is well again
	flawLost     Flaw = "lost"     // its submitter knows nothing of a job that it accepted
	flawNoCause  Flaw = "no cause" // a task failed, was refused or cancelled, and nothing says why
	flawOutput   Flaw = "output"   // a task is done and its output is not at the submitter
	flawPromise  Flaw = "promise"  // what is said of a promise is not what became of it
	flawLeftOver Flaw = "leftover" // all has ended, and something is still held for it
	flawBack     Flaw = "back"     // a task went on from before its last checkpoint that counted
	flawMoved    Flaw = "moved"    // a task was moved on purpose and has lost more than it had to
	flawGrown    Flaw = "grown"    // all has ended, and a table is larger than before
	flawWrong    Flaw = "wrong"    // a result on which sites were to agree is not right
	flawAccused  Flaw = "accused"  // a site was outvoted that gives right results only
)

// Finding is a flaw that was found, and where.
type Finding struct {
	Flaw Flaw
	Site grid.SiteID // empty: no site in particular
	Job  grid.JobID  // empty: none in particular
	Text string
}

// String is one line.
func (f Finding) String() string {
	text := string(f.Flaw) + ":"
	if f.Job != "" {
		text += " job " + string(f.Job)
	}
	if f.Site != "" {
		text += " at " + string(f.Site)
	}
	return text + ": " + f.Text
}

// Truth tells an Oracle of a job what its submitter's user knows. A user names times by the
// submitter's wall clock: Start and Deadline are since the start if that clock is not set after
// the submission; 0 leaves one open.
type Truth struct {
	Run       time.Duration // of a task
	Start     time.Duration // the job is to begin then
	Deadline  time.Duration // the job is to have ended then
	Reserves  bool          // it runs nothing
	After     []grid.JobID  // it is called off with one of these, and bound to them
	MayRefuse bool          // no site need be able to take it, or to promise what it wants
	Mortal    bool          // its submitter's disk is lost or becomes an earlier one later
	Lease     time.Duration // the longest that it may be granted; 0: short ones only
	Settled   bool          // what sites offer does not change while a task of it moves
	Hangs     bool          // a sandbox may hang: it has begun, and nobody sees that it does nothing
	// Patience is for how much longer leases of it may be waited for: when a site's state was
	// lost, became an earlier one, or is on two machines, nobody knows that what it ran has ended.
	Patience time.Duration
}

// Oracle judges a world that it has watched in true time. Make it before the world, whose
// Config.Watch is its Watch.
type Oracle struct {
	jobs      map[grid.JobID]*judged
	order     []grid.JobID
	sizes     map[string]int // of the machines' tables before any job, by site and path
	cancelled map[grid.JobID]bool
}

// judged is a job that an Oracle follows.
type judged struct {
	Submission
	Truth

	submitted time.Duration
	sets      int              // how often its submitter's wall clock was set before
	named     time.Time        // the start on the wall clock, as it stood at the submission
	clock     func() time.Time // of its submitter
	ended     time.Duration    // 0: not yet
	accepted  map[uint32]bool  // tasks that some site has taken
}

// NewOracle makes an oracle for one world.
func NewOracle() *Oracle {
	return &Oracle{jobs: make(map[grid.JobID]*judged), cancelled: make(map[grid.JobID]bool)}
}

// Watch is a Config.Watch.
func (o *Oracle) Watch(s Sight) {
	if s.Kind != SightReported {
		return
	}
	j := o.jobs[s.Report.Attempt.Task.Job]
	if j == nil {
		return
	}
	switch event := s.Report.Event; {
	case event == "job_ended" && s.Broker:
		j.ended = s.At
	case event == "accepted" && s.Broker:
		j.accepted[s.Report.Attempt.Task.Index] = true
	}
}

// Begin notes how large the machines' tables are before there is any job.
func (o *Oracle) Begin(w *World) { o.sizes = w.sizes() }

// Submitted tells of a job that a submitter has accepted.
func (o *Oracle) Submitted(w *World, id grid.JobID, truth Truth) {
	i := slices.IndexFunc(w.trace.Submitted, func(s Submission) bool { return s.Job == id })
	if i < 0 {
		return
	}
	site := w.trace.Submitted[i].Site
	o.jobs[id] = &judged{
		Submission: w.trace.Submitted[i], Truth: truth, submitted: w.elapsed,
		accepted: make(map[uint32]bool), sets: len(w.hosts[site].clock.sets),
		named: w.Clock(site).Add(-w.elapsed), clock: func() time.Time { return w.Clock(site) },
	}
	o.order = append(o.order, id)
}

// Cancelled tells of a job that its user has called off.
func (o *Oracle) Cancelled(id grid.JobID) { o.cancelled[id] = true }

// slack is the time that a job may take after all is well again, besides its own.
const slack = 2 * time.Minute

// Judge says what went wrong in a world in which all is well since a time, and that has
// been left alone until now.
func (o *Oracle) Judge(w *World, well time.Duration) []Finding {
	findings := append(w.overlapping(), o.wentBack(w)...)
	findings = append(findings, o.movedBadly(w)...)
	for _, id := range o.order {
		findings = append(findings, o.judge(w, o.jobs[id], well)...)
	}
	left := well
	for _, id := range o.order {
		left = max(left, o.jobs[id].starts(w)+o.jobs[id].Run)
	}
	if o.over(w) && w.elapsed >= left+2*time.Hour {
		findings = append(findings, o.leftOver(w)...)
	}
	return findings
}

// over reports whether all jobs have ended, also for submitters with an earlier state.
func (o *Oracle) over(w *World) bool {
	return !slices.ContainsFunc(o.order, func(id grid.JobID) bool {
		s, known := w.Job(o.jobs[id].Site, id)
		return o.jobs[id].ended == 0 || known && s.Ended.IsZero()
	})
}

// starts is the true time at which the submitter's wall clock shows the job's start, as it stands
// now; 0 if it has none.
func (j *judged) starts(w *World) time.Duration {
	if j.Start == 0 {
		return 0
	}
	return w.elapsed + j.named.Add(j.Start).Sub(j.clock())
}

// due is when a job has to have ended at the latest.
func (o *Oracle) due(w *World, j *judged, well time.Duration) time.Duration {
	from := max(well, j.submitted, j.starts(w))
	for _, id := range j.After {
		if other := o.jobs[id]; other != nil {
			from = max(from, o.due(w, other, well))
		}
	}
	// All others may be before it, one after the other on the smallest site.
	work := time.Duration(0)
	for _, id := range o.order {
		other := o.jobs[id]
		work += other.Run * time.Duration(other.Count)
	}
	wait := j.Patience
	if j.Lease > 0 && w.ranWhereAllIsLost(j.Job) {
		wait = max(wait, j.Lease)
	}
	return from + slack + j.Run + work + wait
}

// ranWhereAllIsLost reports whether a job has run at a site that lost its disk or was given an
// earlier one: that site says nothing of it, and the job's lease may run until its end.
func (w *World) ranWhereAllIsLost(job grid.JobID) bool {
	return slices.ContainsFunc(w.trace.Intervals, func(i Interval) bool {
		return i.Attempt.Task.Job == job && w.hosts[i.Site].disk.restored > 0
	})
}

func (o *Oracle) judge(w *World, j *judged, well time.Duration) []Finding {
	found := func(flaw Flaw, format string, args ...any) []Finding {
		return []Finding{{flaw, j.Site, j.Job, fmt.Sprintf(format, args...)}}
	}
	h := w.hosts[j.Site]
	if h.broker == nil {
		return found(flawUnended, "its submitter is down")
	}
	s, known := w.Job(h.spec.ID, j.Job)
	switch due := o.due(w, j, well); {
	case !known && (j.Mortal || h.machine != j.Machine):
		return nil // it was handed to a machine whose state is gone
	case !known:
		return found(flawLost, "its submitter does not know it")
	case j.Mortal && s.Ended.IsZero():
		return nil // what was granted before is waited for, for as long as the longest lease
	case s.Ended.IsZero() && w.elapsed > due:
		return found(flawUnended, "it goes on at %s and was due at %s", w.elapsed, due)
	case s.Ended.IsZero():
		return nil
	case j.ended > due && !j.Mortal:
		return found(flawUnended, "it ended at %s and was due at %s", j.ended, due)
	}
	findings := o.judgeVotes(w, j, s)
	for _, t := range s.Tasks {
		findings = append(findings, o.judgeTask(h, j, t.Phase, t.Exit)...)
	}
	return append(findings, o.judgePromises(w, j, s.Tasks)...)
}

// judgeTask wants a cause for an end that is not done, and the outputs of one that is.
func (o *Oracle) judgeTask(
	h *host, j *judged, phase grid.Phase, exit *grid.Exit,
) []Finding {
	found := func(flaw Flaw, text string) []Finding {
		return []Finding{{flaw, j.Site, j.Job, text}}
	}
	switch {
	case phase == grid.PhaseDone:
		if missing := missingOutput(h, j, exit); missing != "" {
			return found(flawOutput, missing)
		}
	case phase == grid.PhaseCancelled && !o.calledOff(j):
		return found(flawNoCause, "it is cancelled")
	case phase == grid.PhaseRefused && (!j.MayRefuse || !explained(exit)):
		return found(flawNoCause, fmt.Sprintf("it is refused: %+v", exit))
	case phase == grid.PhaseFailed && (!j.MayRefuse || !explained(exit)):
		return found(flawNoCause, fmt.Sprintf("it failed: %+v", exit))
	}
	return nil
}

// explained reports whether an end says why its submitter has stopped the task. That a person is
// told once is not enough: an agent may be killed before it tells, and people ask later.
func explained(exit *grid.Exit) bool {
	return exit != nil && exit.Cause == grid.CauseStopped && exit.Text != ""
}

// missingOutput says what a task that is done did not bring to its submitter.
func missingOutput(h *host, j *judged, exit *grid.Exit) string {
	if j.Reserves {
		return ""
	}
	if exit == nil || len(exit.Outputs) == 0 {
		return "it is done without an output"
	}
	for _, cid := range exit.CIDs() {
		if _, here := h.disk.has(cid); !here {
			return "it is done, and " + string(cid) + " is not here"
		}
	}
	return ""
}

// calledOff reports whether a job was called off, or one that it comes after was or has
// not succeeded.
func (o *Oracle) calledOff(j *judged) bool {
	return o.cancelled[j.Job] || len(j.After) > 0
}

// mostOverlaps bounds what is told of them.
const mostOverlaps = 5

// overlapping finds the tasks of which two attempts ran at the same time.
func (w *World) overlapping() []Finding {
	runs := slices.Clone(w.trace.Intervals)
	task := func(i Interval) grid.TaskID { return w.original(i.Attempt.Task) }
	slices.SortStableFunc(runs, func(a, b Interval) int {
		return cmp.Or(task(a).Compare(task(b)), cmp.Compare(a.From, b.From))
	})
	var findings []Finding
	for i, a := range runs {
		for _, b := range runs[i+1:] {
			if task(b) != task(a) || a.To >= 0 && b.From >= a.To {
				break
			}
			if (a.Attempt != b.Attempt || a.Machine != b.Machine) && a.overlaps(b) {
				findings = append(findings, Finding{
					flawOverlap, b.Site, task(b).Job,
					fmt.Sprintf("%s at %s and %s here, from %s on", a.Attempt, a.Site, b.Attempt, b.From),
				})
				if len(findings) == mostOverlaps {
					return findings
				}
			}
		}
	}
	return findings
}

// leftOver finds what is held although all has ended.
func (o *Oracle) leftOver(w *World) []Finding {
	var findings []Finding
	add := func(h *host, format string, args ...any) {
		findings = append(findings,
			Finding{Flaw: flawLeftOver, Site: h.spec.ID, Text: fmt.Sprintf(format, args...)})
	}
	for _, id := range w.order {
		h := w.hosts[id]
		if !h.up {
			continue
		}
		// A Step, so that the machine sees what time it is.
		h.step(roleSite, step.HeldChanged{})
		s := h.site.Status()
		if held := h.site.Held(); held != (grid.Resources{}) {
			add(h, "capacity is held: %+v", held)
		}
		for _, a := range s.Attempts {
			add(h, "attempt %s is %s", a.ID, a.Phase)
		}
		for _, a := range sortedAttempts(h.attempts) {
			add(h, "a sandbox of %s", a)
		}
		for _, owner := range h.disk.owners() {
			if !h.keeps(owner) {
				add(h, "data is kept for %s", owner)
			}
		}
		if h.border != nil {
			there, here := h.border.Orders()
			for _, order := range slices.Concat(there, here) {
				add(h, "an order over a border: %+v", order)
			}
		}
		for _, t := range sortedTimers(h.timers) {
			if o.isAbout(t.key.ID) && t.key.Name != "forget" {
				add(h, "timer %s of %s is set", t.key.Name, t.key.ID)
			}
		}
	}
	return append(findings, o.grown(w)...)
}

// keeps reports whether a host still has a reason to keep data for an owner: a job of its
// own whose record is kept, also one whose user was never told of it.
func (h *host) keeps(owner string) bool {
	return slices.ContainsFunc(h.broker.Jobs(), func(id grid.JobID) bool {
		return owner == jobPin(id)
	})
}
