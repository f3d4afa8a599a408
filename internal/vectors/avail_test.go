package vectors

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
	"github.com/mrsmesh/mrsmesh/pkg/avail"
	"github.com/mrsmesh/mrsmesh/pkg/papers/nodes"
)

type failureSumIn struct {
	Lambda number `json:"lambda_per_step"`
	Steps  integer
}

func failureSum(in failureSumIn) (outputs, error) {
	lambda, steps := in.Lambda.value, in.Steps.value
	paper, e1 := avail.FailureSum(lambda, steps)
	closed, e2 := avail.FailureSumClosed(lambda, steps)
	erlang, e3 := nodes.Erlang2(lambda, steps)
	exponential, e4 := avail.FailureProbability(lambda, steps)
	return outputs{"paper": paper, "closed": closed, "erlang2": erlang, "exponential": exponential},
		errors.Join(e1, e2, e3, e4)
}

type nodeUpIn struct {
	Lambda number `json:"lambda_per_step"`
	P      number
	TauUp  integer `json:"tau_up"`
	Tau    integer
}

func nodeUp(in nodeUpIn) (outputs, error) {
	paper, fixed, err := avail.NodeUp(in.Lambda.value, in.P.value, in.TauUp.value, in.Tau.value)
	return outputs{"paper": paper, "fixed": fixed}, err
}

type nodeRecoverIn struct {
	Lambda  number `json:"lambda_per_step"`
	Q       number
	TauDown integer `json:"tau_down"`
	Tau     integer
}

func nodeRecover(in nodeRecoverIn) (outputs, error) {
	paper, fixed, err := avail.NodeRecover(in.Lambda.value, in.Q.value, in.TauDown.value, in.Tau.value)
	return outputs{"paper": paper, "fixed": fixed}, err
}

// lifetime reads a distribution as the vectors write it.
type lifetime struct {
	Kind               string
	P, Means           []number
	Mean, Shape, Scale number
}

func (l *lifetime) UnmarshalJSON(text []byte) error {
	var kind struct{ Kind string }
	if err := json.Unmarshal(text, &kind); err != nil {
		return err
	}
	l.Kind = kind.Kind
	if l.Kind == "hyperexp" { // its mean is a list
		var in struct{ P, Mean []number }
		err := json.Unmarshal(text, &in)
		l.P, l.Means = in.P, in.Mean
		return err
	}
	var in struct{ Mean, Shape, Scale number }
	err := json.Unmarshal(text, &in)
	l.Mean, l.Shape, l.Scale = in.Mean, in.Shape, in.Scale
	return err
}

// model is the distribution; a kind that pkg/avail has no type for is an invalid
// argument.
func (l *lifetime) model() (nodes.Lifetime, error) {
	switch {
	case l.Kind == "exp":
		return nodes.Exponential{Mean: l.Mean.value}, nil
	case l.Kind == "weibull":
		return nodes.Weibull{Shape: l.Shape.value, Scale: l.Scale.value}, nil
	case l.Kind == "hyperexp" && len(l.P) == len(l.Means):
		var h nodes.HyperExponential
		for i, p := range l.P {
			h = append(h, nodes.Phase{P: p.value, Mean: l.Means[i].value})
		}
		return h, nil
	default:
		return nil, fmt.Errorf("%w: distribution %q", argument.ErrInvalid, l.Kind)
	}
}

type condSurvivalIn struct {
	Dist     lifetime
	Age, Tau number
}

func condSurvival(in condSurvivalIn) (outputs, error) {
	model, err := in.Dist.model()
	if err != nil {
		return nil, err
	}
	s, err := nodes.Survival(model, in.Age.value, in.Tau.value)
	return outputs{"S": s}, err
}

type jointSurvivalIn struct {
	Nodes []struct {
		Dist lifetime
		Age  number
	}
	Tau number
}

func jointSurvival(in jointSurvivalIn) (outputs, error) {
	var list []nodes.Node
	for _, n := range in.Nodes {
		model, err := n.Dist.model()
		if err != nil {
			return nil, err
		}
		list = append(list, nodes.Node{Lifetime: model, Age: n.Age.value})
	}
	s, err := nodes.JointSurvival(list, in.Tau.value)
	return outputs{"S": s}, err
}

type gammaRateIn struct {
	A0, B0, Exposure, Tau number
	Failures              integer
}

func gammaRate(in gammaRateIn) (outputs, error) {
	if in.Failures.value < 0 {
		return nil, errInput // the type of the parameter rules it out
	}
	prior := avail.Prior{Failures: in.A0.value, Exposure: in.B0.value}
	belief, err := prior.Observe(uint64(in.Failures.value), in.Exposure.value)
	if err != nil {
		return nil, err
	}
	s, err := belief.Survival(in.Tau.value)
	return outputs{"rate": belief.Rate(), "survival": s}, err
}
