package agent

import (
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/standby"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// For controllerAway a controller that is not connected still counts as one. Another member acts
// within five seconds, and until then submitters are not to move by themselves what it would have
// left where it is; without a controller they do.
const controllerAway = 15 * time.Second

// post has what the machines were told of the domain's controller.
type post struct {
	now  step.Controller
	gone time.Time // since when its site is not connected; zero: it is
}

// takesOffice hears a site say that it acts in the domain's group, and reports whether it was about
// that. Who acts says so itself, with the certificate, to all that are connected; nobody else is
// believed. It is answered with the news if there are any for it.
func (h *heeding) takesOffice(
	from grid.SiteID, m protocol.StandbyNews,
) (is bool, news *protocol.StandbyNews) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c, err := protocol.DecodeCertificate(m.Certificate)
	if err != nil || m.Acting != from || c.Owner != h.domain() {
		return false, nil
	}
	v := h.register.Admit(h.now(), from, protocol.Behalf{
		Owner: c.Owner, Term: m.Term, Certificate: m.Certificate,
	})
	if err := h.keep(c.Owner, v.Facts); err != nil {
		return true, nil // it says so again
	}
	if v.Why != standby.Heeded {
		h.refused(v.Why)
		return true, v.News
	}
	h.install(step.Controller{Site: from, Term: m.Term})
	return true, nil
}

// install tells the machines of a controller that they do not know; h.mu is held.
func (h *heeding) install(c step.Controller) {
	if _, connected := h.here[c.Site]; connected || c.Site == h.self {
		h.post.gone = time.Time{}
	} else {
		h.post.gone = h.now()
	}
	if len(h.register.Members(h.domain())) < 2 {
		c = step.Controller{} // one member is no group
	}
	if c != h.post.now {
		h.post.now = c
		h.tellAll(c)
	}
}

// review tells the machines when there is no controller any more.
func (h *heeding) review() {
	h.mu.Lock()
	defer h.mu.Unlock()
	away := !h.post.gone.IsZero() && h.now().Sub(h.post.gone) > controllerAway
	domain := h.domain()
	holds := h.register.Acting(domain) == h.post.now.Site
	if h.post.now.Site != "" && (away || !holds) {
		h.post = post{}
		h.tellAll(h.post.now)
	}
}

// resigns takes it that this agent is the controller no longer: another one soon is.
func (h *heeding) resigns() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.post.now.Site == h.self {
		h.post.gone = h.now()
	}
}

// controls reports whether a site is the domain's controller, as far as is known here.
func (h *heeding) controls(site grid.SiteID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return site != "" && h.post.now.Site == site
}

// controller is who that is, the members of the domain's group, and the highest term of it.
func (h *heeding) controller() (now step.Controller, members []grid.SiteID, term uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	domain := h.domain()
	if members = h.register.Members(domain); len(members) < 2 {
		members = nil // an unknown group has its owner as its only member
	}
	return h.post.now, members, h.register.Term(domain)
}

// mayBeGateway reports whether a site is, or may stand in for, the gateway of the domain, as far as
// its group knows: both are members of it.
func (h *heeding) mayBeGateway(site grid.SiteID) bool {
	_, members, _ := h.controller()
	return slices.Contains(members, site)
}

// ofDomain is the newest certificate of the domain's group, nil if none is known.
func (h *heeding) ofDomain() []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.register.Certificate(h.domain())
}

// actedFor are the owners of jobs for whom a site acts; h.mu is held.
func (h *heeding) actedFor(site grid.SiteID) []grid.SiteID {
	domain := h.domain()
	return slices.DeleteFunc(h.register.ActedFor(site), func(owner grid.SiteID) bool {
		return owner == domain
	})
}

// aboutController takes a message between the controller and this site, and reports whether nothing
// else is to be done with it.
func (a *Agent) aboutController(from grid.SiteID, m protocol.Message) bool {
	said := m
	if on, is := m.(protocol.OnBehalf); is {
		said = on.Message
	}
	var err error
	switch said.(type) {
	case protocol.Bookings:
		err = a.tellController(step.MessageReceived{From: from, Message: said})
	case protocol.Favours:
		if !a.heeding.mayBeGateway(from) {
			a.reports.count("favours_refused")
			return true
		}
		err = a.tellController(step.MessageReceived{From: from, Message: said})
	case protocol.Booked, protocol.Remap, protocol.FavoursNoted:
		if !a.heeding.controls(from) {
			a.reports.count("heed_no_controller")
			return true
		}
		in := step.MessageReceived{From: from, Message: said}
		switch said.(type) {
		case protocol.Remap:
			return false // for the broker that it is for
		case protocol.FavoursNoted:
			err = a.border.offer(in)
		default:
			err = a.site.offer(in)
		}
	default:
		return false
	}
	if err != nil {
		a.reports.count("message_dropped")
	}
	return true
}

// tellController hands an input to the controller, if it is here.
func (a *Agent) tellController(in step.Input) error {
	if g := a.groups.of(a.domainSite()); g != nil {
		return g.offer(in)
	}
	a.reports.count("not_acting")
	return nil
}
