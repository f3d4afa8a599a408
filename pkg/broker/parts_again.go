package broker

import (
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// unseated ends a job of which a part was tried too often, and otherwise takes back all
// parts: they are one job, and what is left of it waits for a part that is gone. Those that
// may run are fenced off, those that have ended are to run again. They are placed together
// when no lease of theirs can run any more.
func (s *together) unseated(d desk, index uint32) {
	j := d.j
	switch {
	case j.tasks[index].phase.Ended():
		if j.open > 0 {
			d.withdraw("another part was given up")
		}
	case len(j.waiting) == 0 || len(j.waiting) == len(j.tasks):
	case j.any(func(t *task) bool { return t.phase.Ended() && t.phase != grid.PhaseDone }):
		d.withdraw("another part has failed")
	default:
		s.regroup(d)
	}
}

// regroup lets all parts wait.
func (s *together) regroup(d desk) {
	accepted := d.j.any(func(t *task) bool { return t.accepted })
	fences := make(map[grid.SiteID][]grid.AttemptID)
	for i := range d.j.tasks {
		t := &d.j.tasks[i]
		if t.active() {
			fences[t.site] = append(fences[t.site], above(d.j.taskID(uint32(i)), t.token))
		}
		s.takeBack(d, uint32(i))
		t.accepted, t.roundsFailed = accepted, 0
		d.save(uint32(i))
	}
	d.j.placed, s.asked = false, nil
	for _, site := range sortedSites(fences) {
		for below := range slices.Chunk(fences[site], protocol.MaxAttempts) {
			d.fence(site, below)
		}
	}
	d.report(step.LevelWarn, eventRegrouped, step.Report{Attempt: d.j.about(), Site: d.cfg().Here})
}

// takeBack makes one part wait.
func (s *together) takeBack(d desk, index uint32) {
	const why = "stopped: another part was lost"
	t := &d.j.tasks[index]
	id := d.j.attempt(index)
	switch {
	case t.active():
		d.stopTimer(timerLease, id.String())
		t.log(why, d.now())
		if t.leaseEnd.After(d.j.rest) {
			d.j.rest = t.leaseEnd
		}
	case t.phase == grid.PhaseCollecting:
		d.stopTimer(timerCollect, id.String())
		t.log(why, d.now())
		d.acknowledge(t.site, id)
	case t.phase == grid.PhaseDone:
		d.j.reopen()
		d.drop(t.exit.CIDs())
	}
	d.j.wait(index)
	t.result, t.silence, t.startsAt = result{}, silence{}, timeZero
}

// resume: an earlier run may have taken parts back, and granted leases before.
func (s *together) resume(d desk) {
	if !d.j.placedAny() || len(d.j.waiting) == 0 {
		return
	}
	d.j.rest = d.now().Add(d.cfg().Lease + d.cfg().margin(d.cfg().Lease))
	for i := range d.j.tasks {
		if end := d.j.tasks[i].leaseEnd; end.After(d.j.rest) {
			d.j.rest = end
		}
	}
}
