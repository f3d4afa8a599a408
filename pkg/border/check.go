package border

import (
	"fmt"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Check implements step.Machine.
func (m *Machine) Check() error {
	for _, b := range []struct {
		what      string
		have, may int
	}{
		{"queries", len(m.queries), m.cfg.MaxQueries}, {"probes", len(m.probes), m.cfg.MaxQueries},
		{"errands", len(m.errands), m.cfg.MaxOrders}, {"guests", len(m.guests), m.cfg.MaxOrders},
		{"receipts", len(m.receipts), m.cfg.MaxOrders}, {"links", len(m.near.links), maxLinks},
		{"members", len(m.near.cores), maxMembers + 1},
		{"jobs of neighbours", len(m.foreign), m.cfg.MaxQueries + m.cfg.MaxOrders},
		{"commands", len(m.commands), m.cfg.MaxQueries + m.cfg.MaxOrders},
	} {
		if b.have > b.may && b.have > m.restored {
			return fmt.Errorf("border: %d %s, at most %d may be", b.have, b.what, b.may)
		}
	}
	for _, e := range slices.Clone(m.errands) {
		if m.errands.get(e.attempt, "") != e || e.exit != nil && !e.taken ||
			e.acked && e.exit == nil {
			return fmt.Errorf("border: errand %s cannot be so", e.attempt)
		}
		if has := m.out.Facts().Get(factTaken, e.attempt.String()) != nil; has != e.taken {
			return fmt.Errorf("border: errand %s is taken %t, a fact %t", e.attempt, e.taken, has)
		}
	}
	for _, g := range slices.Clone(m.guests) {
		if m.guest(g.name) != g || m.out.Facts().Get(factGiven, g.name) == nil {
			return fmt.Errorf("border: order %s is no fact", g.name)
		}
		if _, known := m.foreign[g.job]; g.job != "" && !known {
			return fmt.Errorf("border: order %s came nobody knows how", g.name)
		}
	}
	return m.checkLater()
}

// checkLater verifies that no two attempts of one task are here at the same time.
func (m *Machine) checkLater() error {
	seen := make(map[string]grid.Token)
	for _, g := range m.guests.where(func(*guest) bool { return !m.cfg.NoRequestIDs }) {
		key := g.attempt.Task.String() + " " + string(g.domain)
		if other, twice := seen[key]; twice {
			return fmt.Errorf("border: %s is here as attempts %d and %d",
				key, other, g.attempt.Token)
		}
		seen[key] = g.attempt.Token
	}
	return nil
}
