package p2p

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// farewell is the time that a banned peer has to read why.
const farewell = 100 * time.Millisecond

// judgeSite says why a site is not dealt with now, or ReasonNone: it is no member, or has cost
// too much a short while ago.
func (m *Mesh) judgeSite(site grid.SiteID) grid.Reason {
	reason := m.judgeMember(site)
	if reason == grid.ReasonNone && m.keptOut.hasSite(site, time.Now()) {
		return grid.ReasonFlood
	}
	return reason
}

// judgeMember says why a site may not be a member, or ReasonNone. The owner's own
// decision about it comes first, then the owner's list, then the roster.
func (m *Mesh) judgeMember(site grid.SiteID) grid.Reason {
	if site == m.self {
		return grid.ReasonNone
	}
	standing := m.cfg.Members.Standing(site)
	switch {
	case standing == member.BannedHere:
		return grid.ReasonBanned
	case m.members[site] || standing == member.AdmittedHere:
		return grid.ReasonNone
	case standing == member.Banned:
		return grid.ReasonBanned
	case standing == member.Admitted || m.cfg.AcceptAnyone && !m.isGateway(site):
		return grid.ReasonNone
	default:
		return grid.ReasonNotMember
	}
}

// Judge says why a site may not be a member, or ReasonNone.
func (m *Mesh) Judge(site grid.SiteID) grid.Reason { return m.judgeSite(site) }

// Canonical is the one form in which a site's ID is compared.
func Canonical(site grid.SiteID) (grid.SiteID, error) {
	id, err := wire.PeerOf(site)
	if err != nil {
		return "", fmt.Errorf("%w: %w", grid.ErrInvalid, err)
	}
	return wire.SiteOf(id), nil
}

// reasonForUs is why a peer that says nothing more refuses this site.
func (m *Mesh) reasonForUs() grid.Reason {
	if m.cfg.Members.Standing(m.self) == member.Banned {
		return grid.ReasonBanned
	}
	return grid.ReasonNotMember
}

// hopeless reports whether a refusal will stand for long. A peer that does not
// know a site which the domain admitted will hear of it soon.
func (m *Mesh) hopeless(err error) bool {
	if !isRefusal(err) {
		return false
	}
	return m.cfg.Members.Standing(m.self) != member.Admitted
}

// Share tells the members records that this site has issued, and acts on them.
func (m *Mesh) Share(records []protocol.MemberRecord) {
	if !m.enter() {
		return
	}
	defer m.wg.Done()
	m.flood(parts(records, nil), nil)
	m.review()
}

// ShareRoster tells the members all of this site's roster, with the successions of the domain's
// key: it has a new one.
func (m *Mesh) ShareRoster() {
	if !m.enter() {
		return
	}
	defer m.wg.Done()
	roster := m.cfg.Members.Roster()
	m.flood(parts(roster.Records(), roster.Successions()), nil)
	m.review()
}

// flood passes parts of a roster on to all peers but the one they came from. What is lost
// in a full queue is found missing by the Hello that follows.
func (m *Mesh) flood(news []protocol.Roster, from *remote) {
	for _, r := range m.all() {
		if _, present := r.admitted(); !present {
			continue
		}
		if r != from {
			for _, part := range news {
				r.sendSoon(part)
			}
		}
		r.tell(nil)
	}
}

// parts are records in messages; the first one has the successions of the key that has signed them.
func parts(
	records []protocol.MemberRecord, successions []protocol.Succession,
) (list []protocol.Roster) {
	for chunk := range slices.Chunk(records, protocol.MaxRosterRecords) {
		list = append(list, protocol.Roster{Records: chunk})
	}
	if len(list) == 0 {
		list = []protocol.Roster{{}}
	}
	list[0].Successions = successions
	return list
}

// sendSoon queues a message of the mesh's own; what does not fit is counted.
func (r *remote) sendSoon(message protocol.Message) {
	frame, err := protocol.AppendFrame(nil, message)
	if err == nil {
		err = r.enqueue(frame)
	}
	if err != nil {
		r.m.log.Debug("message about members is not sent", "peer", r.site, "error", err)
	}
}

// compareRoster sends this site's roster to a peer that has another one. Both
// sides do, so both have all in the end.
func (r *remote) compareRoster(theirs protocol.Digest) {
	own := r.m.cfg.Members.Roster().Digest()
	if own != (protocol.Digest{}) && theirs != (protocol.Digest{}) && own != theirs {
		r.sendRoster(false)
	}
}

// sendRoster sends the whole roster, unless that was done a moment ago; then the
// digests are compared again later.
func (r *remote) sendRoster(answer bool) {
	now := time.Now()
	r.mu.Lock()
	wait := r.m.cfg.Timing.RosterGap - now.Sub(r.roster)
	planned := r.compare
	if wait <= 0 {
		r.roster = now
	} else {
		r.compare = true
	}
	r.mu.Unlock()
	if wait > 0 {
		if !planned {
			r.m.after(wait, r.compareAgain)
		}
		return
	}
	for _, part := range rosterParts(r.m.cfg.Members.Roster(), answer) {
		r.sendSoon(part)
	}
}

// compareAgain says Hello with the digest of now.
func (r *remote) compareAgain() {
	r.mu.Lock()
	r.compare = false
	r.mu.Unlock()
	r.tell(nil)
}

