package broker

import (
	"encoding/json"
	"math"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/fault"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// What counts for and against sites. An attempt counts once: with a fault, or with its result if
// none was counted before. One that comes late, after it was given up, makes up for nothing.

// blame counts a fault of the site that has a task, or has failed it. Later faults of the same
// attempt do not count, and its result does not either.
func (p *peers) blame(l *jobs, t *task, cause fault.Cause) {
	t.blamed = t.blamed || p.accuse(l, t.site, cause)
}

// accuse counts a fault against a site, and reports whether it counts: what may as well be this
// submitter's own trouble is nobody's fault, and a banned site has nothing to lose.
func (p *peers) accuse(l *jobs, site grid.SiteID, cause fault.Cause) bool {
	if p.banned.Has(site) || p.isOwnTrouble(l, site, cause) {
		return false
	}
	p.faults.Missed(site, cause, p.now)
	p.saveFault(site)
	p.notices(site, cause)
	return true
}

// praise counts the result of a task for its site.
func (p *peers) praise(t *task) {
	fresh := p.faults.Record(t.site).Tried == 0
	noted := !p.isSpotless(t.site)
	if !t.blamed {
		p.faults.Succeeded(t.site, p.now)
	}
	if noted || fresh {
		p.said.changed(p.run, false)
	}
	if noted { // nothing is written down with each result of each job
		p.atone(t.site, t.awardedAt)
		p.saveFault(t.site)
	}
}

// isSpotless reports whether nothing counts against a site.
func (p *peers) isSpotless(site grid.SiteID) bool {
	return p.faults.Index(site, p.now) == 0 && p.breaches[site].row == 0
}

// index is the fault index of a site: what was counted here, and what others say of it.
func (p *peers) index(site grid.SiteID) float64 {
	return p.faults.Index(site, p.now) + p.said.shared(p, site)
}

// faultFact holds a site's faults and breaches.
type faultFact struct {
	Index    int64 `json:"index"` // rounded up, for earlier versions
	Breaches int   `json:"breaches,omitempty"`
	PassedMS int64 `json:"passed_ms,omitempty"` // it is passed over till then

	Value   float64      `json:"value,omitempty"` // the index at AtMS; 0: see Index
	AtMS    int64        `json:"at_ms,omitempty"`
	FirstMS int64        `json:"first_ms,omitempty"` // of the first count
	LastMS  int64        `json:"last_ms,omitempty"`  // of the last fault
	Counts  fault.Counts `json:"counts,omitzero"`    // by cause
	Tried   uint64       `json:"tried,omitempty"`    // attempts, as far as was noted
	Right   uint32       `json:"right,omitempty"`    // confirmed results in a row
}

func (p *peers) saveFault(site grid.SiteID) {
	r := p.faults.Record(site)
	fact := faultFact{
		Index: int64(math.Ceil(r.Index)), Value: r.Index,
		LastMS: p.wallMS(r.Last), Counts: r.Counts, Right: p.right[site],
	}
	if r.Index > 0 || r.Counts != (fault.Counts{}) {
		fact.AtMS, fact.FirstMS, fact.Tried = p.wallMS(r.At), p.wallMS(r.First), r.Tried
	}
	if b := p.breaches[site]; b.row > 0 {
		fact.Breaches, fact.PassedMS = b.row, step.MS(b.till)
	}
	if fact == (faultFact{}) {
		p.persistRemoval(factFault, string(site))
		return
	}
	p.persist(factFault, string(site), fact)
}

func (p *peers) restoreFaults(f step.Fact) error {
	var v faultFact
	if err := json.Unmarshal(f.Value, &v); err != nil {
		return err
	}
	site := grid.SiteID(f.Key)
	r := fault.Record{
		Index: v.Value, At: step.FromMS(v.AtMS), First: step.FromMS(v.FirstMS),
		Last: step.FromMS(v.LastMS), Counts: v.Counts, Tried: max(v.Tried, 1),
	}
	if v.Value == 0 && v.AtMS == 0 {
		r.Index = float64(v.Index)
	}
	if r.Index > 0 || v.AtMS != 0 {
		p.faults.Put(site, r)
	}
	if v.Right > 0 {
		p.right[site] = v.Right
	}
	if v.Breaches > 0 {
		p.breaches[site] = breaches{
			row: min(v.Breaches, maxBreaches), till: step.FromMS(v.PassedMS),
		}
	}
	return nil
}

// FaultState holds what counts against a site, for people.
type FaultState struct {
	Own    float64      // fault index by what was counted here
	Shared float64      // what others say, as it counts besides
	Says   int          // others that say they have tried it
	Counts fault.Counts // here, by cause, those included for which it has made up
	Last   time.Time    // of the last fault here; zero: none is known
}

func (p *peers) faultState(site grid.SiteID) FaultState {
	r, s := p.faults.Record(site), p.said.of(site)
	return FaultState{
		Own: p.faults.Index(site, p.now), Shared: s.Index, Says: s.Says, Counts: r.Counts,
		Last: p.onWall(r.Last),
	}
}
