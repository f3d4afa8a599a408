package broker

import (
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Trust in a site's results is earned by results that another site has confirmed, and lost with the
// first that others have outvoted. Results of a site that is trusted are compared by chance. Each
// submitter counts for itself: what others say of a site's results could shun any of them.

// trustedFrom results in a row, each confirmed, make a site trusted. BOINC has 10
// (CONS_VALID_UNREPLICATED of its scheduler); with 20 a site that lies in one job of five is found
// with its first 20 jobs in 99 of 100 cases, as 1 - .8^20.
const trustedFrom = 20

// maxRight bounds the count.
const maxRight = 1 << 20

// vouch notes that another site has confirmed a result.
func (p *peers) vouch(site grid.SiteID) {
	if p.right[site] < maxRight && !p.banned.Has(site) {
		p.right[site]++
		p.saveFault(site)
	}
}

// distrust notes that a site has lied: what it was trusted for counts no more.
func (p *peers) distrust(site grid.SiteID) {
	delete(p.right, site)
	p.saveFault(site)
}

// doubtfulness is the chance, 0 to 1, with which a result of a site is compared with another's:
// always until the site is trusted, then once in as many results as were confirmed in a row
// (BOINC, set_trust of the scheduler's sched_version.cpp), and never less often than floor. What
// the owner's own machine has computed needs no confirmation, wherever this broker runs.
func (p *peers) doubtfulness(site grid.SiteID, floor float64) float64 {
	switch n := p.right[site]; {
	case site == p.cfg.Owner:
		return 0
	case n < trustedFrom:
		return 1
	default:
		return max(floor, 1/float64(n))
	}
}

// holder names who owns a site: what it says, or the site itself.
func (p *peers) holder(site grid.SiteID) string {
	name := p.cfg.HeldBy
	if other, known := p.all[site]; known {
		name = other.heldBy
	}
	if name == "" || site != p.cfg.Here && p.all[site] == nil {
		return string(site)
	}
	return "owner " + name // no site's ID has a space
}

// doubts draws whether a result of a task is to be compared. What is drawn follows from the task,
// the site, and a secret of this submitter alone: a site cannot know it, and cannot change it.
func (p *peers) doubts(id grid.TaskID, site grid.SiteID, rule grid.Redundancy) bool {
	chance := p.doubtfulness(site, rule.Verify)
	return chance > 0 &&
		step.NewRand(p.cfg.Seed, "doubt/"+id.String()+"/"+string(site), 0).Float64() < chance
}
