package agent

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// neighbours holds what this domain's gateway has said of the domains that can be reached through
// it, or while it is away the deputy that stands in for it. It is safe for concurrent use.
type neighbours struct {
	mu    sync.Mutex
	lists map[grid.SiteID]toldOf             // guarded by mu; of each site that has said something
	now   grid.SiteID                        // guarded by mu; whose list counts; empty: nobody's
	here  map[grid.SiteID]protocol.Neighbour // guarded by mu; what it says
	known map[grid.SiteID]grid.DomainID      // guarded by mu; of this run, for people
}

// toldOf holds the last list of one site.
type toldOf struct {
	madeMS int64     // when
	until  time.Time // the mandate's end; zero: it has the domain's key
	here   map[grid.SiteID]protocol.Neighbour
}

// NeighbourNames are the names of the domains that were neighbours in this run.
func (a *Agent) NeighbourNames() map[grid.SiteID]grid.DomainID {
	a.neighbours.mu.Lock()
	defer a.neighbours.mu.Unlock()
	return maps.Clone(a.neighbours.known)
}

// Reaches reports whether this domain's gateway reaches a neighbour now.
func (a *Agent) Reaches(domain grid.SiteID) bool { return a.neighbours.way(domain) != "" }

// mostKnown bounds the names that are kept for people.
const mostKnown = 4 * protocol.MaxNeighbours

// way is the gateway by which a neighbour is reached; empty: the site is none, or cannot be
// reached.
func (n *neighbours) way(to grid.SiteID) grid.SiteID {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, known := n.here[to]; known {
		return n.now
	}
	return ""
}

// gateway is the site through which neighbours are reached, and until when it may say so; zero: it
// has the domain's key. Empty: nobody says so.
func (n *neighbours) gateway() (site grid.SiteID, until time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.now, n.lists[n.now].until
}

// best is the site whose list counts: one with the domain's key before deputies, the later one of
// two that have it, and of deputies the first one that reaches anybody. n.mu is held.
func (n *neighbours) best() grid.SiteID {
	var best grid.SiteID
	for _, site := range slices.Sorted(maps.Keys(n.lists)) {
		l, b := n.lists[site], n.lists[best]
		switch {
		case !l.until.IsZero() && len(l.here) == 0:
		case best == "", b.until.IsZero() == l.until.IsZero() && l.until.IsZero() &&
			l.madeMS > b.madeMS, l.until.IsZero() && !b.until.IsZero():
			best = site
		}
	}
	return best
}

// settle tells the submitters that act here what has changed; n.mu is held.
func (n *neighbours) settle(a *Agent) {
	before := n.here
	n.now = n.best()
	n.here = maps.Clone(n.lists[n.now].here)
	for _, domain := range slices.Sorted(maps.Keys(n.here)) {
		near := n.here[domain]
		if before[domain] != near {
			a.tellBrokers(step.PeerSeen{
				Site: domain, Name: string(near.Name), Domain: near.Name, Beside: near.Beside,
			})
		}
		delete(before, domain)
	}
	for _, domain := range slices.Sorted(maps.Keys(before)) {
		a.tellBrokers(step.PeerGone{Site: domain})
	}
}

// tellMembers tells all members, this site among them, which neighbours can be reached.
func (g *gateway) tellMembers() {
	if g.running() == nil || !g.a.links.Speaks() {
		return
	}
	m, err := g.news()
	if err != nil {
		g.a.log.Error("the members cannot be told of neighbours", "error", err)
		return
	}
	g.a.onNeighbours(g.a.mesh.Self(), m)
	for _, site := range g.a.around.sites(g.a.mesh.Self()) {
		g.a.sendQuietly(site, m)
	}
}

// meet tells a new member of the neighbours, if there are any.
func (g *gateway) meet(site grid.SiteID) {
	if g.running() == nil || !g.a.links.Speaks() {
		return
	}
	if m, err := g.news(); err == nil {
		g.a.sendQuietly(site, m)
	}
}

