package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/domain"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/standby"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// control is the duty of the domain's group: the domain's controller. Its owner is the domain
// itself. The founder, which is the site with the domain's key, speaks for it, whether or not it
// acts: the lead goes to a member that is there, and returns to nobody.
type control struct {
	*group

	running   *domain.Machine // nil: this agent does not act
	ranked    []grid.SiteID   // connected sites, the best available first
	told      uint64          // the epoch of the certificate that all were told with who acts
	toldAt    time.Time       // when
	handedAt  time.Time       // when the founder was offered the lead
	refusedAt time.Time       // when others were told that this agent wants no part
	lostSince time.Time       // since when nobody leads, as the founder knows; zero: somebody does
}

// Pauses of the domain's group.
const (
	tellControllerAgain = time.Minute // all are told who acts, in case that it was lost
	controlRest         = 1500 * time.Millisecond
	handAgain           = 5 * time.Second // the founder is offered the lead again
	renewAfter          = 5 * time.Minute // without a leader, until the founder makes it anew
)

// controlOf is this agent's part in the domain's group, nil if it has none.
func (s *groups) controlOf(owner grid.SiteID) *control {
	if g := s.of(owner); g != nil {
		c, _ := g.duty.(*control)
		return c
	}
	return nil
}

func newControl(g *group) *control {
	g.missed = true // the others are there already when it is founded
	return &control{group: g}
}

// settings of the table, as the founder has written them; zero: it has not yet.
func (c *control) stored() (s controlSettings) {
	if text := c.member.Row(domain.FactGroup, keySettings); text != nil {
		_ = json.Unmarshal(text, &s) // as it was written; else the defaults
	}
	return s
}

func (c *control) makeMachine() (step.Machine, any) {
	settings := c.stored()
	if c.holds() {
		settings = c.a.controlSettings()
	}
	config := settings.config(c.a.mesh.Self())
	m, err := domain.New(config)
	if err != nil { // a later version's
		c.log.Warn("the controller goes by the defaults", "error", err)
		config = domain.Default(c.a.mesh.Self())
		m, _ = domain.New(config)
	}
	return m, config
}

func (c *control) begins(m step.Machine, term uint64) {
	c.running, _ = m.(*domain.Machine)
	if c.alone() {
		return // nobody is told of it
	}
	c.log.Info("this agent is the controller of the domain", "term", term)
	c.a.reports.count("controller_booted")
}

// begun tells the machine of its own site and clock, and all sites of the machine.
func (c *control) begun(bool) {
	if ahead := c.a.clock.shows().Sub(c.a.clock.now()); ahead != 0 {
		c.think(step.ClockStepped{By: ahead})
	}
	c.think(step.PeerSeen{
		Site: c.a.mesh.Self(), Name: c.a.cfg.Name, Capability: c.a.host.ceilings(),
		Owner: c.a.cfg.P2P.Owner, Line: c.store.Line(),
	})
	c.tellAll()
}

func (c *control) ends(why string) {
	c.log.Info("this agent is the controller of the domain no longer", "term", c.term, "why", why)
	c.told, c.running = 0, nil
	c.a.heeding.resigns()
}

// takes leaves out what brokers alone are told of this site.
func (c *control) takes(in step.Input) bool {
	switch in := in.(type) {
	case step.PeerSeen:
		return in.Domain == "" // a neighbour has no reservations of this domain's
	case step.Boot, step.MessageReceived, step.TimerFired, step.PeerGone,
		step.BansChanged, step.ClockStepped:
		return true
	}
	return false
}

// isIdle lets the group rest whenever nothing is written: a controller that is missed a moment
// later is missed by nobody, for it holds no lease.
func (c *control) isIdle() bool { return true }

func (c *control) restored() bool { return false }

// rest is shorter than that of jobs: another controller is to act within five seconds also if this
// one falls silent in its rest.
func (c *control) rest(usual time.Duration) time.Duration { return min(usual, controlRest) }

// perform carries out what a controller may want: to tell sites and submitters something.
func (c *control) perform(e step.Effect) {
	switch e := e.(type) {
	case step.Send:
		if protocol.ForBroker(e.Message) {
			c.a.sendOwner(e.To, e.Message) // who acts for it may be another
		} else {
			c.a.send(e.To, e.Message)
		}
	case step.Report:
		c.a.perform(e)
	default:
		c.a.reports.count("controller_overstepped")
	}
}

// tick tells all sites of a certificate that is new, and makes sure that the founder can do the
// things that nobody else may.
func (c *control) tick() {
	epoch, now := c.assembly.certificate.Epoch, c.clock.now()
	if c.acts() && (c.told != epoch || now.Sub(c.toldAt) > tellControllerAgain) {
		c.tellAll()
	}
	if c.holds() && c.acts() && len(c.staying(c.member.Members())) <= c.wanted() {
		c.rank()
	}
	c.handToFounder()
	c.withdraw()
	c.renewIfLost()
}

// tellAll tells all connected sites, and this one, that this agent is the controller.
func (c *control) tellAll() {
	if !c.acts() || c.assembly.encoded == nil {
		return
	}
	c.told, c.toldAt = c.assembly.certificate.Epoch, c.clock.now()
	c.tellNews(c.a.around.sites(c.owner)...)
	c.a.heeding.takesOffice(c.a.mesh.Self(), c.news())
}

