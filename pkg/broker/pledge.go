package broker

import (
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// PromiseTolerance is by how much a task may begin or end later than was promised and be
// called on time: a sandbox takes a moment to set up, a message to come, and clocks differ.
const PromiseTolerance = time.Second

// pledge holds the promise for a task; only jobs that want a promise have one.
type pledge struct {
	accepted  bool    // a site has promised it a place, some time
	kept      float64 // 1 - z of the latest award: how likely its promise is kept
	promise   grid.Promise
	overdue   bool          // open, and the deadline has passed
	startLate time.Duration // by how much it began late, below 0: early; 0 = it did neither
	endLate   time.Duration // by how much it ended late; 0 = it did not
	note      string        // for people: what was late, or why it is broken
}

// lateBy is by how much a moment is later than a limit, 0 if it is not, or there is none.
func lateBy(at, limit time.Time) time.Duration {
	if late := at.Sub(limit); !limit.IsZero() && !at.IsZero() && late > PromiseTolerance {
		return late
	}
	return 0
}

// reopenPledge takes a judgement back: the task has to be run again.
func (p *pledge) reopenPledge() {
	if p.promise != grid.PromiseNone {
		p.promise, p.startLate, p.endLate, p.note = grid.PromiseOpen, 0, 0, ""
	}
}

// lateness says what was late.
func (p *pledge) lateness(ran, estimate time.Duration) string {
	text := ""
	if p.startLate != 0 {
		text = beganLate(p.startLate)
	}
	if p.endLate > 0 {
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("ended %s after its deadline", rounded(p.endLate))
		if ran > estimate {
			text += fmt.Sprintf("; it ran for %s, and %s were estimated", rounded(ran), rounded(estimate))
		}
	}
	return text
}

func beganLate(late time.Duration) string {
	if late < 0 {
		return fmt.Sprintf("began %s before its promised start", rounded(-late))
	}
	return fmt.Sprintf("began %s after its promised start", rounded(late))
}

func rounded(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }

// shown is the promise as people see it: what is overdue is late already.
func (p *pledge) shown() grid.Promise {
	if p.promise == grid.PromiseOpen && p.overdue {
		return grid.PromiseLate
	}
	return p.promise
}

// pledgeFact is the part of a task's fact that is about its promise.
type pledgeFact struct {
	Promise     grid.Promise `json:"promise,omitempty"`
	StartLateMS int64        `json:"start_late_ms,omitempty"`
	EndLateMS   int64        `json:"end_late_ms,omitempty"`
	Note        string       `json:"note,omitempty"`
}

func (p *pledge) fact() *pledgeFact {
	if p.promise == grid.PromiseNone {
		return nil
	}
	return &pledgeFact{
		Promise: p.promise, StartLateMS: p.startLate.Milliseconds(),
		EndLateMS: p.endLate.Milliseconds(), Note: p.note,
	}
}

// restore takes up the promise of a task. A fact of before there were any says only whether a
// site had accepted it.
func (p *pledge) restore(f *pledgeFact, ended bool) {
	switch {
	case f != nil:
		p.promise, p.note = f.Promise, f.Note
		p.startLate = time.Duration(f.StartLateMS) * time.Millisecond
		p.endLate = time.Duration(f.EndLateMS) * time.Millisecond
	case p.accepted && !ended:
		p.promise = grid.PromiseOpen
	}
}
