package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/pkg/border"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// borderName is the name of the border's machine in the store.
const borderName = "border"

// gateway drives the border's machine at the site that holds this domain's links, or has held them
// as a deputy. Elsewhere, and while nothing is linked, there is no machine, and nothing here costs
// anything. Linked domains are
// named as p2p.DomainSite does. It is safe for concurrent use.
type gateway struct {
	a *Agent

	// deciding is held from reading the links until all know of them: of two decisions that meet
	// the later one has the last word.
	deciding sync.Mutex

	mu     sync.Mutex
	loop   *loop                         // guarded by mu; nil: there is no machine
	here   map[grid.SiteID]grid.DomainID // guarded by mu; linked domains that are connected
	terms  map[grid.SiteID]step.Link     // guarded by mu; those over whose link something is taken
	madeMS int64                         // guarded by mu; of what members were told last

	machine *border.Machine // only within the loop, and before it runs
}

func newGateway(a *Agent) *gateway {
	return &gateway{
		a: a, here: make(map[grid.SiteID]grid.DomainID), terms: make(map[grid.SiteID]step.Link),
	}
}

// openLinks reads with which domains this one is linked.
func (a *Agent) openLinks() (err error) {
	a.border = newGateway(a)
	a.deputies.a, a.deputies.handed = a, make(map[grid.SiteID]handed)
	a.links, err = member.OpenLinks(a.members)
	return err
}

// openBorder makes the border's machine at the start, if there are links, or orders of a link that
// was ended. What it needs is kept before what nobody needs is collected.
func (a *Agent) openBorder() error {
	facts, err := a.store.Load(borderName)
	if err != nil {
		return fmt.Errorf("facts of the border: %w", err)
	}
	if len(facts) == 0 && (len(a.links.List()) == 0 || !a.links.Speaks()) {
		return nil
	}
	return a.border.begin()
}

// begin makes the machine, if there is none, and lets it run.
func (g *gateway) begin() error {
	a, domain := g.a, g.a.domainSite()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.loop != nil || domain == "" {
		return nil
	}
	config := border.Default(a.mesh.Self(), domain, a.cfg.P2P.Domain)
	m, err := border.New(config)
	if err != nil {
		return fmt.Errorf("configuration of the border: %w", err)
	}
	l, err := a.makeLoop(borderName, m, config)
	if err != nil {
		return err
	}
	l.perform = g.perform
	g.machine, g.loop = m, l
	for _, h := range m.Data() {
		a.pins.hold(borderOwner(h.Attempt), h.CIDs...)
	}
	l.tell(step.Boot{
		Incarnation: a.store.Incarnation(), Nonce: a.store.Nonce(), Restored: a.store.Restored(),
		Clock: a.clock.continuous(a.bootID), Line: a.store.Line(),
	})
	if ahead := a.clock.shows().Sub(a.clock.now()); ahead != 0 {
		l.tell(step.ClockStepped{By: ahead})
	}
	l.tell(step.CapacityChanged{Capability: a.host.ceilings()})
	for _, in := range a.around.all() {
		if forBorder(in) {
			l.tell(in)
		}
	}
	a.spawn(func() {
		if err := l.run(a.ctx); err != nil && !errors.Is(err, context.Canceled) {
			a.leave(fmt.Errorf("the border's machine: %w", err))
		}
	})
	return nil
}

// forBorder reports whether the border's machine takes what brokers are told.
func forBorder(in step.Input) bool {
	switch in := in.(type) {
	case step.PeerSeen:
		return in.Domain == ""
	case step.PeerGone, step.BansChanged, step.ClockStepped, step.CapacityChanged,
		step.Controller:
		return true
	default:
		return false
	}
}

