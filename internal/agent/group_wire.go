package agent

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/internal/store"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/standby"
)

// parcels are messages of members that go in parts, see group_send.go, or come in parts: of each
// member one at a time, the newest.
type parcels struct {
	sent uint64 // messages to other members so far
	out  map[standby.MemberID]*outgoing
	open map[standby.MemberID]*parcel
}

type parcel struct {
	number uint64
	parts  [][]byte
	left   int
}

// onGroup takes a part of a message of another member. Who it is says the certificate.
func (g *group) onGroup(from grid.SiteID, m protocol.Group) {
	sender := standby.MemberID(m.From)
	switch {
	case standby.MemberID(m.To) != g.id:
		g.duty.refuse(from, "this member has lost its log")
		return
	case g.siteOf(sender) != from:
		g.a.reports.count("group_stranger")
		g.tellNews(from)
		return
	}
	if g.limit.closed {
		return
	}
	if data := g.parcels.add(sender, m); data != nil {
		if len(data) > guardAbove {
			g.guard() // on a busy machine the next look is late
		}
		g.step(standby.Received{From: sender, Data: data})
	}
}

// add is the whole message when its last part has come, else nil.
func (p *parcels) add(sender standby.MemberID, m protocol.Group) []byte {
	if m.Parts == 1 {
		return m.Data
	}
	if p.open == nil {
		p.open = map[standby.MemberID]*parcel{}
	}
	now := p.open[sender]
	if now == nil || now.number != m.Message || len(now.parts) != int(m.Parts) {
		if now != nil && now.number > m.Message {
			return nil
		}
		now = &parcel{number: m.Message, parts: make([][]byte, m.Parts), left: int(m.Parts)}
		p.open[sender] = now
	}
	if now.parts[m.Part] == nil {
		now.parts[m.Part] = m.Data
		now.left--
	}
	if now.left > 0 {
		return nil
	}
	delete(p.open, sender)
	return bytes.Join(now.parts, nil)
}

// aboutGroups takes a message between members of groups, or those that may become some.
func (a *Agent) aboutGroups(from grid.SiteID, m protocol.Message) bool {
	switch m := m.(type) {
	case protocol.Group:
		if g := a.groups.of(m.Owner); g != nil {
			g.soon(func() { g.onGroup(from, m) })
		} else {
			a.refuse(from, m.Owner, "no part in this group any more")
		}
	case protocol.StandbyAsk:
		a.spawn(func() { a.standByFor(from, m) })
	case protocol.StandbyAnswer:
		if g := a.groups.of(a.mesh.Self()); g != nil {
			g.soon(func() { g.onAnswer(from, m) })
		}
	case protocol.StandbyNews:
		a.onNews(from, m.Certificate, false)
	case protocol.Rejoin:
		a.onNews(from, m.Certificate, true)
	default:
		return a.aboutDuties(from, m)
	}
	return true
}

// aboutDuties takes a message about the domain's group, or about the data of jobs.
func (a *Agent) aboutDuties(from grid.SiteID, m protocol.Message) bool {
	switch m := m.(type) {
	case protocol.GroupAsk:
		a.spawn(func() { a.joinDomain(from, m) })
	case protocol.GroupAnswer:
		if g := a.groups.of(m.Owner); g != nil {
			g.soon(func() { g.onAnswer(from, m.StandbyAnswer) })
		}
	case protocol.Keep:
		if j := a.groups.jobsOf(m.Owner); j != nil {
			j.soon(func() { j.onKeep(from, m) })
		}
	case protocol.Kept:
		if j := a.groups.jobsOf(m.Owner); j != nil {
			j.soon(func() { j.content.onKept(j, from, m) })
		}
	default:
		return false
	}
	return true
}

// onNews takes a certificate from anybody: what counts is the owner's signature.
func (a *Agent) onNews(from grid.SiteID, encoded []byte, joins bool) {
	c, err := protocol.DecodeCertificate(encoded)
	if err == nil {
		err = c.Verify(p2p.SignedBy)
	}
	if err != nil {
		a.reports.count("certificate_refused")
		a.log.Warn("a certificate is not used", "from", string(from), "error", err)
		return
	}
	if g := a.groups.of(c.Owner); g != nil {
		g.soon(func() { g.onCertificate(from, c, joins) })
	}
}

// onCertificate heeds the owner's word on who belongs to the group; joins says that it comes from
// the owner's agent, which takes part again.
func (g *group) onCertificate(from grid.SiteID, c protocol.Certificate, joins bool) {
	newer := c.Epoch > g.assembly.certificate.Epoch
	names := slices.ContainsFunc(c.Members, func(m protocol.CertMember) bool {
		return standby.MemberID(m.ID) == g.id
	})
	switch {
	case g.duty.holds() && !names && (newer || g.joins()):
		g.rejoin(from, c) // an old certificate that somebody shows again changes nothing
	case !newer:
	case !names && g.joins() && g.clock.now().Sub(g.made) < abandon:
		// It was asked a moment ago, and the certificate that names it is on its way.
	case !names:
		g.a.spawn(func() { g.a.dismiss(g, "the owner has others stand by now") })
	case g.duty.holds():
		g.assemble(c)
	default:
		g.assemble(c)
		if joins {
			g.assembly.joins = from
		}
		g.admit()
	}
}

