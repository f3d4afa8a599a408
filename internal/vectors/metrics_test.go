package vectors

import (
	"github.com/mrsmesh/mrsmesh/pkg/metrics"
	paper "github.com/mrsmesh/mrsmesh/pkg/papers/metrics"
)

type metricsIn struct {
	Jobs []struct {
		Submit  number `json:"s"`
		Start   number `json:"e"`
		Run     number `json:"E"`
		Outcome string
		Nodes   number
	}
	Nodes number `json:"M"`
}

func summary(in metricsIn) (outputs, error) {
	var jobs []metrics.Job
	for _, j := range in.Jobs {
		outcome, err := word(map[string]metrics.Outcome{
			"ok": metrics.Completed, "failed": metrics.Failed, "rejected": metrics.Rejected,
		}, j.Outcome)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, metrics.Job{
			SubmitSeconds: j.Submit.value, Started: j.Start.known, StartSeconds: j.Start.value,
			RunSeconds: j.Run.value,
			Nodes:      j.Nodes.value, Outcome: outcome,
		})
	}
	s, err := metrics.Summarise(jobs, in.Nodes.value)
	return outputs{
		"AWT": maybe(s.AverageWaitSeconds),
		"QCT": maybe(s.CompletionSeconds), "AGU": maybe(s.Utilization),
		"JPR": maybe(s.CompletedRate), "JFR": maybe(s.FailedRate), "JRR": maybe(s.RejectedRate),
	}, err
}

func maybe(v metrics.Value) number {
	value, defined := v.Get()
	return number{value, defined}
}

type replicationIn struct {
	Alpha, H, S, L number
	K, J           integer
}

func replication(in replicationIn) (outputs, error) {
	r, err := metrics.Replicate(metrics.Replication{
		Availability: in.Alpha.value, Copies: in.K.value, RunSeconds: in.H.value, Jobs: in.J.value,
		Capacity: in.S.value, Load: in.L.value,
	})
	return outputs{
		"all_fail": r.AllFail,
		"success":  r.Success, "success_paper": r.PaperSuccess, "threshold_alpha": r.PaperThreshold,
		"max_load": r.MaxLoad, "overloaded": r.Overloaded, "queue_time": r.QueueSeconds,
		"throughput": r.Throughput,
	}, err
}

type predictionIn struct {
	Er, H   number
	K, R, J integer
}

func prediction(in predictionIn) (outputs, error) {
	p, err := metrics.Predict(metrics.Prediction{
		ErrorRate: in.Er.value, Resources: in.K.value, Attempts: in.R.value,
		RunSeconds: in.H.value, Jobs: in.J.value,
	})
	return outputs{
		"p1": p.OnceSuccess, "pR": p.Success, "pR_paper": p.PaperSuccess,
		"max_queue_time": p.MaxQueueSeconds, "min_throughput": p.MinThroughput,
	}, err
}

type ttlIn struct {
	N       integer
	TTL     number
	Compute []number `json:"compute_times"`
}

func ttlBound(in ttlIn) (outputs, error) {
	sequential, parallel, err := paper.PlacingTime(in.N.value, in.TTL.value, floats(in.Compute))
	return outputs{"paper": sequential, "parallel": parallel}, err
}
