package vectors

import (
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/index"
	"github.com/mrsmesh/mrsmesh/pkg/papers/virtualmap"
)

func (n number) rate() virtualmap.Rate {
	if !n.known {
		return virtualmap.Rate{}
	}
	return virtualmap.KnownRate(n.value)
}

func provisionRatio(in struct{ Offered, Required number }) (outputs, error) {
	r, err := virtualmap.ProvisionRatio(in.Offered.value, in.Required.value)
	return outputs{"R": r}, err
}

type potentialIn struct {
	Site   grid.SiteID
	Upload map[grid.SiteID]number `json:"upload_bps"`
	Source number                 `json:"P_src"`
}

func potential(in potentialIn) (outputs, error) {
	var uploads []index.Upload
	for peer, bps := range in.Upload {
		uploads = append(uploads, index.Upload{Peer: peer, Bps: bps.value})
	}
	p, err := index.Potential(in.Site, uploads)
	if err != nil {
		return nil, err
	}
	r, err := virtualmap.ProvisionRatio(p, in.Source.value)
	return outputs{"P": p, "R_P": r}, err
}

type computationIn struct {
	Req, Offer, K map[string]number
	Mode          string
	Normalise     bool
}

func computationIndex(in computationIn) (outputs, error) {
	mode, err := word(
		map[string]virtualmap.Mode{"weight": virtualmap.ModeWeight, "paper": virtualmap.ModePaper},
		in.Mode,
	)
	if err != nil {
		return nil, err
	}
	for _, k := range in.K {
		if !(k.or(1) >= 0) { // also of a dimension that is not required
			return nil, errInput
		}
	}
	var dims []virtualmap.Dimension
	for name, required := range in.Req {
		dims = append(dims, virtualmap.Dimension{
			Offered: in.Offer[name].value, Required: required.value, K: in.K[name].or(1),
		})
	}
	x, err := virtualmap.ComputationIndex(dims, mode, in.Normalise)
	return outputs{"x": x}, err
}

type bandwidthIn struct {
	Down number `json:"down_ij"`
	Up   number `json:"up_ji"`
}

func effectiveBandwidth(in bandwidthIn) (outputs, error) {
	rate, err := virtualmap.EffectiveBandwidth(in.Down.rate(), in.Up.rate())
	bps, known := rate.Bps()
	return outputs{"B": number{bps, known}}, err
}

type transferIn struct {
	Bytes, Bps number
	Local      bool
	LocalBps   number `json:"local_bps"`
}

func (in transferIn) transfer() virtualmap.Transfer {
	return virtualmap.Transfer{
		Bytes: in.Bytes.value, Link: in.Bps.rate(), Local: in.Local, Disk: in.LocalBps.rate(),
	}
}

type dataIn struct {
	transferIn
	Runtime number `json:"runtime_s"`
}

func dataIndex(in dataIn) (outputs, error) {
	y, err := virtualmap.DataIndex(in.transfer(), in.Runtime.value)
	if err != nil {
		return nil, err
	}
	bounded, err := virtualmap.YBounded(y)
	return outputs{"y": y, "y_bounded": bounded}, err
}

type dataMultiIn struct {
	Sources []transferIn
	Runtime number `json:"runtime_s"`
}

func dataIndexMulti(in dataMultiIn) (outputs, error) {
	var inputs []virtualmap.Transfer
	for _, s := range in.Sources {
		inputs = append(inputs, s.transfer())
	}
	y, err := virtualmap.DataIndexMulti(inputs, in.Runtime.value)
	return outputs{"y": y}, err
}

func distance(in struct{ X, Y, Z number }) (outputs, error) {
	d, err := index.Distance(in.X.value, in.Y.value, in.Z.value)
	return outputs{"d": d}, err
}

type rankIn struct {
	Acks []struct {
		ID       grid.SiteID
		X, Y, Z  number
		Feasible *bool
	}
	Limit integer
}

func rank(in rankIn) (outputs, error) {
	var points []virtualmap.Point
	for _, a := range in.Acks {
		points = append(points, virtualmap.Point{
			Site: a.ID, X: a.X.value, Y: a.Y.value,
			Z: a.Z.value, Infeasible: a.Feasible != nil && !*a.Feasible,
		})
	}
	if in.Limit.value < 0 {
		return nil, errInput
	}
	order, distances := []grid.SiteID{}, []float64{}
	for _, r := range virtualmap.Rank(points, int(in.Limit.value)) {
		if in.Limit == (integer{0, true}) { // Rank takes 0 for no limit
			break
		}
		order, distances = append(order, r.Site), append(distances, r.Distance)
	}
	return outputs{"order": order, "d": distances}, nil
}

type sedIn struct {
	Candidates []struct {
		ID                             grid.SiteID
		Rank, Start, Transfer, Runtime number
	}
	Top integer
}

// sed is the choice, which is null if all sites reject.
func sed(in sedIn) (outputs, error) {
	var candidates []index.Reservation
	for _, c := range in.Candidates {
		candidates = append(candidates, index.Reservation{
			Site: c.ID, Rank: c.Rank.value, Accepted: c.Start.known, StartSeconds: c.Start.value,
			TransferSeconds: c.Transfer.value, RuntimeSeconds: c.Runtime.value,
		})
	}
	top := index.DefaultReservations
	if in.Top.known {
		top = int(in.Top.value)
	}
	choice, ok, err := index.ShortestExpectedDelay(candidates, top, index.DelayFixed)
	if err != nil || !ok {
		return outputs{"result": record(nil)}, err
	}
	cancel := choice.Cancel
	if cancel == nil {
		cancel = []grid.SiteID{}
	}
	return outputs{"result": record{
		"choice": choice.Site, "finish": choice.FinishSeconds, "reserve_calls": choice.Asked,
		"cancel": cancel,
	}}, nil
}
