package site

import (
	"math"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/ckpt"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// What the intervals between checkpoints are worked out from, and their limits.
const (
	firstSaveCost = time.Second // of a checkpoint before one was measured
	leastSaveCost = 10 * time.Millisecond
	leastInterval = 10 * time.Second // unless the job's owner asks for less
	mostInterval  = 6 * time.Hour
	mostMTBF      = 30 * 24 * time.Hour // of a site that never failed: it may, nevertheless
	leastMTBF     = time.Minute
)

// saveInterval is the time from one checkpoint of an attempt to the next: the one that costs least
// at the rate at which this site is expected to be lost (Daly 2006), or what its job's owner says.
// The latter bounds the work that a loss repeats, also while the next checkpoint does not count
// yet: it is asked for so much earlier.
func (m *Machine) saveInterval(a *attempt) time.Duration {
	rule, s := a.task.Checkpoint, &a.saving
	switch {
	case rule.Rule == grid.SaveMFCA && s.interval > 0:
		return s.interval
	case rule.Every > 0:
		return rule.Every - s.countsWithin(rule.Every)
	}
	return bestInterval(s.cost, mtbf(m.up(time.Hour)))
}

// countsWithin is the time that is left for the next checkpoint until it counts: twice that of the
// slowest of the latest ones, which are forgotten by and by, as it may be slower. It is no more
// than half of an interval, so that a slow link does not have a program save all the time.
func (s *saving) countsWithin(every time.Duration) time.Duration {
	expected := 2 * s.counts
	if expected == 0 {
		expected = firstSaveCost
	}
	return min(expected, every/2)
}

// bestInterval is the one of a checkpoint's cost, 0 = not measured yet, and a mean time between
// failures, within limits.
func bestInterval(cost, mtbf time.Duration) time.Duration {
	if cost == 0 {
		cost = firstSaveCost
	}
	best, err := ckpt.Daly(max(cost, leastSaveCost).Seconds(), mtbf.Seconds())
	if err != nil { // both are above 0
		return mostInterval
	}
	span := time.Duration(min(best, mostInterval.Seconds()) * float64(time.Second))
	return max(span, leastInterval)
}

// mtbf is the mean time until a site is lost to a job that stays for an hour with this
// probability, if it is lost at all times as likely as in that hour: e^(-h/M).
func mtbf(hour float64) time.Duration {
	if !(hour > 0) {
		return leastMTBF
	}
	hours := -1 / math.Log(min(hour, 1))
	if !(hours < mostMTBF.Hours()) || hours < 0 {
		return mostMTBF
	}
	return max(time.Duration(hours*float64(time.Hour)), leastMTBF)
}

// leavesOut reports whether the checkpoint that is due is left out: under LFCA on a site that has
// been up for longer than the task runs, but not too often in a row. (FIBR paper, 3.2)
func (m *Machine) leavesOut(a *attempt) bool {
	s := &a.saving
	if a.task.Checkpoint.Rule != grid.SaveLFCA || m.isToLeave(a) {
		return false
	}
	rule := ckpt.LFCA{
		ExecutionSeconds: a.estimate.Seconds(),
		MaxOmissions:     ckpt.DefaultMaxOmissions, Omissions: s.left,
	}
	decision, err := rule.Request(m.upFor().Seconds()) // the last failure was when the site came up
	s.left = rule.Omissions
	if err != nil || decision != ckpt.Omit {
		return false
	}
	r := about(a.id, a.submitter)
	r.Value = float64(s.left)
	m.out.Report(step.LevelDebug, eventSaveLeftOut, r)
	return true
}

// How MFCA adapts, for what the FIBR paper does not say: as in docs/evaluation.md.
const (
	mfcaGrowth = .25 // alpha, the part of the run time up to which the interval grows
	mfcaStep   = .5  // of the interval that the job's owner names
)

// adapt works out the interval after a checkpoint that counts: under MFCA it grows while what is
// left of the task is short beside the time between this site's failures. (FIBR paper, 3.3)
func (m *Machine) adapt(a *attempt) {
	s, every := &a.saving, a.task.Checkpoint.Every
	if a.task.Checkpoint.Rule != grid.SaveMFCA {
		return
	}
	if s.interval == 0 {
		s.interval = every
	}
	cost := max(s.cost, leastSaveCost)
	rule := ckpt.MFCA{
		ExecutionSeconds: a.estimate.Seconds(), GrowthLimit: mfcaGrowth,
		StepSeconds: mfcaStep * every.Seconds(), CostSeconds: cost.Seconds(),
		MinSeconds: max(2*cost, grid.MinSaving).Seconds(),
	}
	left := max(a.estimate-s.base-s.runTime(m.now), 0)
	next, err := rule.Next(s.interval.Seconds(), left.Seconds(), mtbf(m.up(time.Hour)).Seconds())
	if err != nil { // nothing above is out of range
		return
	}
	s.interval = time.Duration(min(next, grid.MaxSaving.Seconds()) * float64(time.Second))
}
