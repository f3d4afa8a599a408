package view

import (
	"fmt"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// PromiseView says what became of the promise of a time.
type PromiseView struct {
	State            string  `json:"state"`                        // open, kept, late or broken
	StartLateSeconds float64 `json:"start_late_seconds,omitempty"` // by how much it began late
	EndLateSeconds   float64 `json:"end_late_seconds,omitempty"`   // by how much it ended late
	Text             string  `json:"text,omitempty"`               // what was late, why broken
}

// Kept reports whether nothing is wrong with it, also where there is none.
func (p *PromiseView) Kept() bool {
	return p == nil || p.State != grid.PromiseLate.String() && p.State != grid.PromiseBroken.String()
}

// Doubt says why a promise that is open may not be kept; empty: nothing is known against it.
func (p *PromiseView) Doubt() string {
	if p == nil || p.State != grid.PromiseOpen.String() {
		return ""
	}
	return p.Text
}

// Line is the promise in a few words, such as "late: ended 26s after its deadline"; empty where
// there is none.
func (p *PromiseView) Line() string {
	switch {
	case p == nil:
		return ""
	case p.Text == "":
		return p.State
	default:
		return p.State + ": " + p.Text
	}
}

// WorstPromise sums up what became of the promises of a job's tasks: the worst state, with how
// many have it, and the longest delays. nil where none was given.
func WorstPromise(tasks []*PromiseView) *PromiseView {
	ranks := []string{ // better ones first
		grid.PromiseKept.String(), grid.PromiseOpen.String(), grid.PromiseLate.String(),
		grid.PromiseBroken.String(),
	}
	var worst *PromiseView
	same, given := 0, 0
	for _, t := range tasks {
		if t == nil {
			continue
		}
		given++
		if worst == nil {
			worst = &PromiseView{}
		}
		if slices.Index(ranks, t.State) > slices.Index(ranks, worst.State) {
			worst.State, worst.Text, same = t.State, t.Text, 0
		}
		if t.State == worst.State {
			same++
		}
		worst.StartLateSeconds = max(worst.StartLateSeconds, t.StartLateSeconds)
		worst.EndLateSeconds = max(worst.EndLateSeconds, t.EndLateSeconds)
	}
	if worst != nil && !worst.Kept() && given > 1 {
		worst.Text = fmt.Sprintf("%d of %d tasks, for example: %s", same, given, worst.Text)
	}
	return worst
}
