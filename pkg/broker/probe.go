package broker

import (
	"maps"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// probe is an enquiry alone: offers are asked for and nothing is placed. Probes have a
// table of their own, so that what places, keeps and ends jobs never meets one.
type probe struct {
	*job
	command uint64 // to be answered when its round closes
	// seeks is the job that it seeks sites for, and tasks are those that are to move there; empty:
	// it is its user's.
	seeks grid.JobID
	tasks []uint32
}

// probes is the table of those that are kept.
type probes map[grid.JobID]*probe

func (p probes) ids() []grid.JobID { return slices.Sorted(maps.Keys(p)) }

// What is kept of probes that were answered.
const (
	probeKept   = 10 * time.Minute
	maxAnswered = 64
)

// open counts those that are not answered yet.
func (p probes) open() int {
	open := 0
	for _, id := range p.ids() {
		if p[id].ended.IsZero() {
			open++
		}
	}
	return open
}

// makeRoom drops the probe that was answered first when many are kept.
func (p probes) makeRoom(r *run) {
	if len(p)-p.open() < maxAnswered {
		return
	}
	var first *probe
	for _, id := range p.ids() {
		if at := p[id].ended; !at.IsZero() && (first == nil || at.Before(first.ended)) {
			first = p[id]
		}
	}
	p.drop(r, first.id)
}

// drop forgets a probe before its time is over.
func (p probes) drop(r *run, id grid.JobID) {
	r.stopTimer(timerForget, string(id))
	delete(p, id)
}

// onForgetTimer drops a probe whose time is over.
func (p probes) onForgetTimer(id grid.JobID) { delete(p, id) }

// endProbe answers a probe whose round is over. The sites need not be told: none keeps anything of
// it.
func (h herald) endProbe(p *probe) {
	p.open, p.waiting, p.ended = 0, nil, h.now
	if p.seeks == "" {
		h.out.Emit(step.Reply{Command: p.command, Job: p.id})
	}
	h.setTimer(timerForget, string(p.id), h.now.Add(probeKept))
}
