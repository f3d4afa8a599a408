package site

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// The kinds of this machine's facts. What they do not hold is lost in a crash:
// offers, the cache, leases and the highest tokens of tasks without an attempt
// here. That is safe. An award that was fenced off before the crash may be
// accepted after it, but an accepted attempt runs under a lease only, and the
// submitter grants none to a token it has overtaken.
const (
	kindAttempt = "attempt/1" // key: the attempt's ID as text
	kindPaused  = "paused/1"  // one row, key pausedKey
	pausedKey   = "site"
)

// The phases of an attempt that are facts.
const (
	factAccepted = "accepted" // promised; not started
	factStarted  = "started"  // may have run
	factExited   = "exited"   // ended; its submitter has not acknowledged it
)

// attemptFact is the value of an attempt's fact.
type attemptFact struct {
	Attempt   grid.AttemptID `json:"attempt"`
	Submitter grid.SiteID    `json:"submitter"`
	Phase     string         `json:"phase"`
	Task      *grid.Task     `json:"task,omitempty"`  // until it exited
	Place     *promisedFact  `json:"place,omitempty"` // until it was started, if it lay ahead
	// Saved are the checkpoints that it may go on from, until it was started.
	Saved     []grid.Checkpoint `json:"saved,omitempty"`
	Exit      *grid.Exit        `json:"exit,omitempty"`      // from then on
	HeldMS    int64             `json:"held_ms,omitempty"`   // and how long it was held since
	LastedMS  int64             `json:"lasted_ms,omitempty"` // from its begin on; 0: not known
	endedFact                   // from then on
}

// pausedFact is the value of the fact that the owner paused the site.
type pausedFact struct {
	UntilMS int64 `json:"until_ms"` // ms since 1970 UTC; 0: until Resume
	Leave   bool  `json:"leave,omitempty"`
	StopMS  int64 `json:"stop_ms,omitempty"` // ms since 1970 UTC; 0: never
	// that ordered it from afar; left out: the owner
	By grid.SiteID `json:"by,omitempty"`
}

// fact returns the part of the attempt that must outlive a crash.
func (a *attempt) fact() step.Fact {
	value := attemptFact{Attempt: a.id, Submitter: a.submitter, Phase: factAccepted, Task: &a.task}
	switch {
	case a.phase == phaseExited:
		value.Phase, value.Task, value.Exit = factExited, nil, &a.exit
		value.endedFact, value.HeldMS = a.shown, a.held.Milliseconds()
		value.LastedMS = a.lasted.Milliseconds()
	case a.started:
		value.Phase = factStarted
	default:
		value.Place, value.Saved = a.place, a.saving.from
	}
	return step.NewFact(kindAttempt, a.id.String(), value)
}

// fact returns the part of a pause that must outlive a crash.
func (p *pause) fact() step.Fact {
	fact := step.Fact{Kind: kindPaused, Key: pausedKey}
	if p.on {
		value := pausedFact{Leave: p.leave, By: p.by}
		if !p.shown.IsZero() {
			value.UntilMS = p.shown.UnixMilli()
		}
		if !p.stopShown.IsZero() {
			value.StopMS = p.stopShown.UnixMilli()
		}
		fact = step.NewFact(kindPaused, pausedKey, value)
	}
	return fact
}

// pause reads a fact.
func (f pausedFact) pause() pause {
	p := pause{on: true, by: f.By, leave: f.Leave}
	if f.UntilMS != 0 {
		p.until = time.UnixMilli(f.UntilMS).UTC()
		p.shown = p.until
	}
	if f.StopMS != 0 {
		p.stopAt = time.UnixMilli(f.StopMS).UTC()
		p.stopShown = p.stopAt
	}
	return p
}

// save writes the attempt's fact.
func (m *Machine) save(a *attempt) {
	m.out.Persist(a.fact())
	m.bookingsChanged()
}

// forget removes an attempt and its fact.
func (m *Machine) forget(a *attempt) {
	m.roster.remove(a)
	m.bookingsChanged()
	m.out.Persist(step.Fact{Kind: kindAttempt, Key: a.id.String()})
}

