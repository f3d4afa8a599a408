package agent

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/standby"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Standbys holds what an owner has decided about standbys: of the own jobs, and here for others.
// Zero numbers are the defaults.
type Standbys struct {
	Count  int   // other agents that keep the facts of the own jobs: 0 or 2
	Accept bool  // whether this agent stands by for other members of the domain
	Groups int   // for so many owners at most; default 16
	Bytes  int64 // of facts of one of them at most; default 64 MiB
	Data   int64 // of inputs and modules of one of them at most; default 256 MiB

	// A silent agent is waited for as long as ElectionTimeout before another one acts; default
	// one second.
	ElectionTimeout time.Duration
}

func (s Standbys) withDefaults() Standbys {
	if s.Groups == 0 {
		s.Groups = 16
	}
	if s.Bytes == 0 {
		s.Bytes = 64 << 20
	}
	if s.Data == 0 {
		s.Data = 256 << 20
	}
	return s
}

// Pauses of forming a group.
const (
	silentFor  = time.Minute      // a standby that is silent for so long is replaced
	refusedFor = 10 * time.Minute // what a site said when it refused is shown for so long
	askAgain   = 5 * time.Second  // an unanswered question is asked again
	abandon    = 2 * time.Minute  // a change whose new members do not come is called off
	mostTries  = 3                // a question that was asked so often is not answered
)

// forming keeps track of how the owner's agent gets its standbys, and replaces them.
type forming struct {
	asked   map[grid.SiteID]time.Time // when
	tries   map[grid.SiteID]int       // how often, without an answer
	refused map[grid.SiteID]declined
	answers map[grid.SiteID]standby.MemberID // the numbers of those that have accepted
	// members that have said that they are none any more, or do not want to be; since when
	gone  map[standby.MemberID]time.Time
	since time.Time // of the change under way
}

// declined is a site's word that it does not stand by, or its silence. It is asked again after a
// pause that doubles: a machine that was busy for a moment soon, one without room seldom.
type declined struct {
	pause
	at  time.Time // of the latest word
	why string
}

// decline notes why a site does not stand by. What it says during a pause does not prolong it.
func (f *forming) decline(site grid.SiteID, now time.Time, why string) {
	d := f.refused[site]
	if !now.Before(d.until) {
		d.pause = d.next(now)
	}
	d.at, d.why = now, why
	f.refused[site] = d
	delete(f.answers, site)
	delete(f.tries, site)
}

func newForming() forming {
	return forming{
		asked: map[grid.SiteID]time.Time{}, tries: map[grid.SiteID]int{},
		refused: map[grid.SiteID]declined{},
		answers: map[grid.SiteID]standby.MemberID{}, gone: map[standby.MemberID]time.Time{},
	}
}

// assembly says who belongs to the group, as far as is known here.
type assembly struct {
	certificate protocol.Certificate // zero: nobody but the owner, whose word it would be
	encoded     []byte
	left        []grid.SiteID // sites that the one before has named
	joins       grid.SiteID   // who takes part again with it, under another number
}

// newMemberID draws the number of a member that joins.
func newMemberID() standby.MemberID {
	for {
		var text [8]byte
		_, _ = rand.Read(text[:]) // it never fails
		id := standby.MemberID(binary.BigEndian.Uint64(text[:]))
		cfg := standby.Default(id)
		if cfg.Validate() == nil {
			return id
		}
	}
}

// keyTarget is the row with the members that the change under way is to end with.
const keyTarget = "target"

func groupFact(key string, value any) step.Fact {
	return step.NewFact(broker.FactGroup, key, value)
}

// noteMembers takes the certificate from the table if it is newer than what is known.
func (g *group) noteMembers() {
	row := step.Fact{Kind: broker.FactGroup, Key: keyCertificate}
	row.Value = g.member.Row(row.Kind, row.Key)
	if row.Value == nil {
		return
	}
	if c, certified := certificateIn([]step.Fact{row}); certified {
		g.assemble(c)
	}
}

