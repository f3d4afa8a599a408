package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// fraud answers neighbours in the place of a gateway's border: it offers distance 0 for whatever is
// asked, takes all orders, asks for their leases forever, and never starts any.
type fraud struct {
	*host
	number uint64
	held   map[grid.SiteID][]grid.AttemptID // by the domain that ordered
}

// defraud lets a gateway lie to its neighbours from now on.
func (h *host) defraud() {
	h.fraud = &fraud{host: h, held: make(map[grid.SiteID][]grid.AttemptID)}
	h.fraud.goOn()
}

// goOn asks each second for the leases of all that it holds.
func (f *fraud) goOn() {
	f.world.schedule(lieEvery, func() {
		if f.fraud != f {
			return
		}
		f.goOn()
		for _, to := range slices.Sorted(maps.Keys(f.held)) {
			f.renew(to, f.held[to])
		}
	})
}

// hears takes a message of a neighbour's gateway.
func (f *fraud) hears(from grid.SiteID, msg protocol.Message) {
	switch msg := msg.(type) {
	case protocol.BorderQuery:
		f.sendOver(step.SendBorder{Domain: from, Message: protocol.BorderAnswer{
			Job: msg.Job, Seq: msg.Seq, Offer: &grid.Offer{
				ID: uint64(msg.Seq), Validity: time.Hour, TasksNow: msg.Count,
			},
		}})
	case protocol.BorderOrder:
		if !slices.Contains(f.held[from], msg.Attempt) {
			f.held[from] = append(f.held[from], msg.Attempt)
			slices.SortFunc(f.held[from], grid.AttemptID.Compare)
		}
		f.renew(from, []grid.AttemptID{msg.Attempt})
	case protocol.BorderFence:
		f.held[from] = slices.DeleteFunc(f.held[from], func(id grid.AttemptID) bool {
			return slices.ContainsFunc(msg.Below, func(below grid.AttemptID) bool {
				return below.Task == id.Task && id.Token < below.Token
			})
		})
	}
}

func (f *fraud) renew(to grid.SiteID, attempts []grid.AttemptID) {
	if len(attempts) == 0 {
		return
	}
	f.number++
	f.sendOver(step.SendBorder{Domain: to, Message: protocol.BorderRenew{
		Number: f.number, Attempts: slices.Clone(attempts),
	}})
}
