package border

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// The kinds of facts, with the version of their format.
const (
	factTaken   = "border_taken/1"   // key attempt; an errand that the neighbour has taken
	factReceipt = "border_receipt/1" // key attempt; a receipt that was given
	factGiven   = "border_given/1"   // key as guestName; an order of a neighbour
	factFavour  = "border_favour/1"  // key neighbour; what was given and taken, by receipts
)

// takenFact has times on the wall clock, in ms since 1970 UTC.
type takenFact struct {
	Domain    grid.SiteID      `json:"domain"`
	Submitter grid.SiteID      `json:"submitter"`
	Taker     grid.SiteID      `json:"taker,omitempty"`
	Passage   protocol.Passage `json:"passage"`
	Spec      grid.Spec        `json:"spec"`
	Here      bool             `json:"here,omitempty"`
	BeganMS   int64            `json:"began_ms,omitempty"`
	End       *endFact         `json:"end,omitempty"`
	Acked     bool             `json:"acked,omitempty"`
}

type endFact struct {
	Exit      grid.Exit `json:"exit"`
	Used      int64     `json:"used"`
	StartedMS int64     `json:"started_ms,omitempty"`
	EndedMS   int64     `json:"ended_ms,omitempty"`
}

type receiptFact struct {
	Giver     grid.SiteID       `json:"giver"`
	Taker     grid.SiteID       `json:"taker"`
	Used      int64             `json:"used"`
	Signature []byte            `json:"signature"`
	Mandate   *protocol.Mandate `json:"mandate,omitempty"`
	AtMS      int64             `json:"at_ms"`
}

type givenFact struct {
	Domain  grid.SiteID      `json:"domain"`
	Attempt string           `json:"attempt"`
	Passage protocol.Passage `json:"passage"`
	Spec    grid.Spec        `json:"spec"`
	Here    bool             `json:"here,omitempty"`
	Job     grid.JobID       `json:"job,omitempty"`
	End     *endFact         `json:"end,omitempty"`
}

// wallMS is a time of this machine on the wall clock.
func (m *Machine) wallMS(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return step.MS(t.Add(m.ahead))
}

func (m *Machine) endFact(e ending) *endFact {
	if e.exit == nil {
		return nil
	}
	return &endFact{
		Exit: *e.exit, Used: e.used, StartedMS: m.wallMS(e.started), EndedMS: m.wallMS(e.ended),
	}
}

func (e *endFact) ending() ending {
	if e == nil {
		return ending{}
	}
	exit := e.Exit
	return ending{
		exit: &exit, used: e.Used, started: step.FromMS(e.StartedMS), ended: step.FromMS(e.EndedMS),
	}
}

// saveErrand writes down an errand that is taken. One that is not is lost with the run: nothing of
// it can have a lease.
func (m *Machine) saveErrand(e *errand) {
	if !e.taken {
		return
	}
	m.out.Persist(step.NewFact(factTaken, e.attempt.String(), takenFact{
		Domain: e.domain, Submitter: e.submitter, Taker: e.taker, Passage: e.passage,
		Spec: e.spec, Here: e.here,
		BeganMS: m.wallMS(e.began), End: m.endFact(e.ending), Acked: e.acked,
	}))
}

func (m *Machine) saveReceipt(r *receipt) {
	m.out.Persist(step.NewFact(factReceipt, r.Attempt.String(), receiptFact{
		Giver: r.Giver, Taker: r.Taker, Used: r.UsedCoreMS, Signature: r.Signature,
		Mandate: r.Mandate, AtMS: m.wallMS(r.at),
	}))
}

func (m *Machine) saveGuest(g *guest) {
	m.out.Persist(step.NewFact(factGiven, g.name, givenFact{
		Domain: g.domain, Attempt: g.attempt.String(), Passage: g.passage, Spec: g.spec,
		Here: g.here, Job: g.job, End: m.endFact(g.ending),
	}))
}

// Snapshot implements step.Durable.
func (m *Machine) Snapshot() []byte { return m.out.Facts().Encode() }

