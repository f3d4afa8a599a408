package site

import (
	"maps"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/plan"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// timerBookings collects what was promised in a short while, or repeats what was not answered.
const timerBookings = "bookings"

// The pauses before the controller is told: after a change, and when it has not answered.
const (
	bookingsDelay   = 200 * time.Millisecond
	bookingsAgain   = 2 * time.Second
	bookingsLongest = time.Minute
)

// books holds what the controller of the domain knows of this site's promises. Without one nothing
// is kept here.
type books struct {
	controller step.Controller
	number     uint64 // of the last message, over the site's runs
	// told holds all that the last messages have said; a whole one comes next if it is nil.
	told    map[grid.AttemptID]span
	said    standing      // that was told with it
	awaits  bool          // the answer to the last message
	changed bool          // since it was sent
	pause   time.Duration // before it is repeated
}

// standing has the capacity of a site, and its price.
type standing struct {
	capacity, works grid.Resources
	priced          bool
	price           float64
}

// span lasts from the begin of a promise to its end. One that moves is told anew.
type span struct{ start, end time.Time }

// onController takes that another site is the domain's controller, or none. It is told all.
func (m *Machine) onController(in step.Controller) {
	if in == m.books.controller || !in.IsValid() {
		return
	}
	m.books = books{controller: in, number: m.books.number, pause: bookingsAgain}
	m.out.Report(step.LevelInfo, eventController, step.Report{
		Site: in.Site, Value: float64(in.Term),
	})
	if in.Site == "" {
		m.out.StopTimer(timerBookings, "")
		return
	}
	m.bookingsChanged()
}

// bookingsChanged notes that the controller has to be told something, perhaps.
func (m *Machine) bookingsChanged() {
	b := &m.books
	if b.controller.Site == "" || b.changed {
		return
	}
	if b.changed = true; !b.awaits {
		m.out.SetTimer(timerBookings, "", m.now.Add(bookingsDelay))
	}
}

// onBookingsTimer tells the controller what has changed; all of it if it did not answer.
func (m *Machine) onBookingsTimer() {
	b := &m.books
	if b.controller.Site == "" {
		return
	}
	if b.awaits {
		b.told = nil
		b.pause = min(2*b.pause, bookingsLongest)
	}
	m.sendBookings()
}

// onBooked takes the controller's answer.
func (m *Machine) onBooked(from grid.SiteID, msg protocol.Booked) {
	b := &m.books
	if from != b.controller.Site || msg.Term != b.controller.Term || !b.awaits ||
		msg.Number != b.number {
		return
	}
	b.awaits, b.pause = false, bookingsAgain
	m.out.StopTimer(timerBookings, "")
	if msg.Again {
		b.told, b.changed = nil, true
	}
	if b.changed {
		m.sendBookings()
	}
}

// sendBookings tells the controller what it does not know, as much as one message takes.
func (m *Machine) sendBookings() {
	b := &m.books
	whole := b.told == nil
	if whole {
		b.told = make(map[grid.AttemptID]span)
	}
	msg := protocol.Bookings{
		Term: b.controller.Term, Number: b.number + 1, Whole: whole,
		Capacity: m.promisedOf(m.capability.Total), Works: m.capability.Total, Priced: m.cfg.Priced,
	}
	if m.cfg.Priced {
		msg.Price = m.cfg.Price
	}
	now := standing{msg.Capacity, msg.Works, msg.Priced, msg.Price}
	m.addGone(&msg)
	m.addHeld(&msg)
	b.changed = msg.More
	if !whole && len(msg.Held)+len(msg.Gone) == 0 && b.said == now {
		return
	}
	b.number, b.said, b.awaits = msg.Number, now, true
	m.out.Send(b.controller.Site, msg)
	m.out.SetTimer(timerBookings, "", m.now.Add(b.pause))
}

// promisedOf is the capacity that a site needs to keep all its promises, at least all that it has:
// if that is more, a part of the site has failed, as far as the controller is concerned. Its owner
// may have lowered its ceilings, or the machine have lost cores.
func (m *Machine) promisedOf(has grid.Resources) grid.Resources {
	type change struct {
		at          time.Time
		cpus, bytes int64
	}
	var changes []change
	for _, a := range m.roster.order {
		if c, promised := m.promised(a); promised && !c.Overran && !c.Suspended {
			changes = append(changes,
				change{c.Start, c.Give.MilliCPUs, c.Give.MemoryBytes},
				change{c.End, -c.Give.MilliCPUs, -c.Give.MemoryBytes})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { // what ends gives its place to what begins
		return a.at.Compare(b.at)
	})
	var cpus, bytes int64
	for i, c := range changes {
		cpus, bytes = cpus+c.cpus, bytes+c.bytes
		if i+1 == len(changes) || changes[i+1].at.After(c.at) {
			has.MilliCPUs, has.MemoryBytes = max(has.MilliCPUs, cpus), max(has.MemoryBytes, bytes)
		}
	}
	return has
}

// addHeld adds the promises that the controller does not know, or knows otherwise.
func (m *Machine) addHeld(msg *protocol.Bookings) {
	for _, a := range m.roster.order {
		c, promised := m.promised(a)
		at := span{c.Start, c.End}
		if was, told := m.books.told[a.id]; !promised || told && was == at {
			continue
		}
		if isFull(msg) {
			return
		}
		m.books.told[a.id] = at
		msg.Held = append(msg.Held, m.bookingOf(a, c))
	}
}

// addGone adds the promises that are no more.
func (m *Machine) addGone(msg *protocol.Bookings) {
	for _, id := range slices.SortedFunc(maps.Keys(m.books.told), grid.AttemptID.Compare) {
		a := m.roster.all[id]
		if a != nil {
			if _, promised := m.promised(a); promised {
				continue
			}
		}
		if isFull(msg) {
			return
		}
		delete(m.books.told, id)
		msg.Gone = append(msg.Gone, id)
	}
}

// isFull reports whether a message takes no more; then another one follows it.
func isFull(msg *protocol.Bookings) bool {
	if len(msg.Held)+len(msg.Gone) < protocol.MaxBookings {
		return false
	}
	msg.More = true
	return true
}

// promised is the place in the plan that an attempt was promised and that is not over; jobs that
// are bound to a reservation are a part of that.
func (m *Machine) promised(a *attempt) (plan.Commitment, bool) {
	if !a.wantsLease() || a.asks {
		return plan.Commitment{}, false
	}
	c, placed := m.plan.Commitment(a.id)
	is := placed && (c.Holds || c.Class != plan.ClassVarTime) && c.End.After(m.now)
	return c, is && c.Within == (grid.AttemptID{})
}

// bookingOf is a promise as it is told. A reservation holds what it holds for as long everywhere.
func (m *Machine) bookingOf(a *attempt, c plan.Commitment) protocol.Booking {
	b := protocol.Booking{
		Attempt: a.id, Submitter: a.submitter, Need: c.Give, Scales: !c.Holds,
		StartsIn: min(max(c.Start.Sub(m.now), 0), grid.MaxRuntime),
	}
	b.Lasts = min(c.End.Sub(m.now.Add(b.StartsIn)), grid.MaxRuntime)
	if !a.accepted.IsZero() {
		b.BookedAgo = min(max(m.now.Sub(a.accepted), 0), grid.MaxRuntime)
	}
	for _, in := range a.task.Inputs {
		b.DataBytes += in.Bytes
	}
	return b
}
