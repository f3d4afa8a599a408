package vectors

import (
	"math"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/papers/openccs"
	"github.com/mrsmesh/mrsmesh/pkg/plan"
)

type latestStartIn struct {
	Deadline, Runtime, Done number
	Checkpoints             integer `json:"n_ckpt"`
	Cost                    number  `json:"ckpt_cost"`
}

func latestStart(in latestStartIn) (outputs, error) {
	start, err := openccs.LatestStart(in.Deadline.value, openccs.Remaining{
		RuntimeSeconds: in.Runtime.value, DoneSeconds: in.Done.value,
		Checkpoints: in.Checkpoints.value, CheckpointSeconds: in.Cost.value,
	})
	return outputs{"latest_start": start}, err
}

type orderIn struct {
	Requests []requestIn
	Policy   string
}

type requestIn struct {
	ID, Kind, List                                 string
	Submit, Runtime, Deadline, Remaining, Overhead number
}

func (in requestIn) request() (openccs.Request, error) {
	class, err := word(map[string]plan.Class{
		"fix": plan.ClassFixTime, "deadline": plan.ClassDeadline, "var": plan.ClassVarTime,
	}, in.Kind)
	if err != nil {
		return openccs.Request{}, err
	}
	list, err := word(map[string]openccs.List{
		"P": openccs.ListPlanned, "D": openccs.ListDefect, "O": openccs.ListOffered, "N": openccs.ListNew,
	}, in.List)
	return openccs.Request{
		ID: in.ID, Class: class, List: list,
		SubmitSeconds: in.Submit.value, RuntimeSeconds: in.Runtime.value,
		DeadlineSeconds: in.Deadline.or(math.Inf(1)), RemainingSeconds: in.Remaining.or(in.Runtime.value),
		OverheadSeconds: in.Overhead.value,
	}, err
}

func order(in orderIn) (outputs, error) {
	policy, err := word(map[string]grid.Policy{
		"FCFS": grid.PolicyFCFS, "SJF": grid.PolicySJF, "LJF": grid.PolicyLJF,
		"EDF": grid.PolicyEDF, "LST": grid.PolicyLST,
	}, in.Policy)
	if err != nil {
		return nil, err
	}
	var requests []openccs.Request
	for _, r := range in.Requests {
		request, wrong := r.request()
		if wrong != nil {
			return nil, wrong
		}
		requests = append(requests, request)
	}
	ids, err := openccs.Order(requests, policy)
	return outputs{"order": ids}, err
}

type failureHorizonIn struct {
	Jobs []struct {
		ID         string
		Start, End number
		Nodes      []string
	}
	Defect     []string
	T, Horizon number
}

func failureHorizon(in failureHorizonIn) (outputs, error) {
	var placements []openccs.Placement
	for _, j := range in.Jobs {
		placements = append(placements, openccs.Placement{
			ID: j.ID, StartSeconds: j.Start.value, EndSeconds: j.End.value, Nodes: j.Nodes,
		})
	}
	ids, err := openccs.DefectList(placements, in.Defect, in.T.value, in.Horizon.value)
	return outputs{"defect_list": ids}, err
}

func stageInDelay(in struct{ Now, Runtime, Deadline number }) (outputs, error) {
	end, full, err := openccs.DelayedEnd(in.Now.value, in.Runtime.value, in.Deadline.or(math.Inf(1)))
	return outputs{"end": end, "full_runtime": full}, err
}
