package broker

import (
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// strategy is a way of placing a job: what to do with the offers, and with what sites say
// to it. A job has one for its life. The core owns the tasks' lives and never asks which it
// is; a strategy sees the core through its desk, asks nobody for offers and ends nothing.
type strategy interface {
	// place awards what the offers allow, or asks sites to hold them, and says what is to
	// become of tasks that still wait.
	place(d desk, on occasion) verdict
	// answered takes what a site says, before the core does, and reports whether it was an
	// answer to something that only the strategy knows: a request to hold an offer, or one
	// of several attempts of a task. No message: the site is gone.
	answered(d desk, from grid.SiteID, msg protocol.Message) (mine bool)
	// claimed reports whether an attempt that is the task's latest may have its lease now.
	claimed(d desk, c claim) bool
	// unseated follows that a task has lost its site; it waits again, or has been given up.
	unseated(d desk, index uint32)
	// released lets go of what is held for the job: it is not wanted any more.
	released(d desk, why releaseReason)
	// woken follows what concerns the job as a whole: a restart, a timer, a site that came.
	woken(d desk, w wake)
}

// occasion is why a job is to be placed now.
type occasion struct {
	why   placeReason
	round *round // roundOver: the one that is over
}

type placeReason uint8

const (
	roundOver placeReason = iota // all sites have answered, or had the time to
	lateOffer                    // an offer has come after its round
	declined                     // a site does not take what it was awarded
	lost                         // an attempt has come to nothing; all sites are asked again, too
)

// claim is a request for a lease.
type claim struct {
	from    grid.SiteID
	renewal uint64
	id      grid.AttemptID
	first   bool // the site has just accepted the attempt
}

type releaseReason uint8

const (
	jobEnded   releaseReason = iota // the sites are told that with the job's end
	windowOver                      // it is too late for what was to be placed
	heardAgain                      // the task speaks after all, see returnable
)

// wake is why a strategy is woken.
type wake struct {
	why   wakeReason
	site  grid.SiteID // wakeSiteSeen, wakeSiteRefuses
	index uint32      // wakeRivals, wakeResumed: the task
}

type wakeReason uint8

const (
	wakeBooted   wakeReason = iota // an earlier run has begun with the job
	wakeResumed                    // the same for a task that several sites queue
	wakeGranted                    // leases that were asked for are granted
	wakeHoldOver                   // sites had the time to make their offers firm
	wakeRivals                     // it is time to look after the sites that queue a task
	wakeRest                       // more tasks are to be placed than a Step places
	wakeSiteSeen                   // a site has come
	wakeSiteRefuses
)

// verdict says what happens to tasks that still wait.
type verdict struct {
	do        verdictKind
	last      *round // wait: the round that found nothing; it may be repeated with more sites
	everybody bool   // wait: all sites were asked, so the pause grows
}

type verdictKind uint8

const (
	verdictNone verdictKind = iota // nothing: all are placed, or about to be
	verdictWait                    // they are announced again after a pause
	verdictAsk                     // they are announced again right away
	verdictRefuse
)

// waitAfter is the verdict that tasks wait after an occasion.
func waitAfter(on occasion) verdict {
	if on.round == nil {
		return verdict{do: verdictWait}
	}
	return verdict{do: verdictWait, last: on.round, everybody: on.round.complete}
}

// refuseAfter is the verdict that they are refused. What was promised a place once is not:
// it waits on.
func refuseAfter(on occasion) verdict {
	v := waitAfter(on)
	v.do = verdictRefuse
	return v
}

// desk is all that a strategy sees: the job that it places, and the part of the core that
// it may use. Not on it: facts, the fault ledger, other jobs, announcements.
type desk struct {
	m *Machine
	j *job
}
