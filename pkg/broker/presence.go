package broker

import (
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// onPeerSeen notes that a site is there. A new one may have capacity for waiting tasks.
func (m *Machine) onPeerSeen(in step.PeerSeen) {
	p, arrived := m.peers.seen(in)
	if p == nil {
		return
	}
	m.peers.heard(in.Site, m.jobs)
	p.lastSeen = m.now
	if !arrived {
		return
	}
	if p.silences <= forgiven {
		p.silentTill = timeZero
	}
	p.came(m.now)
	delete(m.remaps.said, in.Site)
	m.peers.welcomes(p)
	m.peers.save(in.Site)
	for _, id := range m.jobs.ids() {
		j := m.jobs.all[id]
		j.how.woken(desk{m, j}, wake{why: wakeSiteSeen, site: in.Site})
	}
	if p.domain != "" && !p.beside {
		return // it is asked when the members have been
	}
	for _, id := range m.jobs.served() {
		if j := m.jobs.all[id]; len(j.waiting) > 0 && !m.peers.silent(in.Site) {
			m.ask(j, in.Site)
		}
	}
}

// onPeerGone takes that a site cannot be reached any more. What it runs is left to its
// leases; what it has offered is gone, and no answer of it is awaited.
func (m *Machine) onPeerGone(in step.PeerGone) {
	if !m.peers.gone(in) {
		return
	}
	unawait := func(j *job) {
		if r := j.round(); r != nil {
			if r.expected[in.Site] && r.explain && !r.isSampled() {
				m.peers.fellSilent(in.Site)
			}
			r.settle(in.Site)
			m.closeIfComplete(j)
		}
	}
	for _, id := range m.jobs.served() {
		j := m.jobs.all[id]
		delete(j.offers, in.Site)
		j.how.answered(desk{m, j}, in.Site, nil)
		if in.Refusing {
			m.siteRefuses(j, in.Site)
		}
		unawait(j)
	}
	for _, id := range m.probes.ids() {
		unawait(m.probes[id].job)
	}
}

// onBans takes the sites that are banned now. A banned site is lost to this one: its
// offers count no more, and its tasks move when their leases have ended, as no
// further lease is granted. Nobody waits for it, and nothing is kept of it.
func (m *Machine) onBans(in step.BansChanged) {
	for _, site := range m.peers.banned.Change(in, m.cfg.Here) {
		m.report(step.LevelInfo, eventSiteBanned, grid.AttemptID{}, site)
		m.onPeerGone(step.PeerGone{Site: site})
		m.peers.forget(site)
	}
}

// heeded reports whether a message is to be handled: it is valid, and not from a banned
// site. Any site that sends one is there.
func (p *peers) heeded(from grid.SiteID, msg protocol.Message, l *jobs) bool {
	if msg == nil || !p.valid(from, msg) || p.banned.Has(from) { // it was on its way
		return false
	}
	p.heard(from, l)
	return true
}

// heard notes that a site lives. When this one had been cut off, every attempt has
// frozen, and comes back as soon as its site has found the way here. They are given
// the time for that.
func (p *peers) heard(from grid.SiteID, l *jobs) {
	if other, known := p.all[from]; known {
		other.lastSeen = p.now
		if !other.backAt.After(other.lostAt) {
			other.backAt = p.now
		}
	}
	if from == p.cfg.Here || !p.cutOff {
		return
	}
	p.cutOff = false
	for _, id := range l.silentOnes() {
		p.reunion = p.now.Add(p.cfg.Reunion)
		p.setTimer(timerReunion, string(id), p.reunion)
	}
}
