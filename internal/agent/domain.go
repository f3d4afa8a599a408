package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/internal/store"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/domain"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/standby"
)

// Controlling holds what an owner has decided about the controller of the domain: whether this
// agent runs it, and, at the site with the domain's key, what it goes by. With a Weight of 0, and a
// Slot of 0, the machine's defaults hold.
type Controlling struct {
	Found  bool // with the domain's key: make a group of three that runs it
	Accept bool // be a member of that group

	Weight, Share float64                 // see domain.Config
	Slot          time.Duration           // the same
	AllNodes      bool                    // the same
	Fines         map[grid.SiteID]float64 // the same
	Prices        bool                    // the same
}

// controlPrefix begins the names of the controllers of domains.
const controlPrefix = "controller"

// domainOthers are the members that the site with the domain's key looks for: of three one may be
// lost.
const domainOthers = 2

// domainName has the domain's name as an owner's. It is safe for concurrent use.
type domainName struct {
	mu   sync.Mutex
	key  grid.DomainKey
	site grid.SiteID
}

// domainSite is the domain as the owner of its group: the name that a site with its key would have.
// Empty: it has no key.
func (a *Agent) domainSite() grid.SiteID {
	if a.members == nil {
		return "" // a test's
	}
	key := a.members.Key()
	a.domain.mu.Lock()
	defer a.domain.mu.Unlock()
	if key != a.domain.key {
		a.domain.key = key
		a.domain.site, _ = p2p.DomainSite(key) // empty, if it is none
	}
	return a.domain.site
}

// foundDomain makes the domain's group, of this agent alone at first, once there are others that
// could be members, if this agent has the domain's key and no part in it.
func (a *Agent) foundDomain() {
	owner := a.domainSite()
	if owner == "" || !a.cfg.Controller.Found || !a.members.Holds() ||
		a.groups.of(owner) != nil || len(a.around.sites(owner)) < domainOthers {
		return
	}
	a.groups.turn.Lock()
	defer a.groups.turn.Unlock()
	if a.groups.of(owner) != nil {
		return
	}
	id := newMemberID()
	m := store.Member{
		Name: a.groupName(owner), ID: id, Owner: owner, Stored: standby.Founded(0, nil, id),
	}
	known := a.heeding.ofDomain()
	if known != nil {
		m.Stored = standby.Joining() // others have it; it is joined, or replaced if they are lost
	}
	if err := a.takePart(m); err != nil {
		a.log.Error("the domain's group cannot be founded", "error", err)
		return
	}
	if known != nil {
		a.onNews(a.mesh.Self(), known, false)
	}
}

// endFormer ends this agent's part in a group of a former key of the domain: nobody heeds it any
// more, and the site with the present key founds another one.
func (a *Agent) endFormer() {
	for _, g := range a.groups.list() {
		if strings.HasPrefix(g.name, controlPrefix) && g.owner != a.domainSite() {
			a.dismiss(g, "the domain has another key")
		}
	}
}

// takePart makes this agent a member of a group, and lets it run; groups.turn is held.
func (a *Agent) takePart(m store.Member) error {
	if err := a.store.Enlist(m); err != nil {
		return err
	}
	g, err := a.newGroup(m)
	if err != nil {
		return err
	}
	a.groups.add(g)
	a.runGroup(g)
	return nil
}

// controlSettings are those of the domain's controller, which it has wherever it runs, and the site
// with the domain's key.
type controlSettings struct {
	Founder       grid.SiteID
	Weight, Share float64
	Slot          time.Duration           `json:",omitempty"`
	AllNodes      bool                    `json:",omitempty"`
	Fines         map[grid.SiteID]float64 `json:",omitempty"`
	Prices        bool                    `json:",omitempty"`
}

func (a *Agent) controlSettings() controlSettings {
	c := a.cfg.Controller
	return controlSettings{
		Founder: a.mesh.Self(), Weight: c.Weight, Share: c.Share, Slot: c.Slot,
		AllNodes: c.AllNodes, Fines: c.Fines, Prices: c.Prices,
	}
}

// config is that of a controller which runs at a site.
func (s controlSettings) config(here grid.SiteID) domain.Config {
	c := domain.Default(here)
	if s.Weight > 0 {
		c.Weight, c.Share = s.Weight, s.Share // a share of 0 is one: the domain is always busy
	}
	setIf(&c.Slot, s.Slot)
	c.AllNodes, c.Fines, c.Prices = s.AllNodes, s.Fines, s.Prices
	return c
}

// rankMembers has the connected sites, those that are best available first: by the chance that they
// stay for an hour, to the percent, and of equals the one that was seen for longest.
func rankMembers(known []broker.MemberState) (sites []grid.SiteID) {
	percent := func(m broker.MemberState) int { return int(100 * m.UpHour) }
	slices.SortStableFunc(known, func(a, b broker.MemberState) int {
		return cmp.Or(cmp.Compare(percent(b), percent(a)), a.Since.Compare(b.Since))
	})
	for _, m := range known {
		if m.Connected {
			sites = append(sites, m.Site)
		}
	}
	return sites
}

// joinDomain answers the founder of the domain's group, which asks for members.
func (a *Agent) joinDomain(founder grid.SiteID, m protocol.GroupAsk) {
	id, err := a.enlistForDomain(founder, m)
	answer := protocol.StandbyAnswer{Accept: true, Member: uint64(id), Epoch: m.Epoch}
	if err != nil {
		answer = protocol.StandbyAnswer{Reason: short(err.Error()), Epoch: m.Epoch}
	}
	a.sendQuietly(founder, protocol.GroupAnswer{Owner: m.Owner, StandbyAnswer: answer})
}

// enlistForDomain makes this agent a member of the domain's group that waits to be told its table.
func (a *Agent) enlistForDomain(
	founder grid.SiteID, m protocol.GroupAsk,
) (standby.MemberID, error) {
	a.groups.turn.Lock()
	defer a.groups.turn.Unlock()
	most := a.cfg.Standbys.withDefaults().Bytes
	switch {
	case m.Owner != a.domainSite():
		return 0, fmt.Errorf("%w: this site goes by another domain's key, or by none",
			grid.ErrInvalid)
	case !a.cfg.Controller.Accept:
		return 0, fmt.Errorf("%w: this site's owner wants no part in the domain's group",
			grid.ErrInvalid)
	case m.Facts > most:
		return 0, fmt.Errorf("%w: %s of facts, this site keeps %s at most", grid.ErrInvalid,
			grid.FormatBytes(m.Facts), grid.FormatBytes(most))
	}
	if g := a.groups.of(m.Owner); g != nil {
		// A founder that knows of no group is told of it, and joins it.
		g.soon(func() { g.tellNews(founder) })
		return g.id, nil
	}
	member := store.Member{
		Name: a.groupName(m.Owner), ID: newMemberID(), Owner: m.Owner, Stored: standby.Joining(),
	}
	if err := a.takePart(member); err != nil {
		return 0, err
	}
	a.log.Info("this agent is a member of the domain's group", "founder", string(founder))
	return member.ID, nil
}

// refuse tells a site that this agent is no member of a group.
func (a *Agent) refuse(site, owner grid.SiteID, reason string) {
	answer := protocol.StandbyAnswer{Reason: reason}
	if owner == a.domainSite() {
		a.sendQuietly(site, protocol.GroupAnswer{Owner: owner, StandbyAnswer: answer})
		return
	}
	a.sendQuietly(site, answer)
}