// Snapshot implements step.Machine.
func (m *Machine) Snapshot() []byte { return m.out.Facts().Encode() }

// Restore implements step.Machine. Attempts that had not ended are given up at
// Boot: their sandboxes died with the agent that ran them.
func (m *Machine) Restore(text []byte) error {
	if m.booted || len(m.roster.all) > 0 {
		return fmt.Errorf("restore site: %w: the machine is in use", grid.ErrInvalid)
	}
	facts, err := step.DecodeFacts(text)
	if err != nil {
		return fmt.Errorf("restore site: %w", err)
	}
	for _, f := range facts {
		if err := m.restoreFact(f); err != nil {
			return fmt.Errorf("restore site: fact %s %s: %w", f.Kind, f.Key, err)
		}
		m.out.Facts().Apply(f)
	}
	return nil
}

func (m *Machine) restoreFact(f step.Fact) error {
	switch f.Kind {
	case kindAttempt:
		return m.restoreAttempt(f)
	case kindPaused:
		var value pausedFact
		if err := json.Unmarshal(f.Value, &value); err != nil {
			return err
		}
		m.owner.paused = value.pause()
		return nil
	default:
		return fmt.Errorf("%w: unknown kind; was it written by a later version?", grid.ErrInvalid)
	}
}

func (m *Machine) restoreAttempt(f step.Fact) error {
	var value attemptFact
	if err := json.Unmarshal(f.Value, &value); err != nil {
		return err
	}
	if err := value.validate(f.Key); err != nil {
		return err
	}
	if m.roster.all[value.Attempt] != nil {
		return fmt.Errorf("%w: written twice", grid.ErrInvalid)
	}
	if use := m.roster.byJob[value.Attempt.Task.Job]; use != nil && use.submitter != value.Submitter {
		return fmt.Errorf("%w: one job of two submitters", grid.ErrInvalid)
	}
	a := &attempt{
		id: value.Attempt, submitter: value.Submitter, phase: phaseStaging,
		started: value.Phase == factStarted, place: value.Place, saving: newSaving(value.Saved),
	}
	if value.Task != nil {
		a.task = *value.Task
	}
	if value.Exit != nil {
		a.phase, a.exit, a.shown = phaseExited, *value.Exit, value.endedFact
		a.ended = time.UnixMilli(value.EndedMS).UTC()
		a.held = time.Duration(value.HeldMS) * time.Millisecond
		a.lasted = time.Duration(value.LastedMS) * time.Millisecond
	}
	m.roster.add(a)
	return nil
}

func (f attemptFact) validate(key string) error {
	if err := f.Attempt.Validate(); err != nil {
		return err
	}
	if err := f.Submitter.Validate(); err != nil {
		return err
	}
	if f.Attempt.String() != key {
		return fmt.Errorf("%w: the value is about %s", grid.ErrInvalid, f.Attempt)
	}
	switch f.Phase {
	case factAccepted, factStarted:
		if f.Exit != nil || f.Task == nil {
			return fmt.Errorf("%w: phase %s with an exit or without a task", grid.ErrInvalid, f.Phase)
		}
		return errors.Join(f.Place.validate(), grid.ValidateSaved(f.Saved))
	case factExited:
		if f.Exit == nil {
			return fmt.Errorf("%w: phase exited without an exit", grid.ErrInvalid)
		}
		return errors.Join(validSpan("held_ms", f.HeldMS), validSpan("lasted_ms", f.LastedMS),
			f.Exit.Validate())
	default:
		return fmt.Errorf("%w: unknown phase %q", grid.ErrInvalid, f.Phase)
	}
}

// validSpan checks a duration of a fact.
func validSpan(name string, ms int64) error {
	if most := grid.MaxRuntime.Milliseconds(); ms < 0 || ms > most {
		return fmt.Errorf("%w: %s: want 0 to %d, have %d", grid.ErrInvalid, name, most, ms)
	}
	return nil
}
