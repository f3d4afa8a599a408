package vectors

import (
	"encoding/json"
	"errors"
	"math"

	"github.com/mrsmesh/mrsmesh/pkg/ckpt"
)

// lfcaEvent is a request for a checkpoint or a failure: [kind, time].
type lfcaEvent struct {
	failure bool
	at      float64
}

func (e *lfcaEvent) UnmarshalJSON(text []byte) error {
	var kind string
	var at number
	if err := json.Unmarshal(text, &[]any{&kind, &at}); err != nil {
		return err
	}
	failure, err := word(map[string]bool{"req": false, "fail": true}, kind)
	*e = lfcaEvent{failure, at.value}
	return err
}

type lfcaIn struct {
	Events  []lfcaEvent
	E       number
	Start   number  `json:"system_start"`
	MaxOmit integer `json:"max_omit"`
}

func lfca(in lfcaIn) (outputs, error) {
	l := ckpt.LFCA{
		ExecutionSeconds: in.E.value, LastFailureSeconds: in.Start.value,
		MaxOmissions: ckpt.DefaultMaxOmissions,
	}
	if in.MaxOmit.known {
		l.MaxOmissions = in.MaxOmit.value
	}
	if err := l.Validate(); err != nil {
		return nil, err
	}
	words := map[ckpt.Decision]string{ckpt.Take: "take", ckpt.Omit: "omit", ckpt.Force: "forced"}
	decisions := []string{}
	for _, e := range in.Events {
		if e.failure {
			if err := l.Failed(e.at); err != nil {
				return nil, err
			}
			continue
		}
		d, err := l.Request(e.at)
		if err != nil {
			return nil, err
		}
		decisions = append(decisions, words[d])
	}
	return outputs{"decisions": decisions}, nil
}

type mfcaIn struct {
	I, I0, RE, Mf, E, Alpha number
	Step                    number `json:"dI"`
	Min                     number `json:"I_min"`
	C                       number
}

func (in mfcaIn) rule() ckpt.MFCA {
	return ckpt.MFCA{
		ExecutionSeconds: in.E.value, GrowthLimit: in.Alpha.value, StepSeconds: in.Step.value,
		MinSeconds: in.Min.value, CostSeconds: in.C.value,
	}
}

func mfcaStep(in mfcaIn) (outputs, error) {
	next, err := in.rule().Next(in.I.value, in.RE.value, in.Mf.or(math.Inf(1)))
	return outputs{"I": next}, err
}

func mfcaRun(in mfcaIn) (outputs, error) {
	checkpoints, err := in.rule().Run(in.I0.value, in.Mf.or(math.Inf(1)))
	return outputs{"checkpoints": checkpoints}, err
}

func youngDaly(in struct{ C, MTBF, Work, Restart number }) (outputs, error) {
	e := ckpt.Execution{
		WorkSeconds: in.Work.value, CostSeconds: in.C.value, MTBFSeconds: in.MTBF.value,
		RestartSeconds: in.Restart.value,
	}
	young, err1 := ckpt.Young(e.CostSeconds, e.MTBFSeconds)
	daly, err2 := ckpt.Daly(e.CostSeconds, e.MTBFSeconds)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	atYoung, err1 := e.ExpectedCompletion(young)
	atDaly, err2 := e.ExpectedCompletion(daly)
	return outputs{
		"young": young, "daly": daly, "expected_at_young": atYoung, "expected_at_daly": atDaly,
	}, errors.Join(err1, err2)
}

type checkpointCountIn struct {
	Runtime number
	Cost    number `json:"ckpt_cost"`
	Outages integer
}

func checkpointCount(in checkpointCountIn) (outputs, error) {
	o := ckpt.Outages{
		RuntimeSeconds: in.Runtime.value, CostSeconds: in.Cost.value, Count: in.Outages.value,
	}
	out := outputs{}
	for name, model := range map[string]ckpt.LossModel{
		"A": ckpt.LossOfWork, "B": ckpt.LossWithOverheads,
	} {
		n, err := o.CheckpointCount(model)
		if err != nil {
			return nil, err
		}
		total, err := o.Total(model, n)
		if err != nil {
			return nil, err
		}
		out["best_n_"+name], out["total_"+name] = n, total
	}
	curve := make([]float64, 13)
	for n := range curve {
		total, err := o.Total(ckpt.LossOfWork, int64(n))
		if err != nil {
			return nil, err
		}
		curve[n] = total
	}
	out["curve_A_0_12"] = curve
	return out, nil
}
