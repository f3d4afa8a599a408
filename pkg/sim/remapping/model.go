package remapping

import (
	"fmt"
	"math"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
	"github.com/mrsmesh/mrsmesh/pkg/remap"
	"github.com/mrsmesh/mrsmesh/pkg/workload"
)

// Model says what is played. The paper says neither how often requests come nor where they are
// placed first (E21): here they come as of a Poisson process, and go where fewest nodes stay free.
type Model struct {
	Nodes             []int64 // of each machine, above 0
	Slots             int64   // played; failures and requests lie within
	Load              float64 // nodes times slots that requests ask for, by what there is; above 0
	Lead              float64 // mean slots from a request to its start, exponential; above 0
	Shortest, Longest int64   // slots of a request, evenly between
	Widest            int64   // requests have 2, 4, 8, ... nodes up to 2^Widest, as often; 1 to 20
	Every             int64   // a machine drawn at random fails in slot Every, 2 Every, ...
	Down              int64   // slots that it fails for; less than Every
}

// Paper is the model of the paper's section 5.1, with an offered load of 2.
func Paper(lead float64) Model {
	return Model{
		Nodes: []int64{512, 256, 256, 128, 128, 96, 32, 32}, Slots: 20_000, Load: 2, Lead: lead,
		Shortest: 250, Longest: 750, Widest: 8, Every: 1500, Down: 500,
	}
}

// mostSlots bounds a run and the slots of a request, mostRequests the requests of a run, mostCells
// the machines times the slots in which something can be reserved.
const (
	mostSlots    = 1 << 20
	mostRequests = 1 << 20
	mostCells    = 1 << 24
)

// mostLeads bounds a lead, in means. The paper's requests never reach it; it bounds the memory.
const mostLeads = 20

// Validate says what is wrong with a model. Errors are argument.ErrInvalid.
func (m Model) Validate() error {
	for _, nodes := range m.Nodes {
		if nodes < 1 || nodes > mostSlots {
			return fmt.Errorf("%w: nodes of a machine: want 1 to %d, have %d",
				argument.ErrInvalid, mostSlots, nodes)
		}
	}
	if len(m.Nodes) == 0 || !m.within() {
		return fmt.Errorf("%w: model of reservations: want all above 0, at most %d slots, and a "+
			"failure shorter than the time between two, have %+v",
			argument.ErrInvalid, mostSlots, m)
	}
	if requests := m.rate() * float64(m.Slots); !(requests <= mostRequests) {
		return fmt.Errorf("%w: model of reservations: want at most %d requests, have %.0f: "+
			"take less load, or fewer slots", argument.ErrInvalid, mostRequests, requests)
	}
	slots := float64(m.Slots) + mostLeads*m.Lead + float64(m.Longest)
	if cells := float64(len(m.Nodes)) * slots; cells > mostCells {
		return fmt.Errorf("%w: model of reservations: want machines times slots of at most %d, "+
			"have %.0f: take fewer machines, fewer slots, or a shorter lead",
			argument.ErrInvalid, mostCells, cells)
	}
	return nil
}

// within reports whether each number is within its range.
func (m Model) within() bool {
	requests := m.Load > 0 && m.Lead > 0 && m.Lead <= mostSlots && m.Shortest > 0 &&
		m.Shortest <= m.Longest && m.Longest <= mostSlots && m.Widest >= 1 && m.Widest <= 20
	return requests && m.Slots > 0 && m.Slots <= mostSlots && m.Down > 0 && m.Down < m.Every
}

// total is the number of all nodes.
func (m Model) total() int64 {
	var sum int64
	for _, nodes := range m.Nodes {
		sum += nodes
	}
	return sum
}

// rate is the mean number of requests in a slot.
func (m Model) rate() float64 {
	nodes := (math.Exp2(float64(m.Widest)+1) - 2) / float64(m.Widest)
	return m.Load * float64(m.total()) / (nodes * float64(m.Shortest+m.Longest) / 2)
}

// job is a request, and its reservation if it got one.
type job struct {
	remap.Reservation

	comes int64
	stays int // the failure in which it found no other machine
}

// draw draws requests in the order in which they come, and the machine that each failure hits.
func (m Model) draw(seed uint64) (jobs []job, hit []int) {
	chance := workload.Stream(seed, "reservations")
	rate := m.rate()
	for at := chance.ExpFloat64() / rate; at < float64(m.Slots); at += chance.ExpFloat64() / rate {
		comes := int64(at)
		lead := int64(min(chance.ExpFloat64(), mostLeads) * m.Lead)
		start := comes + 1 + lead
		jobs = append(jobs, job{comes: comes, stays: remap.None, Reservation: remap.Reservation{
			Seq: int64(len(jobs)), Start: start,
			Stop: start + m.Shortest + chance.Int64N(m.Longest-m.Shortest+1),
			Need: remap.Amount{1 << (1 + chance.Int64N(m.Widest))}, Machine: remap.None,
		}})
	}
	failures := workload.Stream(seed, "failures of machines")
	for at := m.Every; at < m.Slots; at += m.Every {
		hit = append(hit, failures.IntN(len(m.Nodes)))
	}
	return jobs, hit
}
