package vectors

import (
	"github.com/mrsmesh/mrsmesh/pkg/argument"
	"github.com/mrsmesh/mrsmesh/pkg/avail"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/papers/nodes"
)

type upNodeIn struct {
	Lambda number `json:"lambda_per_step"`
	P      number
	TauUp  integer `json:"tau_up"`
}

func upNodes(in []upNodeIn) []avail.UpNode {
	var list []avail.UpNode
	for _, n := range in {
		list = append(list,
			avail.UpNode{FailuresPerStep: n.Lambda.value, Reliability: n.P.value, UpSteps: n.TauUp.value})
	}
	return list
}

type downNodeIn struct {
	Lambda  number `json:"lambda_per_step"`
	Q       number
	TauDown integer `json:"tau_down"`
}

func downNodes(in []downNodeIn) []avail.DownNode {
	var list []avail.DownNode
	for _, n := range in {
		list = append(list, avail.DownNode{
			RecoveriesPerStep: n.Lambda.value, Unrecoverable: n.Q.value, DownSteps: n.TauDown.value,
		})
	}
	return list
}

type setUpIn struct {
	Nodes []upNodeIn
	Tau   integer
	HalfK integer `json:"half_k"`
}

func setUp(in setUpIn) (outputs, error) {
	s, err := nodes.SetUp(upNodes(in.Nodes), in.Tau.value, int(in.HalfK.value))
	return outputs{"paper": s.Paper, "all": s.All, "any": s.Any, "half": s.Quorum}, err
}

type setRecoverIn struct {
	Nodes []downNodeIn
	Tau   integer
}

func setRecover(in setRecoverIn) (outputs, error) {
	s, err := nodes.SetRecover(downNodes(in.Nodes), in.Tau.value)
	return outputs{"paper": s.Paper, "all": s.All, "any": s.Any, "expected": s.Expected}, err
}

type capacityIn struct {
	Up    []upNodeIn
	Down  []downNodeIn
	Tau   integer
	Error number `json:"e_T"`
}

func capacityForecast(in capacityIn) (outputs, error) {
	f, err := avail.CapacityForecast(upNodes(in.Up), downNodes(in.Down), in.Tau.value, in.Error.value)
	return outputs{
		"paper": f.Paper, "fixed_mean": f.Mean, "fixed_var": f.Variance, "fixed_q05": f.Low,
	}, err
}

type ctmcIn struct {
	MTTF, MTTR, Tau number
	UpNow           bool `json:"up_now"`
}

func ctmcUp(in ctmcIn) (outputs, error) {
	p, err := nodes.CTMCUp(in.MTTF.value, in.MTTR.value, in.Tau.value, in.UpNow)
	return outputs{"p": p}, err
}

func errorAdjust(in struct{ Predicted, Actual []number }) (outputs, error) {
	if len(in.Predicted) != len(in.Actual) {
		return nil, errInput // the type of the parameter rules it out
	}
	var history []avail.ForecastPair
	for i, p := range in.Predicted {
		history = append(history, avail.ForecastPair{Predicted: p.value, Actual: in.Actual[i].value})
	}
	e, err := avail.ForecastError(history)
	return outputs{"e_T": e}, err
}

type gaeIn struct {
	MTTF, MTTR []number
	OnlyGAE    bool `json:"only_gae"`
}

func gae(in gaeIn) (outputs, error) {
	cycles := make([]avail.Cycle, max(len(in.MTTF), len(in.MTTR)))
	for i, n := range in.MTTF {
		cycles[i].MTTFSeconds = n.value
	}
	for i, n := range in.MTTR {
		cycles[i].MTTRSeconds = n.value
	}
	ratio, err := nodes.GeneralAvailability(cycles)
	if err != nil {
		return nil, err
	}
	if len(in.MTTF) != len(in.MTTR) {
		return nil, argument.ErrUndefined // the type of the parameter rules it out
	}
	if in.OnlyGAE {
		return outputs{"gae": ratio}, nil
	}
	mean, err := avail.MeanAvailability(cycles, nil)
	return outputs{"gae": ratio, "mean_availability": mean}, err
}

func saa(in struct{ Request, Total, Alpha number }) (outputs, error) {
	accept, err := avail.SAA(in.Request.value, in.Total.value, in.Alpha.value)
	return outputs{"accept": accept}, err
}

type naaIn struct {
	Nodes []struct {
		ID  grid.SiteID
		PUp number `json:"p_up"`
		Up  bool
	}
	Need  integer
	Alpha number
}

func naaNSA(in naaIn) (outputs, error) {
	var list []avail.Standing
	for _, n := range in.Nodes {
		list = append(list, avail.Standing{Site: n.ID, Up: n.Up, PUp: n.PUp.value})
	}
	naa, _, err := avail.NAA(list, int(in.Need.value))
	if err != nil {
		return nil, err
	}
	nsa, _, err := nodes.NSA(list, int(in.Need.value), in.Alpha.value)
	return outputs{"naa": naa, "nsa": nsa}, err // a nil list is null
}
