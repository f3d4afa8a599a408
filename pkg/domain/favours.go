package domain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// maxGateways bounds the sites that have been gateways and are remembered.
const maxGateways = 64

// accounts has what each gateway of the domain has told of its favours: so they outlive it, and who
// stands in for it goes on from there. Each gateway counts for itself, and only up: what comes late
// or twice changes nothing.
type accounts map[grid.SiteID][]protocol.Account

// onFavours writes down what a gateway says, and tells it what is known.
func (m *Machine) onFavours(from grid.SiteID, msg protocol.Favours) {
	if msg.Term != m.term {
		return // for another controller: the site is told who this one is
	}
	old, known := m.accounts[from]
	if !known && len(m.accounts) >= maxGateways {
		m.refuse(from, fmt.Sprintf("favours of more than %d gateways", maxGateways))
		return
	}
	if own := merge(old, msg.Accounts, highest); !slices.Equal(own, old) {
		m.accounts[from] = own
		m.saveFavours(from)
	}
	noted := protocol.FavoursNoted{Term: m.term, Own: m.accounts[from]}
	for _, gateway := range slices.Sorted(maps.Keys(m.accounts)) {
		if gateway != from {
			noted.Others = merge(noted.Others, m.accounts[gateway], sum)
		}
	}
	m.out.Send(from, noted)
}

// merge joins two lists of accounts, both ascending by domain. Of more domains than are kept the
// first list's come first.
func merge(a, b []protocol.Account, join func(a, b int64) int64) []protocol.Account {
	all := slices.Clone(a)
	for _, v := range b {
		i, found := slices.BinarySearchFunc(all, v, func(a, b protocol.Account) int {
			return cmp.Compare(a.Domain, b.Domain)
		})
		switch {
		case found:
			all[i].GivenCoreMS = join(all[i].GivenCoreMS, v.GivenCoreMS)
			all[i].TakenCoreMS = join(all[i].TakenCoreMS, v.TakenCoreMS)
		case len(all) < protocol.MaxAccounts:
			all = slices.Insert(all, i, v)
		}
	}
	return all
}

func highest(a, b int64) int64 { return max(a, b) }

func sum(a, b int64) int64 { return min(a+b, protocol.MaxFavour) }
