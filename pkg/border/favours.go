package border

import (
	"maps"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// favoursEvery is the time between two accounts to the controller.
const favoursEvery = 15 * time.Second

// favour counts what was given to a neighbour and taken from it, in thousandths of a core-second.
type favour struct {
	Given int64 `json:"given"`
	Taken int64 `json:"taken"`
}

// debt counts what the neighbour has used here beyond what it has given back, core-seconds.
func (f favour) debt() float64 { return float64(f.Given-f.Taken) / 1000 }

// favours are this gateway's receipts, added up, and those of the domain's other gateways: of who
// stood in for this one, or for whom this one stands in. They know of each other by the controller,
// whose group has it written down. Without a controller each goes by its own.
type favours struct {
	own        map[grid.SiteID]favour // by neighbour; facts
	others     map[grid.SiteID]favour // by neighbour, as the controller has said last
	controller step.Controller
	told       map[grid.SiteID]favour // that the controller has confirmed
}

func newFavours() favours { return favours{own: make(map[grid.SiteID]favour)} }

// of is the account of the whole domain with a neighbour.
func (f *favours) of(domain grid.SiteID) favour {
	own, others := f.own[domain], f.others[domain]
	return favour{Given: own.Given + others.Given, Taken: own.Taken + others.Taken}
}

// areTold reports whether the controller has all that this gateway has. It may have more, of
// domains that are forgotten here.
func (f *favours) areTold() bool {
	return !slices.ContainsFunc(slices.Sorted(maps.Keys(f.own)), func(domain grid.SiteID) bool {
		own, told := f.own[domain], f.told[domain]
		return told.Given < own.Given || told.Taken < own.Taken
	})
}

// rank counts the links whose domains owe less than this one does: they are served before it.
func (m *Machine) rank(domain grid.SiteID) (before int) {
	own := m.favours.of(domain).debt()
	for _, l := range m.near.sorted() {
		if m.favours.of(l.terms.Domain).debt() < own {
			before++
		}
	}
	return before
}

// owes reports whether a neighbour has used more here, beyond its credit, than it has given back.
func (m *Machine) owes(domain grid.SiteID) bool {
	return m.favours.of(domain).debt() > m.cfg.Credit
}

// add enters a receipt into the account of a neighbour.
func (m *Machine) add(domain grid.SiteID, given, taken int64) {
	f := m.favours.own[domain]
	m.account(domain, favour{Given: f.Given + given, Taken: f.Taken + taken})
	m.forgetFavours()
}

func (m *Machine) account(domain grid.SiteID, f favour) {
	m.favours.own[domain] = f
	m.out.Persist(step.NewFact(factFavour, string(domain), f))
}

// forgetFavours keeps the table bounded: what strangers were owed goes first.
func (m *Machine) forgetFavours() {
	for _, domain := range slices.Sorted(maps.Keys(m.favours.own)) {
		if len(m.favours.own) <= maxLinks {
			return
		}
		if m.near.links[domain] == nil {
			delete(m.favours.own, domain)
			m.out.Persist(step.Fact{Kind: factFavour, Key: string(domain)})
		}
	}
}

// onController takes who the controller of the domain is, if there is one.
func (m *Machine) onController(in step.Controller) {
	if !in.IsValid() {
		return
	}
	m.favours.controller, m.favours.told = in, nil
	m.tellFavours()
}

// tellFavours tells the controller what this gateway has given and taken, again and again while it
// has links: so it hears in return what a deputy has.
func (m *Machine) tellFavours() {
	f := &m.favours
	if f.controller.Site == "" || len(m.near.links) == 0 && f.areTold() {
		m.out.StopTimer(timerFavours, "")
		return
	}
	msg := protocol.Favours{Term: f.controller.Term}
	for _, domain := range slices.Sorted(maps.Keys(f.own)) {
		msg.Accounts = append(msg.Accounts, protocol.Account{
			Domain:      domain,
			GivenCoreMS: min(f.own[domain].Given, protocol.MaxFavour),
			TakenCoreMS: min(f.own[domain].Taken, protocol.MaxFavour),
		})
	}
	m.out.Send(f.controller.Site, msg)
	m.out.SetTimer(timerFavours, "", m.now.Add(favoursEvery))
}

// onNoted takes what the controller has of this gateway, which may have a new disk, and of others.
func (m *Machine) onNoted(from grid.SiteID, msg protocol.FavoursNoted) {
	f := &m.favours
	if from != f.controller.Site || msg.Term != f.controller.Term {
		return
	}
	f.told, f.others = byDomain(msg.Own), byDomain(msg.Others)
	for _, a := range msg.Own {
		old := f.own[a.Domain]
		known := favour{
			Given: max(old.Given, a.GivenCoreMS), Taken: max(old.Taken, a.TakenCoreMS),
		}
		if known != old && m.near.links[a.Domain] != nil {
			m.account(a.Domain, known)
		}
	}
}

func byDomain(all []protocol.Account) map[grid.SiteID]favour {
	accounts := make(map[grid.SiteID]favour, len(all))
	for _, a := range all {
		accounts[a.Domain] = favour{Given: a.GivenCoreMS, Taken: a.TakenCoreMS}
	}
	return accounts
}