// assemble takes a certificate of the owner's for known if it is newer.
func (g *group) assemble(c protocol.Certificate) {
	if c.Owner == g.owner && c.Epoch > g.assembly.certificate.Epoch {
		before := g.assembly.certificate.Sites()
		g.assembly = assembly{certificate: c, encoded: c.Encode()}
		g.a.readers.join(g.owner, c.Sites())
		for _, site := range before {
			if !c.Names(site) {
				g.assembly.left = append(g.assembly.left, site)
			}
		}
	}
}

// siteOf is the site of a member, empty if it is not known.
func (g *group) siteOf(id standby.MemberID) grid.SiteID {
	if id == g.id {
		return g.a.mesh.Self()
	}
	for _, m := range g.assembly.certificate.Members {
		if standby.MemberID(m.ID) == id {
			return m.Site
		}
	}
	return ""
}

// form looks whether the group is as its owner wants it, and does what is next. It is asked with
// each tick, and when somebody has answered.
func (g *group) form() {
	if !g.duty.holds() || !g.acts() {
		return
	}
	g.saveSettings()
	conf := g.member.Members()
	if len(conf.Outgoing) > 0 {
		return // the two sets of voters agree on the end of it by themselves
	}
	target := g.target()
	switch {
	case target == nil && g.certifies(conf.Voters):
		g.wish(conf)
	case target == nil:
		g.certify(conf.Voters, nil) // the group was made anew
	case slices.Equal(target, conf.Voters):
		if len(conf.Learners) == 0 {
			g.certify(conf.Voters, nil)
		}
	case !g.forming.since.IsZero() && g.clock.now().Sub(g.forming.since) > abandon:
		g.log.Warn("standbys that have accepted do not come; others are asked")
		for site := range g.forming.answers {
			g.forming.decline(site, g.clock.now(), "it has accepted and did not come")
		}
		g.setTarget(conf.Voters)
	default:
		if g.forming.since.IsZero() {
			g.forming.since = g.clock.now()
		}
		g.tellCertificate()
		g.step(standby.Change{Voters: target})
	}
}

// certifies reports whether the certificate names just these, or nobody was ever certified.
func (g *group) certifies(voters []standby.MemberID) bool {
	named := g.assembly.certificate.Members
	return len(named) == 0 ||
		slices.EqualFunc(named, voters, func(m protocol.CertMember, id standby.MemberID) bool {
			return standby.MemberID(m.ID) == id
		})
}

// saveSettings lets all members know how the owner's machine is set up.
func (g *group) saveSettings() {
	row := groupFact(keySettings, g.duty.settings())
	if string(g.member.Row(row.Kind, row.Key)) != string(row.Value) {
		g.persist(nil, row)
	}
}

// target has the voters that the change under way is to end with, nil if there is none.
func (g *group) target() (voters []standby.MemberID) {
	if row := g.member.Row(broker.FactGroup, keyTarget); row != nil {
		_ = json.Unmarshal(row, &voters)
	}
	return voters
}

func (g *group) setTarget(voters []standby.MemberID) {
	g.forming.since = time.Time{}
	g.persist(nil, groupFact(keyTarget, voters))
}

// wish compares the voters with what the owner wants, while nothing is under way.
func (g *group) wish(conf standby.Conf) {
	g.forming.since = time.Time{}
	stay := []standby.MemberID{g.id}
	if g.duty.wanted() > 0 {
		stay = g.wanted(conf)
	}
	if len(stay) <= g.duty.wanted() {
		g.askOthers(conf)
		if !g.unwilling(conf) {
			return // two voters are worse than one, and a silent one may come back
		}
		g.log.Warn("nobody keeps all facts of an owner: it goes on without others",
			"owner", string(g.owner), "bytes", g.member.TableBytes())
		stay = []standby.MemberID{g.id}
	}
	stay = g.few(stay)
	slices.Sort(stay)
	if !slices.Equal(stay, conf.Voters) {
		g.certify(conf.Voters, stay)
	}
}

