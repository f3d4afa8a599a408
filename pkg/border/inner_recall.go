package border

import (
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// Jobs that wait in a neighbour's domain often need much the same. What the members of this one
// have just refused is not asked of them again for each: for a moment the refusal answers the
// others, and those that need more on as many cores. An offer never does, since who gets it takes
// it.

// recalled is a requirement that no member could take when it was asked.
type recalled struct {
	req     grid.Requirement
	refusal grid.Refusal
	until   time.Time
}

// recall is the refusal that a query meets because as much was just refused. What may go on to
// further domains depends on its way and is always asked.
func (m *Machine) recall(msg protocol.BorderQuery) (grid.Refusal, bool) {
	if msg.Passage.Hops > 0 {
		return grid.Refusal{}, false
	}
	at := slices.IndexFunc(m.refused, func(r recalled) bool {
		return r.until.After(m.now) && isLess(&r.req, &msg.Req)
	})
	if at < 0 {
		return grid.Refusal{}, false
	}
	return m.refused[at].refusal, true
}

// isLess reports whether any site that can take b can take a: it asks for the same or less. With
// more cores a task is over sooner, and may fit where one with fewer does not.
func isLess(a, b *grid.Requirement) bool {
	return a.Kind == b.Kind && a.Map == b.Map && a.Need.MilliCPUs == b.Need.MilliCPUs &&
		b.Need.Fits(a.Need) && a.Runtime <= b.Runtime &&
		(a.OS == "" || a.OS == b.OS) && (a.Arch == "" || a.Arch == b.Arch) &&
		(b.Saves || !a.Saves) &&
		(len(a.Sources) == 0 || slices.EqualFunc(a.Sources, b.Sources, sameData))
}

// sameData compares data of whose holders nothing is said, as of all that crosses a border.
func sameData(a, b grid.DataSource) bool { return a.Digest == b.Digest && a.Bytes == b.Bytes }

// noteRefused remembers a refusal of what a probe was for, from the moment in which that was asked.
// The oldest gives way.
func (m *Machine) noteRefused(p *probe, refusal grid.Refusal) {
	until := p.at.Add(m.cfg.Recall)
	if p.passage.Hops > 0 || !until.After(m.now) {
		return
	}
	m.refused = slices.DeleteFunc(m.refused, func(r recalled) bool { return !r.until.After(m.now) })
	if over := len(m.refused) + 1 - m.cfg.MaxQueries; over > 0 {
		m.refused = slices.Delete(m.refused, 0, over)
	}
	m.refused = append(m.refused, recalled{req: p.req, refusal: refusal, until: until})
}

// forgetRefused has the members asked again: there may be capacity that they did not have.
func (m *Machine) forgetRefused() { m.refused = nil }
