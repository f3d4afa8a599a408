package backend

import (
	"slices"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// hint says why a job does not run, and what happens next; empty if there is nothing to say.
func hint(job broker.JobState, v view.JobView) string {
	switch v.Phase {
	case view.PhaseSuspended:
		for _, t := range job.Tasks {
			if phaseOf(t) == view.PhaseSuspended {
				return standingText(t)
			}
		}
		return ""
	case view.PhaseWaiting:
	default:
		return ""
	}
	if job.Held {
		return "held; submit release " + string(job.ID) + " lets it go on"
	}
	if len(job.Awaits) > 0 {
		return "waits until " + jobList(job.Awaits) + " done"
	}
	if len(job.Answers) == 0 {
		return "no site has answered yet; it is announced again until one does"
	}
	return "no site has capacity now; it starts as soon as one does " +
		"(submit why " + string(job.ID) + ")"
}

// refusalReasons lists each kind of refusal once, in words.
func refusalReasons(job broker.JobState) []string {
	var reasons []string
	for _, t := range job.Tasks {
		if t.Phase == grid.PhaseRefused && t.Exit != nil && t.Exit.Text != "" {
			reasons = append(reasons, t.Exit.Text)
		}
	}
	for _, answer := range job.Answers {
		if answer.Offer == nil {
			reasons = append(reasons, answer.Refusal.Explain())
		}
	}
	slices.Sort(reasons)
	return slices.Compact(reasons)
}
