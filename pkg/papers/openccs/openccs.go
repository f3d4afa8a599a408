// Package openccs has the rules of OpenCCS as its authors wrote them: D. Battre, M.
// Hovestadt, O. Kao, A. Keller, K. Voss, "Planning-based Scheduling for SLA-awareness and
// Grid Integration". They are pure functions of times in float64 seconds, counted from
// any common beginning. How many checkpoints a job takes is Outages.CheckpointCount of
// pkg/ckpt.
//
// No program calls them: pkg/plan follows the same rules on a timeline, in integers and
// step by step. internal/vectors compares them with a second implementation.
package openccs

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/plan"
)

// LatestStart is when a job must start at the latest to meet its deadline: the
// deadline less the run time that is left and what its checkpoints take. A
// negative result is in the past: it cannot meet it. After a failure doneSeconds is
// the work that the last checkpoint saved, so that what is left counts, not what
// the user asked for. Work done beyond the run time is an error. OpenCCS, sections
// "Deadline bound Jobs" and "Resource Failures and Fault Tolerance".
func LatestStart(deadlineSeconds float64, left Remaining) (float64, error) {
	if err := errors.Join(argument.Amount("deadline", deadlineSeconds), left.validate()); err != nil {
		return 0, err
	}
	overhead := 0.0
	if left.Checkpoints > 0 {
		overhead = float64(left.Checkpoints) * left.CheckpointSeconds
	}
	start := deadlineSeconds - (left.RuntimeSeconds - left.DoneSeconds) - overhead
	if math.IsNaN(start) {
		return 0, fmt.Errorf("%w: latest start of a job with infinite times %+v",
			argument.ErrUndefined, left)
	}
	return start, nil
}

// Remaining is the work that a job has left.
type Remaining struct {
	RuntimeSeconds    float64 // as the user asked for
	DoneSeconds       float64 // work saved, at most the run time
	Checkpoints       int64   // still to be taken
	CheckpointSeconds float64 // what each of them takes
}

func (r Remaining) validate() error {
	if err := errors.Join(
		argument.Amount("run time", r.RuntimeSeconds),
		argument.Amount("work done", r.DoneSeconds),
		argument.Amount("time of a checkpoint", r.CheckpointSeconds),
	); err != nil {
		return err
	}
	if r.Checkpoints < 0 {
		return fmt.Errorf("%w: checkpoints: want at least 0, have %d", argument.ErrInvalid, r.Checkpoints)
	}
	if r.DoneSeconds > r.RuntimeSeconds {
		return fmt.Errorf("%w: work done: want at most the run time %v, have %v",
			argument.ErrInvalid, r.RuntimeSeconds, r.DoneSeconds)
	}
	return nil
}

// List is the stage of a request's life.
type List uint8

// The lists, in the order in which they are placed inside a class: a promise given
// comes before one to be kept in spite of a failure, that before one only offered.
const (
	ListPlanned List = iota // P-list: accepted
	ListDefect              // D-list: accepted, and lost its place to a failure
	ListOffered             // O-list: offered, not yet taken
	ListNew                 // N-list: just arrived
)

// Request is a job that the planner has to place.
type Request struct {
	ID               string
	Class            plan.Class
	List             List
	SubmitSeconds    float64
	RuntimeSeconds   float64 // as asked for
	DeadlineSeconds  float64 // infinite for none
	RemainingSeconds float64 // run time left since the last checkpoint; the run time for a fresh job
	OverheadSeconds  float64 // of the checkpoints to come
}

func (r Request) validate() error {
	if r.Class > plan.ClassVarTime || r.List > ListNew {
		return fmt.Errorf("%w: request %q: no such class %d or list %d",
			argument.ErrInvalid, r.ID, r.Class, r.List)
	}
	if err := errors.Join(
		argument.Amount("submit time", r.SubmitSeconds),
		argument.Amount("run time", r.RuntimeSeconds),
		argument.Amount("deadline", r.DeadlineSeconds),
		argument.Amount("remaining run time", r.RemainingSeconds),
		argument.Amount("overhead", r.OverheadSeconds),
	); err != nil {
		return fmt.Errorf("request %q: %w", r.ID, err)
	}
	return nil
}

// latestStart is the time that LST compares, infinite without a deadline.
func (r Request) latestStart() float64 {
	if math.IsInf(r.DeadlineSeconds, 1) {
		return r.DeadlineSeconds
	}
	return r.DeadlineSeconds - r.RemainingSeconds - r.OverheadSeconds
}

