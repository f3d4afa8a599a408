package broker

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// A fault may be bad luck; a breach honest sites do not commit, however restless they are: to
// keep a task past its bound, to say that it has ended well and leave out an output, or to name
// outputs that are not there. However near such a site claims to be, it is passed over for a
// time then, and after that has one task on trial. Each further breach doubles the time.

// How long a site is passed over.
const (
	firstPass   = 10 * time.Minute // after its first breach, or its next task on trial
	maxBreaches = 9                // so many in a row double that time, up to 42 hours
)

// breaches counts what a site did that honest ones do not.
type breaches struct {
	row  int       // in a row; each result takes one back
	at   time.Time // the latest; what was awarded before says nothing new
	till time.Time // the site is passed over till then
}

func (b breaches) pass() time.Duration { return firstPass << (b.row - 1) }

// breach notes one of a site, besides the fault that it is. It is about an award of a time.
func (p *peers) breach(site grid.SiteID, awarded time.Time, why string) {
	b := p.breaches[site]
	if b.row > 0 && !awarded.After(b.at) || p.banned.Has(site) {
		return
	}
	b.row, b.at = min(b.row+1, maxBreaches), p.now
	b.till = p.now.Add(b.pass())
	p.breaches[site] = b
	p.saveFault(site)
	p.out.Report(step.LevelWarn, eventPassedOver, step.Report{
		Site: site, Text: why, Value: b.pass().Seconds(),
	})
}

// tries notes that a site was given a task. One that is on trial gets no other before that
// has ended well, or some time.
func (p *peers) tries(site grid.SiteID) {
	if b := p.breaches[site]; b.row > 0 {
		b.till = p.now.Add(b.pass())
		p.breaches[site] = b
		p.saveFault(site)
	}
}

// atone takes back one breach of a site that has brought the result of an award.
func (p *peers) atone(site grid.SiteID, awarded time.Time) {
	b := p.breaches[site]
	switch {
	case b.row == 0 || !awarded.After(b.at):
	case b.row == 1:
		delete(p.breaches, site)
	default:
		p.breaches[site] = breaches{row: b.row - 1, at: b.at, till: p.now}
	}
}

// allowed counts the tasks of a job that a site may be given by its offer: fewer than it offers
// after a breach, as long as others that can be reached may take them, now or later.
func (p *peers) allowed(c *candidate, j *job) uint32 {
	b := p.breaches[c.offer.Site]
	switch {
	case b.row == 0 || !p.othersMayTake(j):
		return c.left
	case b.till.After(p.now):
		return 0
	default:
		return min(c.left, 1)
	}
}

// othersMayTake reports whether sites without a breach may take a job's tasks: any of them one
// task, but parts only if there is space for all, on one site if they are not to be split.
func (p *peers) othersMayTake(j *job) bool {
	var most, sum int64
	for _, site := range sortedSites(j.answers) {
		if p.breaches[site].row > 0 || !p.reachable(site) || j.answers[site].neverFits() {
			continue
		}
		if !j.traits.whole {
			return true
		}
		capability := p.cfg.Capability
		if site != p.cfg.Here {
			capability = p.all[site].capability
		}
		n := places(j.req, capability)
		most, sum = max(most, n), sum+n
	}
	if j.spec.Split == grid.SplitNever {
		sum = most
	}
	return j.traits.whole && sum >= int64(j.spec.Count)
}
