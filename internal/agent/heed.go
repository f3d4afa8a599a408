package agent

import (
	"fmt"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/standby"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// officesName is the name of what is known of groups in the store.
const officesName = "offices"

// The bounds of a register.
const (
	mostOwners = 4096 // with a group, of which something is remembered
	// freshActing is a third of a lease: a site that asks for leases in time has heard of who acts
	// when it asks again.
	freshActing = time.Second
)

// heeding stands between the mesh and the site's machine, which knows owners alone: whom the
// machine heeds as an owner, whom it answers, and whether an owner is there. What it hands to the
// machine it hands over in the order in which it judged it. It is safe for concurrent use.
type heeding struct {
	save    func([]step.Fact) error   // durable when it returns
	allowed func(grid.SiteID) bool    // who may be a member of the domain
	busy    func() []grid.SiteID      // submitters of the attempts here
	tell    func(step.Input)          // tells the site's machine
	offer   func(step.Input) error    // the same, unless too much waits
	tellAll func(step.Input)          // tells all machines
	control func(step.Input) error    // tells the domain's controller, if it is here
	border  func(step.Input) error    // tells the border's machine, if it is here
	domain  func() grid.SiteID        // who the domain is as an owner; empty: it has no key
	now     func() time.Time          // the machines' clock
	refused func(why standby.Refusal) // counts
	self    grid.SiteID

	mu       sync.Mutex
	register *standby.Register             // guarded by mu
	here     map[grid.SiteID]step.PeerSeen // guarded by mu; who is connected
	shown    map[grid.SiteID]bool          // guarded by mu; whom the machine takes for connected
	lines    map[grid.SiteID]uint64        // guarded by mu; of owners that are not connected
	post     post                          // guarded by mu; the domain's controller
}

// newHeeding makes it without anything known; its functions are filled in before its use.
func newHeeding() *heeding {
	h := &heeding{
		allowed: func(grid.SiteID) bool { return true },
		domain:  func() grid.SiteID { return "" },
		here:    make(map[grid.SiteID]step.PeerSeen), shown: make(map[grid.SiteID]bool),
		lines: make(map[grid.SiteID]uint64),
	}
	h.register = standby.NewRegister(standby.RegisterConfig{
		Owners: mostOwners, Fresh: freshActing, Verify: p2p.SignedBy, Busy: h.busyOwners,
	})
	return h
}

func (h *heeding) busyOwners() map[grid.SiteID]bool {
	owners := map[grid.SiteID]bool{h.domain(): true} // whose controller is always of use
	if h.busy == nil {
		return owners
	}
	for _, owner := range h.busy() {
		owners[owner] = true
	}
	return owners
}

// openHeeding takes up what earlier runs knew.
func (a *Agent) openHeeding() error {
	facts, err := a.store.Load(officesName)
	if err != nil {
		return fmt.Errorf("what is known of standbys: %w", err)
	}
	h := newHeeding()
	if err := h.register.Restore(facts); err != nil {
		return fmt.Errorf("what is known of standbys: %w", err)
	}
	h.save = func(facts []step.Fact) error {
		err := a.store.Apply(officesName, facts)
		if err != nil {
			a.disk.lacked(err) // then it makes room
		}
		return err
	}
	h.self, h.allowed, h.busy = a.mesh.Self(), a.mesh.Admits, a.work.submitters
	h.domain = a.domainSite
	a.wireHeeding(h)
	return nil
}

// wireHeeding connects it with the site's machine.
func (a *Agent) wireHeeding(h *heeding) {
	h.tell, h.offer, h.now = a.site.tell, a.site.offer, a.clock.now
	h.tellAll, h.control = a.tellMachines, a.tellController
	h.border = a.border.offer
	h.refused = func(why standby.Refusal) { a.reports.count("heed_" + why.Label()) }
	a.heeding = h
}

// deliver hands a message to the machine that it is for.
func (a *Agent) deliver(from grid.SiteID, m protocol.Message) {
	if a.aboutController(from, m) {
		return
	}
	on, behalf := m.(protocol.OnBehalf)
	var err error
	switch {
	case behalf && protocol.ForBroker(m):
		a.groupReceived(on.Owner, from, on.Message)
	case protocol.ForBroker(m):
		err = a.broker.offer(step.MessageReceived{From: from, Message: m})
	default:
		var news *protocol.StandbyNews
		if news, err = a.heeding.take(from, m, ""); news != nil {
			a.send(from, *news)
		}
	}
	if err != nil {
		a.reports.count("message_dropped")
	}
}

// take hands a message to the site's machine, to the domain's controller if it is for that, or to
// the border's machine if it is for a neighbour, as one of the owner on whose behalf it is said, if
// its sender is heeded. A sender that is not is answered with the news, if there are any for it.
func (h *heeding) take(
	from grid.SiteID, m protocol.Message, neighbour grid.SiteID,
) (news *protocol.StandbyNews, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	owner, message := from, m
	var v standby.Verdict
	if on, is := m.(protocol.OnBehalf); is {
		owner, message = on.Owner, on.Message
		if !h.allowed(owner) {
			v.Why = standby.RefusedStranger
		} else {
			v = h.register.Admit(h.now(), from, on.Behalf)
		}
	} else {
		v = h.register.Plain(owner)
	}
	if err := h.keep(owner, v.Facts); err != nil {
		return nil, err
	}
	if v.Why != standby.Heeded {
		h.refused(v.Why)
		return v.News, nil
	}
	if v.Began {
		h.began(owner, from)
	}
	offer := h.offer
	if neighbour != "" {
		offer = h.border
	} else if protocol.ForController(message) {
		offer = h.control
	}
	return nil, offer(step.MessageReceived{From: owner, To: neighbour, Message: message})
}

// noteCertificate takes what a message among group members says of who may act.
func (a *Agent) noteCertificate(from grid.SiteID, m protocol.Message) {
	switch m := m.(type) {
	case protocol.StandbyNews:
		office, news := a.heeding.takesOffice(from, m)
		if news != nil {
			a.sendQuietly(from, *news)
		}
		if !office {
			a.heeding.learn(m.Certificate)
		}
	case protocol.Rejoin:
		a.heeding.learn(m.Certificate)
	}
}

// learn takes a certificate that comes by itself.
func (h *heeding) learn(certificate []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c, err := protocol.DecodeCertificate(certificate)
	switch {
	case err != nil:
		h.refused(standby.RefusedForged)
		return
	case c.Owner != h.domain() && !h.allowed(c.Owner):
		h.refused(standby.RefusedStranger)
		return
	}
	v := h.register.Learn(certificate)
	if err := h.keep(c.Owner, v.Facts); err != nil || v.Why == standby.Heeded {
		return // what is not kept comes again with the next message
	}
	h.refused(v.Why)
}

// keep makes facts about an owner durable; h.mu is held.
func (h *heeding) keep(owner grid.SiteID, facts []step.Fact) error {
	if len(facts) == 0 {
		return nil
	}
	if err := h.save(facts); err != nil {
		return fmt.Errorf("keep who acts for an owner: %w", err)
	}
	h.register.Saved(owner)
	return nil
}

// route says where to send what the site's machine says to an owner, and whether it is said on
// behalf of the owner.
func (h *heeding) route(owner grid.SiteID) (sites []grid.SiteID, behalf bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.register.Route(h.now(), owner), h.register.Grouped(owner)
}

// members are the sites that may act for an owner, who acts first.
func (h *heeding) members(owner grid.SiteID) []grid.SiteID {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.register.Members(owner)
}

// sendOwner sends what the site's machine says to an owner: to who acts for it, or to all who may.
func (a *Agent) sendOwner(owner grid.SiteID, m protocol.Message) {
	sites, behalf := a.heeding.route(owner)
	if behalf {
		m = protocol.OnBehalf{Behalf: protocol.Behalf{Owner: owner}, Message: m}
	}
	for _, site := range sites {
		a.send(site, m)
	}
}

// behalf puts the message of a group's broker into the owner's name, with the right to do so.
func (a *Agent) behalf(
	owner grid.SiteID, term uint64, certificate []byte, m protocol.Message,
) protocol.Message {
	return protocol.OnBehalf{
		Behalf:  protocol.Behalf{Owner: owner, Term: term, Certificate: certificate},
		Message: m,
	}
}

// groupReceived takes what a site says to the group member that acts for an owner.
func (a *Agent) groupReceived(owner, from grid.SiteID, m protocol.Message) {
	office := a.broker
	if g := a.groups.of(owner); g != nil {
		office = g.loop
	} else if owner != a.heeding.self {
		a.reports.count("not_acting")
		return
	}
	if err := office.offer(step.MessageReceived{From: from, Message: m}); err != nil {
		a.reports.count("message_dropped")
	}
}