// rosterParts is a roster in messages; the last one has the digest.
func rosterParts(roster member.Roster, answer bool) []protocol.Roster {
	list := parts(roster.Records(), roster.Successions())
	for i := range list {
		list[i].Answer = answer
	}
	list[len(list)-1].Digest = roster.Digest()
	return list
}

// aboutMembers takes the messages that are for the mesh itself, and reports
// whether this was one.
func (m *Mesh) aboutMembers(r *remote, message protocol.Message) bool {
	switch message := message.(type) {
	case protocol.Roster:
		m.onRoster(r, message)
		return true
	case protocol.JoinRequest, protocol.JoinAnswer:
		m.counts.Inc(wire.CountInvalid, wire.CauseFormat)
		return true
	default:
		return false
	}
}

func (m *Mesh) onRoster(r *remote, message protocol.Roster) {
	followed, err := m.cfg.Members.Follow(message.Successions)
	if err != nil {
		m.notFollowed(r, err)
		return // what another key has signed
	}
	fresh, err := m.cfg.Members.Merge(message.Records)
	if err != nil {
		m.counts.Inc(wire.CountRoster, rosterLabel(err))
		m.log.Warn("records of members are not usable", "peer", r.site, "error", err)
	}
	var chain []protocol.Succession
	if len(followed) > 0 {
		chain = m.cfg.Members.Roster().Successions()
		last := followed[len(followed)-1]
		m.log.Info("the domain has another key", "key", string(last.Successor),
			"former", string(last.Former), "succession", last.Number, "peer", r.site)
	}
	if len(fresh)+len(followed) > 0 {
		m.counts.Add(wire.CountRoster, "fresh", uint64(len(fresh)))
		m.flood(parts(fresh, chain), r)
		m.review()
		if m.handlers.OnMembers != nil {
			m.handlers.OnMembers()
		}
	}
	own := m.cfg.Members.Roster().Digest()
	last := message.Digest != (protocol.Digest{})
	if last && !message.Answer && own != (protocol.Digest{}) && own != message.Digest {
		r.sendRoster(true)
	}
}

// notFollowed takes down that a peer has said something about the domain's key that does not hold.
func (m *Mesh) notFollowed(r *remote, err error) {
	m.counts.Inc(wire.CountRoster, rosterLabel(err))
	m.log.Warn("a successor of the domain's key is not followed", "peer", r.site, "error", err)
}

// rosterLabel says in a word why records or successions were not taken over.
func rosterLabel(err error) string {
	switch {
	case errors.Is(err, member.ErrFormer):
		return "former"
	case errors.Is(err, member.ErrContested):
		return "contested"
	default:
		return "forged"
	}
}

// Review acts on what the owner decided: a banned peer is cut off immediately,
// and one that was refused before is tried again.
func (m *Mesh) Review() {
	if !m.enter() {
		return
	}
	defer m.wg.Done()
	m.review()
}

// review is Review for callers that keep Close waiting.
func (m *Mesh) review() {
	for _, r := range m.all() {
		reason := m.judgeSite(r.site)
		if reason != grid.ReasonNone {
			m.expel(r, reason)
			continue
		}
		if _, present := r.admitted(); !present {
			r.kick()
		}
	}
	for _, id := range m.book.ids() {
		if m.judgeMember(wire.SiteOf(id)) != grid.ReasonNone {
			m.forgetAddrs(id)
		}
	}
	for _, c := range m.host.Network().Conns() {
		m.dismiss(c)
	}
}

// belongs reports whether a connection is a member's, a guest's or a linked domain's.
func (m *Mesh) belongs(c network.Conn) bool {
	return m.Allowed(c.RemotePeer()) || m.lobby.Has(c) || m.borders(c.RemotePeer())
}

// dismiss closes a connection of a peer that is neither a member nor a guest nor a neighbour:
// one that was complete just when the peer was banned.
func (m *Mesh) dismiss(c network.Conn) {
	if !m.ownHost || m.belongs(c) || !m.enter() {
		return
	}
	defer m.wg.Done()
	m.after(farewell, func() {
		if !m.belongs(c) {
			_ = c.Close()
		}
	})
}

// expel ends all that this site has to do with a peer, after a word on why.
func (m *Mesh) expel(r *remote, reason grid.Reason) {
	m.mu.Lock()
	if m.remotes[r.site] != r {
		m.mu.Unlock()
		return
	}
	delete(m.remotes, r.site)
	m.mu.Unlock()
	if record, known := m.cfg.Members.Roster().Get(r.site); known {
		r.sendSoon(protocol.Roster{Records: []protocol.MemberRecord{record}})
	}
	r.sendSoon(m.hello(reason, nil))
	m.refused(&refusedError{Site: r.site, Reason: reason})
	r.order.Lock()
	r.mu.Lock()
	r.expelled = true
	run := r.facts.Run
	r.mu.Unlock()
	r.order.Unlock()
	r.gone(run, false)
	if reason != grid.ReasonFlood { // such a peer is dialled again
		m.forgetAddrs(r.id)
	}
	m.after(farewell, func() {
		r.end()
		if !m.allowsSite(r.site) {
			_ = m.host.Network().ClosePeer(r.id)
		}
	})
}

func (m *Mesh) forgetAddrs(id peer.ID) {
	m.book.remove(id)
	m.host.Peerstore().ClearAddrs(id)
}

func (r *remote) isExpelled() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.expelled
}