// admit lets the owner back into its group under another number, where this agent acts: it has
// lost its log, and the certificate says so with its key. It is asked again with each tick, since
// the certificate may have come before this agent acted.
func (g *group) admit() {
	conf := g.member.Members()
	if !g.acts() || g.duty.holds() || len(conf.Outgoing) > 0 {
		return
	}
	if target := g.target(); target != nil {
		if !slices.Equal(target, conf.Voters) {
			g.step(standby.Change{Voters: target})
		}
		return // the owner ends it with its next certificate
	}
	voters, comes := g.withOwner(conf)
	if !comes {
		return
	}
	g.persist(func() { g.step(standby.Change{Voters: voters}) },
		groupFact(keyCertificate, g.assembly.encoded), groupFact(keyTarget, voters))
}

// withOwner has the voters with the owner's new number in place of the old one; comes says that
// there is one.
func (g *group) withOwner(conf standby.Conf) (voters []standby.MemberID, comes bool) {
	for _, m := range g.assembly.certificate.Members {
		id := standby.MemberID(m.ID)
		votes := slices.Contains(conf.Voters, id)
		if m.Site == g.duty.seat() {
			comes = comes || !votes
		}
		if votes == (m.Site != g.duty.seat()) {
			voters = append(voters, id)
		}
	}
	return voters, comes
}

// standByFor answers an owner who asks for a standby.
func (a *Agent) standByFor(owner grid.SiteID, m protocol.StandbyAsk) {
	id, err := a.enlist(owner, m)
	if err != nil {
		a.sendQuietly(owner, protocol.StandbyAnswer{Reason: short(err.Error()), Epoch: m.Epoch})
		return
	}
	a.sendQuietly(owner, protocol.StandbyAnswer{Accept: true, Member: uint64(id), Epoch: m.Epoch})
}

// enlist makes this agent a member of an owner's group that waits to be told its table. One that
// has asked to be replaced, for it has too much of the owner's, refuses as others do.
func (a *Agent) enlist(owner grid.SiteID, m protocol.StandbyAsk) (standby.MemberID, error) {
	a.groups.turn.Lock()
	defer a.groups.turn.Unlock()
	limits := a.cfg.Standbys.withDefaults()
	g := a.groups.of(owner)
	switch {
	case g != nil && m.Facts <= limits.Bytes:
		return g.id, nil // it was asked before; one that is out of date is told by a certificate
	case !limits.Accept:
		return 0, fmt.Errorf("%w: this site's owner lets it stand by for nobody", grid.ErrInvalid)
	case m.Facts > limits.Bytes:
		return 0, fmt.Errorf("%w: %s of facts, this site keeps %s at most", grid.ErrInvalid,
			grid.FormatBytes(m.Facts), grid.FormatBytes(limits.Bytes))
	case a.groups.foreign(a.mesh.Self()) >= limits.Groups:
		return 0, fmt.Errorf("%w: this site stands by for %d owners, no more", grid.ErrInvalid,
			limits.Groups)
	}
	member := store.Member{
		Name: a.groupName(owner), ID: newMemberID(), Owner: owner, Stored: standby.Joining(),
	}
	if err := a.takePart(member); err != nil {
		return 0, err
	}
	a.log.Info("this agent stands by for an owner", "owner", string(owner))
	return member.ID, nil
}

// dismiss ends this agent's part in an owner's group.
func (a *Agent) dismiss(g *group, why string) {
	a.groups.turn.Lock()
	defer a.groups.turn.Unlock()
	if a.groups.of(g.owner) != g {
		return
	}
	a.groups.remove(g)
	g.end()
	<-g.ended
	a.log.Info("this agent has no part in a group any more", "owner", string(g.owner), "why", why)
	if err := a.store.Dismiss(g.name, false); err != nil {
		a.log.Warn("what was kept for an owner could not be deleted", "error", err)
	}
	g.duty.dismissed()
}

// joins reports whether this member waits to be sent the table.
func (g *group) joins() bool { return len(g.member.Members().Voters) == 0 }

// rejoin makes the owner's agent a new member of its group, whose log it has lost: with its disk,
// or because it was restored from a backup.
func (g *group) rejoin(to grid.SiteID, c protocol.Certificate) {
	if !g.duty.mayRejoin(to) {
		return
	}
	g.a.groups.turn.Lock()
	defer g.a.groups.turn.Unlock()
	if !g.joins() { // else it has asked before
		if g.acts() {
			g.discard(standby.Discard{
				Term: g.term, Why: "the group of an earlier life is joined again",
			})
		}
		g.id = newMemberID()
		member := store.Member{Name: g.name, ID: g.id, Owner: g.owner, Stored: standby.Joining()}
		if err := g.begin(member); err != nil {
			g.a.leave(err)
			return
		}
	}
	c.Epoch++
	c.Members = append(
		slices.DeleteFunc(slices.Clone(c.Members), func(m protocol.CertMember) bool {
			return m.Site == g.a.mesh.Self() // whose logs are lost
		}),
		protocol.CertMember{ID: uint64(g.id), Site: g.a.mesh.Self()},
	)
	next, err := c.Sign(g.duty.sign)
	if err != nil {
		g.log.Error("a group cannot be joined again", "owner", string(g.owner), "error", err)
		return
	}
	g.assemble(next)
	for _, site := range g.others() {
		g.a.sendQuietly(site, protocol.Rejoin{Certificate: next.Encode()})
	}
}
