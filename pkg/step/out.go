package step

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// Out collects the effects of one Step in the order in which they are to be
// carried out, and keeps the table of facts that they have built up so far. The
// zero value is ready for use.
//
// A machine holds one in a field and empties it with Take as the last act of
// each Step. The field is better not embedded: Out's methods would join those of
// the machine, and any holder of the machine could add an effect.
type Out struct {
	// Level is the lowest one of reports that are wanted; others are left out.
	Level Level

	effects []Effect
	facts   Facts
}

// fewEffects are enough for most Steps.
const fewEffects = 4

// Emit adds an effect that has no method of its own here. A Persist goes through
// the method of that name, which keeps the table equal to what is written.
func (o *Out) Emit(e Effect) {
	if o.effects == nil {
		o.effects = make([]Effect, 0, fewEffects)
	}
	o.effects = append(o.effects, e)
}

// Send sends a message to one site.
func (o *Out) Send(to grid.SiteID, msg protocol.Message) { o.Emit(Send{To: to, Message: msg}) }

// Broadcast publishes a message to the domain.
func (o *Out) Broadcast(msg protocol.Message) { o.Emit(Broadcast{Message: msg}) }

// SetTimer asks for TimerFired at a time; it replaces a timer of the same name
// and ID. The ID may be empty.
func (o *Out) SetTimer(name, id string, at time.Time) {
	o.Emit(SetTimer{Key: TimerKey{Name: name, ID: id}, At: at})
}

// StopTimer forgets a timer. The effect is emitted also for one that is not set.
func (o *Out) StopTimer(name, id string) { o.Emit(StopTimer{Key: TimerKey{Name: name, ID: id}}) }

// Report tells the outside what happened. Level and event replace those of r.
func (o *Out) Report(level Level, event string, r Report) {
	if level < o.Level {
		return
	}
	r.Level, r.Event = level, event
	o.Emit(r)
}

// Persist writes a fact: into the table and as an effect, in one go. A fact
// whose Value is nil removes its row from both.
func (o *Out) Persist(fact Fact) {
	o.facts.Apply(fact)
	o.Emit(Persist{Fact: fact})
}

// Facts is the table that the Persists have built up. A machine's Snapshot is its
// encoding; Restore applies the facts of an earlier run to it, which emits nothing.
func (o *Out) Facts() *Facts { return &o.facts }

// Take returns the effects collected since the last Take, nil if there are none.
// They belong to the caller; the table of facts stays.
func (o *Out) Take() []Effect {
	effects := o.effects
	o.effects = nil
	return effects
}
