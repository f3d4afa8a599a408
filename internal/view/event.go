package view

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Event is something that happened, in the order of its ID.
type Event struct {
	// grows by 1; also over restarts of the agent if it says so at NewEventLog
	ID       uint64      `json:"id"`
	Time     Time        `json:"time"`
	Kind     string      `json:"kind"`            // "awarded", "running", "job_ended", "gap", ...
	Job      grid.JobID  `json:"job,omitempty"`   // what it is about
	Task     string      `json:"task,omitempty"`  // JOB.INDEX
	Token    grid.Token  `json:"token,omitempty"` // attempt
	Site     grid.SiteID `json:"site,omitempty"`
	Distance *float64    `json:"distance,omitempty"` // of an award
	Text     string      `json:"text,omitempty"`     // for people
}

// EndsJob reports whether its job has ended with it, or may have: it was refused or withdrawn.
func (e Event) EndsJob() bool {
	switch e.Kind {
	case "job_ended", "job_cancelled", "job_refused", "job_failed":
		return true
	}
	return false
}

// EventLog keeps the latest events and hands them to any number of readers. A
// reader has no queue: it names the last event it saw and gets what follows, so
// that a slow reader costs nothing and only misses what has been overwritten.
// It is safe for concurrent use.
type EventLog struct {
	mu    sync.Mutex
	ring  []Event       // guarded by mu; ring[id % len] holds event id
	next  uint64        // guarded by mu; ID of the next event
	first uint64        // guarded by mu; ID of the oldest event kept
	grew  chan struct{} // guarded by mu; closed and replaced at every Append
}

// NewEventLog makes a log that keeps capacity events (at least 1) and numbers
// them from first (at least 1). An agent passes a number that grows with every
// start, such as the start time in microseconds, so that a reader that comes
// back after a restart is not sent back.
func NewEventLog(capacity int, first uint64) *EventLog {
	first = max(first, 1)
	return &EventLog{
		ring: make([]Event, max(capacity, 1)), next: first, first: first, grew: make(chan struct{}),
	}
}

// Append numbers the event, stores it and wakes the readers. It never blocks
// on them.
func (l *EventLog) Append(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.ID = l.next
	l.ring[e.ID%uint64(len(l.ring))] = e
	l.next++
	if l.next-l.first > uint64(len(l.ring)) {
		l.first++
	}
	close(l.grew)
	l.grew = make(chan struct{})
}

// Last is the ID of the newest event; 0 or the number before first when there is
// none.
func (l *EventLog) Last() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next - 1
}

// FromNow stands for the ID of the newest event there is.
const FromNow = math.MaxUint64

// EventsAfter returns up to limit events that follow the given ID, oldest first,
// and waits for the first of them until the context ends. When events in between
// are no longer kept, the first one returned is of kind "gap" with the ID before the
// oldest that is. After FromNow there is one of kind "now" with the newest ID.
func (l *EventLog) EventsAfter(ctx context.Context, after uint64, limit int) ([]Event, error) {
	for {
		events, grew := l.take(after, limit)
		if len(events) > 0 {
			return events, nil
		}
		select {
		case <-grew:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for events: %w", ctx.Err())
		}
	}
}

func (l *EventLog) take(after uint64, limit int) ([]Event, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var events []Event
	if after == FromNow {
		return []Event{{ID: l.next - 1, Kind: "now"}}, l.grew
	}
	from := after + 1
	if after >= l.next { // the reader knows more than there is: an older log
		from = l.first
	}
	if from < l.first {
		if after > 0 {
			events = append(events, Event{
				ID: l.first - 1, Kind: "gap", Text: "some events are no longer kept",
			})
		}
		from = l.first
	}
	for id := from; id < l.next && len(events) < max(limit, 1); id++ {
		events = append(events, l.ring[id%uint64(len(l.ring))])
	}
	return events, l.grew
}
