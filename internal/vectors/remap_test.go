package vectors

import "github.com/mrsmesh/mrsmesh/pkg/papers/remap"

type reservationIn struct {
	ID, Machine             string
	Seq, Start, Stop, Nodes integer
}

func reservations(in []reservationIn) []remap.Reservation {
	var list []remap.Reservation
	for _, r := range in {
		list = append(list, remap.Reservation{
			ID: r.ID, Seq: r.Seq.value, Start: r.Start.value, Stop: r.Stop.value, Nodes: r.Nodes.value,
			Machine: r.Machine,
		})
	}
	return list
}

// list is a list of IDs that is empty rather than null.
func list(ids []string) []string { return append([]string{}, ids...) }

type intervalIn struct {
	T0, Horizon integer
	Jobs        []reservationIn
	Failed      string
	Capacity    integer `json:"cap_total"`
	Norm        integer `json:"norm_cap"`
	Zeta, Eta   number
	Booking     []number `json:"bbar"`
}

func vrmInterval(in intervalIn) (outputs, error) {
	if in.Norm == (integer{0, true}) {
		return nil, errInput // Load takes 0 for the total
	}
	f := remap.Failure{Machine: in.Failed, Slot: in.T0.value}
	load := remap.Load{
		Reservations: reservations(in.Jobs), TotalNodes: in.Capacity.value, NormNodes: in.Norm.value,
		Booking: floats(in.Booking),
	}
	limits := remap.Threshold{Weight: in.Zeta.value, Share: in.Eta.value}
	profile, slots, err := f.Interval(load, limits, in.Horizon.value)
	if err != nil {
		return nil, err
	}
	a, err := f.Within(load.Reservations, slots)
	return outputs{
		"profile": profile, "interval": slots, "terminate_active": list(a.Terminate),
		"remap": list(a.Remap),
	}, err
}

type referenceIn struct {
	T0       integer
	Jobs     []reservationIn
	Failed   string
	Algo     string
	FailEnd  integer `json:"fail_end"`
	Estimate integer `json:"est_end"`
}

func vrmReference(in referenceIn) (outputs, error) {
	algorithm, err := word(map[string]remap.Reference{
		"all": remap.All, "one": remap.One, "optimal": remap.Optimal, "estimate": remap.Estimate,
	}, in.Algo)
	if err != nil {
		return nil, err
	}
	f := remap.Failure{Machine: in.Failed, Slot: in.T0.value}
	a, err := f.Select(reservations(in.Jobs),
		algorithm, remap.Ends{Actual: in.FailEnd.value, Estimated: in.Estimate.value})
	return outputs{"terminate_active": list(a.Terminate), "remap": list(a.Remap)}, err
}

type remapIn struct {
	Machines []struct {
		ID  string
		Cap integer
	}
	Jobs         []reservationIn
	Failed       string
	Remap        []string
	BlockedUntil integer `json:"blocked_until"` // nothing uses it
	Policy       string
}

func vrmRemap(in remapIn) (outputs, error) {
	policy, err := word(map[string]remap.Policy{
		"first_fit": remap.FirstFit, "best_fit": remap.BestFit, "worst_fit": remap.WorstFit,
	}, in.Policy)
	if err != nil {
		return nil, err
	}
	if in.BlockedUntil.value < 0 {
		return nil, errInput
	}
	var machines []remap.Machine
	for _, m := range in.Machines {
		machines = append(machines, remap.Machine{ID: m.ID, Nodes: m.Cap.value})
	}
	moves, err := remap.Failure{Machine: in.Failed}.Move(reservations(in.Jobs),
		in.Remap, machines, policy)
	result := []record{}
	for _, m := range moves {
		r := record{"id": m.ID, "machine": nil}
		if m.Machine != "" {
			r["machine"] = m.Machine
		}
		result = append(result, r)
	}
	return outputs{"result": result}, err
}
