package audit

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// The facts that an audit reads, of the submitter's machine (see pkg/broker) and of the site's
// (see pkg/site). All that the audit knows of their form stands in this file.
const (
	kindJob     = "job/1"     // key JobID
	kindTask    = "task/1"    // key TaskID
	kindAttempt = "attempt/1" // key AttemptID
)

type jobFact struct {
	Job struct {
		Count uint32
		Spec  struct {
			Kind   grid.WorkKind
			Window grid.Window
		}
		After      []grid.JobID
		Redundancy grid.Redundancy
	} `json:"job"`
	SubmittedMS int64 `json:"submitted_ms"`
	EndedMS     int64 `json:"ended_ms"` // 0 while any task is open
}

type taskFact struct {
	Phase     grid.Phase `json:"phase"`
	Token     grid.Token `json:"token"`
	AwardedMS int64      `json:"awarded_ms"`
	Exit      struct {
		Outputs []grid.Produced
	} `json:"exit"`
	Pledge struct {
		Promise grid.Promise `json:"promise"`
	} `json:"pledge"`
	Chosen uint32     `json:"chosen"`
	Ruling *grid.Exit `json:"ruling"`
}

type attemptFact struct {
	Attempt grid.AttemptID `json:"attempt"`
	EndedMS int64          `json:"ended_ms"` // 0 before it has ended
}

// history collects what the facts of one agent tell, over all its starts.
type history struct {
	jobs    map[grid.JobID]Submission
	tasks   map[grid.TaskID]Task
	outputs map[grid.TaskID][]grid.CID   // of tasks that are done
	ends    map[grid.AttemptID]time.Time // of attempts at this site, as its agent heard of them first
}

func newHistory() history {
	return history{
		jobs: make(map[grid.JobID]Submission), tasks: make(map[grid.TaskID]Task),
		outputs: make(map[grid.TaskID][]grid.CID), ends: make(map[grid.AttemptID]time.Time),
	}
}

// note takes one change of a fact. A row that is removed leaves what was known
// of the job and its tasks, except that the submitter holds it no more.
func (h history) note(f step.Fact) error {
	switch f.Kind {
	case kindJob:
		return h.noteJob(f)
	case kindTask:
		return h.noteTask(f)
	case kindAttempt:
		return h.noteAttempt(f)
	}
	if strings.HasPrefix(f.Kind, "job/") || strings.HasPrefix(f.Kind, "task/") {
		return fmt.Errorf("fact %s %s: this program reads %s and %s", f.Kind, f.Key, kindJob, kindTask)
	}
	return nil
}

func (h history) noteJob(f step.Fact) error {
	id := grid.JobID(f.Key)
	s := h.jobs[id]
	s.Job, s.Held = id, f.Value != nil
	if f.Value != nil {
		var v jobFact
		if err := json.Unmarshal(f.Value, &v); err != nil {
			return fmt.Errorf("fact %s %s: %w", f.Kind, f.Key, err)
		}
		if v.Job.Count < 1 || v.Job.Count > grid.MaxTasks {
			return fmt.Errorf("fact %s %s: %d tasks", f.Kind, f.Key, v.Job.Count)
		}
		s.Count, s.Closed, s.Submitted = v.Job.Count, v.EndedMS != 0, step.FromMS(v.SubmittedMS)
		s.Window, s.Waits = v.Job.Spec.Window, len(v.Job.After) > 0
		s.Passive = v.Job.Spec.Kind == grid.KindReservation
		s.Copied = v.Job.Redundancy.Several()
	}
	h.jobs[id] = s
	return nil
}

func (h history) noteTask(f step.Fact) error {
	if f.Value == nil {
		return nil
	}
	id, err := grid.ParseTaskID(f.Key)
	if err != nil {
		return fmt.Errorf("fact %s %s: %w", f.Kind, f.Key, err)
	}
	var v taskFact
	if err := json.Unmarshal(f.Value, &v); err != nil {
		return fmt.Errorf("fact %s %s: %w", f.Kind, f.Key, err)
	}
	if v.Phase < grid.PhaseWaiting || v.Phase > grid.PhaseRefused {
		return fmt.Errorf("fact %s %s: phase %d is unknown", f.Kind, f.Key, v.Phase)
	}
	if t := h.tasks[id]; t.Phase.Ended() { // which result counts is decided later
		t.Chosen, t.NoResult = v.Chosen, v.Ruling != nil
		h.tasks[id] = t
		return nil
	}
	h.tasks[id] = Task{
		ID: id, Phase: v.Phase, Token: v.Token, Awarded: step.FromMS(v.AwardedMS),
		Promise: v.Pledge.Promise, Chosen: v.Chosen, NoResult: v.Ruling != nil,
	}
	if v.Phase == grid.PhaseDone {
		for _, out := range v.Exit.Outputs {
			h.outputs[id] = append(h.outputs[id], out.CID)
		}
	}
	return nil
}

// noteAttempt takes note of an attempt's end. What else its fact holds is not the audit's.
func (h history) noteAttempt(f step.Fact) error {
	if f.Value == nil {
		return nil
	}
	var v attemptFact
	if err := json.Unmarshal(f.Value, &v); err != nil {
		return fmt.Errorf("fact %s %s: %w", f.Kind, f.Key, err)
	}
	if _, known := h.ends[v.Attempt]; v.EndedMS != 0 && !known {
		h.ends[v.Attempt] = step.FromMS(v.EndedMS)
	}
	return nil
}

// settle compares the history with the facts at its end, which are the last
// word on what is held.
func (h history) settle(final []step.Fact) error {
	for id, s := range h.jobs {
		s.Held = false
		h.jobs[id] = s
	}
	for _, f := range final {
		if err := h.note(f); err != nil {
			return err
		}
	}
	return nil
}
