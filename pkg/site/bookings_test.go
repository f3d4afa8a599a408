package site

import (
	"slices"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

const adc = grid.SiteID("adc")

// bookings lets a little time go by, and takes what the controller is told then, at most once.
func (r *rig) bookings() (protocol.Bookings, bool) {
	r.t.Helper()
	r.advance(2 * bookingsDelay)
	all := sent[protocol.Bookings](r.out, adc)
	if len(all) > 1 {
		r.t.Fatalf("told %d times", len(all))
	}
	if len(all) == 0 {
		return protocol.Bookings{}, false
	}
	return all[0], true
}

func (r *rig) booked(number uint64, again bool) {
	r.receive(adc, protocol.Booked{Term: 2, Number: number, Again: again})
}

// The controller is told all, then what changes, once it has answered; best-effort work is no
// promise.
func TestTheControllerIsToldWhatIsPromised(t *testing.T) {
	r := newRig(t)
	id := r.reservation(job1, alice) // of ten minutes, from one minute on
	if _, told := r.bookings(); told {
		t.Fatal("told without a controller")
	}
	r.step(step.Controller{Site: adc, Term: 2})
	first, told := r.bookings()
	if !told || !first.Whole || first.Term != 2 || len(first.Held) != 1 ||
		first.Works != fourCores().Total {
		t.Fatalf("told %+v", first)
	}
	b := first.Held[0]
	if b.Attempt != id || b.Submitter != alice || b.Need.MilliCPUs != 4000 || b.Scales ||
		b.StartsIn <= 50*time.Second || b.StartsIn > time.Minute || b.Lasts < 10*time.Minute ||
		b.BookedAgo == 0 {
		t.Errorf("told %+v", b)
	}
	r.receive(alice, protocol.Cancel{Job: job1})
	if more, told := r.bookings(); told {
		t.Errorf("told %+v before the answer", more)
	}
	r.booked(first.Number, false)
	gone := sent[protocol.Bookings](r.out, adc)
	if len(gone) != 1 || gone[0].Whole || gone[0].Number != first.Number+1 ||
		!slices.Equal(gone[0].Gone, []grid.AttemptID{id}) {
		t.Fatalf("told %+v", gone)
	}
	r.booked(first.Number+1, false)
	if more, told := r.bookings(); told {
		t.Errorf("told %+v, and nothing has changed", more)
	}
}

// All is said again that is not answered, that the controller asks for, and that another controller
// does not know.
func TestAllIsSaidAgain(t *testing.T) {
	r := newRig(t)
	r.reservation(job1, alice)
	r.step(step.Controller{Site: adc, Term: 2})
	first, _ := r.bookings()
	r.advance(bookingsAgain)
	again := sent[protocol.Bookings](r.out, adc)
	if len(again) != 1 || !again[0].Whole || again[0].Number <= first.Number {
		t.Fatalf("not answered: told %+v", again)
	}
	r.receive(bob, protocol.Booked{Term: 2, Number: again[0].Number}) // not the controller
	r.booked(first.Number, false)                                     // of an older message
	r.advance(2 * bookingsAgain)
	if again = sent[protocol.Bookings](r.out, adc); len(again) != 1 {
		t.Fatalf("not answered twice: told %+v", again)
	}
	r.booked(again[0].Number, true)
	if asked := sent[protocol.Bookings](r.out, adc); len(asked) != 1 || !asked[0].Whole {
		t.Fatalf("asked for again: told %+v", asked)
	}
	r.step(step.Controller{Site: bob, Term: 3})
	r.advance(time.Second)
	if other := sent[protocol.Bookings](r.out, bob); len(other) != 1 || !other[0].Whole {
		t.Fatalf("another controller: told %+v", other)
	}
	next := r.restart(2)
	next.step(step.Controller{Site: adc, Term: 2})
	told, is := next.bookings()
	if !is || told.Number <= again[0].Number+1<<31 || len(told.Held) != 1 {
		t.Errorf("after a restart: told %+v", told)
	}
	next.step(step.Controller{})
	next.advance(time.Hour)
	if n := len(sent[protocol.Bookings](next.out, adc)); n != 0 {
		t.Errorf("told %d times without a controller", n)
	}
}

// A site whose owner gives less than is promised says what its promises need, and what it has; what
// was promised for different times fits. Its submitters may move a reservation that has not begun:
// it is ended in no time, and the site has enough again.
func TestASiteThatHasLessThanItHasPromisedSaysSo(t *testing.T) {
	r := newRig(t)
	hour := reserving(10 * time.Minute)
	id := r.promised(job1, alice, hour, at(time.Minute), cores(2))
	r.promised(job2, bob, hour, at(time.Minute), cores(2))
	r.promised(job3, bob, hour, at(20*time.Minute), cores(2))
	r.step(step.Controller{Site: adc, Term: 2})
	first, _ := r.bookings()
	if first.Works != first.Capacity || len(first.Held) != 3 {
		t.Fatalf("all fits: told %+v", first)
	}
	r.booked(first.Number, false)
	less := fourCores()
	less.Total.MilliCPUs = 3000
	r.step(step.CapacityChanged{Capability: less})
	short, _ := r.bookings()
	if short.Works != less.Total || short.Capacity.MilliCPUs != 4000 ||
		short.Capacity.MemoryBytes != less.Total.MemoryBytes || len(short.Held) != 0 {
		t.Fatalf("told %+v", short)
	}
	r.booked(short.Number, false)
	r.receive(alice, protocol.Move{Attempt: id})
	if m := one[protocol.Movable](r, alice); m.Begun || m.Next != 0 || m.Reason != grid.ReasonNone {
		t.Errorf("answered %+v", m)
	}
	r.receive(alice, protocol.Move{Attempt: id, Stop: true})
	if e := one[protocol.Exited](r, alice); e.Attempt != id || e.Exit.Cause != grid.CauseStopped {
		t.Errorf("ended %+v", e)
	}
	again, _ := r.bookings()
	if again.Works != less.Total || again.Capacity != less.Total ||
		!slices.Equal(again.Gone, []grid.AttemptID{id}) {
		t.Errorf("told %+v", again)
	}
	r.booked(again.Number, false)
	r.step(step.TermsChanged{
		Patience: r.m.cfg.OwnerPatience, Ahead: r.m.cfg.Planning.Ahead,
		Longest: r.m.cfg.Planning.Longest, Priced: true, Price: 2,
	})
	if priced, told := r.bookings(); !told || !priced.Priced || priced.Price != 2 {
		t.Errorf("told %+v", priced)
	}
}