// few leaves out members that are too many: a new founder may have come as one more. Those that are
// connected stay. The first is this agent.
func (g *group) few(stay []standby.MemberID) []standby.MemberID {
	slices.SortStableFunc(stay[1:], func(a, b standby.MemberID) int {
		return cmp.Compare(g.away(a), g.away(b))
	})
	return stay[:min(len(stay), 1+g.duty.wanted())]
}

// away is 1 for a member whose site is not connected, else 0.
func (g *group) away(id standby.MemberID) int {
	if g.a.around.has(g.siteOf(id)) {
		return 0
	}
	return 1
}

// wanted lists the voters that are to stay, and those that have accepted as far as more are wanted.
func (g *group) wanted(conf standby.Conf) []standby.MemberID {
	wanted := g.staying(conf)
	for site, id := range g.forming.answers {
		isNew := len(wanted) <= g.duty.wanted() && !slices.Contains(wanted, id)
		if isNew && g.a.around.has(site) {
			wanted = append(wanted, id)
		}
	}
	return wanted
}

// isGone reports whether a member has said that it is none any more, or does not want to be.
func (g *group) isGone(id standby.MemberID) bool {
	_, gone := g.forming.gone[id]
	return gone
}

// staying lists the voters that are to stay: this one, and those that are heard.
func (g *group) staying(conf standby.Conf) []standby.MemberID {
	stay := []standby.MemberID{g.id}
	for _, id := range conf.Voters {
		silent := g.clock.now().Sub(g.member.Heard(id)) > silentFor
		if id != g.id && !silent && !g.isGone(id) {
			stay = append(stay, id)
		}
	}
	return stay
}

// askOthers asks sites that are connected whether they want to be members: as many as are missing
// when all come whose answer may come still.
func (g *group) askOthers(conf standby.Conf) {
	now := g.clock.now()
	open := g.duty.wanted() + 1 - len(g.wanted(conf))
	var free []grid.SiteID
	for _, site := range g.duty.candidates() {
		member := slices.ContainsFunc(conf.Voters, func(id standby.MemberID) bool {
			return g.siteOf(id) == site && !g.isGone(id)
		})
		_, accepted := g.forming.answers[site]
		if member || accepted || now.Before(g.forming.refused[site].until) {
			continue
		}
		if at, asked := g.forming.asked[site]; asked && now.Sub(at) < askAgain {
			open--
			continue
		}
		free = append(free, site)
	}
	for _, site := range free {
		if open <= 0 {
			return
		}
		if g.forming.tries[site] >= mostTries {
			g.forming.decline(site, now, "it does not answer; its version may be older")
			continue
		}
		open--
		g.forming.asked[site] = now
		g.forming.tries[site]++
		g.duty.invite(site, g.assembly.certificate.Epoch+1)
	}
}

// onAnswer takes a site's word whether it stands by; a refusal that nobody asked for says that
// it does so no longer.
func (g *group) onAnswer(from grid.SiteID, m protocol.StandbyAnswer) {
	if !m.Accept {
		g.noteGone(from)
	}
	if !g.duty.holds() {
		return
	}
	if m.Accept {
		delete(g.forming.tries, from)
		if _, asked := g.forming.asked[from]; asked {
			g.forming.answers[from] = standby.MemberID(m.Member)
		}
	} else {
		g.forming.decline(from, g.clock.now(), m.Reason)
		g.log.Info("a site does not stand by", "site", string(from), "reason", m.Reason)
	}
	g.form()
}

// noteGone notes that the member of another site is none any more, or does not want to be.
func (g *group) noteGone(site grid.SiteID) {
	for _, id := range g.member.Members().Voters {
		if g.siteOf(id) == site && id != g.id && !g.isGone(id) {
			g.forming.gone[id] = g.clock.now()
		}
	}
}
