package play

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/store"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/sim"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// watcher goes through journals and notes what a simulation needs.
type watcher struct {
	o       *Observed
	begin   time.Time // of the first agent
	stones  milestones
	traffic traffic
	waits   waits
	running map[grid.AttemptID]*observedRun
	left    []leftOut
	err     error // the first thing that cannot be simulated
}

// observedRun is an attempt that runs, or is frozen while since is below 0.
type observedRun struct{ since, sum time.Duration }

// leftOut is something that a simulation does not do again.
type leftOut struct {
	at   time.Duration
	what string
}

func newWatcher(o *Observed, begin time.Time) *watcher {
	return &watcher{
		o: o, begin: begin, traffic: newTraffic(), waits: newWaits(),
		running: make(map[grid.AttemptID]*observedRun),
	}
}

// watched is a machine of which a journal is.
type watched struct {
	site   grid.SiteID
	broker bool
}

// watch goes through one machine's journal.
func (w *watcher) watch(
	id grid.SiteID, run store.Run, newMachine func(store.Header) (step.Machine, error),
) error {
	m := watched{site: id, broker: run.Machine == brokerMachine}
	result, err := store.Replay(run, newMachine, func(e store.Entry, effects []step.Effect) {
		w.step(m, e.Time.Sub(w.begin), e.Input, effects)
	})
	if err == nil && result.Divergence != nil {
		err = fmt.Errorf("another build wrote its journal: %s", result.Divergence)
	}
	return cmp.Or(err, w.err)
}

// step notes what a machine was told, then what it wanted done about that.
func (w *watcher) step(m watched, at time.Duration, in step.Input, effects []step.Effect) {
	w.hear(m, at, in)
	for _, e := range effects {
		w.want(m, at, e)
	}
	submit, is := in.(step.Submit)
	if !is {
		return
	}
	for _, e := range effects {
		reply, is := e.(step.Reply)
		if is && reply.Command == submit.Command && reply.Err == nil {
			w.err = cmp.Or(w.err, simulable(submit.Job))
			w.o.jobs = append(w.o.jobs, observedJob{at: at, by: m.site, id: reply.Job, in: submit})
		}
	}
}

// hear notes an input.
func (w *watcher) hear(m watched, at time.Duration, in step.Input) {
	switch in := in.(type) {
	case step.MessageReceived:
		w.traffic.received(in.From, m, in.Message, at)
	case step.Staged:
		what := waitStage
		if in.Bytes > 0 {
			what = waitFetch
		}
		w.waits.over(what, in.Attempt, at)
	case step.AttemptStarted:
		if !in.Preparing {
			w.waits.over(waitStart, in.Attempt, at)
			w.running[in.Attempt] = &observedRun{since: at}
		}
	case step.AttemptFrozen:
		w.pause(in.Attempt, at)
	case step.AttemptResumed:
		w.proceed(in.Attempt, at)
	case step.AttemptExited:
		w.exit(in, at)
	case step.Collected:
		w.waits.over(waitCollect, in.Attempt, at)
	default:
		w.hearOutside(m, at, in)
	}
}

// hearOutside notes what no message and no effect brought about.
func (w *watcher) hearOutside(m watched, at time.Duration, in step.Input) {
	switch in := in.(type) {
	case step.Boot, step.TimerFired, step.HeldChanged, step.StageProgress, step.Verified,
		step.Archived, step.Submit: // the simulator's own business, or noted elsewhere
	case step.PeerSeen:
		if in.Skew.Abs() > clocksApart {
			w.err = cmp.Or(w.err, fmt.Errorf("%w: its clock and the one of %s are %s apart",
				ErrNotSimulated, cmp.Or(in.Name, string(in.Site)), in.Skew.Abs()))
		}
	case step.Pause:
		if !in.Until.IsZero() {
			in.Until = w.inSimulation(in.Until)
		}
		w.outside(m, at, in)
	case step.AvailabilityLearned:
		in.Up, in.Free = w.inSimulation(in.Up), w.inSimulation(in.Free)
		w.outside(m, at, in)
	case step.BandwidthMeasured, step.CapacityChanged, step.PlanningChanged, step.TermsChanged,
		step.OwnerBusy, step.OwnerAway, step.Resume, step.BansChanged:
		w.outside(m, at, in)
	default:
		what := strings.TrimPrefix(fmt.Sprintf("%T", in), "step.")
		w.left = append(w.left, leftOut{at, what})
	}
}

// clocksApart is the most that two sites' clocks may differ by: lags are told by both.
const clocksApart = time.Second

// inSimulation is a time as a simulation has it.
func (w *watcher) inSimulation(at time.Time) time.Time { return sim.Epoch().Add(at.Sub(w.begin)) }

func (w *watcher) outside(m watched, at time.Duration, in step.Input) {
	w.o.outside = append(w.o.outside, outsideInput{at, m.site, m.broker, in})
}

func (w *watcher) pause(id grid.AttemptID, at time.Duration) {
	if r := w.running[id]; r != nil && r.since >= 0 {
		r.sum += at - r.since
		r.since = -1
	}
}

func (w *watcher) proceed(id grid.AttemptID, at time.Duration) {
	if r := w.running[id]; r != nil {
		r.since = at
	}
}

// exit notes an end that counts. One of the sandbox's doing sends the task elsewhere.
func (w *watcher) exit(in step.AttemptExited, at time.Duration) {
	w.pause(in.Attempt, at)
	if r := w.running[in.Attempt]; r != nil && in.Exit.Cause.Final() {
		w.o.ends[in.Attempt.Task] = observedEnd{ran: r.sum, exit: in.Exit}
	}
	delete(w.running, in.Attempt)
}

// want notes an effect.
func (w *watcher) want(m watched, at time.Duration, e step.Effect) {
	switch e := e.(type) {
	case step.Send:
		w.traffic.sent(m.site, e.To, e.Message, at)
	case step.Broadcast:
		for _, s := range w.o.sites {
			w.traffic.sent(m.site, s.id, e.Message, at)
		}
	case step.Stage:
		w.waits.begin(e.Attempt, at)
	case step.StartAttempt:
		w.waits.begin(e.Attempt, at)
	case step.Collect:
		w.waits.begin(e.Attempt, at)
	case step.Report:
		w.stones.note(m.site, m.broker, at, e)
	}
}

// finish puts everything in order and works out the lags.
func (w *watcher) finish() {
	o := w.o
	slices.SortStableFunc(o.jobs, func(a, b observedJob) int { return cmp.Compare(a.at, b.at) })
	slices.SortStableFunc(o.outside, func(a, b outsideInput) int {
		return cmp.Compare(a.at, b.at)
	})
	var ids []grid.JobID
	for _, j := range o.jobs {
		ids = append(ids, j.id)
	}
	o.Courses = w.stones.courses(o, ids)
	last := lastEnd(o.Courses)
	o.outside = slices.DeleteFunc(o.outside, func(in outsideInput) bool { return in.at > last })
	left := make(map[string]int)
	for _, l := range w.left {
		if l.at <= last { // afterwards the agents end
			left[l.what]++
		}
	}
	for _, what := range slices.Sorted(maps.Keys(left)) {
		o.Notes = append(o.Notes, fmt.Sprintf("not simulated: %d times %s", left[what], what))
	}
	o.Lags = measure(w.traffic, w.waits)
	if n := o.Lags.strays; n > 0 {
		note := fmt.Sprintf("%d messages came of which no journal has the sender", n)
		o.Notes = append(o.Notes, note)
	}
}