// met tells a site that comes who the controller is.
func (c *control) met(site grid.SiteID) {
	if c.acts() {
		c.tellNews(site)
	}
}

// rank asks the broker, which watches all sites, for the best available ones.
func (c *control) rank() {
	c.a.broker.soon(func() {
		var known []broker.MemberState
		if m := c.a.seenBroker(); m != nil {
			known = m.Members()
		}
		c.soon(func() { c.ranked = rankMembers(known) })
	})
}

// handToFounder hands the lead to the founder when a member is to be replaced, which needs the
// domain's key.
func (c *control) handToFounder() {
	now, founder := c.clock.now(), c.seat()
	id := c.memberOf(founder)
	if !c.acts() || c.holds() || id == 0 || !c.a.around.has(founder) || !c.lacks() ||
		now.Sub(c.handedAt) < handAgain || !c.member.CanLead(id) {
		return
	}
	c.handedAt = now
	c.log.Info("the founder of the domain's group is to replace a member", "founder", founder)
	c.step(standby.Transfer{To: id})
}

// lacks reports whether a voter is silent, or wants to be none, or a change was not ended.
func (c *control) lacks() bool {
	conf := c.member.Members()
	return c.target() != nil || slices.ContainsFunc(conf.Voters, func(id standby.MemberID) bool {
		silent := c.clock.now().Sub(c.member.Heard(id)) > silentFor
		return id != c.id && (silent || c.isGone(id))
	})
}

// withdraw asks for a replacement if this site's owner wants no part any more, or, with the
// domain's key, no controller: then the founder needs the lead to end the group.
func (c *control) withdraw() {
	now, wants := c.clock.now(), c.a.cfg.Controller.Accept
	if c.holds() {
		wants = c.wanted() > 0 || c.acts()
	}
	if wants || c.alone() || now.Sub(c.refusedAt) < sayLimit {
		return
	}
	for _, site := range c.others() {
		if c.a.around.has(site) {
			c.refusedAt = now
			c.refuse(site, "its owner wants no part in the domain's group")
		}
	}
}

// renewIfLost makes the group anew when too many members are lost for good. The founder need not
// ask anybody: should the others live, and cannot be reached, there are two controllers for a
// while, which do no harm.
func (c *control) renewIfLost() {
	leader, term := c.member.Leader()
	now := c.clock.now()
	if leader != 0 || !c.holds() || c.wanted() == 0 ||
		len(c.a.around.sites(c.owner)) < domainOthers {
		c.lostSince = time.Time{}
		return
	}
	if c.lostSince.IsZero() {
		c.lostSince = now
	}
	if now.Sub(c.lostSince) < renewAfter {
		return
	}
	c.lostSince = time.Time{}
	c.log.Warn("the domain's group has lost its majority and is made anew")
	_, _, heard := c.a.heeding.controller()
	if err := c.renew(max(term, heard)); err != nil {
		c.log.Error("the domain's group cannot be made anew", "error", err)
	}
}

// unreadable ends this agent's part: facts of a later version are no reason to end anything else.
func (c *control) unreadable(err error) {
	c.log.Error("the facts of the domain's controller cannot be read here", "error", err)
	c.a.reports.count("group_unreadable")
	for _, site := range c.others() {
		c.refuse(site, short(err.Error()))
	}
	c.a.spawn(func() { c.a.dismiss(c.group, "its facts cannot be read here") })
}

func (c *control) dismissed() {}

// holds reports whether this agent is the founder.
func (c *control) holds() bool { return c.a.members.Holds() && c.owner == c.a.domainSite() }

// seat is the founder, as it says with its settings, or as it joins the group again.
func (c *control) seat() grid.SiteID {
	if c.holds() {
		return c.a.mesh.Self()
	}
	if c.assembly.joins != "" {
		return c.assembly.joins
	}
	return c.stored().Founder
}

func (c *control) sign(text []byte) ([]byte, error) { return c.a.members.Sign(text) }

func (c *control) settings() any { return c.a.controlSettings() }

func (c *control) wanted() int {
	if c.a.cfg.Controller.Found {
		return domainOthers
	}
	return 0
}

func (c *control) candidates() []grid.SiteID {
	return slices.DeleteFunc(slices.Clone(c.ranked), func(site grid.SiteID) bool {
		return !c.a.around.has(site)
	})
}

func (c *control) invite(site grid.SiteID, epoch uint64) {
	c.a.sendQuietly(site, protocol.GroupAsk{
		Owner:      c.owner,
		StandbyAsk: protocol.StandbyAsk{Epoch: epoch, Facts: c.member.TableBytes()},
	})
}

func (c *control) refuse(site grid.SiteID, reason string) {
	if site == "" {
		return // nobody knows the founder
	}
	c.a.sendQuietly(site, protocol.GroupAnswer{
		Owner: c.owner, StandbyAnswer: protocol.StandbyAnswer{Reason: reason},
	})
}

func (c *control) mayRejoin(grid.SiteID) bool { return true }

// newController makes a controller as the header of its journal says, for a replay.
func newController(config []byte) (step.Machine, error) {
	var c domain.Config
	if err := json.Unmarshal(config, &c); err != nil {
		return nil, fmt.Errorf("configuration of the controller: %w", err)
	}
	return domain.New(c)
}
