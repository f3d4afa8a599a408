package border

import (
	"fmt"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Check implements step.Machine.
func (m *Machine) Check() error {
	for _, b := range []struct {
		what      string
		have, may int
	}{
		{"queries", len(m.queries), m.cfg.MaxQueries},
		{"probes", len(m.probes), m.cfg.MaxQueries},
		{"errands", len(m.errands), m.cfg.MaxOrders},
		{"guests", len(m.guests), m.cfg.MaxOrders},
		{"receipts", len(m.receipts), m.cfg.MaxOrders},
		{"links", len(m.near.links), maxLinks},
		{"early neighbours", len(m.near.early), maxLinks},
		{"members", len(m.near.cores), maxMembers + 1},
		{"jobs of neighbours", len(m.foreign), m.cfg.MaxQueries + m.cfg.MaxOrders},
		{"disowned", len(m.disowned), m.cfg.MaxQueries},
		{"refusals", len(m.refused), m.cfg.MaxQueries},
		{"commands", len(m.commands), m.cfg.MaxQueries + m.cfg.MaxOrders},
	} {
		if b.have > b.may && b.have > m.restored {
			return fmt.Errorf("border: %d %s, at most %d may be", b.have, b.what, b.may)
		}
	}
	if err := m.checkErrands(); err != nil {
		return err
	}
	return m.checkGuests()
}

func (m *Machine) checkErrands() error {
	for _, e := range m.errands {
		if m.errands.get(e.attempt, "") != e || e.exit != nil && !e.taken ||
			e.acked && e.exit == nil {
			return fmt.Errorf("border: errand %s cannot be so", e.attempt)
		}
		if has := m.out.Facts().Get(factTaken, e.attempt.String()) != nil; has != e.taken {
			return fmt.Errorf("border: errand %s is taken %t, a fact %t", e.attempt, e.taken, has)
		}
	}
	return nil
}

// checkGuests verifies that orders are facts, and that no two attempts of one task are here.
func (m *Machine) checkGuests() error {
	seen := make(map[string]grid.Token)
	for _, g := range m.guests {
		if m.guest(g.name) != g || m.out.Facts().Get(factGiven, g.name) == nil {
			return fmt.Errorf("border: order %s is no fact", g.name)
		}
		if _, known := m.foreign[g.job]; g.job != "" && !known {
			return fmt.Errorf("border: order %s came nobody knows how", g.name)
		}
		key := g.attempt.Task.String() + " " + string(g.domain)
		if token, twice := seen[key]; twice && !m.cfg.NoRequestIDs {
			return fmt.Errorf("border: %s is here as %d and %d", key, token, g.attempt.Token)
		}
		seen[key] = g.attempt.Token
	}
	return nil
}
