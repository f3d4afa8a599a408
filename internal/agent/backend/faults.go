package backend

import (
	"math"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
)

// faultRow shows what counts against a member.
func faultRow(m broker.MemberState) view.FaultRow {
	row := view.FaultRow{
		Site: m.Site, Name: m.Name, Index: int(math.Round(m.Fault.Own)),
		Shared: m.Fault.Shared, Says: m.Fault.Says, Last: view.At(m.Fault.Last),
	}
	for _, c := range m.Fault.Counts.InWords() {
		row.Causes = append(row.Causes, view.CountedWord{Word: c.Word, Count: c.Times})
	}
	return row
}
