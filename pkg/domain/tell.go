package domain

import (
	"maps"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// tell tells each submitter which of its tasks leave a site that has failed. Those that are not
// named stay.
func (m *Machine) tell() {
	for _, s := range m.sites.all() {
		if !s.isImpaired() {
			continue
		}
		moves := make(map[grid.SiteID][]*booking)
		stuck := 0
		for _, b := range s.sorted() {
			switch {
			case !b.isAhead(m.now):
			case !b.leaves:
				moves[b.submitter] = append(moves[b.submitter], nil) // it stays, which is news, too
			default:
				moves[b.submitter] = append(moves[b.submitter], b)
				if b.to == "" {
					stuck++
				}
			}
		}
		for _, submitter := range slices.Sorted(maps.Keys(moves)) {
			m.tellOne(s, submitter, moves[submitter])
		}
		m.warn(s, stuck)
	}
}

// isWhole tells the submitters of a site that it can keep all that it has promised again.
func (m *Machine) isWhole(s *site) {
	owners := make(map[grid.SiteID]bool)
	for _, b := range s.sorted() {
		owners[b.submitter] = true
	}
	s.settle()
	for _, submitter := range slices.Sorted(maps.Keys(owners)) {
		m.tellOne(s, submitter, nil)
	}
}

// tellOne tells one submitter of one site, in as many messages as it takes.
func (m *Machine) tellOne(s *site, submitter grid.SiteID, list []*booking) {
	list = slices.DeleteFunc(list, func(b *booking) bool { return b == nil })
	slices.SortStableFunc(list, func(a, b *booking) int { return a.booked.Compare(b.booked) })
	for {
		part := list[:min(len(list), protocol.MaxMoves)]
		m.numbers++
		msg := protocol.Remap{
			Term: m.term, Number: m.numbers, Site: s.id, Before: max(m.before, m.cfg.Slot),
			Partly: s.failed.IsZero(),
		}
		for _, b := range part {
			msg.Moves = append(msg.Moves, protocol.RemapMove{Task: b.attempt.Task, To: b.to})
		}
		m.out.Send(submitter, msg)
		if len(part) > 0 {
			m.out.Report(step.LevelInfo, eventRemapped, step.Report{
				Site: s.id, Value: float64(len(part)),
			})
		}
		if list = list[len(part):]; len(list) == 0 {
			return
		}
	}
}

// onRemapped takes a submitter's word that tasks of its own are not at a site that has failed.
func (m *Machine) onRemapped(from grid.SiteID, msg protocol.Remapped) {
	if msg.Term != m.term || msg.Number > m.numbers {
		return
	}
	for _, s := range m.sites.all() {
		if !s.isImpaired() {
			continue
		}
		for _, b := range s.sorted() {
			if b.submitter == from && b.leaves && slices.Contains(msg.Elsewhere, b.attempt.Task) {
				m.out.Report(step.LevelDebug, eventElsewhere, step.Report{
					Attempt: b.attempt, Site: s.id,
				})
				m.drop(s, b)
			}
		}
	}
}
