package protocol

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol/wirepb"
)

// Bookings tell the controller of the domain what a site has promised and not begun: first all of
// it, and from then on what changes. One is under way at a time; the site sends all of it again,
// under a higher number, when Booked does not come. Times count from its sending.
type Bookings struct {
	Term   uint64 // of the controller that it is for, from 1
	Number uint64 // from 1; grows with each of the site, over its restarts, too
	// Whole: what the site has said before does not hold any more. Else this goes on from Number-1.
	Whole bool
	More  bool // Number+1 goes on with it: not all changes were small enough for one message

	Capacity grid.Resources // of the site when all of it works
	Works    grid.Resources // the part of it that works; never more
	Priced   bool           // the owner names a price
	Price    float64        // of a core for an hour, 0 to MaxPrice
	Held     []Booking      // new or changed, ascending by attempt
	Gone     []grid.AttemptID
}

// Booking is a place that a site has promised.
type Booking struct {
	Attempt   grid.AttemptID
	Submitter grid.SiteID   // whose job it is
	StartsIn  time.Duration // 0: it has begun
	Lasts     time.Duration // from its start, or from now if it has begun; above 0
	Need      grid.Resources
	BookedAgo time.Duration // since it was promised; 0: not known
	Scales    bool          // it takes less time on faster cores; else it holds them for as long
	DataBytes int64         // that have to be there at its start
}

// Booked answers Bookings.
type Booked struct {
	Term   uint64
	Number uint64 // of what came
	Again  bool   // something is missing before it: the site sends all again
}

// Remap tells a submitter what becomes of its promised tasks on a site that has failed: which of
// them are to move now. All others of that site stay for the time being. It is repeated, at least
// once in each slot, for as long as the site has failed and tasks of the submitter are there. It
// orders nothing: the submitter judges, and no lease that it has granted ends by it.
type Remap struct {
	Term   uint64      // of the controller, from 1
	Number uint64      // from 1; grows with every one of the term
	Site   grid.SiteID // the failed one
	// Partly says that the site is there, and has less to give than it has promised: what is named
	// moves with its help, and what is not stays there.
	Partly bool
	// Before, above 0, is the remapping interval: tasks that start within it, from sending on,
	// leave the site. Others stay.
	Before time.Duration
	Moves  []RemapMove // in the order in which they were booked, at most MaxMoves
}

// RemapMove is a task that is to leave a failed site.
type RemapMove struct {
	Task grid.TaskID
	To   grid.SiteID // to be asked first; empty: the controller knows of no site with space for it
}

// Remapped answers Remap: which of the tasks that it names are not at that site.
type Remapped struct {
	Term      uint64
	Number    uint64        // of the Remap
	Elsewhere []grid.TaskID // at most MaxMoves
}

// Limits on what a controller hears and says.
const (
	MaxPrice    = 1e9 // that an owner may name
	MaxBookings = 768 // of one message, the ends of others included
	MaxMoves    = 1_024
)

// ForController reports whether a message is for the controller of a domain.
func ForController(msg Message) bool {
	switch msg.(type) {
	case Bookings, Remapped, Favours:
		return true
	default:
		return false
	}
}

// Validate reports the first field that is out of its range.
func (m Bookings) Validate() error {
	if n := len(m.Held) + len(m.Gone); n > MaxBookings {
		return invalidf("bookings: want at most %d, have %d", MaxBookings, n)
	}
	if !m.Capacity.Fits(m.Works) {
		return invalidf("bookings: more works than there is")
	}
	for i, b := range m.Held {
		if i > 0 && b.Attempt.Compare(m.Held[i-1].Attempt) <= 0 {
			return invalidf("bookings: booking %d is out of order", i)
		}
		if err := b.validate(); err != nil {
			return err
		}
	}
	for _, id := range m.Gone {
		if err := id.Validate(); err != nil {
			return err
		}
	}
	if !(m.Price >= 0 && m.Price <= MaxPrice) || !m.Priced && m.Price != 0 {
		return invalidf("bookings: price: want 0 to %v, and 0 if there is none, have %v",
			float64(MaxPrice), m.Price)
	}
	return firstError(checkOffice("bookings", m.Term, m.Number),
		m.Capacity.Validate(), m.Works.Validate())
}

