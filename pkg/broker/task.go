package broker

import (
	"fmt"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// task is one task of a job.
type task struct {
	phase grid.Phase // changed by move alone
	attempt
	// rivals are its attempts while several sites queue it, ascending by token. None of them
	// holds a lease. The first stands for the task: its token and site are in attempt.
	rivals []rival
	top    grid.Token // highest ever given out, where that is not the latest attempt's
	silence
	record
	savings
	result
	pledge
	heir heir // while attempts are presumed that this state does not know of
	copying
}

// attempt is one try of a task at one site: the latest one.
type attempt struct {
	token     grid.Token // 0 = none yet
	site      grid.SiteID
	distance  float64 // at which it was awarded
	awardedAt time.Time
	// leaseEnd is a promise: nothing else of the task may be started before, whatever becomes
	// of the site, unless the site itself says that the attempt has ended. It contains the
	// margin for the two clocks' drift. Zero: no lease was granted.
	leaseEnd  time.Time
	long      longGrant   // what a restart has to know of it
	line      uint64      // the line of its site's runs to which it was granted; 0: not known
	startedAt time.Time   // first heard to run
	startDue  time.Time   // the fixed start that it had; zero: as the job has it, no clock was set
	startsAt  time.Time   // staging: when its place in the site's plan begins; zero: not known
	heardPlan time.Time   // when that was last said
	done      int64       // bytes staged
	total     int64       // bytes to stage
	standing  grid.Reason // why it does not run, as its site says
	blamed    bool        // a fault of it was counted, so nothing else of it counts
	stint                 // the time that it has had
	arrival
	moving moving // to another site, on purpose
	leave  leave  // by the domain's controller
}

// silence says whether the latest attempt is heard of.
type silence struct {
	// silent: the attempt was given up because its site said nothing. Until another one is
	// awarded it may come back: nothing else was started, so it may run on.
	silent bool
	// away is when its site had been silent for a lease; zero: that is not so, or the site is
	// known to be dead. The task moves only to sites that have offered since: when it is this
	// site that is cut off, runner-ups from before are out of reach as well.
	away time.Time
}

// record holds the failures so far.
type record struct {
	failures     int           // attempts that came to nothing, perhaps of the job's own doing
	reruns       uint32        // attempts that failed by the job's own doing, and were not the last
	losses       int           // attempts that came to nothing because of their sites
	overruns     int           // of these, attempts whose bound has passed
	rest         time.Time     // it is not placed again before
	failed       []grid.SiteID // sites that failed it, latest last; at most maxFailed
	roundsFailed int           // awards since the last failure that found no site
	tries        []Try         // finished attempts; at most maxTries, latest last
}

// result says how the task ended.
type result struct {
	exit      *grid.Exit
	collectBy time.Time // when fetching the outputs is given up
	doubt     doubt
}

const (
	maxFailed = 8
	maxTries  = 16
)

// move changes a task's phase.
func (t *task) move(to grid.Phase) { t.phase = to }

// active reports whether a site is believed to have the task.
func (t *task) active() bool { return t.phase >= grid.PhaseAwarded && t.phase <= grid.PhaseFrozen }

// isSettled reports whether a site has accepted the task, which has not begun and goes nowhere.
func (t *task) isSettled() bool {
	return t.phase == grid.PhaseStaging && !t.queued() && t.moving.stage == moveNone
}

// isOverLease reports whether an attempt is the task's, at one site, and its last lease has ended.
// There may be no task.
func (t *task) isOverLease(id grid.AttemptID, now time.Time) bool {
	return t != nil && t.token == id.Token && t.active() && !t.leaseEnd.After(now) && !t.queued()
}

// hasBegun reports whether a site has the task, or may have it.
func (t *task) hasBegun() bool { return !t.phase.Ended() && (!t.isWaiting() || t.returnable()) }

// isWaiting reports whether the task has no site.
func (t *task) isWaiting() bool { return t.phase == grid.PhaseWaiting }

// queued reports whether several sites queue the task.
func (t *task) queued() bool { return len(t.rivals) > 0 }

// unanswered reports whether the award of the task is not answered. One that an earlier
// run of this machine has sent may have been: it is presumed to have a lease.
func (t *task) unanswered() bool { return t.phase == grid.PhaseAwarded && t.leaseEnd.IsZero() }

// returnable reports whether the latest attempt was given up and may still come back.
func (t *task) returnable() bool {
	return t.phase == grid.PhaseWaiting && t.token > 0 && t.silent
}

// nextToken is above all that were ever given out for the task: by this run, by those that
// this state knows of, and by those of which it was lost.
func (r *run) nextToken(t *task) grid.Token {
	last := max(t.token, t.top)
	return max(last+1, grid.TokenOf(max(r.incarnation, 1)-1, last.Number()+1))
}

// isBefore reports whether a token is above all that are known to have been given out.
func (t *task) isBefore(token grid.Token) bool { return token > max(t.token, t.top) }

// failedAt reports whether a site has failed the task, as far as is remembered.
func (t *task) failedAt(site grid.SiteID) bool { return slices.Contains(t.failed, site) }

// remember notes a site that failed the task.
func (t *task) remember(site grid.SiteID) {
	t.failed = slices.DeleteFunc(t.failed, func(s grid.SiteID) bool { return s == site })
	t.failed = append(t.failed, site)
	if len(t.failed) > maxFailed {
		t.failed = slices.Delete(t.failed, 0, 1)
	}
}

// freeLosses counts the lost attempts after which a task does not rest yet: sites come and go.
const freeLosses = 4

// lose notes that an attempt has come to nothing because of its site. What it has computed
// may still come.
func (t *task) lose(why string, cfg *Config, now time.Time) {
	t.log(why, now)
	t.tries[len(t.tries)-1].Lost = !t.leaseEnd.IsZero()
	t.remember(t.site)
	t.rests(cfg, now)
}

// rests lets a task that is lost again and again wait longer and longer: it may be the task
// that brings its sites down.
func (t *task) rests(cfg *Config, now time.Time) {
	if t.losses++; t.losses > freeLosses {
		pause := cfg.BackoffMin << min(t.losses-freeLosses, 16)
		t.rest = now.Add(min(pause, cfg.BackoffMax))
	}
}

// isResting reports whether the task is not to be placed yet.
func (t *task) isResting(now time.Time) bool { return t.rest.After(now) }

// awaitsLease reports whether the task waits, and nothing but the lease of its silent attempt keeps
// it from being awarded: others may hold a place for it meanwhile.
func (t *task) awaitsLease(now time.Time) bool {
	return t.returnable() && t.isResting(now) && !t.rest.After(t.leaseEnd)
}

// log notes how an attempt ended.
func (t *task) log(outcome string, now time.Time) {
	t.tries = append(t.tries, Try{
		Token: t.token, Site: t.site, Distance: t.distance, AwardedAt: t.awardedAt,
		StartedAt: t.startedAt, EndedAt: now, Outcome: outcome, Blamed: t.blamed,
	})
	if len(t.tries) > maxTries {
		t.tries = slices.Delete(t.tries, 0, 1)
	}
}

// check verifies what must hold of every task.
func (t *task) check(index int) error {
	if t.active() && (t.token == 0 || t.site == "") {
		return fmt.Errorf("task %d is %s without an attempt", index, t.phase)
	}
	if t.phase.Ended() && !t.leaseEnd.IsZero() {
		return fmt.Errorf("task %d has ended and holds a lease", index)
	}
	return t.checkRivals(index)
}

// rival is an attempt of a task that several sites queue at the same time. None of
// them holds a lease, so that any of them can be given up at any time. The first
// that asks becomes the task's attempt, and the others are fenced off.
type rival struct {
	token    grid.Token
	site     grid.SiteID
	offer    uint64 // that it took
	quoted   float64
	distance float64
	accepted bool // its site said so to this run
	stint         // what its site has quoted
}

// stand makes one of its rivals stand for the task: its token is the one below
// which attempts are fenced off, its site the one that is shown.
func (t *task) stand(r rival) {
	t.token, t.site, t.distance, t.arrival = r.token, r.site, r.distance, arrival{}
}

// rivalAt returns the index of an attempt of a site among the task's rivals; -1: it is none.
func (t *task) rivalAt(site grid.SiteID, token grid.Token) int {
	return slices.IndexFunc(t.rivals, func(r rival) bool { return r.token == token && r.site == site })
}

// meets reports whether a rival is at the same site as one before it, or out of order.
func (r rival) meets(before []rival) bool {
	return slices.ContainsFunc(before, func(o rival) bool {
		return o.site == r.site || o.token >= r.token
	})
}

// Try is one finished attempt of a task.
type Try struct {
	Token     grid.Token
	Site      grid.SiteID
	Domain    grid.DomainID `json:",omitempty"` // shown, not stored: see TaskState
	Distance  float64
	AwardedAt time.Time
	StartedAt time.Time // zero: was not heard to run
	EndedAt   time.Time
	Outcome   string // for people
	Lost      bool   `json:",omitempty"` // its end was not heard: a result of it still counts
	Blamed    bool   `json:",omitempty"` // it was counted as a fault of its site
}

// triesOnWall is a list with the wall clock's times, which is ahead by so much.
func triesOnWall(tries []Try, ahead time.Duration) []Try {
	if ahead == 0 {
		return tries
	}
	tries = slices.Clone(tries)
	for i := range tries {
		t := &tries[i]
		t.AwardedAt, t.StartedAt = onWall(t.AwardedAt, ahead), onWall(t.StartedAt, ahead)
		t.EndedAt = onWall(t.EndedAt, ahead)
	}
	return tries
}

// checkRivals verifies that rivals are apart, in order and without a lease.
func (t *task) checkRivals(index int) error {
	if !t.queued() {
		return nil
	}
	if t.phase != grid.PhaseAwarded && t.phase != grid.PhaseStaging || !t.leaseEnd.IsZero() {
		return fmt.Errorf("task %d is %s, or has a lease, and %d sites queue it",
			index, t.phase, len(t.rivals))
	}
	for i, r := range t.rivals {
		if r.token > t.top || r.site == "" || r.meets(t.rivals[:i]) {
			return fmt.Errorf("task %d: rival %d is out of order: %+v", index, i, t.rivals)
		}
	}
	if t.token != t.rivals[0].token || t.site != t.rivals[0].site {
		return fmt.Errorf("task %d: %d at %s stands for its rivals %+v", index, t.token, t.site, t.rivals)
	}
	return nil
}
