package site

import (
	"maps"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/index"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// links are the peers, and how well this site is connected to them.
type links struct {
	peers     map[grid.SiteID]*peer
	potential int64 // P of this site (thesis 3.1.1), bit/s
	outdated  bool  // a rate or a peer has changed since that was summed up
}

// peer is another site that is connected.
type peer struct {
	capability grid.Capability
	downBps    int64         // measured, towards this site; 0 = not
	upBps      int64         // measured, away from this site; 0 = not
	ahead      time.Duration // its wall clock minus this machine's clock
}

func (m *Machine) onPeerSeen(in step.PeerSeen) {
	if err := in.Capability.Validate(); err != nil {
		m.out.Report(step.LevelWarn, eventInvalid, step.Report{Site: in.Site, Text: err.Error()})
		return
	}
	if in.Site == m.cfg.Self { // another site begins to act as its submitter
		m.remind(in.Site)
		m.tellEnds(in.Site)
		return
	}
	p := m.links.peers[in.Site]
	arrived := p == nil
	if arrived {
		if len(m.links.peers) >= maxPeers {
			m.out.Report(step.LevelWarn, eventTableFull, step.Report{Site: in.Site, Text: "peers"})
			return
		}
		p = &peer{ahead: m.clocks.ahead + in.Skew}
		m.links.peers[in.Site] = p
	}
	p.capability = in.Capability
	m.submitters.lines.put(in.Site, in.Line)
	m.links.outdated = true
	m.remind(in.Site)
	if arrived {
		m.tellEnds(in.Site)
	}
}

// remind tells a submitter that is heard of again how its attempts go: one that
// was restarted knows only that it awarded them, and leases that ran out are
// renewed without waiting for the next request.
func (m *Machine) remind(submitter grid.SiteID) {
	theirs := m.roster.where(func(a *attempt) bool {
		return a.submitter == submitter && a.wantsLease()
	})
	if len(theirs) == 0 {
		return
	}
	m.onRenewTimer(submitter)
	for _, a := range theirs {
		m.tell(a)
	}
}

func (m *Machine) onPeerGone(in step.PeerGone) {
	if m.links.peers[in.Site] == nil {
		m.out.Report(step.LevelDebug, eventStale, step.Report{Site: in.Site, Text: "peer unknown"})
		return
	}
	delete(m.links.peers, in.Site)
	m.links.outdated = true
}

func (m *Machine) onBandwidth(in step.BandwidthMeasured) {
	p := m.links.peers[in.Peer]
	if p == nil || in.DownBps < 0 || in.UpBps < 0 {
		m.out.Report(step.LevelDebug, eventStale, step.Report{
			Site: in.Peer, Text: "bandwidth of an unknown peer or below 0",
		})
		return
	}
	p.downBps, p.upBps = in.DownBps, in.UpBps
	m.links.outdated = true
}

// potential says how well connected this site is (thesis 3.1.1): what it can upload to each peer
// is limited by its own link and the peer's. It is summed up when it is asked for after a change,
// since peers come in crowds.
func (m *Machine) potential() int64 {
	if !m.links.outdated {
		return m.links.potential
	}
	uploads := make([]index.Upload, 0, len(m.links.peers))
	for _, id := range slices.Sorted(maps.Keys(m.links.peers)) {
		p := m.links.peers[id]
		bps := p.upBps
		if bps == 0 {
			bps = smallerKnown(m.capability.UpBps, p.capability.DownBps)
		}
		uploads = append(uploads, index.Upload{Peer: id, Bps: float64(bps)})
	}
	sum, err := index.Potential(m.cfg.Self, uploads)
	if err != nil { // rates are at least 0: not reached
		m.out.Report(step.LevelWarn, eventInvalid, step.Report{Text: err.Error()})
		return m.links.potential
	}
	m.links.potential, m.links.outdated = int64(min(sum, 1<<62)), false
	return m.links.potential
}

// smallerKnown is the smaller of two rates, the known one if 0 says that the
// other is unknown.
func smallerKnown(a, b int64) int64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// onHeld keeps the set of data that is here. What does not fit is treated as
// not here, which makes offers worse than they could be, never wrong.
func (m *Machine) onHeld(in step.HeldChanged) {
	for _, cid := range in.Removed {
		delete(m.held, cid.Digest(m.cfg.Domain))
	}
	for i, cid := range in.Added {
		if len(m.held) >= maxHeldData {
			m.out.Report(step.LevelWarn, eventTableFull, step.Report{
				Text: "held data", Value: float64(len(in.Added) - i),
			})
			return
		}
		m.held[cid.Digest(m.cfg.Domain)] = struct{}{}
	}
}

// access says how this site would get at the sources of a requirement.
func (m *Machine) access(req grid.Requirement, submitter grid.SiteID) []index.Access {
	list := make([]index.Access, len(req.Sources))
	for i, src := range req.Sources {
		list[i] = m.accessTo(src, submitter)
	}
	return list
}

// accessTo says how this site would get at one source: from itself, or from the
// holder with the fastest link. The submitter counts as reachable, it has just
// spoken; so does everyone connected. Data that names no holder is the
// submitter's.
func (m *Machine) accessTo(src grid.DataSource, submitter grid.SiteID) index.Access {
	a := index.Access{Bytes: src.Bytes, Local: m.isLocal(src), Unreachable: len(src.Holders) > 0}
	best := int64(-1)
	for i, holder := range src.Holders {
		p := m.links.peers[holder]
		if p == nil && holder != submitter {
			continue
		}
		up := int64(0)
		if i == 0 {
			up = src.UploadBps
		}
		down, up := m.link(p, up)
		if rate := smallerKnown(down, up); rate > best {
			best, a.DownBps, a.UpBps, a.Unreachable = rate, down, up, false
		}
	}
	if len(src.Holders) == 0 {
		a.DownBps, a.UpBps = m.link(m.links.peers[submitter], src.UploadBps)
	}
	return a
}

// link is the rates of the two ends of a link from a holder to this site. What
// was measured is better than what either side declares.
func (m *Machine) link(p *peer, declaredUp int64) (down, up int64) {
	down, up = m.capability.DownBps, declaredUp
	if p == nil {
		return down, up
	}
	if up == 0 {
		up = p.capability.UpBps
	}
	if p.downBps > 0 {
		return p.downBps, p.downBps
	}
	return down, up
}

// isLocal reports whether data is at this site already.
func (m *Machine) isLocal(src grid.DataSource) bool {
	if src.Digest != "" {
		if _, held := m.held[src.Digest]; held {
			return true
		}
	}
	return slices.Contains(src.Holders, m.cfg.Self)
}

// hasAll reports whether there is data to be had and all of it is here.
func (m *Machine) hasAll(req grid.Requirement) bool {
	some := false
	for _, src := range req.Sources {
		if src.Bytes > 0 && !m.isLocal(src) {
			return false
		}
		some = some || src.Bytes > 0
	}
	return some
}
