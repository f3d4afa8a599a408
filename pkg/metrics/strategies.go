package metrics

import (
	"errors"
	"math"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
)

// Replication is a grid that runs several copies of each job, so that one of them
// may survive. Thesis, section 3.2.3.
type Replication struct {
	Availability float64 // alpha, the share of time that a node is up, 0 to 1
	Copies       int64   // K, at least 1
	RunSeconds   float64 // H, how long a job takes
	Jobs         int64   // J, jobs in the queue
	Capacity     float64 // S, nodes of the grid
	Load         float64 // L, nodes that a job asks for
}

// Replicated holds what such a grid achieves.
type Replicated struct {
	AllFail float64 // probability that no copy survives, (1-alpha)^K
	Success float64 // probability that at least one does, 1-(1-alpha)^K

	// PaperSuccess is 1-K(1-alpha), which the thesis takes for Success. It bounds
	// the probability that all copies survive, and is negative below
	// PaperThreshold. Copies on one site fail together; neither formula knows that.
	PaperSuccess   float64
	PaperThreshold float64 // 1-1/K, the availability that the thesis thinks a grid must have

	MaxLoad      float64 // S alpha/K, nodes up to which all copies run at the same time
	Overloaded   bool    // the load is above that, so that copies wait for each other
	QueueSeconds float64 // how long the queue takes: J H, overloaded J H (1+K)/2
	// Throughput is in jobs per second: 1/H, overloaded 2/(H (1+K)); infinite for jobs that take
	// no time.
	Throughput float64
}

// Replicate works out what a grid with copies achieves.
func Replicate(r Replication) (Replicated, error) {
	if err := errors.Join(
		argument.Probability("availability", r.Availability),
		argument.AtLeast("copies", 1, r.Copies),
		argument.Amount("run time", r.RunSeconds),
		argument.AtLeast("jobs", 0, r.Jobs),
		argument.Amount("capacity", r.Capacity),
		argument.Amount("load", r.Load),
	); err != nil {
		return Replicated{}, err
	}
	copies := float64(r.Copies)
	inARow := 1.0 // how many run times pass until a job is done
	maxLoad := argument.Product(r.Capacity, r.Availability) / copies
	if r.Load > maxLoad {
		inARow = (1 + copies) / 2
	}
	return Replicated{
		AllFail:        none(r.Availability, copies),
		Success:        atLeastOne(r.Availability, copies),
		PaperSuccess:   1 - copies*(1-r.Availability),
		PaperThreshold: 1 - 1/copies,
		MaxLoad:        maxLoad,
		Overloaded:     r.Load > maxLoad,
		QueueSeconds:   argument.Product(float64(r.Jobs), inARow, r.RunSeconds),
		Throughput:     1 / (r.RunSeconds * inARow),
	}, nil
}

// none is (1-p)^n, exact also for a small p and many n.
func none(p, n float64) float64 { return math.Exp(n * math.Log1p(-p)) }

// atLeastOne is 1-(1-p)^n without cancellation for a small p.
func atLeastOne(p, n float64) float64 { return -math.Expm1(n * math.Log1p(-p)) }

// Prediction is a grid that predicts which resources stay up, places each job on
// some of them and, if that fails, again. Thesis, section 3.2.3.
type Prediction struct {
	ErrorRate  float64 // Er, probability that one resource was predicted wrongly, 0 to 1
	Resources  int64   // k, that a job needs at the same time, at least 1
	Attempts   int64   // R, at least 1
	RunSeconds float64 // H, how long a job takes
	Jobs       int64   // J, jobs in the queue
}

// Predicted holds what such a grid achieves.
type Predicted struct {
	OnceSuccess float64 // probability that one attempt succeeds, (1-Er)^k
	Success     float64 // probability that one of all attempts does, 1-(1-(1-Er)^k)^R

	// PaperSuccess is R (1-Er)^k, which the thesis takes for Success and, above 1,
	// for certainty: 1.044 for two attempts with four resources at an error rate of
	// 0.15, where it is 0.77.
	PaperSuccess float64

	MaxQueueSeconds float64 // J R H: every job needs every attempt
	MinThroughput   float64 // jobs per second then, 1/(R H); infinite for jobs that take no time
}

// Predict works out what a grid with predictions achieves.
func Predict(p Prediction) (Predicted, error) {
	if err := errors.Join(
		argument.Probability("error rate", p.ErrorRate),
		argument.AtLeast("resources", 1, p.Resources),
		argument.AtLeast("attempts", 1, p.Attempts),
		argument.Amount("run time", p.RunSeconds),
		argument.AtLeast("jobs", 0, p.Jobs),
	); err != nil {
		return Predicted{}, err
	}
	attempts := float64(p.Attempts)
	once := none(p.ErrorRate, float64(p.Resources))
	return Predicted{
		OnceSuccess:     once,
		Success:         atLeastOne(once, attempts),
		PaperSuccess:    attempts * once,
		MaxQueueSeconds: argument.Product(float64(p.Jobs), attempts, p.RunSeconds),
		MinThroughput:   1 / (attempts * p.RunSeconds),
	}, nil
}