// running is the machine's loop; nil: there is none.
func (g *gateway) running() *loop {
	if g == nil {
		return nil // a test's agent
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.loop
}

// tell hands an input to the machine, if there is one.
func (g *gateway) tell(in step.Input) {
	if l := g.running(); l != nil {
		l.tell(in)
	}
}

// offer is tell for what comes from others: too much of it is lost.
func (g *gateway) offer(in step.Input) error {
	if l := g.running(); l != nil {
		return l.offer(in)
	}
	g.a.reports.count("border_unheard")
	return nil
}

// seen takes it that the gateway of a linked domain is connected. For one domain seen and gone
// never overlap.
func (g *gateway) seen(domain grid.SiteID, name grid.DomainID, gateway grid.SiteID) {
	g.mu.Lock()
	g.here[domain] = name
	g.mu.Unlock()
	g.tell(step.NeighbourSeen{Domain: domain, Name: name, Gateway: gateway})
	g.tellMembers()
}

func (g *gateway) gone(domain grid.SiteID) {
	g.mu.Lock()
	delete(g.here, domain)
	g.mu.Unlock()
	g.tell(step.NeighbourGone{Domain: domain})
	g.tellMembers()
}

// decided takes it which links there are now, with their policies, as read tells.
func (g *gateway) decided(read func() []member.Link) {
	g.deciding.Lock()
	defer g.deciding.Unlock()
	links := read()
	if !g.a.links.Speaks() {
		links = nil
	}
	if len(links) > 0 {
		if err := g.begin(); err != nil {
			g.a.log.Error("nothing crosses the links of this domain", "error", err)
			return
		}
	}
	terms := make([]step.Link, 0, len(links))
	taken := make(map[grid.SiteID]step.Link, len(links))
	for _, link := range links {
		term, err := termsOf(link)
		if err != nil {
			g.a.log.Error("nothing crosses a link", "domain", string(link.Name), "error", err)
			continue
		}
		terms = append(terms, term)
		if !term.Closed && term.Take > 0 {
			taken[term.Domain] = term
		}
	}
	slices.SortFunc(terms, func(a, b step.Link) int {
		return strings.Compare(string(a.Domain), string(b.Domain))
	})
	g.mu.Lock()
	g.terms = taken
	g.mu.Unlock()
	g.tell(step.LinksChanged{Links: terms})
	g.tellMembers()
}

// termsOf says a link in the machine's words.
func termsOf(link member.Link) (step.Link, error) {
	domain, err := p2p.DomainSite(link.Side.Key)
	if err != nil {
		return step.Link{}, err
	}
	p := link.Policy
	term := step.Link{
		Domain: domain, Name: link.Name, Key: link.Side.Key, Closed: p.Closed,
		Give: uint32(p.Give), Take: uint32(p.Take), Tasks: uint32(p.Tasks),
		Beside: p.Beside, Onward: uint32(p.Onward),
	}
	for _, name := range p.Kinds {
		for _, kind := range []grid.WorkKind{grid.KindWasm, grid.KindCommand} {
			if kind.String() == name {
				term.Kinds = append(term.Kinds, kind)
			}
		}
	}
	slices.Sort(term.Kinds)
	return term, nil
}

// longestLook bounds how long somebody waits for the machine to be looked at.
const longestLook = time.Second

// account is the work done for a linked domain, and by it, in core-seconds; zero while it is not
// known.
func (g *gateway) account(
	ctx context.Context, domain grid.SiteID,
) (given, taken float64) {
	l := g.running()
	if l == nil {
		return 0, 0
	}
	ctx, cancel := context.WithTimeout(ctx, longestLook)
	defer cancel()
	err := l.ask(ctx, func() {
		for _, s := range g.machine.Links() {
			if s.Link.Domain == domain {
				given, taken = s.Given, s.Taken
			}
		}
	})
	if err != nil {
		return 0, 0
	}
	return given, taken
}

// hearBorder has the mesh tell of the links.
func (a *Agent) hearBorder(h *p2p.Handlers) {
	h.OnBorder = func(domain grid.SiteID, m protocol.Message) {
		if a.awake() && a.border.offer(step.BorderReceived{Domain: domain, Message: m}) != nil {
			a.reports.count("message_dropped")
		}
	}
	h.OnNeighbourSeen = func(domain grid.SiteID, name grid.DomainID, gateway grid.SiteID) {
		if a.awake() {
			a.border.seen(domain, name, gateway)
		}
	}
	h.OnNeighbourGone = func(domain grid.SiteID) {
		if a.awake() {
			a.border.gone(domain)
		}
	}
	h.OnLinks = func() {
		if a.awake() {
			a.border.decided(a.links.List)
		}
		a.TellDeputies()
	}
}

// LinksChanged carries out a decision about links or their policies: streams are opened and
// closed, and the border goes by the new policies from now on.
func (a *Agent) LinksChanged() {
	a.mesh.ReviewLinks()
	if a.awake() {
		a.border.decided(a.links.List)
	}
}

// Favours is the work that this domain has done for a linked one, and the other way round, in
// core-seconds.
func (a *Agent) Favours(ctx context.Context, domain grid.SiteID) (given, taken float64) {
	return a.border.account(ctx, domain)
}

// newBorder makes a border's machine as the header of its journal says, for a replay.
func newBorder(config []byte) (step.Machine, error) {
	var c border.Config
	if err := json.Unmarshal(config, &c); err != nil {
		return nil, fmt.Errorf("configuration of the border: %w", err)
	}
	return border.New(c)
}
