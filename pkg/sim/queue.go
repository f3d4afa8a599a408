package sim

import "time"

// event is something that happens at a time; events of one time happen in the
// order in which they were scheduled.
type event struct {
	at       time.Duration
	sequence uint64
	what     action
}

// action happens with an event. Messages and timers are actions of their own, without a function
// for each: they are most of a simulation.
type action interface{ do() }

// thunk is an action that is a function.
type thunk func()

func (t thunk) do() { t() }

func (e *event) before(o *event) bool {
	return e.at < o.at || e.at == o.at && e.sequence < o.sequence
}

// eventQueue is a heap in which each event has up to fanOut others behind it; the next one is at
// its front. It is most of what a simulation does besides the machines' own work: so it is flat,
// shallow, and moves events of their own type.
type eventQueue []event

const fanOut = 4

func (q *eventQueue) push(e event) {
	*q = append(*q, e)
	events := *q
	at := len(events) - 1
	for at > 0 {
		above := (at - 1) / fanOut
		if !e.before(&events[above]) {
			break
		}
		events[at] = events[above]
		at = above
	}
	events[at] = e
}

// pop takes the next event, of which there must be one.
func (q *eventQueue) pop() event {
	events := *q
	first, last := events[0], len(events)-1
	moved := events[last]
	events[last] = event{} // its action is to be collected
	events = events[:last]
	*q = events
	at := 0
	for {
		behind := at*fanOut + 1
		if behind >= last {
			break
		}
		least := behind
		for other := behind + 1; other < min(behind+fanOut, last); other++ {
			if events[other].before(&events[least]) {
				least = other
			}
		}
		if !events[least].before(&moved) {
			break
		}
		events[at] = events[least]
		at = least
	}
	if last > 0 {
		events[at] = moved
	}
	return first
}
