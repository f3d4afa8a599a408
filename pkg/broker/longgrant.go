package broker

import "time"

// What a restarted broker has to presume of the leases that were granted before. The wall
// clock may have been set meanwhile, and the configuration changed: neither is relied on.
//
// A grant of at most the configured lease has no note of its own. One fact covers them all:
// the longest promise of an earlier run that may still stand (run.covered). It is durable
// before the first such grant, and lowered when all of them have surely ended. A longer grant
// is noted with its task, as the time that was promised and where the machine's continuous
// clock stood. A run that reads the same clock knows exactly what is left. Any other waits
// for all that was promised, counted from its start, and never longer.

// longGrant is the note of a promise: nothing else of the task is started for so long from a
// moment on. Zero: there is none.
type longGrant struct {
	promised time.Duration // margin included
	at       reading       // when that was said
}

// reading is a position of a continuous clock.
type reading struct {
	of string // as step.Clock.Of
	at time.Duration
}

// reading reads the clock at the Step under way.
func (r *run) reading() reading {
	if r.clock.Of == "" {
		return reading{}
	}
	return reading{of: r.clock.Of, at: max(r.now.Sub(r.clock.Zero), 0)}
}

// left returns what is left of a promise now, at most all of it.
func (r *run) left(p longGrant) time.Duration {
	now := r.reading()
	if now.of == "" || now.of != p.at.of || now.at < p.at.at {
		return p.promised
	}
	return max(p.promised-(now.at-p.at.at), 0)
}

// cover makes sure that a restarted broker presumes at least a promise.
func (r *run) cover(promise time.Duration) {
	if promise > r.covered {
		r.setCovered(promise)
	}
}

func (r *run) setCovered(promise time.Duration) {
	r.covered = promise
	r.persist(factGrants, grantsLongest, grantsFact{LongestMS: roundUp(promise)})
}

// resumeCovered lowers what is covered as soon as the grants of the earlier runs have ended.
func (r *run) resumeCovered() {
	if r.covered > r.cfg.Lease+r.cfg.margin(r.cfg.Lease) {
		r.setTimer(timerCovered, "", r.now.Add(r.covered))
	}
}

// onCoveredTimer: what stands now was granted by this run.
func (r *run) onCoveredTimer() {
	own := r.cfg.Lease + r.cfg.margin(r.cfg.Lease)
	if r.covered > own && !r.now.Before(r.bootedAt.Add(r.covered)) {
		r.setCovered(own)
	}
}

// presume takes it that an attempt of an earlier run was granted its lease just before that
// ended, and that a longer one is left as noted.
func (r *run) presume(j *job, index uint32) {
	t := &j.tasks[index]
	own := j.traits.presumed + r.cfg.margin(j.traits.presumed)
	if r.cfg.NoBinding {
		t.leaseEnd = r.now.Add(own)
		return
	}
	t.leaseEnd = r.now.Add(max(own, r.covered, r.left(t.long)))
	if t.long.promised > 0 && t.long.at.of != r.clock.Of { // from now on it is known what is left
		t.long.at = r.reading()
		r.saveTask(j, index)
	}
}

// roundUp is a span in ms: what is written down is never shorter than what was promised.
func roundUp(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }
