package broker

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// A site that renews its leases shows that it lives, not that it works. So the submitter has
// a bound of its own for each phase of an attempt. No timer is needed for it: an attempt goes
// on only as long as its lease is renewed, and beyond its bound it is not.

// The bounds, as far as they do not follow from the job.
const (
	startGrace   = 10 * time.Minute // from when it could start, or more of its data has come
	queueGrace   = 2 * time.Hour    // the same where several sites queue it
	waitSlack    = 4                // times the wait that its site has quoted
	stagingFloor = 16 << 10         // bytes a second: data that comes more slowly does not count
	runSlack     = 10               // times the estimate, where the user has set no limit,
	runUnlimited = 24 * time.Hour   // and at least that
	runGrace     = time.Minute      // beyond the limit and a tenth of it: clocks differ
	frozenGrace  = 2 * time.Hour    // frozen in all; sites stop by themselves before
	maxOverruns  = 6                // from then on the bounds do not grow any more
)

// stint counts the time that an attempt has had under a lease: what passes from one request
// for it to the next counts for the phase that the attempt was in.
type stint struct {
	by    time.Time     // its start was quoted for then, with slack; zero: not known
	run   time.Duration // as its site has quoted it
	at    time.Time     // till when the time is counted; zero: it has had no lease
	since time.Time     // from when on it could start
	ran   time.Duration
	froze time.Duration
	over  bool // its bound has passed: it is fenced off, and gets no lease
}

// stintOf begins to count for an attempt with what its site has quoted. Parts start at a
// time that their submitter has named.
func stintOf(parts grid.Parts, together, now time.Time) stint {
	s := stint{by: now.Add(waitSlack * quotedWait(parts)), run: parts.Run}
	if together.After(s.by) {
		s.by = together
	}
	return s
}

func quotedWait(parts grid.Parts) time.Duration {
	return min(parts.Wait, grid.MaxRuntime) + min(parts.StageIn, grid.MaxRuntime)
}

// isStarting reports whether an attempt does not run yet. To compile its program is a part
// of that.
func (t *task) isStarting() bool {
	return t.phase < grid.PhaseRunning ||
		t.phase == grid.PhaseRunning && t.standing == grid.ReasonPreparing
}

// isHeldUp reports whether an attempt may not go on, as its site says: for its owner's sake,
// or because of what is promised to others.
func (t *task) isHeldUp() bool {
	return t.phase == grid.PhaseFrozen ||
		t.phase == grid.PhaseStaging && t.standing != grid.ReasonNone
}

// count adds the time since the attempt was last heard of.
func (t *task) count(now time.Time) {
	if t.at.IsZero() {
		t.at, t.since = now, now
		return
	}
	passed := now.Sub(t.at)
	t.at = now
	switch {
	case t.isHeldUp():
		t.froze, t.since = t.froze+passed, now
	case !t.isStarting():
		t.ran += passed
	}
}

// countOn goes on after a silence. What happened in it is not known: most likely the
// attempt was frozen.
func (t *task) countOn(now time.Time) { t.at, t.since = now, now }

// isOver reports whether an attempt has had its time.
func (p *peers) isOver(j *job, index uint32) bool {
	t := &j.tasks[index]
	return t.over || !p.cfg.NoBounds && !p.bound(j, index).After(p.now)
}

// leaseFor is the lease that an attempt is granted: a long one ends with its bound.
func (p *peers) leaseFor(j *job, index uint32) time.Duration {
	left := p.bound(j, index).Sub(p.now)
	return max(min(j.traits.granted(&j.tasks[index]), left), p.cfg.Lease)
}

// grows notes that a site has received more of a task's data.
func (p *peers) grows(site grid.SiteID) {
	if other, known := p.all[site]; known {
		other.grew = p.now
	}
}

// bound is when an attempt has had its time, if it goes on as it is.
func (p *peers) bound(j *job, index uint32) time.Time {
	t := &j.tasks[index]
	switch {
	case t.isHeldUp():
		return t.at.Add(frozenGrace - t.froze)
	case t.isStarting():
		return p.startBound(j, index)
	default:
		return t.at.Add(j.traits.runBound(t.run, t.overruns) - t.ran)
	}
}

// startBound is when an attempt should run: some time after its place in its site's plan has
// come, and after its site has last received more of the data of tasks from here.
func (p *peers) startBound(j *job, index uint32) time.Time {
	t := &j.tasks[index]
	from := t.since
	if other, known := p.all[t.site]; known {
		slowest := t.since.Add(stagingTime(j.bytesOf(index)))
		from = latest(from, earlier(other.grew, slowest))
	}
	grace := startGrace << min(t.overruns, maxOverruns)
	return latest(from, latest(t.by, j.traits.window.Earliest())).Add(grace)
}

// runBound limits for what time an attempt runs: for its limit, or if its user has set none, for
// much longer than is to be expected. Then it may be the estimate that is wrong, so the next
// attempt gets twice that time.
func (t *traits) runBound(quoted time.Duration, overruns int) time.Duration {
	limit := t.limit
	if limit == 0 {
		limit = runSlack * min(max(t.estimate, quoted), grid.MaxRuntime)
		limit = min(max(limit, runUnlimited), grid.MaxRuntime) << min(overruns, maxOverruns)
	}
	return min(limit, grid.MaxRuntime)*11/10 + runGrace
}

// stagingTime is the longest time in which so many bytes should have come.
func stagingTime(bytes int64) time.Duration {
	return time.Duration(min(bytes/stagingFloor, int64(grid.MaxRuntime/time.Second))) * time.Second
}

// bytesOf counts what a task needs.
func (e *enquiry) bytesOf(index uint32) int64 {
	bytes := e.spec.Spec.Module.Bytes
	for _, inputs := range [][]grid.Input{e.spec.Spec.Inputs, e.item(index).Inputs} {
		for _, in := range inputs {
			bytes += in.Bytes
		}
	}
	return bytes
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