// Restore implements step.Durable.
func (m *Machine) Restore(encoded []byte) error {
	facts, err := step.DecodeFacts(encoded)
	if err != nil {
		return err
	}
	for _, f := range facts {
		if err := m.restore(f); err != nil {
			return fmt.Errorf("restore %s %s: %w", f.Kind, f.Key, err)
		}
		m.out.Facts().Apply(f)
		m.restored++
	}
	return nil
}

func (m *Machine) restore(f step.Fact) error {
	switch f.Kind {
	case factTaken:
		return m.restoreErrand(f)
	case factReceipt:
		return m.restoreReceipt(f)
	case factGiven:
		return m.restoreGuest(f)
	case factFavour:
		var v favour
		if err := json.Unmarshal(f.Value, &v); err != nil {
			return err
		}
		m.favours.own[grid.SiteID(f.Key)] = v
		return grid.SiteID(f.Key).Validate()
	default:
		return fmt.Errorf("%w: this version does not know the fact", grid.ErrInvalid)
	}
}

func (m *Machine) restoreErrand(f step.Fact) error {
	var v takenFact
	if err := json.Unmarshal(f.Value, &v); err != nil {
		return err
	}
	id, err := grid.ParseAttemptID(f.Key)
	if err != nil {
		return err
	}
	order := protocol.BorderOrder{Passage: v.Passage, Attempt: id, Spec: v.Spec}
	if err := order.Validate(); err != nil {
		return err
	}
	e := &errand{
		domain: v.Domain, attempt: id, submitter: v.Submitter, passage: v.Passage, spec: v.Spec,
		here: v.Here, taken: true, began: step.FromMS(v.BeganMS), ending: v.End.ending(),
		acked: v.Acked, phase: grid.PhaseStaging, pause: m.cfg.Again, taker: v.Taker,
	}
	if e.exit != nil {
		e.phase = grid.PhaseCollecting
		if err := e.exit.Validate(); err != nil {
			return err
		}
	}
	if err := v.Domain.Validate(); err != nil {
		return err
	}
	m.errands.put(e)
	return v.Submitter.Validate()
}

func (m *Machine) restoreReceipt(f step.Fact) error {
	var v receiptFact
	if err := json.Unmarshal(f.Value, &v); err != nil {
		return err
	}
	id, err := grid.ParseAttemptID(f.Key)
	if err != nil {
		return err
	}
	r := &receipt{at: step.FromMS(v.AtMS), BorderReceipt: protocol.BorderReceipt{
		Attempt: id, Giver: v.Giver, Taker: v.Taker, UsedCoreMS: v.Used, Signature: v.Signature,
		Mandate: v.Mandate,
	}}
	m.receipts[id] = r
	return r.Validate()
}

func (m *Machine) restoreGuest(f step.Fact) error {
	var v givenFact
	if err := json.Unmarshal(f.Value, &v); err != nil {
		return err
	}
	id, err := grid.ParseAttemptID(v.Attempt)
	if err != nil {
		return err
	}
	order := protocol.BorderOrder{Passage: v.Passage, Attempt: id, Spec: v.Spec}
	if err := order.Validate(); err != nil {
		return err
	}
	g := &guest{
		name: f.Key, domain: v.Domain, attempt: id, passage: v.Passage, spec: v.Spec, here: v.Here,
		job: v.Job, ending: v.End.ending(), pause: m.cfg.Again,
	}
	if !m.cfg.NoRequestIDs && g.name != guestName(g.domain, id) {
		return fmt.Errorf("%w: its name is another's", grid.ErrInvalid)
	}
	if g.exit != nil {
		if err := g.exit.Validate(); err != nil {
			return err
		}
	}
	if g.job != "" {
		m.foreign[g.job] = g.passage
		if err := g.job.Validate(); err != nil {
			return err
		}
	}
	m.guests.put(g)
	return v.Domain.Validate()
}

// resume takes up what an earlier run left. The neighbours are told when they are there.
func (m *Machine) resume() {
	m.bootedAt = m.now
	for _, e := range slices.Clone(m.errands) {
		e.heard, e.made = m.now, m.now
		if !e.here && e.exit == nil {
			m.stage(e)
		}
		m.rouse(e, e.pause)
	}
	for _, g := range slices.Clone(m.guests) {
		g.heard = m.now
		m.advance(g)
		m.rouseGuest(g, g.pause)
	}
}
