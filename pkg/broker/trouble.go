package broker

import (
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/fault"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// That a site is silent may be the trouble of who listens: this machine slept, or had no
// processor; its disk was full, so that it could not go on; its network was cut. Then most of its
// sites are silent at the same time, or its own timers are late. Nobody is blamed for that, and
// what was counted a moment before this was seen is taken back. Set clocks trouble nobody: leases
// and windows go by a clock that is not set.

// When silence is this submitter's own trouble.
const (
	timerLate    = time.Second // a timer that fires so late was held up with the whole machine
	pardonWithin = time.Minute // what was counted so lately is taken back
	maxFresh     = 256         // faults of that time that are remembered
	countEvery   = time.Second // which sites should speak is worked out so often at most
)

// trouble holds what speaks for this submitter's own trouble.
type trouble struct {
	awoke   time.Time // when a timer was last found to be late
	alone   time.Time // when most sites were last found to be silent
	counted time.Time // when should was worked out
	should  []grid.SiteID
	fresh   []freshFault // faults that were counted lately, oldest first
}

// freshFault is a fault that was counted.
type freshFault struct {
	site  grid.SiteID
	cause fault.Cause
	at    time.Time
}

// notices remembers a fault that may have to be taken back.
func (p *peers) notices(site grid.SiteID, cause fault.Cause) {
	p.said.changed(p.run, true)
	if !cause.OfTheLink() || p.refuses(site) {
		return
	}
	if len(p.fresh) >= maxFresh {
		p.fresh = slices.Delete(p.fresh, 0, 1)
	}
	p.fresh = append(p.fresh, freshFault{site, cause, p.now})
}

// fired takes it that a timer has fired that was due at a time.
func (p *peers) fired(due time.Time) {
	if !due.IsZero() && p.now.Sub(due) > timerLate {
		p.awoke = p.now
	}
}

// isOwnTrouble reports whether a fault of a site may as well be this submitter's own.
func (p *peers) isOwnTrouble(l *jobs, site grid.SiteID, cause fault.Cause) bool {
	if !cause.OfTheLink() || p.refuses(site) { // what a host answers has come here
		return false
	}
	if p.cutOff || p.full || p.isRecent(p.awoke) || p.isRecent(p.alone) {
		return true
	}
	if p.mostAreSilent(l) || p.mostAreGone() {
		p.isAlone()
		return true
	}
	return false
}

// isRecent reports whether something was so lately that sites have not had the time to be heard
// since.
func (p *peers) isRecent(at time.Time) bool {
	return !at.IsZero() && p.now.Sub(at) <= p.cfg.Lease+p.cfg.LeaseMargin+p.cfg.Reunion
}

// mostAreSilent reports whether of the sites that should have spoken, as they have leases to
// prolong or awards to answer, more than half have not, two at least.
func (p *peers) mostAreSilent(l *jobs) bool {
	if p.counted.IsZero() || p.now.Sub(p.counted) >= countEvery {
		p.counted, p.should = p.now, l.speakers(p.now.Add(p.cfg.Lease+p.cfg.LeaseMargin))
	}
	all, silent := 0, 0
	for _, site := range p.should {
		other, known := p.all[site]
		if !known || other.refuses {
			continue
		}
		all++
		if !other.connected || p.now.Sub(other.lastSeen) >= p.cfg.Lease*2/3 {
			silent++
		}
	}
	return silent >= 2 && 2*silent > all
}

// speakers lists the sites that have an award to answer, or a lease that ends before a time.
func (l *jobs) speakers(before time.Time) []grid.SiteID {
	sites := make(map[grid.SiteID]bool)
	for _, id := range l.ids() {
		j := l.all[id]
		if j.open == 0 {
			continue
		}
		for i := range j.tasks {
			if t := &j.tasks[i]; t.active() && !t.queued() && t.leaseEnd.Before(before) {
				sites[t.site] = true
			}
		}
	}
	return sortedSites(sites)
}

// mostAreGone reports whether more than half of the members that were there within the last
// minute, two at least, went in it, and none of their hosts says so.
func (p *peers) mostAreGone() bool {
	there, gone := 0, 0
	for _, id := range p.sorted() {
		switch other := p.all[id]; {
		case other.connected:
			there++
		case !other.refuses && p.now.Sub(other.watched.since) <= pardonWithin:
			gone++
		}
	}
	return gone >= 2 && gone > there
}

// anyIsHeard reports whether any member has said anything within the time of a lease.
func (p *peers) anyIsHeard() bool {
	return slices.ContainsFunc(p.sorted(), func(id grid.SiteID) bool {
		return p.now.Sub(p.all[id].lastSeen) < p.cfg.Lease
	})
}

// isAlone takes it that it is this site that cannot be reached: what was counted while that may
// already have been so is taken back.
func (p *peers) isAlone() {
	p.alone = p.now
	for _, f := range p.fresh {
		if p.now.Sub(f.at) <= pardonWithin && !p.banned.Has(f.site) {
			p.faults.Pardon(f.site, f.cause, f.at, p.now)
			p.saveFault(f.site)
			p.out.Report(step.LevelInfo, eventPardoned, step.Report{
				Site: f.site, Text: "it was this site that could not be reached",
			})
		}
	}
	p.fresh = nil
}
