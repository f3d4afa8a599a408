package failing

import (
	"errors"
	"fmt"
	"math"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
	"github.com/mrsmesh/mrsmesh/pkg/workload"
)

// Resources says how machines come and go. Times are seconds.
type Resources struct {
	Count  int     // 1 to 4096
	MTBF   float64 // mean time up, of the resource in the middle; above 0
	Spread float64 // resources have MTBF e^(Spread N), with N standard normal; 0 to 4
	Shape  float64 // of the Weibull law of times up; 1: exponential
	Repair float64 // mean time down, exponential; above 0
}

// Jobs says what comes: Count jobs with gaps between them that are exponential. Each takes one
// resource. Times are seconds.
type Jobs struct {
	Count             int     // 1 to 100,000
	Shortest, Longest float64 // run times without failures and checkpoints, evenly between; above 0
	Load              float64 // work that comes, by what the resources could do if none failed
	Cost              float64 // of a checkpoint; above 0
	Restart           float64 // before a job goes on after a failure
	Deadline          float64 // after its submission, as a multiple of a job's run time
}

const (
	mostResources = 4096
	mostJobs      = 100_000
	mostSpread    = 4
)

func (r Resources) validate() error {
	err := errors.Join(
		within("resources", r.Count, mostResources), argument.Positive("mean time up", r.MTBF),
		argument.Positive("repair", r.Repair), r.up(r.MTBF).Validate(), r.down().Validate(),
	)
	if !(r.Spread >= 0 && r.Spread <= mostSpread) {
		err = errors.Join(err, fmt.Errorf("%w: spread: want 0 to %d, have %v",
			argument.ErrInvalid, mostSpread, r.Spread))
	}
	return err
}

func (j Jobs) validate() error {
	err := errors.Join(
		within("jobs", j.Count, mostJobs), argument.Positive("shortest run time", j.Shortest),
		argument.Positive("load", j.Load), argument.Positive("cost of a checkpoint", j.Cost),
		argument.Amount("restart", j.Restart), argument.Positive("deadline", j.Deadline),
	)
	if !(j.Longest >= j.Shortest) || math.IsInf(j.Longest+j.Restart+j.Cost, 1) {
		err = errors.Join(err, fmt.Errorf("%w: longest run time, restart, cost: want finite numbers, "+
			"and the longest at least the shortest", argument.ErrInvalid))
	}
	return err
}

func within(name string, n, most int) error {
	if n < 1 || n > most {
		return fmt.Errorf("%w: %s: want 1 to %d, have %d", argument.ErrInvalid, name, most, n)
	}
	return nil
}

// up is the law of times up of a resource with such a mean.
func (r Resources) up(mean float64) workload.Law {
	if r.Shape == 1 {
		return workload.Law{Name: workload.Exponential, Scale: mean}
	}
	law := workload.Law{Name: workload.Weibull, Scale: 1, Shape: r.Shape}
	if law.Validate() != nil {
		return law // its mean may be no number
	}
	return law.WithMean(mean)
}

func (r Resources) down() workload.Law {
	return workload.Law{Name: workload.Exponential, Scale: r.Repair}
}

// means draws the mean time up of each resource.
func (r Resources) means(seed uint64) []float64 {
	chance := workload.Stream(seed, "mean times up of resources")
	means := make([]float64, r.Count)
	for i := range means {
		means[i] = r.MTBF * math.Exp(r.Spread*chance.NormFloat64())
	}
	return means
}

// job is one that comes.
type job struct{ submit, work float64 }

// draw draws the jobs that come to so many resources, in the order of their submission.
func (j Jobs) draw(resources int, seed uint64) []job {
	chance := workload.Stream(seed, "jobs on resources that fail")
	gap := (j.Shortest + j.Longest) / 2 / (j.Load * float64(resources))
	jobs := make([]job, j.Count)
	at := 0.0
	for i := range jobs {
		at += gap * chance.ExpFloat64()
		jobs[i] = job{submit: at, work: j.Shortest + (j.Longest-j.Shortest)*chance.Float64()}
	}
	return jobs
}
