package border

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// maxLinks bounds the links, and the neighbours whose favours are remembered.
const maxLinks = protocol.MaxAccounts

// link is a neighbouring domain that an administrator has agreed with.
type link struct {
	terms      step.Link
	connected  bool
	gateway    grid.SiteID   // of the domain, that is connected or was last; empty: not known
	since      time.Time     // it is connected, or was last
	unserved   time.Time     // when it last found no capacity for all that it wanted; zero: never
	renewPause time.Duration // until the next time, while an order has no lease
	renewAt    time.Time     // when leases of its orders are asked for; zero: none is
}

// neighbours holds the links of the domain, and what its members can do.
type neighbours struct {
	links map[grid.SiteID]*link
	// early are the gateways that were connected before their domains' links were told of: the
	// streams and the decisions about links come from different sides.
	early map[grid.SiteID]grid.SiteID
	cores map[grid.SiteID]int64 // of each member that is there, and of this site; thousandths
	// capacity is the sum of cores: that of the domain.
	capacity int64
}

func newNeighbours() neighbours {
	return neighbours{
		links: make(map[grid.SiteID]*link), early: make(map[grid.SiteID]grid.SiteID),
		cores: make(map[grid.SiteID]int64),
	}
}

// sorted lists the links, ascending by domain.
func (n *neighbours) sorted() []*link {
	return slices.SortedFunc(maps.Values(n.links), func(a, b *link) int {
		return cmp.Compare(a.terms.Domain, b.terms.Domain)
	})
}

// set notes how many cores a member has, in thousandths; 0: it is gone.
func (n *neighbours) set(id grid.SiteID, cores int64) {
	n.capacity += cores - n.cores[id]
	if n.cores[id] = cores; cores == 0 {
		delete(n.cores, id)
	}
}

// share is so many percent of the domain's capacity.
func (n *neighbours) share(percent uint32) int64 { return n.capacity * int64(percent) / 100 }

// open returns the link over which something new may cross, or why nothing may.
func (n *neighbours) open(domain grid.SiteID) (*link, grid.Reason) {
	l := n.links[domain]
	switch {
	case l == nil || l.terms.Closed:
		return nil, grid.ReasonLinkClosed
	case !l.connected:
		return l, grid.ReasonUnreachable
	default:
		return l, grid.ReasonNone
	}
}

// onLinks takes the links as they are from now on.
func (m *Machine) onLinks(in step.LinksChanged) {
	before := m.near.links
	m.near.links = make(map[grid.SiteID]*link)
	for _, terms := range in.Links {
		if err := checkLink(terms); err != nil || len(m.near.links) >= maxLinks {
			m.out.Report(step.LevelWarn, eventInvalid, step.Report{
				Site: terms.Domain, Reason: grid.ReasonInvalid, Text: "a link that cannot be",
			})
			continue
		}
		l := before[terms.Domain]
		if l == nil {
			l = &link{}
		}
		l.terms = terms
		m.near.links[terms.Domain] = l
	}
	had := slices.Sorted(maps.Keys(before))
	for _, g := range m.guests { // an earlier run may have had other links
		had = append(had, g.domain)
	}
	for _, e := range m.errands {
		had = append(had, e.domain)
	}
	for _, domain := range had {
		if m.near.links[domain] == nil {
			m.estrange(domain)
		}
	}
	for _, domain := range slices.Sorted(maps.Keys(m.near.early)) {
		if l := m.near.links[domain]; l != nil {
			m.connect(l, m.near.early[domain])
			delete(m.near.early, domain)
		}
	}
	m.forgetFavours()
	if m.favours.controller.Site != "" {
		m.tellFavours()
	}
}

func checkLink(l step.Link) error {
	if l.Give > 100 || l.Take > 100 {
		return invalidf("link with %s: give and take: want 0 to 100 %%, have %d and %d",
			l.Name, l.Give, l.Take)
	}
	if l.Onward >= protocol.MaxHops {
		return invalidf("link with %s: onward: want 0 to %d, have %d",
			l.Name, protocol.MaxHops-1, l.Onward)
	}
	for _, k := range l.Kinds {
		if err := k.Validate(); err != nil {
			return err
		}
	}
	if err := l.Domain.Validate(); err != nil {
		return err
	}
	if err := l.Name.Validate(); err != nil {
		return err
	}
	return l.Key.Validate()
}

// estrange ends what is under way with a domain that is linked no more. Of its orders here all are
// stopped. What it runs for this domain ends with its leases there.
func (m *Machine) estrange(domain grid.SiteID) {
	m.out.StopTimer(timerRenew, string(domain))
	for _, g := range m.guestsOf(domain) {
		m.evict(g, "the domains are linked no more")
	}
	for _, e := range m.errandsOf(domain) {
		m.dropErrand(e, "the domains are linked no more")
	}
	m.dropQueries(domain)
}

func (m *Machine) onNeighbourSeen(in step.NeighbourSeen) {
	l := m.near.links[in.Domain]
	switch {
	case l == nil && len(m.near.early) < maxLinks:
		m.near.early[in.Domain] = in.Gateway
	case l == nil:
		m.unexpected(in.Domain, "a neighbour without a link")
	case !l.connected:
		m.connect(l, in.Gateway)
	}
}

// connect goes on with what waits for a neighbour.
func (m *Machine) connect(l *link, gateway grid.SiteID) {
	l.connected, l.since, l.gateway = true, m.now, gateway
	for _, e := range m.errandsOf(l.terms.Domain) {
		m.wakeErrand(e)
	}
	for _, g := range m.guestsOf(l.terms.Domain) {
		m.wakeGuest(g)
	}
	m.renewSoon(l)
}

func (m *Machine) onNeighbourGone(in step.NeighbourGone) {
	delete(m.near.early, in.Domain)
	if l := m.near.links[in.Domain]; l != nil && l.connected {
		l.connected, l.since = false, m.now
		m.dropQueries(in.Domain)
	}
}

// onPeerSeen counts what a member has among the capacity of the domain.
func (m *Machine) onPeerSeen(in step.PeerSeen) {
	_, known := m.near.cores[in.Site]
	if in.Domain == "" && in.Site.Validate() == nil && in.Capability.Validate() == nil &&
		(known || len(m.near.cores) < maxMembers) {
		m.forgetRefused()
		m.near.set(in.Site, in.Capability.Total.MilliCPUs)
	}
}

// maxMembers bounds those whose capacity counts.
const maxMembers = 8192
