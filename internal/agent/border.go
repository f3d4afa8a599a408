package agent

import (
	"fmt"
	"log/slog"
	"sync"

	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// borderDriver is told what comes from linked domains, which are named as p2p.DomainSite does. It
// is called from the goroutines of the mesh and must not block. For one domain, seen and gone never
// overlap, and seen comes before the first message.
type borderDriver interface {
	// seen says that the gateway of a linked domain is connected, and what the domain is called.
	seen(domain grid.SiteID, name grid.DomainID)
	// gone says that it was lost.
	gone(domain grid.SiteID)
	// received brings a validated message; for one domain they come one after the other.
	received(domain grid.SiteID, m protocol.Message)
	// decided says which links there are now, with their policies. It is called once at the start.
	decided(links []member.Link)
	// account is the work done for a linked domain, and by it, in core-seconds.
	account(domain grid.SiteID) (given, taken float64)
}

// quietBorder logs and counts, and answers nothing.
type quietBorder struct {
	reports *reporter
	log     *slog.Logger

	mu    sync.Mutex
	names map[grid.SiteID]grid.DomainID // guarded by mu: of the domains that are there
}

func newQuietBorder(reports *reporter, log *slog.Logger) *quietBorder {
	return &quietBorder{reports: reports, log: log, names: make(map[grid.SiteID]grid.DomainID)}
}

func (b *quietBorder) seen(domain grid.SiteID, name grid.DomainID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.names[domain] = name
	b.reports.count("neighbour_seen")
}

func (b *quietBorder) gone(domain grid.SiteID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.names, domain)
	b.reports.count("neighbour_gone")
}

func (b *quietBorder) received(domain grid.SiteID, m protocol.Message) {
	b.mu.Lock()
	name := b.names[domain]
	b.mu.Unlock()
	b.reports.count("border_unheard")
	b.log.Debug("a linked domain's message is heard by nobody",
		"domain", string(name), "type", fmt.Sprintf("%T", m))
}

func (b *quietBorder) decided([]member.Link) {}

func (b *quietBorder) account(grid.SiteID) (given, taken float64) { return 0, 0 }

// openLinks reads with which domains this one is linked.
func (a *Agent) openLinks() (err error) {
	a.border = newQuietBorder(a.reports, a.log)
	a.links, err = member.OpenLinks(a.members)
	return err
}

// hearBorder has the mesh tell the driver of the border.
func (a *Agent) hearBorder(h *p2p.Handlers) {
	h.OnBorder = func(domain grid.SiteID, m protocol.Message) {
		if a.awake() {
			a.border.received(domain, m)
		}
	}
	h.OnNeighbourSeen = func(domain grid.SiteID, name grid.DomainID) {
		if a.awake() {
			a.border.seen(domain, name)
		}
	}
	h.OnNeighbourGone = func(domain grid.SiteID) {
		if a.awake() {
			a.border.gone(domain)
		}
	}
	h.OnLinks = func() {
		if a.awake() {
			a.border.decided(a.links.List())
		}
	}
}

// LinksChanged carries out a decision about links or their policies: streams are opened and
// closed, and the border goes by the new policies from now on.
func (a *Agent) LinksChanged() {
	a.mesh.ReviewLinks()
	if a.awake() {
		a.border.decided(a.links.List())
	}
}

// Favours is the work that this domain has done for a linked one, and the other way round, in
// core-seconds.
func (a *Agent) Favours(domain grid.SiteID) (given, taken float64) {
	return a.border.account(domain)
}
