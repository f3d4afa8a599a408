package view

import (
	"fmt"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// fillWords reads what a job's JSON says in words.
func (s JobSpec) fillWords(job *grid.Job) error {
	switch s.Overrun {
	case "", "suspend":
	case "stop":
		job.Spec.Overrun = grid.OverrunStop
	default:
		return fmt.Errorf("%w: overrun %q: want suspend or stop", grid.ErrInvalid, s.Overrun)
	}
	if s.Checkpoint != "" {
		var err error
		if job.Spec.Checkpoint, err = grid.ParseSaving(s.Checkpoint); err != nil {
			return err
		}
	}
	var err error
	if job.Redundancy, err = grid.ParseReplicas(s.Replicas); err != nil {
		return err
	}
	job.Redundancy.Agreement, job.Redundancy.Verify = s.Agreement, s.Verify
	for _, split := range []grid.Split{
		grid.SplitNone, grid.SplitNever, grid.SplitIfNeeded, grid.SplitGreedy,
	} {
		if s.Split == split.String() {
			job.Split = split
			return nil
		}
	}
	return fmt.Errorf("%w: split %q: want never, if-needed or greedy", grid.ErrInvalid, s.Split)
}

// overrunWord is empty for the default.
func overrunWord(o grid.Overrun) string {
	if o == grid.OverrunStop {
		return "stop"
	}
	return ""
}

// savingWord is empty for the default.
func savingWord(s grid.Saving) string {
	if s == (grid.Saving{}) {
		return ""
	}
	return s.String()
}
