package protocol

import "github.com/mrsmesh/mrsmesh/pkg/grid"

// Move asks a site to prepare that an attempt leaves it: to take a last checkpoint, which Movable
// answers, or, with Stop, to end the attempt. Its end is told by Exited like any other, as stopped
// if the program did not end before. The submitter repeats it; an earlier version of a site
// ignores it, and keeps the attempt.
type Move struct {
	Attempt grid.AttemptID
	Stop    bool
}

// Movable answers Move, and a site sends it by itself, again and again, while it had rather not go
// on with an attempt that can go on elsewhere.
type Movable struct {
	Attempt grid.AttemptID
	// Reason is why the site wants it to leave; ReasonNone: it does not, or does not any more.
	Reason grid.Reason
	Saves  bool // its program has saved its state in this attempt
	Begun  bool // the program was started: to stop it loses what it has not saved
	// Next is the number of the checkpoint after which it may be stopped: when that, or a later
	// one, counts. 0: none is to be expected, as while it is frozen.
	Next uint64
}

// Validate reports the first field that is out of its range.
func (m Move) Validate() error { return m.Attempt.Validate() }

// Validate reports the first field that is out of its range.
func (m Movable) Validate() error {
	if m.Reason == grid.ReasonNone {
		return m.Attempt.Validate()
	}
	return firstError(m.Attempt.Validate(), grid.Refusal{Reason: m.Reason}.Validate())
}
