package broker

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// traits holds what the broker has to know about a job's kind. Only this file reads it from
// the submitted template; all other code asks for the trait it needs, so that a further
// kind of job is a further line here.
type traits struct {
	// lease is the time that a site may run an attempt without hearing from here. One that is
	// longer than what a restarted broker presumes is written down before it is granted. It is
	// granted when the site is known to hold the lease before it; first is the one before all
	// others, so that one that gets lost is soon over.
	lease, first time.Duration
	// presumed is the lease that an attempt is taken to have after a restart of this broker:
	// it may have been granted just before.
	presumed time.Duration
	// within names a reservation: only the sites that hold its places are asked. Empty:
	// all sites are.
	within grid.JobID
	// window is when the job may run, on the machine's clock: what the user has named is a time
	// on the wall clock, and moves when that is set. lastStart is from when on no site is looked
	// for, the zero time: there is no such time.
	window    grid.Window
	lastStart time.Time
	// firm: the job is awarded to offers only that their sites hold for it.
	firm bool
	// promise: that a site accepts a task is a promise to the user. It is shown with how
	// likely it is kept, and to lose it is a failure, not a refusal.
	promise bool
	// passive: nothing runs in it, it only takes up a place. A site that has died keeps it
	// until its lease ends: it is there again when its agent is.
	passive bool
	// whole: its tasks start together or not at all, so that the capacity of a single site
	// that has just come says little.
	whole bool
	// unsaved: no checkpoints of its tasks count. Parts that run together would have to be saved
	// together.
	unsaved bool
	// limit bounds the running time of a task, frozen time left out; 0: the user has said none.
	// estimate is the running time that the user expects.
	limit    time.Duration
	estimate time.Duration
	// probe: nothing is placed, so sites keep nothing of it. All are asked and are to say why they
	// refuse, however many they are.
	probe bool
	// home: its tasks stay in this domain. What was promised, and what belongs together, does.
	home bool
	// encrypted: only sites that open its content are awarded, and get its key.
	encrypted bool
	// copies says how often each task runs, and what has to agree.
	copies grid.Redundancy
}

func traitsOf(job grid.Job, cfg *Config) traits {
	spec := job.Spec
	t := traits{
		lease: cfg.Lease, first: cfg.Lease, presumed: cfg.Lease,
		within: spec.Reservation, limit: spec.TimeLimit, estimate: spec.Runtime,
		passive: spec.Kind == grid.KindReservation, whole: job.Split != grid.SplitNone,
		copies: job.Redundancy, encrypted: spec.Encrypted,
	}
	t.unsaved = t.passive || t.whole || spec.Checkpoint.Off
	t.promise = t.passive || spec.Window.Promised()
	t.firm = t.promise || t.whole
	t.home = t.firm || t.bound() || job.Flood || job.Redundancy != grid.Redundancy{} ||
		spec.Window != grid.Window{} || spec.Encrypted
	t.moveWindow(spec.Window, 0)
	switch {
	case t.passive:
		t.limit = spec.Runtime
		// its site may have to start again, too
		t.lease, t.first, t.presumed = cfg.ReservationLease, cfg.ReservationLease, cfg.ReservationLease
	case t.whole: // parts that may run on alone would keep the others from starting anew
	case spec.Unattended == grid.UnattendedFinish:
		t.lease = cfg.LongLease
	}
	return t
}

// moveWindow follows a wall clock that is ahead of the machine's clock by so much.
func (t *traits) moveWindow(named grid.Window, ahead time.Duration) {
	t.window = named.Shift(-ahead)
	t.lastStart = t.window.Deadline
	if !t.window.At.IsZero() {
		t.lastStart = t.window.At
	}
}

// isOutside reports whether a place that begins at a time and takes so long is by more than
// slack not where the window wants it.
func (t *traits) isOutside(at time.Time, run, slack time.Duration) bool {
	w := t.window
	switch {
	case !w.At.IsZero():
		return at.Sub(w.At).Abs() > slack
	case !w.NotBefore.IsZero() && w.NotBefore.Sub(at) > slack:
		return true
	default:
		return !w.Deadline.IsZero() && at.Add(run).Sub(w.Deadline) > slack
	}
}

// granted is the lease that an attempt gets now.
func (t *traits) granted(h *task) time.Duration {
	if h.holds {
		return t.lease
	}
	return t.first
}

// bound reports whether the job runs inside a reservation.
func (t *traits) bound() bool { return t.within != "" }

// over reports whether it makes no sense to look for a site any more.
func (t *traits) over(now time.Time) bool {
	return !t.lastStart.IsZero() && !now.Before(t.lastStart)
}
