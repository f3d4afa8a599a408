package broker

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// CopyState is the broker's knowledge of one of several copies of a task.
type CopyState struct {
	Number    uint32 // from 1
	RunsAs    grid.TaskID
	Phase     grid.Phase
	Site      grid.SiteID // of its latest attempt; empty: it had none
	StartedAt time.Time
	Status    int    // exit code, once it has a result
	Digest    string // of its result, see grid.Exit.ResultDigest; empty: it has none
	Vote      Vote
}

// Vote says how a copy's result stands to those of the others.
type Vote uint8

// The votes.
const (
	VoteNone     Vote = iota // it has brought no result, or not yet
	voteOpen                 // it waits for the results of others
	voteResult               // it is the task's result; nobody else was to confirm it
	voteAgrees               // it is the task's result, or the same
	VoteOutvoted             // others agree on another result
	voteDiffers              // it is not the result, which nobody confirmed, or there is none
)

// String is the vote in one word.
func (v Vote) String() string {
	names := [...]string{"", "unconfirmed", "result", "agrees", "outvoted", "differs"}
	if int(v) < len(names) {
		return names[v]
	}
	return names[0]
}

// Running is the name under which the task runs, or has run to its end: its own, or that of one of
// its copies.
func (t TaskState) Running() grid.TaskID {
	if len(t.Copies) > 0 {
		return t.RunsAs
	}
	return t.ID
}

// taskState is a copy of the knowledge of a task in all its copies.
func (j *job) taskState(first uint32, asked bool) TaskState {
	stands := j.stands(first)
	s := j.tasks[stands].state(j.taskID(first), asked)
	if j.of == 0 {
		return s
	}
	s.RunsAs = j.taskID(stands)
	if why := j.tasks[first].ruling; why != nil {
		s.Phase, s.Exit = grid.PhaseFailed, why
	}
	for _, i := range j.copies(first) {
		s.Copies = append(s.Copies, j.copyState(first, i))
	}
	return s
}

func (j *job) copyState(first, i uint32) CopyState {
	t := &j.tasks[i]
	s := CopyState{
		Number: i/j.of + 1, RunsAs: j.taskID(i), Phase: t.phase, Site: t.site,
		StartedAt: t.startedAt,
	}
	if !t.hasVoted() {
		return s
	}
	s.Status, s.Digest = t.exit.Status(), t.digest
	s.Vote = j.voteOf(first, i)
	return s
}

// voteOf says how the result of a copy stands to those of the others.
func (j *job) voteOf(first, i uint32) Vote {
	head, t := &j.tasks[first], &j.tasks[i]
	switch {
	case t.outvoted:
		return VoteOutvoted
	case head.ruling != nil:
		return voteDiffers
	case head.chosen == 0:
		return voteOpen
	case j.tasks[j.stands(first)].digest != t.digest:
		return voteDiffers
	case len(j.ballot(first, false).best) > 1:
		return voteAgrees
	default:
		return voteResult
	}
}
