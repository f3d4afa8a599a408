package border

import "github.com/mrsmesh/mrsmesh/pkg/grid"

// Held is the data that is to be kept here for an order.
type Held struct {
	Attempt grid.AttemptID
	CIDs    []grid.CID // may name some twice
}

// Data lists what may be here for the orders under way, as far as an earlier run has staged and
// collected it. A driver keeps it from the start of a run on.
func (m *Machine) Data() []Held {
	var all []Held
	for _, e := range m.errands {
		h := Held{Attempt: e.attempt, CIDs: needs(e.spec)}
		if e.exit != nil {
			h.CIDs = append(h.CIDs, e.exit.CIDs()...)
		}
		all = append(all, h)
	}
	for _, g := range m.guests {
		all = append(all, Held{Attempt: g.attempt, CIDs: needs(g.spec)})
	}
	return all
}

// needs lists what a task of the spec needs.
func needs(s grid.Spec) []grid.CID {
	var cids []grid.CID
	if s.Module.CID != "" {
		cids = append(cids, s.Module.CID)
	}
	for _, in := range s.Inputs {
		cids = append(cids, in.CID)
	}
	return cids
}
