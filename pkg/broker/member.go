package broker

import (
	"maps"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// member is another site of the domain, as far as this one knows.
type member struct {
	name       string
	capability grid.Capability
	connected  bool
	answers    bool // has answered an announcement before, so that it is asked directly
	lastSeen   time.Time
	skew       time.Duration
	roundTrip  time.Duration // between it and this site; 0 = not measured
	upBps      int64         // measured, away from this site, bit/s; 0 = not measured
	dead       bool          // its agent is known to have died; it is not connected
	watched    watched       // what was seen of its coming and going
	silentTill time.Time     // it let an announcement go unanswered: until then rounds do not wait for it
}

// What silence and absence of a member mean, and how many are remembered.
const (
	memberSilent = 10 * time.Second   // rounds do not wait so long for one that did not answer
	memberMissed = time.Minute        // no job is called unplaceable while one is missing that was there so lately
	memberKept   = 7 * 24 * time.Hour // one that is gone is remembered so long
	maxMembers   = 8192
)

func (m *Machine) peerSeen(in step.PeerSeen) {
	if m.banned.Has(in.Site) || in.Site == m.cfg.Self || !m.valid(in.Site, in.Capability) {
		return
	}
	p, known := m.members[in.Site]
	if !known {
		m.forgetMembers()
		p = &member{}
		m.members[in.Site] = p
	}
	m.heard(in.Site)
	arrived := !p.connected
	p.name, p.capability, p.skew = in.Name, in.Capability, in.Skew
	if in.RoundTrip > 0 {
		p.roundTrip = in.RoundTrip
	}
	p.connected, p.lastSeen, p.dead = true, m.now, false
	if !arrived {
		return // news of it are no answer: that it was silent still holds
	}
	p.silentTill = timeZero
	p.came(m.now)
	m.saveMember(in.Site)
	m.rivalSeen(in.Site)
	for _, id := range m.served() { // a new site may have room for what waits
		if j := m.jobs[id]; len(j.waiting) > 0 && !j.probe {
			m.ask(j, in.Site)
		}
	}
}

// bandwidth takes what was measured of the link to a member.
func (m *Machine) bandwidth(in step.BandwidthMeasured) {
	if p, known := m.members[in.Peer]; known && in.UpBps >= 0 {
		p.upBps = in.UpBps
	}
}

func (m *Machine) peerGone(in step.PeerGone) {
	p, known := m.members[in.Site]
	if !known {
		return
	}
	if p.connected {
		p.went(m.now)
		m.saveMember(in.Site)
	}
	p.connected, p.dead = false, in.ProvenDead
	for _, id := range m.served() {
		j := m.jobs[id]
		delete(j.offers, in.Site)
		m.holdLost(j, in.Site)
		if in.ProvenDead {
			m.siteDied(j, in.Site)
		}
		if j.round != nil {
			j.round.settle(in.Site)
		}
		m.closeIfComplete(j)
	}
}

// reachable reports whether a site is this one or connected.
func (m *Machine) reachable(site grid.SiteID) bool {
	p, known := m.members[site]
	return site == m.cfg.Self || known && p.connected
}

// bansChanged takes who is banned now. A banned site is lost to this one: its
// offers count no more, and its tasks move when their leases have ended, as no
// further lease is granted. Nobody waits for it.
func (m *Machine) bansChanged(in step.BansChanged) {
	for _, site := range m.banned.Change(in, m.cfg.Self) {
		m.report(step.LevelInfo, "site_banned", grid.AttemptID{}, site)
		m.peerGone(step.PeerGone{Site: site})
		delete(m.members, site)
	}
}

// siteDied ends the leases of a dead site's attempts early. Its supervisors
// stop their jobs as soon as the agent is gone; the margin gives them time.
func (m *Machine) siteDied(j *job, site grid.SiteID) {
	m.rivalsDied(j, site)
	for i := range j.tasks {
		t := &j.tasks[i]
		if t.site == site && t.phase == grid.PhaseCollecting {
			m.hurryCollect(j, uint32(i))
		}
		if t.site != site || !t.active() || len(t.rivals) > 0 {
			continue
		}
		if j.isReservation() && !t.leaseEnd.IsZero() {
			continue // nothing runs: it is there again when its site is, and else moves with the lease's end
		}
		if end := m.now.Add(m.cfg.LeaseMargin); t.leaseEnd.After(end) {
			t.leaseEnd = end
			m.out.SetTimer(timerLease, j.attempt(uint32(i)).String(), end)
		} else if t.leaseEnd.IsZero() {
			m.lost(j, uint32(i), "its site died")
		}
	}
	m.placeWaiting(j)
}

// heard notes that a site lives. When this one had been cut off, every attempt has
// frozen, and comes back as soon as its site has found the way here. They are given
// the time for that.
func (m *Machine) heard(from grid.SiteID) {
	if p, known := m.members[from]; known {
		p.lastSeen = m.now
	}
	if from == m.cfg.Self {
		return
	}
	if m.cutOff {
		m.cutOff = false
		m.awaitReturns()
	}
}

func (m *Machine) awaitReturns() {
	until := m.now.Add(m.cfg.Reunion)
	for _, id := range m.jobIDs() {
		j := m.jobs[id]
		awaited := false
		for _, i := range j.waiting {
			awaited = awaited || j.tasks[i].silent
		}
		if awaited {
			m.reunion = until
			m.out.SetTimer(timerReunion, string(id), until)
		}
	}
}

// forgetMembers keeps the table bounded: members not seen for a week go, and
// the one not seen for longest when there are still too many.
func (m *Machine) forgetMembers() {
	if len(m.members) < maxMembers {
		return
	}
	var oldest grid.SiteID
	for _, id := range slices.Sorted(maps.Keys(m.members)) {
		p := m.members[id]
		if p.connected {
			continue
		}
		if m.now.Sub(p.lastSeen) > memberKept {
			m.forgetMember(id)
			continue
		}
		if oldest == "" || p.lastSeen.Before(m.members[oldest].lastSeen) {
			oldest = id
		}
	}
	if len(m.members) >= maxMembers {
		m.forgetMember(oldest)
	}
}

// connected lists the members that are reachable now, ascending.
func (m *Machine) connected() []grid.SiteID {
	var ids []grid.SiteID
	for _, id := range slices.Sorted(maps.Keys(m.members)) {
		if m.members[id].connected {
			ids = append(ids, id)
		}
	}
	return ids
}

// allKnown reports whether unicast reaches everybody whom gossip would: all that
// are connected have answered before, none that was there within the last minute
// is out of sight (others may still reach it), and they are not too many.
func (m *Machine) allKnown() bool {
	known := 0
	for _, id := range slices.Sorted(maps.Keys(m.members)) {
		p := m.members[id]
		switch {
		case p.connected && p.answers:
			known++
		case p.connected, !p.dead && m.now.Sub(p.lastSeen) <= memberMissed:
			return false
		}
	}
	return known > 0 && known <= m.cfg.UnicastUpTo
}

// missing reports whether a member that was there within the last minute has
// not said in this round that the job never fits.
func (m *Machine) missing(said map[grid.SiteID]Answer) bool {
	for _, id := range slices.Sorted(maps.Keys(m.members)) {
		p := m.members[id]
		if !p.connected && m.now.Sub(p.lastSeen) > memberMissed {
			continue
		}
		if a, answered := said[id]; !answered || !a.neverFits() {
			return true
		}
	}
	return false
}

// potential is P of this site (thesis 3.1.1): the sum over its peers of what it
// can upload to each, bit/s, as measured or as both ends declare it; unknown
// rates count as nothing.
func (m *Machine) potential() int64 {
	var sum int64
	for _, id := range m.connected() {
		p := m.members[id]
		switch {
		case p.upBps > 0:
			sum += p.upBps
		case p.capability.DownBps > 0:
			sum += min(m.cfg.Capability.UpBps, p.capability.DownBps)
		}
	}
	return sum
}