// Order is the requests' IDs in the order in which they are placed into an empty
// schedule: by class, then list, then policy; ties go by submit time and ID.
// OpenCCS gives both "P before D before O before N" and "Fix-Time, deadline bound,
// the rest, first from P-list, then from N-list": class goes first. Sections
// "Deadline bound Jobs", "Resource Failures" and "SLA Negotiation".
func Order(requests []Request, policy grid.Policy) ([]string, error) {
	key, err := orderKey(policy)
	if err != nil {
		return nil, err
	}
	for _, r := range requests {
		if err := r.validate(); err != nil {
			return nil, err
		}
	}
	sorted := slices.Clone(requests)
	slices.SortStableFunc(sorted, func(a, b Request) int {
		return cmp.Or(cmp.Compare(a.Class, b.Class),
			cmp.Compare(a.List, b.List), cmp.Compare(key(a), key(b)),
			cmp.Compare(a.SubmitSeconds, b.SubmitSeconds), cmp.Compare(a.ID, b.ID))
	})
	ids := make([]string, len(sorted))
	for i, r := range sorted {
		ids[i] = r.ID
	}
	return ids, nil
}

// orderKey returns the key of a policy, which puts the lowest first.
func orderKey(p grid.Policy) (func(Request) float64, error) {
	switch p {
	case grid.PolicyFCFS:
		return func(r Request) float64 { return r.SubmitSeconds }, nil
	case grid.PolicySJF:
		return func(r Request) float64 { return r.RuntimeSeconds }, nil
	case grid.PolicyLJF:
		return func(r Request) float64 { return -r.RuntimeSeconds }, nil
	case grid.PolicyEDF:
		return func(r Request) float64 { return r.DeadlineSeconds }, nil
	case grid.PolicyLST:
		return Request.latestStart, nil
	default:
		return nil, fmt.Errorf("%w: no such policy: %d", argument.ErrInvalid, p)
	}
}

// Placement is a job's place in the schedule.
type Placement struct {
	ID           string
	StartSeconds float64
	EndSeconds   float64 // at least the start
	Nodes        []string
}

// DefectList is the IDs, ascending, of the jobs that a failure takes out of the
// schedule: those planned on a defect node that have not ended and start before the
// failure horizon has passed, in which defects are usually repaired. A job that
// starts exactly then stays; OpenCCS leaves that open. A job leaves whole, if only
// one of its nodes is defect. Section "Resource Failures and Fault Tolerance".
func DefectList(
	placements []Placement, defect []string, nowSeconds, horizonSeconds float64,
) ([]string, error) {
	if err := errors.Join(argument.Amount("now", nowSeconds),
		argument.Amount("failure horizon", horizonSeconds)); err != nil {
		return nil, err
	}
	ids := []string{}
	for _, p := range placements {
		err := errors.Join(argument.Amount("start", p.StartSeconds), argument.Amount("end", p.EndSeconds))
		if err != nil {
			return nil, fmt.Errorf("job %q: %w", p.ID, err)
		}
		if p.EndSeconds < p.StartSeconds {
			return nil, fmt.Errorf("%w: job %q: ends at %v, before its start at %v",
				argument.ErrInvalid, p.ID, p.EndSeconds, p.StartSeconds)
		}
		hit := slices.ContainsFunc(p.Nodes, func(n string) bool { return slices.Contains(defect, n) })
		if hit && p.EndSeconds > nowSeconds && p.StartSeconds < nowSeconds+horizonSeconds {
			ids = append(ids, p.ID)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// DelayedEnd is until when the nodes of a job that waited for its inputs stay
// allocated, now that they are there: its run time from now, and not beyond its
// deadline. full says whether that is its whole run time. OpenCCS, section "Data
// Staging of Grid Jobs".
func DelayedEnd(
	nowSeconds, runtimeSeconds, deadlineSeconds float64,
) (endSeconds float64, full bool, err error) {
	if err := errors.Join(
		argument.Amount("now", nowSeconds), argument.Amount("run time", runtimeSeconds),
		argument.Amount("deadline", deadlineSeconds),
	); err != nil {
		return 0, false, err
	}
	end := nowSeconds + runtimeSeconds
	return min(deadlineSeconds, end), end <= deadlineSeconds, nil
}