func (b Booking) validate() error {
	switch {
	case b.StartsIn < 0 || b.StartsIn > grid.MaxRuntime:
		return invalidf("booking: start: want in 0 to %s, have %s", grid.MaxRuntime, b.StartsIn)
	case b.Lasts <= 0 || b.Lasts > grid.MaxRuntime:
		return invalidf("booking: time: want above 0 and at most %s, have %s",
			grid.MaxRuntime, b.Lasts)
	case !isPast(b.BookedAgo) || b.DataBytes < 0:
		return invalidf("booking: time since it was promised, or data, out of range")
	}
	return firstError(b.Attempt.Validate(), b.Submitter.Validate(), b.Need.Validate())
}

// Validate reports the first field that is out of its range.
func (m Booked) Validate() error { return checkOffice("booked", m.Term, m.Number) }

// Validate reports the first field that is out of its range.
func (m Remap) Validate() error {
	if m.Before <= 0 || m.Before > grid.MaxRuntime {
		return invalidf("remap: interval: want above 0 and at most %s, have %s",
			grid.MaxRuntime, m.Before)
	}
	if len(m.Moves) > MaxMoves {
		return invalidf("remap: want at most %d tasks, have %d", MaxMoves, len(m.Moves))
	}
	for _, v := range m.Moves {
		if err := checkTask(v.Task); err != nil {
			return err
		}
		if v.To != "" {
			if err := v.To.Validate(); err != nil {
				return err
			}
		}
	}
	return firstError(checkOffice("remap", m.Term, m.Number), m.Site.Validate())
}

// Validate reports the first field that is out of its range.
func (m Remapped) Validate() error {
	if len(m.Elsewhere) > MaxMoves {
		return invalidf("remapped: want at most %d tasks, have %d", MaxMoves, len(m.Elsewhere))
	}
	for _, id := range m.Elsewhere {
		if err := checkTask(id); err != nil {
			return err
		}
	}
	return checkOffice("remapped", m.Term, m.Number)
}

func checkOffice(what string, term, number uint64) error {
	if term == 0 || number == 0 {
		return invalidf("%s: terms and messages count from 1", what)
	}
	return nil
}

// checkTask validates a task as the attempt that it could have.
func checkTask(id grid.TaskID) error { return grid.AttemptID{Task: id, Token: 1}.Validate() }

// setDomain sets the body for the messages of a domain's controller; it reports false for all
// others.
func setDomain(w *wirepb.Wire, m Message) bool {
	switch m := m.(type) {
	case Bookings:
		w.Body = &wirepb.Wire_Bookings{Bookings: &wirepb.Bookings{
			Term: m.Term, Number: m.Number, Whole: m.Whole, More: m.More,
			Capacity: wireResources(m.Capacity), Works: wireResources(m.Works),
			Held: each(m.Held, wireBooking), Gone: each(m.Gone, wireAttempt),
			Priced: m.Priced, Price: m.Price,
		}}
	case Booked:
		w.Body = &wirepb.Wire_Booked{
			Booked: &wirepb.Booked{Term: m.Term, Number: m.Number, Again: m.Again},
		}
	case Remap:
		w.Body = &wirepb.Wire_Remap{Remap: &wirepb.Remap{
			Term: m.Term, Number: m.Number, Site: string(m.Site), BeforeNs: int64(m.Before),
			Partly: m.Partly,
			Moves: each(m.Moves, func(v RemapMove) *wirepb.RemapMove {
				return &wirepb.RemapMove{
					Job: string(v.Task.Job), Index: v.Task.Index, To: string(v.To),
				}
			}),
		}}
	case Remapped:
		w.Body = &wirepb.Wire_Remapped{Remapped: &wirepb.Remapped{
			Term: m.Term, Number: m.Number,
			Elsewhere: each(m.Elsewhere, func(id grid.TaskID) *wirepb.RemapMove {
				return &wirepb.RemapMove{Job: string(id.Job), Index: id.Index}
			}),
		}}
	case Favours:
		w.Body = &wirepb.Wire_Favours{Favours: &wirepb.Favours{
			Term: m.Term, Accounts: each(m.Accounts, wireAccount),
		}}
	case FavoursNoted:
		w.Body = &wirepb.Wire_FavoursNoted{FavoursNoted: &wirepb.FavoursNoted{
			Term: m.Term, Own: each(m.Own, wireAccount), Others: each(m.Others, wireAccount),
		}}
	default:
		return false
	}
	return true
}

