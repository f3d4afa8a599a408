package broker

import (
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// Two machines may work with one site's identity, because a state directory or a whole disk was
// copied. The driver hears the newer run alone. That the older one is not heard any more does not
// end what it runs: it may go on for as long as its leases. So a lease is bound to the line of
// runs that it was granted to. What a run of another line says of the attempt is not believed
// before that lease has ended, with one exception: an end of the job's own doing, which a copy
// can only know because it had come before it was copied.

// lines holds the line of runs that each site's present run belongs to, as it says itself.
type lines map[grid.SiteID]uint64

// note takes what a site says of its run. One that says nothing is of an earlier version.
func (l lines) note(site grid.SiteID, line uint64) {
	if line == 0 {
		delete(l, site)
		return
	}
	l[site] = line
}

// isAstray reports whether a task's attempt may be under way on another machine than the one
// that has its site's identity now.
func (r *run) isAstray(t *task) bool { return r.isAbandoned(t) && t.leaseEnd.After(r.now) }

// isAbandoned reports whether the line of runs that a task's attempt was granted to is not its
// site's any more. Such an attempt does not come back: nobody would hear of it.
func (r *run) isAbandoned(t *task) bool {
	now := r.lines[t.site]
	return t.line != 0 && now != 0 && t.line != now
}

// strays reports whether a site speaks of an attempt that may be under way on another machine
// with its identity.
func (r *run) strays(l *jobs, from grid.SiteID, id grid.AttemptID) bool {
	_, t := l.current(from, id)
	return t != nil && r.isAstray(t)
}

// doubtsEnd reports whether an end that a site tells is not believed. It is said again, and
// believed when the lease has ended.
func (r *run) doubtsEnd(l *jobs, from grid.SiteID, msg protocol.Exited) bool {
	return !msg.Exit.Cause.Final() && r.strays(l, from, msg.Attempt)
}

// bindLease notes the line of runs to which a lease of a task is about to be granted.
func (r *run) bindLease(j *job, index uint32) {
	if t := &j.tasks[index]; t.line != r.lines[t.site] {
		t.line = r.lines[t.site]
		r.saveTask(j, index)
	}
}
