package batch

import "github.com/mrsmesh/mrsmesh/pkg/workload"

// Figures are the result of a rerun.
type Figures struct {
	Jobs               int
	AvgWait            float64          // seconds from submission to start
	AvgBoundedSlowdown float64          // max(1, (wait + run) / max(run, 10 s)); 1 is never waiting
	Makespan           workload.Seconds // from the first submission to the last end
	Utilization        float64          // share of the machine that was busy in the makespan, 0 to 1
}

// slowdownBound keeps jobs that last next to nothing from deciding the mean slowdown
// (D. Feitelson and L. Rudolph, "Metrics and Benchmarking for Parallel Job
// Scheduling", JSSPP 1998).
const slowdownBound = 10

// Measure tells what the starts of jobs on a machine of procs processors come to.
// Without jobs all is 0.
func Measure(jobs []workload.Job, starts []workload.Seconds, procs int) Figures {
	f := Figures{Jobs: len(jobs)}
	if len(jobs) == 0 {
		return f
	}
	var busy float64
	var end workload.Seconds
	for i, j := range jobs {
		wait := starts[i] - j.Submit
		f.AvgWait += float64(wait)
		f.AvgBoundedSlowdown += max(1, float64(wait+j.Run)/float64(max(j.Run, slowdownBound)))
		busy += float64(j.Run) * float64(j.Procs)
		end = max(end, starts[i]+j.Run)
	}
	f.AvgWait /= float64(len(jobs))
	f.AvgBoundedSlowdown /= float64(len(jobs))
	f.Makespan = end - jobs[0].Submit
	f.Utilization = busy / (float64(f.Makespan) * float64(procs))
	return f
}
