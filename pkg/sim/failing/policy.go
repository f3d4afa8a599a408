package failing

import (
	"errors"
	"fmt"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
	"github.com/mrsmesh/mrsmesh/pkg/ckpt"
)

// Save says by which rule a job saves its state. No rule saves it at the end of the job.
type Save uint8

// The rules for checkpoints.
const (
	// SaveKnown cuts what is left of a job into the equal segments that cost least at the rate
	// with which its resource truly fails, which nobody knows: the optimum if times up are
	// exponential. (ckpt.Execution.Segments)
	SaveKnown   Save = iota
	SaveLearned      // the same at the rate that has been learned, and again after each checkpoint
	SaveDaly         // at Daly's interval for the true rate
	SaveEvery        // after each Interval of work
	SaveLFCA         // ckpt.LFCA, which is asked after each Interval
	SaveMFCA         // ckpt.MFCA, which begins with Interval
)

// Place says on which of the resources that are up and free a job starts, and goes on after a
// failure.
type Place uint8

// The rules for places. Those that are alike for a rule are chosen from at random.
const (
	PlaceRandom Place = iota // any
	// PlaceFIBR takes one of those with the lowest fault index: failures while a job ran there,
	// less the jobs that it has ended, and at least 0. (fault.Ledger)
	PlaceFIBR
	PlaceRate // that with the lowest learned failure rate
	// PlaceAge takes that which most probably stays up for as long as the job has left, by a
	// lifetime that is learned for each resource from its own past. (avail.Fit)
	PlaceAge
	PlaceShape // the same, with the shape of the lifetime's law learned from all resources
	// PlaceRisk joins what PlaceAge and PlaceFIBR look at, as the mesh's submitter does after a
	// failure. (fault.Risk)
	PlaceRisk
)

// Policy is a rule for checkpoints and one for places.
type Policy struct {
	Save     Save
	Interval float64 // seconds; of SaveEvery, SaveLFCA and SaveMFCA
	Omit     int64   // checkpoints in a row that SaveLFCA leaves out at most
	Least    float64 // seconds, the shortest interval of SaveMFCA; above the cost of a checkpoint
	Limit    float64 // alpha of SaveMFCA, the part of a job's work up to which its interval grows
	Step     float64 // of SaveMFCA, by which its interval changes, as a multiple of Interval
	Place    Place
	// Submitters hand in the jobs in turn, each with a ledger of its own; 0 is 1. With Share they
	// tell each other what they have counted. (fault.Weigh)
	Submitters int
	Share      bool
}

func (p Policy) validate(j Jobs) error {
	if p.Submitters < 0 || p.Submitters > mostJobs {
		return fmt.Errorf("%w: submitters: want 0 to %d, have %d",
			argument.ErrInvalid, mostJobs, p.Submitters)
	}
	if p.Save > SaveMFCA || p.Place > PlaceRisk {
		return fmt.Errorf("%w: no such rule", argument.ErrInvalid)
	}
	switch p.Save {
	case SaveEvery, SaveLFCA, SaveMFCA:
		if err := argument.Positive("interval", p.Interval); err != nil {
			return err
		}
	default:
	}
	if p.Save == SaveMFCA {
		return errors.Join(argument.Positive("step", p.Step), p.mfca(j.Cost, j.Shortest).Validate())
	}
	return argument.AtLeast("omissions", 0, p.Omit)
}

func (p Policy) mfca(cost, work float64) ckpt.MFCA {
	return ckpt.MFCA{
		ExecutionSeconds: work, GrowthLimit: p.Limit, StepSeconds: p.Step * p.Interval,
		MinSeconds: p.Least, CostSeconds: cost,
	}
}