// news names the neighbours that can be reached now, later than what was said before.
func (g *gateway) news() (protocol.Neighbours, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.madeMS = max(g.madeMS+1, g.a.clock.shows().UnixMilli())
	m := protocol.Neighbours{Gateway: g.a.mesh.Self(), MadeMS: g.madeMS}
	for domain, name := range g.here {
		if terms, taken := g.terms[domain]; taken {
			m.All = append(m.All, protocol.Neighbour{
				Domain: domain, Name: name, Beside: terms.Beside,
			})
		}
	}
	slices.SortFunc(m.All, func(a, b protocol.Neighbour) int {
		return cmp.Compare(a.Domain, b.Domain)
	})
	m.All = m.All[:min(len(m.All), protocol.MaxNeighbours)]
	var err error
	m.Signature, m.Mandate, err = g.a.links.Sign(m.SignedBytes())
	return m, err
}

// onNeighbours takes what a gateway says, if the domain's key has signed it, or a deputy under a
// mandate of it, and nothing later was heard of that site. The submitters that act here hear of
// each neighbour as of a site that comes or goes.
func (a *Agent) onNeighbours(from grid.SiteID, m protocol.Neighbours) {
	key, err := p2p.KeyOf(a.heeding.domain())
	if m.Gateway != from || err != nil ||
		!m.IsSignedBy(grid.NewDomainKey(key), a.clock.shows()) {
		a.reports.count("heed_no_gateway")
		return
	}
	n := &a.neighbours
	n.mu.Lock()
	defer n.mu.Unlock()
	if m.MadeMS <= n.lists[from].madeMS {
		return
	}
	said := toldOf{madeMS: m.MadeMS, here: make(map[grid.SiteID]protocol.Neighbour, len(m.All))}
	if m.Mandate != nil {
		said.until = m.Mandate.Until()
	}
	if n.lists == nil {
		n.lists = make(map[grid.SiteID]toldOf)
	}
	if n.known == nil || len(n.known) > mostKnown {
		n.known = make(map[grid.SiteID]grid.DomainID)
	}
	for _, near := range m.All {
		said.here[near.Domain], n.known[near.Domain] = near, near.Name
	}
	n.lists[from] = said
	n.settle(a)
}

// lost takes it that a member is gone: with the gateway all neighbours are.
func (n *neighbours) lost(a *Agent, site grid.SiteID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, said := n.lists[site]; said {
		delete(n.lists, site)
		n.settle(a)
	}
}

// expire ends what deputies said whose mandates have ended.
func (n *neighbours) expire(a *Agent, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	over := false
	for site, l := range n.lists {
		if !l.until.IsZero() && !now.Before(l.until) {
			delete(n.lists, site)
			over = true
		}
	}
	if over {
		n.settle(a)
	}
}

// aboutNeighbours takes a message that has to do with neighbours, and reports whether it was one.
func (a *Agent) aboutNeighbours(from grid.SiteID, m protocol.Message) bool {
	switch m := m.(type) {
	case protocol.Neighbours:
		a.onNeighbours(from, m)
	case protocol.Handover:
		a.deputies.take(from, m)
	case protocol.ByGateway:
		a.byGateway(from, m)
	default:
		return false
	}
	return true
}

// byGateway takes what a neighbour says to a submitter here, or a submitter to a neighbour.
func (a *Agent) byGateway(from grid.SiteID, m protocol.ByGateway) {
	if protocol.ForBroker(m.Message) {
		if a.neighbours.way(m.Domain) != from {
			a.reports.count("heed_no_gateway")
			return
		}
		a.deliver(m.Domain, m.Message)
		return
	}
	news, err := a.heeding.take(from, m.Message, m.Domain)
	if news != nil {
		a.send(from, *news)
	}
	if err != nil {
		a.reports.count("message_dropped")
	}
}
