package eval

import (
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/metrics"
	"github.com/mrsmesh/mrsmesh/pkg/sim/baseline"
)

// ending says when a job began and ended.
type ending struct {
	submitted time.Duration
	started   bool
	start     time.Duration // it executes
	finish    time.Duration // the output of its first copy has come
	ended     time.Duration // that of its last one has
	held      float64       // node seconds, its copies and transfers included
	messages  float64       // sent in the whole run for each job
	replies   float64       // of these, offers and refusals
	awarded   bool          // of the mesh
	award     time.Duration // the first one
	failed    bool          // by its sites, for good
	failures  int64         // runs of it that sites failed
}

// queueOutcomes tells the same of a schedule.
func queueOutcomes(jobs []baseline.Job, runs []baseline.Run) []ending {
	ends := make([]ending, len(jobs))
	for i, j := range jobs {
		ends[i].submitted = j.Submit
	}
	for _, r := range runs {
		e := &ends[r.Job]
		if !e.started || r.Start < e.start {
			e.start = r.Start
		}
		if !r.Failed && (e.finish == 0 || r.End < e.finish) {
			e.finish = r.End
		}
		e.started = true
		e.ended = max(e.ended, r.End)
		e.held += (r.End - r.Begin).Seconds() * float64(r.Took.MilliCPUs) / 1000
	}
	noteFailures(ends, runs)
	return ends
}

// slowdownBound is the run time below which slowdowns say little, seconds.
const slowdownBound = 10

// measure gives the measures of a run by their names, see scenario.ExperimentMeasures.
func measure(g baseline.Grid, jobs []baseline.Job, ends []ending) (map[string]float64, error) {
	nodes := 0.0
	for _, s := range g.Sites {
		nodes += float64(s.MilliCPUs) / 1000
	}
	records := make([]metrics.Job, len(ends))
	var completions []float64
	var completion, slowdown float64
	for i, e := range ends {
		m := metrics.Job{
			SubmitSeconds: e.submitted.Seconds(), Outcome: metrics.Rejected, Failures: e.failures,
		}
		if e.started {
			m.Started, m.StartSeconds, m.Outcome = true, e.start.Seconds(), metrics.Completed
			m.RunSeconds = (e.ended - e.start).Seconds()
			m.Nodes = e.held / max(m.RunSeconds, 1e-9)
		}
		switch {
		case e.failed:
			m.Outcome = metrics.Failed
		case e.started:
			took := (e.finish - e.submitted).Seconds()
			completions = append(completions, took)
			completion += took
			slowdown += max(took/max(jobs[i].Run.Seconds(), slowdownBound), 1)
		}
		records[i] = m
	}
	s, err := metrics.Summarise(records, nodes)
	if err != nil {
		return nil, err
	}
	measures := make(map[string]float64)
	for name, v := range map[string]metrics.Value{
		"wait": s.AverageWaitSeconds, "makespan": s.CompletionSeconds, "utilization": s.Utilization,
		"done": s.CompletedRate, "rejected": s.RejectedRate,
		"failed": s.FailedRate, "failures": s.FailureRate,
	} {
		if x, known := v.Get(); known {
			measures[name] = x
		}
	}
	if n := len(completions); n > 0 {
		slices.Sort(completions)
		measures["completion"], measures["slowdown"] = completion/float64(n), slowdown/float64(n)
		measures["completion50"], measures["completion95"] = completions[n/2], completions[n*95/100]
	}
	if len(ends) > 0 {
		measures["messages"], measures["replies"] = ends[0].messages, ends[0].replies
	}
	if d := decisions(ends); len(d) > 0 {
		measures["decision"] = d[len(d)/2]
	}
	return measures, nil
}

// decisions are the times from submission to the first award in seconds, in their order.
func decisions(ends []ending) []float64 {
	var all []float64
	for _, e := range ends {
		if e.awarded {
			all = append(all, (e.award - e.submitted).Seconds())
		}
	}
	slices.Sort(all)
	return all
}
