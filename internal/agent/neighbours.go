package agent

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// neighbours holds what this domain's gateway has said of the domains that can be reached through
// it. It is safe for concurrent use.
type neighbours struct {
	mu      sync.Mutex
	gateway grid.SiteID                        // guarded by mu; empty: nobody has said anything
	madeMS  int64                              // guarded by mu; when that was said
	here    map[grid.SiteID]protocol.Neighbour // guarded by mu
	known   map[grid.SiteID]grid.DomainID      // guarded by mu; of this run, for people
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
		return n.gateway
	}
	return ""
}

// tellMembers tells all members, this site among them, which neighbours can be reached.
func (g *gateway) tellMembers() {
	if g.running() == nil {
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
	if g.running() == nil {
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
	m.Signature, err = g.a.members.Sign(m.SignedBytes())
	return m, err
}

// onNeighbours takes what a gateway says, if the domain's key has signed it and nothing later was
// heard. The submitters that act here hear of each neighbour as of a site that comes or goes.
func (a *Agent) onNeighbours(from grid.SiteID, m protocol.Neighbours) {
	domain := a.heeding.domain()
	if m.Gateway != from || domain == "" || !p2p.SignedBy(domain, m.SignedBytes(), m.Signature) {
		a.reports.count("heed_no_gateway")
		return
	}
	n := &a.neighbours
	n.mu.Lock()
	defer n.mu.Unlock()
	if m.MadeMS <= n.madeMS {
		return
	}
	before := n.here
	n.gateway, n.madeMS = from, m.MadeMS
	n.here = make(map[grid.SiteID]protocol.Neighbour, len(m.All))
	if n.known == nil || len(n.known) > mostKnown {
		n.known = make(map[grid.SiteID]grid.DomainID)
	}
	for _, near := range m.All {
		n.here[near.Domain], n.known[near.Domain] = near, near.Name
		if before[near.Domain] != near {
			a.tellBrokers(step.PeerSeen{
				Site: near.Domain, Name: string(near.Name), Domain: near.Name, Beside: near.Beside,
			})
		}
		delete(before, near.Domain)
	}
	a.leaves(before)
}

// leaves tells the submitters that act here that neighbours are gone.
func (a *Agent) leaves(domains map[grid.SiteID]protocol.Neighbour) {
	for _, domain := range slices.Sorted(maps.Keys(domains)) {
		a.tellBrokers(step.PeerGone{Site: domain})
	}
}

// lost takes it that a member is gone: with the gateway all neighbours are.
func (n *neighbours) lost(a *Agent, site grid.SiteID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if site == n.gateway {
		a.leaves(n.here)
		n.here = nil
	}
}

// aboutNeighbours takes a message that has to do with neighbours, and reports whether it was one.
func (a *Agent) aboutNeighbours(from grid.SiteID, m protocol.Message) bool {
	switch m := m.(type) {
	case protocol.Neighbours:
		a.onNeighbours(from, m)
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
