package broker

import (
	"maps"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// rights says who may run what. Leases, fences and acknowledgements leave from here alone:
// an attempt with a lease may run, one that is fenced off may not, and an acknowledged
// end may be forgotten.
type rights struct {
	*run
	peers *peers
	jobs  *jobs
}

// grant makes the promise: until the lease's end on this clock, a margin
// included, the task is not awarded again. A promise that outlives what a
// restarted broker presumes anyway is durable before it is made.
//
// What another domain has ordered gets no lease that outlasts its own.
func (r rights) grant(to grid.SiteID, renewal uint64, attempts []grid.AttemptID, d time.Duration) {
	lengths := make(map[time.Duration][]grid.AttemptID, 1)
	for _, id := range attempts {
		long := d
		if j, t := r.jobs.current(to, id); t != nil {
			if long = j.under(&r.cfg, r.now, d); long == 0 {
				t.withheld()
				r.putOff(t, id)
				continue
			}
		}
		lengths[long] = append(lengths[long], id)
	}
	for _, long := range slices.Sorted(maps.Keys(lengths)) {
		r.lend(to, renewal, lengths[long], long)
	}
}

// lend is grant for attempts whose leases are equally long.
func (r rights) lend(to grid.SiteID, renewal uint64, attempts []grid.AttemptID, d time.Duration) {
	attempts = slices.DeleteFunc(slices.Clone(attempts), func(id grid.AttemptID) bool {
		j, t := r.jobs.task(id.Task)
		if j != nil && r.mayBeTwo(j, to) {
			r.putOff(t, id)
			return true
		}
		return j != nil && (j.isPresumed(r.now) || r.isAstray(t)) // another may hold a lease
	})
	if len(attempts) == 0 {
		return
	}
	promise := d + r.cfg.margin(d)
	if d <= r.cfg.Lease {
		r.cover(promise)
	}
	end := r.now.Add(promise)
	for _, id := range attempts {
		j, t := r.jobs.current(to, id)
		if t == nil {
			continue // only without fencing
		}
		r.bindLease(j, id.Task.Index)
		t.given(renewal, r.now, d > j.traits.first)
		if end.After(t.leaseEnd) { // a longer one that was granted before stands
			t.leaseEnd = end
			if d > r.cfg.Lease {
				t.long = longGrant{promised: promise, at: r.reading()}
				r.saveTask(j, id.Task.Index)
			}
		}
		r.setTimer(timerLease, id.String(), t.leaseEnd)
	}
	r.out.Send(to, protocol.Lease{Renewal: renewal, Attempts: attempts, Duration: d})
}

// toldWithin is the time, from its start, in which a run that reaches the other members has met
// one, and has been told if another run is the site; and in which another that it has overtaken
// has been told so.
const toldWithin = time.Second

// mayBeTwo reports whether a copy of this machine may run a job's tasks under this very site's
// identity: one that ran while this machine was down, and has not been told yet that it is the
// site no more. It knows the jobs of earlier runs. Where no member can be reached the wait ends
// nevertheless.
func (r rights) mayBeTwo(j *job, site grid.SiteID) bool {
	if site != r.cfg.Here || len(r.peers.sorted()) == 0 || !j.submitted.Before(r.bootedAt) {
		return false
	}
	since := r.now.Sub(r.bootedAt)
	return since < toldWithin || r.peers.noneMet() && since < r.cfg.BootGrace
}

// putOff lets an attempt wait that has no lease yet, and whose site asks again soon. One that was
// presumed while its task waited has no timer.
func (r rights) putOff(t *task, id grid.AttemptID) {
	t.leaseEnd = latest(t.leaseEnd, r.now.Add(r.cfg.Lease))
	r.setTimer(timerLease, id.String(), t.leaseEnd)
}

// fence stops what a site has of tasks, up to a token each.
func (r rights) fence(site grid.SiteID, below []grid.AttemptID) {
	r.out.Send(site, protocol.Fence{Below: below})
}

// fenceOf is the token below which the attempts of a task are to stop.
func (r rights) fenceOf(id grid.AttemptID) grid.AttemptID {
	below := above(id.Task, id.Token)
	if _, t := r.jobs.task(id.Task); t != nil && t.token > id.Token {
		below.Token = t.token
	}
	return below
}

// acknowledge tells a site that the end of an attempt was heard, and what it has left is
// here, or not wanted.
func (r rights) acknowledge(site grid.SiteID, id grid.AttemptID) {
	r.out.Send(site, protocol.ExitAck{Attempts: []grid.AttemptID{id}})
}

// above fences off all attempts of a task up to a token. The greatest number has no next.
func above(id grid.TaskID, token grid.Token) grid.AttemptID {
	return grid.AttemptID{Task: id, Token: max(token, token+1)}
}
