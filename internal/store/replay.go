package store

import (
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Result holds the findings of a replay.
type Result struct {
	Records    uint64      // how many records were replayed
	Divergence *Divergence // the first record whose effects differ; nil if none does
}

// Divergence is a record to which the machine answered otherwise than it did in
// its first life.
type Divergence struct {
	Number   uint64     // of the record in the run, from 1
	Time     time.Time  // now, as given to the machine
	Input    step.Input // of the machine
	Recorded uint64     // hash of the effects then
	Derived  uint64     // hash of the effects now
	Effects  []step.Effect
}

// String says where and what, for people.
func (d Divergence) String() string {
	return fmt.Sprintf("record %d at %s: %T gave effects with hash %016x, now %016x",
		d.Number, d.Time.Format(time.RFC3339Nano), d.Input, d.Recorded, d.Derived)
}

// Replay gives a new machine the inputs that another had in a run, and compares what both
// wanted done. newMachine makes the machine as its header says, without facts; Replay
// restores those. visit, which may be nil, sees each record with the effects that were
// derived. Replay stops at the first divergence. The errors are ErrTruncated, those of
// Run.Entries and those of newMachine.
func Replay(
	run Run, newMachine func(Header) (step.Machine, error), visit func(Entry, []step.Effect),
) (Result, error) {
	if run.Part != 0 {
		return Result{}, fmt.Errorf("replay %s of start %d: %w",
			run.Machine, run.Incarnation, errTruncated)
	}
	machine, err := newMachine(run.Header)
	if err != nil {
		return Result{}, fmt.Errorf("replay %s: make the machine: %w", run.Machine, err)
	}
	if err := machine.Restore(run.Facts); err != nil {
		return Result{}, fmt.Errorf("replay %s: restore facts: %w", run.Machine, err)
	}
	var result Result
	for e, err := range run.Entries() {
		if err != nil {
			return result, err
		}
		if e.Input == nil {
			continue
		}
		effects := machine.Step(e.Time, e.Input)
		result.Records++
		if visit != nil {
			visit(e, effects)
		}
		if derived := step.HashEffects(0, effects); derived != e.Hash {
			result.Divergence = &Divergence{
				Number: e.Number, Time: e.Time, Input: e.Input, Recorded: e.Hash, Derived: derived,
				Effects: effects,
			}
			return result, nil
		}
	}
	return result, nil
}
