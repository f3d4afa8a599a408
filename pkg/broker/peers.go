package broker

import (
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/fault"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/index"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// peers is the other sites of the domain, as far as this one knows them.
type peers struct {
	*run
	all   map[grid.SiteID]*member
	order []grid.SiteID // the members of all, ascending; nil: they have changed
	near  []grid.SiteID // the neighbouring domains of all, ascending
	there int           // members that are connected
	// searches counts those of other domains for which few members were asked first.
	searches int
	banned   step.Bans // what they say is ignored
	faults   fault.Ledger
	said     hearsay // of others
	trouble
	// breaches holds the sites that did what honest ones do not.
	breaches map[grid.SiteID]breaches
	// right counts for each site the results in a row that another site has confirmed.
	right map[grid.SiteID]uint32
	// cutOff: the last round that asked all members got no answer, so it is this site that
	// cannot be reached, and its attempts elsewhere are frozen. Once a member is heard again,
	// these have until reunion to come back before they are placed anew.
	cutOff  bool
	reunion time.Time
}

// member is another site of the domain, as far as this one knows.
type member struct {
	name       string
	domain     grid.DomainID // of the neighbouring domain that it stands for; empty: it is a member
	beside     bool          // that domain is asked together with the members
	heldBy     string        // who owns it, as it says; empty: it is its owner's only one
	capability grid.Capability
	connected  bool
	answers    bool // has answered an announcement before, so that it is asked directly
	lastSeen   time.Time
	skew       time.Duration
	roundTrip  time.Duration // between it and this site; 0 = not measured
	upBps      int64         // measured, away from this site, bit/s; 0 = not measured
	refuses    bool          // its address refuses connections; it is not connected
	watched    watched       // what was seen of its coming and going
	grew       time.Time     // when it last said that more of a task's data has come
	silences   int           // how often it was silent in a row
	silentTill time.Time     // it left an announcement unanswered: rounds do not wait for it till then
	told       told          // what it has of this site's testimonies
	space      space         // what is free there, as it says
	lostAt     time.Time     // when an attempt was last given up there
	backAt     time.Time     // when it was first heard after that
}

// What silence and absence of a member mean, and how many are remembered.
const (
	memberSilent = 10 * time.Second   // rounds do not wait so long for one that did not answer
	maxSilences  = 3                  // so often in a row that time doubles; then an answer counts
	forgiven     = 1                  // so many silences in a row are forgotten with a new connection
	memberMissed = time.Minute        // one that was there so lately may still take a job
	memberKept   = 7 * 24 * time.Hour // one that is gone is remembered so long
	maxMembers   = 8192
	// maxKnownDomains bounds the neighbouring domains that are known.
	maxKnownDomains = 256
)

func newPeers(r *run) *peers {
	return &peers{
		run: r, all: make(map[grid.SiteID]*member), breaches: make(map[grid.SiteID]breaches),
		right:  make(map[grid.SiteID]uint32),
		faults: fault.Ledger{HalfLife: r.cfg.FaultHalfLife},
		said:   hearsay{by: make(map[grid.SiteID]heardTestimony)},
	}
}

// sorted lists all members, ascending. The list stays as it is when they change.
func (p *peers) sorted() []grid.SiteID {
	if p.order == nil {
		p.order = slices.DeleteFunc(sortedSites(p.all), func(id grid.SiteID) bool {
			return p.all[id].domain != ""
		})
	}
	return p.order
}

// reachable reports whether a site is this one or connected.
func (p *peers) reachable(site grid.SiteID) bool {
	other, known := p.all[site]
	return site == p.cfg.Here || known && other.connected
}

// refuses reports whether a site's address refuses connections, as after its agent's death.
func (p *peers) refuses(site grid.SiteID) bool {
	other, known := p.all[site]
	return known && other.refuses
}

// connected lists the members that are reachable now, ascending.
func (p *peers) connected() []grid.SiteID {
	there := make([]grid.SiteID, 0, len(p.all)+1) // often this site comes behind them
	for _, id := range p.sorted() {
		if p.all[id].connected {
			there = append(there, id)
		}
	}
	return there
}

// met reports whether any member was seen since this site started.
func (p *peers) met() bool {
	return slices.ContainsFunc(p.sorted(), func(id grid.SiteID) bool {
		other := p.all[id]
		return other.connected || !other.lastSeen.IsZero() && !other.lastSeen.Before(p.bootedAt)
	})
}

// noneMet reports whether there are members, and none was seen since this site started.
func (p *peers) noneMet() bool { return len(p.sorted()) > 0 && !p.met() }

// metEnough reports whether what the members say, or that there are none, can be taken
// for the whole domain.
func (p *peers) metEnough() bool {
	return p.met() || p.now.Sub(p.bootedAt) >= p.cfg.BootGrace
}

// allKnown reports whether unicast reaches all sites that gossip would: all that
// are connected have answered before, none that was there within the last minute
// is out of sight (others may still reach it), and they are not too many.
//
// Those that a job is not asked of need not be reached.
func (p *peers) allKnown(j *job) bool {
	known, spared := 0, 0
	for _, id := range p.sorted() {
		other := p.all[id]
		switch {
		case p.spares(j, id):
			spared++
		case other.connected && other.answers:
			known++
		case other.connected, !other.refuses && p.now.Sub(other.lastSeen) <= memberMissed:
			return false
		}
	}
	return known+spared > 0 && known <= p.cfg.UnicastUpTo
}

// missed reports whether a member is there, or was within the last minute.
func (p *peers) missed(id grid.SiteID) bool {
	return p.all[id].connected || p.now.Sub(p.all[id].lastSeen) <= memberMissed
}

// allRefuse reports whether every member that is there, or was within the last minute,
// has said that the job never fits.
func (p *peers) allRefuse(said map[grid.SiteID]Answer) bool {
	return !slices.ContainsFunc(p.sorted(), func(id grid.SiteID) bool {
		a, answered := said[id]
		return p.missed(id) && (!answered || !a.neverFits())
	})
}

// potential is P of this site (thesis 3.1.1): the sum over its peers of what it
// can upload to each, bit/s, as measured or as both ends declare it; unknown
// rates count as nothing.
func (p *peers) potential() int64 {
	var sum int64
	for _, id := range p.connected() {
		other := p.all[id]
		switch {
		case other.upBps > 0:
			sum += other.upBps
		case other.capability.DownBps > 0:
			sum += min(p.cfg.Capability.UpBps, other.capability.DownBps)
		}
	}
	return sum
}

// onBandwidth takes what was measured of the link to a member.
func (p *peers) onBandwidth(in step.BandwidthMeasured) {
	if other, known := p.all[in.Peer]; known && in.UpBps >= 0 {
		other.upBps = in.UpBps
	}
}

// answered notes that a site answers announcements.
func (p *peers) answered(site grid.SiteID) {
	if other, known := p.all[site]; known {
		other.answers, other.silentTill, other.silences = true, timeZero, 0
	}
}

// fellSilent notes that a site did not say what it should have: for a while rounds do not
// wait for it, each time for longer, and from the fourth time in a row on until it answers, as
// it is still asked. One that goes and comes again may be mended, once; after that only an
// answer counts.
func (p *peers) fellSilent(site grid.SiteID) {
	if other, known := p.all[site]; known && !p.silent(site) {
		other.silentTill = p.now.Add(memberSilent << other.silences)
		other.silences++
	}
}

// silent reports whether rounds do not wait for a site now.
func (p *peers) silent(site grid.SiteID) bool {
	other, known := p.all[site]
	return known && (other.silences > maxSilences || other.silentTill.After(p.now))
}

// completed is an offer with what only this submitter knows of its site.
func (p *peers) completed(req grid.Requirement, from grid.SiteID, offer grid.Offer) grid.Offer {
	offer.Site = from
	standing := index.Standing{
		RoundTripKnown: from == p.cfg.Here, FaultIndex: p.index(from),
	}
	if other, known := p.all[from]; known && other.roundTrip > 0 {
		standing.RoundTrip, standing.RoundTripKnown = other.roundTrip, true
	}
	offer.Parts = index.Complete(offer.Parts, req, standing)
	return offer
}

// reuniting reports whether frozen attempts still have time to come back.
func (p *peers) reuniting() bool { return p.now.Before(p.reunion) }

// maxAway limits how long past its window a task waits for a site that cannot be reached,
// because it is this one that is cut off.
const maxAway = 10 * time.Minute

// mayReturn reports whether an attempt whose site is silent may still come back: it
// is frozen there, or runs, and it is this site that is, or was just now, cut off.
func (p *peers) mayReturn(t *task) bool {
	if !t.silent || t.away.IsZero() {
		return false
	}
	return p.now.Before(t.away.Add(p.cfg.Reunion)) || p.reuniting() ||
		p.cutOff && p.now.Before(t.away.Add(maxAway))
}

// mayStillEnd reports whether a task that waits, and cannot be begun any more, may yet be brought
// to its end by an attempt that was given up.
func (p *peers) mayStillEnd(j *job, t *task) bool { return p.mayReturn(t) || p.mayBring(j, t) }

// forget drops a member, what was seen of it, and how often it has failed.
func (p *peers) forget(id grid.SiteID) {
	if other, known := p.all[id]; known && other.connected && other.domain == "" {
		p.there--
	}
	delete(p.all, id)
	p.order = nil
	p.near = slices.DeleteFunc(p.near, func(n grid.SiteID) bool { return n == id })
	delete(p.lines, id)
	delete(p.said.by, id)
	p.said.stale = true
	p.persistRemoval(factMember, string(id))
	p.acquit(id)
}

// acquit drops how often a site has failed.
func (p *peers) acquit(id grid.SiteID) {
	p.faults.Forget(id)
	delete(p.breaches, id)
	delete(p.right, id)
	if p.out.Facts().Get(factFault, string(id)) != nil {
		p.saveFault(id)
	}
}

// forgetLongGone drops the members that were not seen for so long that nobody is shown them
// any more, and the fault indices of sites that are no members.
func (p *peers) forgetLongGone() {
	for _, id := range p.sorted() {
		if !p.all[id].known(p.now) {
			p.forget(id)
		}
	}
	noted := slices.Concat(p.faults.Sites(), sortedSites(p.breaches), sortedSites(p.right))
	for _, id := range noted {
		if _, known := p.all[id]; !known && id != p.cfg.Here {
			p.acquit(id)
		}
	}
}

// forgetSome keeps the table bounded: members not seen for a week go, and
// the one not seen for longest when there are still too many.
func (p *peers) forgetSome() {
	if len(p.all) < maxMembers || p.there == len(p.all) {
		return
	}
	var oldest grid.SiteID
	for _, id := range p.sorted() {
		other := p.all[id]
		if other.connected {
			continue
		}
		if p.now.Sub(other.lastSeen) > memberKept {
			p.forget(id)
			continue
		}
		if oldest == "" || other.lastSeen.Before(p.all[oldest].lastSeen) {
			oldest = id
		}
	}
	if len(p.all) >= maxMembers {
		p.forget(oldest)
	}
}

// states shows the members that were seen within a week, ascending.
func (p *peers) states() []MemberState {
	all := make([]MemberState, 0, len(p.all))
	for _, id := range p.sorted() {
		other := p.all[id]
		if !other.known(p.now) {
			continue
		}
		state := MemberState{
			Site: id, Name: other.name, Capability: other.capability, Connected: other.connected,
			LastSeen: other.lastSeen, Skew: other.skew, RoundTrip: other.roundTrip,
			Fault: p.faultState(id), Since: other.watched.since, Ends: other.watched.ends,
		}
		if other.connected {
			state.UpHour, _ = other.leaving(p.now).Survival(time.Hour.Seconds()) // the belief was checked
		}
		all = append(all, state)
	}
	return all
}

// savesNothing reports whether a member says that it cannot save commands whole. One of an older
// version says so, too, and offers nevertheless: it does not know that it was asked.
func (p *peers) savesNothing(site grid.SiteID) bool {
	if site == p.cfg.Here {
		return !p.cfg.Capability.Saves
	}
	other := p.all[site]
	return other != nil && other.domain == "" && !other.capability.Saves
}

// seen takes news of a site into the table, and reports whether it has just come; nil: it
// is none that counts.
func (p *peers) seen(in step.PeerSeen) (*member, bool) {
	if p.banned.Has(in.Site) || in.Site == p.cfg.Here || !p.valid(in.Site, in.Capability) {
		return nil, false
	}
	other, known := p.all[in.Site]
	if known && (other.domain == "") != (in.Domain == "") {
		p.forget(in.Site) // it was a member, or is one now
		known = false
	}
	if !known {
		if in.Domain != "" && len(p.near) >= maxKnownDomains {
			return nil, false
		}
		p.forgetSome()
		other = &member{}
		p.all[in.Site], p.order = other, nil
	}
	arrived := !other.connected
	if other.domain, other.beside = in.Domain, in.Beside; in.Domain != "" {
		if at, has := slices.BinarySearch(p.near, in.Site); !has {
			p.near = slices.Insert(p.near, at, in.Site)
		}
	} else if arrived {
		p.there++
	}
	if arrived || in.Capability.Total != other.capability.Total {
		other.space = space{}
	}
	other.name, other.capability, other.skew = in.Name, in.Capability, in.Skew
	other.heldBy = in.Owner
	if in.RoundTrip > 0 {
		other.roundTrip = in.RoundTrip
	}
	other.connected, other.refuses = true, false
	p.lines.note(in.Site, in.Line)
	return other, arrived
}

// gone takes it that a site is away, and reports whether it was known.
func (p *peers) gone(in step.PeerGone) bool {
	other, known := p.all[in.Site]
	if !known {
		return false
	}
	if other.connected {
		if other.domain == "" {
			p.there--
		}
		other.went(p.now)
		p.save(in.Site)
	}
	other.connected, other.refuses = false, in.Refusing
	if len(p.fresh) > 0 && p.mostAreGone() {
		p.isAlone()
	}
	return true
}