func wireBooking(b Booking) *wirepb.Booking {
	return &wirepb.Booking{
		Attempt: wireAttempt(b.Attempt), Submitter: string(b.Submitter),
		StartsInNs: int64(b.StartsIn), LastsNs: int64(b.Lasts), Need: wireResources(b.Need),
		BookedAgoNs: int64(b.BookedAgo), Scales: b.Scales, DataBytes: b.DataBytes,
	}
}

// aboutDomain is the counterpart of setDomain.
func aboutDomain(w *wirepb.Wire) Message {
	switch b := w.GetBody().(type) {
	case *wirepb.Wire_Bookings:
		m := b.Bookings
		return Bookings{
			Term: m.GetTerm(), Number: m.GetNumber(), Whole: m.GetWhole(), More: m.GetMore(),
			Capacity: resources(m.GetCapacity()), Works: resources(m.GetWorks()),
			Held: each(m.GetHeld(), booking), Gone: each(m.GetGone(), attempt),
			Priced: m.GetPriced(), Price: m.GetPrice(),
		}
	case *wirepb.Wire_Booked:
		m := b.Booked
		return Booked{Term: m.GetTerm(), Number: m.GetNumber(), Again: m.GetAgain()}
	case *wirepb.Wire_Remap:
		m := b.Remap
		return Remap{
			Term: m.GetTerm(), Number: m.GetNumber(), Site: grid.SiteID(m.GetSite()),
			Before: time.Duration(m.GetBeforeNs()), Partly: m.GetPartly(),
			Moves: each(m.GetMoves(), func(v *wirepb.RemapMove) RemapMove {
				return RemapMove{Task: movedTask(v), To: grid.SiteID(v.GetTo())}
			}),
		}
	case *wirepb.Wire_Remapped:
		m := b.Remapped
		return Remapped{
			Term: m.GetTerm(), Number: m.GetNumber(), Elsewhere: each(m.GetElsewhere(), movedTask),
		}
	case *wirepb.Wire_Favours:
		return Favours{Term: b.Favours.GetTerm(), Accounts: each(b.Favours.GetAccounts(), account)}
	case *wirepb.Wire_FavoursNoted:
		m := b.FavoursNoted
		return FavoursNoted{
			Term: m.GetTerm(), Own: each(m.GetOwn(), account), Others: each(m.GetOthers(), account),
		}
	default:
		return nil
	}
}

func booking(w *wirepb.Booking) Booking {
	return Booking{
		Attempt: attempt(w.GetAttempt()), Submitter: grid.SiteID(w.GetSubmitter()),
		StartsIn: time.Duration(w.GetStartsInNs()), Lasts: time.Duration(w.GetLastsNs()),
		Need: resources(w.GetNeed()), BookedAgo: time.Duration(w.GetBookedAgoNs()),
		Scales: w.GetScales(), DataBytes: w.GetDataBytes(),
	}
}

func movedTask(w *wirepb.RemapMove) grid.TaskID {
	return grid.TaskID{Job: grid.JobID(w.GetJob()), Index: w.GetIndex()}
}
