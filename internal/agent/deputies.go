package agent

import (
	"crypto/sha256"
	"slices"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// How long mandates last, and how soon what they are for is done.
const (
	mandateLasts = 7 * 24 * time.Hour // a domain has neighbours so long without its key
	mandateAgain = time.Hour          // it is given anew
	standAfter   = 3 * time.Second    // the gateway is away for so long
)

// deputies has others stand in for this site, if it has the domain's key, or this one for the site
// that has it: the first deputy that is there does while the gateway is away. Should two do so in
// two parts of a domain that is torn, no harm is done: nothing is ordered of both. It is safe for
// concurrent use.
type deputies struct {
	a *Agent

	turn sync.Mutex // held by who looks

	// What the site with the key has told; only with turn held.
	handed map[grid.SiteID]handed
	named  []grid.SiteID // that linked domains are told of
	// What a deputy waits for; only with turn held.
	away time.Time // since when the gateway is; zero: it is there, or another deputy's turn it is
}

// handed says what a deputy was told last, and when.
type handed struct {
	digest [sha256.Size]byte
	at     time.Time // on the machines' clock
	until  time.Time // on the wall clock
}

// look does what is due. It is called every second.
func (d *deputies) look() {
	if d.a.links == nil {
		return // a test's agent
	}
	d.turn.Lock()
	defer d.turn.Unlock()
	if d.a.links.Holds() {
		d.handOver()
		return
	}
	d.standIn()
}

// TellDeputies has the members that may stand in for this site, or lead to it, told now of what has
// been decided about links. They hear of it a second later otherwise.
func (a *Agent) TellDeputies() {
	if a.awake() {
		a.deputies.look()
	}
}

// chosen are the members that may stand in, ascending: those of the domain's group, which have all
// agreed to do something for the domain.
func (d *deputies) chosen() []grid.SiteID {
	_, members, _ := d.a.heeding.controller()
	sites := slices.Sorted(slices.Values(members))
	sites = slices.DeleteFunc(sites, func(site grid.SiteID) bool {
		return site == d.a.mesh.Self() || !d.a.mesh.Admits(site)
	})
	return sites[:min(len(sites), protocol.MaxDeputies)]
}

// handOver tells deputies what they need, as often as it changes, and linked domains who they are.
// The mesh knows them before there is a link: the first one may be made through one of them.
func (d *deputies) handOver() {
	sites := d.chosen()
	if !slices.Equal(sites, d.named) {
		d.named = sites
		d.a.mesh.Deputies(sites)
	}
	if !d.needed() {
		sites = nil
	}
	links, err := d.a.links.Handed()
	if err != nil {
		d.a.log.Error("the links cannot be handed over", "error", err)
		return
	}
	for _, site := range sites {
		links = append(links, site...)
	}
	links = append(links, d.a.links.Key()...) // a mandate of a former key is none
	digest, now := sha256.Sum256(links), d.a.clock.now()
	for site := range d.handed {
		if !slices.Contains(sites, site) && d.hand(site, nil, d.a.clock.shows()) {
			delete(d.handed, site)
		}
	}
	for _, site := range sites {
		last, told := d.handed[site]
		fresh := told && last.digest == digest && now.Sub(last.at) < mandateAgain
		until := d.a.clock.shows().Add(mandateLasts)
		if !fresh && d.hand(site, sites, until) {
			d.handed[site] = handed{digest, now, until}
		}
	}
}

// needed reports whether deputies have anything to do.
func (d *deputies) needed() bool { return len(d.a.links.List()) > 0 || d.a.links.Inviting() }

// hand tells one deputy, and reports whether it was sent.
func (d *deputies) hand(site grid.SiteID, all []grid.SiteID, until time.Time) bool {
	if !d.a.around.has(site) {
		return !d.a.mesh.Admits(site) // who is banned will never be told
	}
	key, err := p2p.KeyOf(site)
	if err == nil {
		var m protocol.Handover
		m, err = d.a.links.HandOver(site, key, d.a.mesh.Self(), all, until)
		if err == nil {
			err = d.a.sendPlain(site, m)
		}
	}
	if err != nil {
		d.a.log.Debug("a deputy is not told of the links", "site", string(site), "error", err)
	}
	return err == nil
}

// forget has a site told anew that was away.
func (d *deputies) forget(site grid.SiteID) {
	d.turn.Lock()
	defer d.turn.Unlock()
	if last, told := d.handed[site]; told {
		last.at = time.Time{}
		d.handed[site] = last
	}
}

// take keeps what the site with the domain's key hands over. This site's owner has consented by
// its part in the domain's group (controller.accept).
func (d *deputies) take(from grid.SiteID, m protocol.Handover) {
	if m.Gateway != from || !d.a.cfg.Controller.Accept {
		d.a.reports.count("handover_refused")
		return
	}
	if err := d.a.links.Take(m); err != nil {
		d.a.reports.count("handover_refused")
		d.a.log.Warn("links that were handed over are not taken",
			"from", string(from), "error", err)
	}
}

// standIn begins to stand in, or ends it.
func (d *deputies) standIn() {
	m, may := d.a.links.Deputy()
	turn := may && d.a.cfg.Controller.Accept && !d.a.around.has(m.Gateway) && d.isFirst(m.Deputies)
	now := d.a.clock.now()
	switch stands := d.a.links.StandsIn(); {
	case turn && d.away.IsZero():
		d.away = now
	case turn && !stands && now.Sub(d.away) >= standAfter:
		d.begin(m)
	case !turn:
		d.away = time.Time{}
		if stands {
			d.end(m.Gateway)
		}
	}
}

// isFirst reports whether this site is the first deputy that is there.
func (d *deputies) isFirst(all []grid.SiteID) bool {
	at := slices.IndexFunc(all, func(site grid.SiteID) bool {
		return site == d.a.mesh.Self() || d.a.around.has(site)
	})
	return at >= 0 && all[at] == d.a.mesh.Self()
}

func (d *deputies) begin(m protocol.Handover) {
	d.a.links.StandIn(d.a.mesh.Sign)
	d.a.log.Info("this agent stands in for the gateway of the domain", "gateway", string(m.Gateway),
		"until", m.Mandate.Until(), "links", len(d.a.links.List()))
	d.a.reports.count("gateway_stands_in")
	d.a.border.decided(d.a.links.List) // before a neighbour is seen
	d.a.mesh.ReviewLinks()
}

// end gives up all that is under way: the gateway does not know of it, and submitters place it
// again when its leases are over.
func (d *deputies) end(gateway grid.SiteID) {
	d.a.border.decided(func() []member.Link { return nil })
	d.a.links.StandDown()
	d.a.mesh.ReviewLinks()
	d.a.log.Info("this agent stands in for the gateway of the domain no longer",
		"gateway", string(gateway))
}

// Gateway shows who holds the links of the domain; nil: it has none, as far as is known here.
func (a *Agent) Gateway() *view.Gateway {
	acting, until := a.neighbours.gateway()
	v := view.Gateway{
		Acting: acting, Here: acting == a.mesh.Self(), Until: view.At(until),
		Deputies: a.deputies.list(),
	}
	if acting == "" && len(v.Deputies) == 0 {
		return nil
	}
	return &v
}

// list shows the deputies, as far as this site knows them.
func (d *deputies) list() []view.Deputy {
	d.turn.Lock()
	defer d.turn.Unlock()
	list := []view.Deputy{}
	m, may := d.a.links.Deputy()
	var sites []grid.SiteID
	switch {
	case may:
		sites = m.Deputies
	case d.needed():
		sites = d.named
	}
	for _, site := range sites {
		one := view.Deputy{
			Site: site, Until: view.At(d.handed[site].until),
			Away: site != d.a.mesh.Self() && !d.a.around.has(site),
		}
		if may && site == m.Mandate.Site {
			one.Until = view.At(m.Mandate.Until())
		}
		list = append(list, one)
	}
	return list
}
