package site

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

func (r *rig) bid(a protocol.Announce) grid.Offer {
	r.t.Helper()
	r.receive(a.Submitter, a)
	return one[protocol.Bid](r, a.Submitter).Offer
}

// declinedWith fails unless the last step declined the attempts for the reason
// and accepted nothing.
func (r *rig) declinedWith(
	to grid.SiteID, reason grid.Reason, want ...grid.AttemptID,
) protocol.Declined {
	r.t.Helper()
	d := one[protocol.Declined](r, to)
	if d.Refusal.Reason != reason || !slices.Equal(d.Attempts, want) {
		r.t.Fatalf("declined %v with %v, want %v with %v", d.Attempts, d.Refusal.Reason, want, reason)
	}
	return d
}

func TestAwardBySomebodyElse(t *testing.T) {
	r := newRig(t)
	offer := r.bid(announcement(job1, alice))
	r.receive(bob, award(job1, offer, 1, 1))
	r.reported(eventNotSubmitter)
	if len(only[step.Send](r.out)) > 0 || len(only[step.Persist](r.out)) > 0 {
		t.Errorf("effects %+v", r.out)
	}
}

func TestAwardOfAnUnknownJob(t *testing.T) {
	r := newRig(t)
	r.receive(alice, award(job1, grid.Offer{ID: 7}, 2, 1))
	r.declinedWith(alice, grid.ReasonUnknownOffer, attemptID(job1, 0, 1), attemptID(job1, 1, 1))
}

func TestAwardOfAnExpiredOfferIsQuotedAgain(t *testing.T) {
	r := newRig(t)
	offer := r.bid(announcement(job1, alice))
	r.advance(10 * time.Minute)
	r.receive(alice, award(job1, offer, 1, 1))
	one[protocol.Accepted](r, alice)
}

func TestAwardOfSomethingElse(t *testing.T) {
	for name, change := range map[string]func(*grid.Spec){
		"need":    func(s *grid.Spec) { s.Need.MemoryBytes *= 2 },
		"runtime": func(s *grid.Spec) { s.Runtime *= 2 },
		"kind":    func(s *grid.Spec) { s.Kind = grid.KindCommand },
		"map":     func(s *grid.Spec) { s.Map = grid.MapSeconds },
	} {
		r := newRig(t)
		offer := r.bid(announcement(job1, alice))
		r.receive(alice, award(job1, offer, 1, 1, change))
		if got := one[protocol.Declined](r, alice).Refusal.Reason; got != grid.ReasonInvalid {
			t.Errorf("%s: declined with %v, want %v", name, got, grid.ReasonInvalid)
		}
	}
}

// A duplicate is answered as before and changes nothing.
func TestAwardTwice(t *testing.T) {
	r := newRig(t)
	offer := r.bid(announcement(job1, alice))
	r.receive(alice, award(job1, offer, 1, 1))
	before := r.m.Status().Free
	r.receive(alice, award(job1, offer, 1, 1))
	want := []grid.AttemptID{attemptID(job1, 0, 1)}
	if got := one[protocol.Accepted](r, alice).Attempts; !slices.Equal(got, want) {
		t.Errorf("accepted %v", got)
	}
	if len(only[step.Persist](r.out))+len(only[step.Stage](r.out)) > 0 || r.m.Status().Free != before {
		t.Errorf("the duplicate changed something: %+v", r.out)
	}
}

// A duplicate of an award whose attempt has ended says how it ended.
func TestAwardTwiceAfterTheEnd(t *testing.T) {
	r := newRig(t)
	id := r.running(job1, alice, 1)[0]
	r.exited(id)
	r.receive(alice, award(job1, grid.Offer{ID: 1}, 1, 1))
	if got := one[protocol.Exited](r, alice).Attempt; got != id {
		t.Errorf("exited %s, want %s", got, id)
	}
	none[protocol.Accepted](r)
}

func TestAwardWithAnOldToken(t *testing.T) {
	r := newRig(t)
	offer := r.bid(announcement(job1, alice))
	r.receive(alice, award(job1, offer, 1, 5))
	one[protocol.Accepted](r, alice)
	r.receive(alice, award(job1, offer, 1, 4))
	r.declinedWith(alice, grid.ReasonStale, attemptID(job1, 0, 4))
	if got := len(r.m.Status().Attempts); got != 1 {
		t.Errorf("%d attempts, want 1", got)
	}
}

// What was declined is not accepted later under the same token: the task may run
// elsewhere by then.
func TestDeclinedTokenIsNeverAccepted(t *testing.T) {
	r := newRig(t)
	offer := r.bid(announcement(job1, alice))
	r.step(step.Pause{})
	r.receive(alice, award(job1, offer, 1, 1))
	r.declinedWith(alice, grid.ReasonPaused, attemptID(job1, 0, 1))
	r.step(step.Resume{})
	r.receive(alice, award(job1, offer, 1, 1))
	r.declinedWith(alice, grid.ReasonStale, attemptID(job1, 0, 1))
	r.receive(alice, award(job1, offer, 1, 2))
	one[protocol.Accepted](r, alice)
}

func TestHigherTokenStopsTheOlderAttempt(t *testing.T) {
	r := newRig(t)
	old := r.running(job1, alice, 1)[0]
	r.receive(alice, award(job1, grid.Offer{ID: 1}, 1, 2))
	if stops := only[step.StopAttempt](r.out); len(stops) != 1 || stops[0].Attempt != old {
		t.Fatalf("stops %v, want %s", stops, old)
	}
	one[protocol.Accepted](r, alice)
	r.step(step.AttemptExited{Attempt: old, Exit: grid.Exit{Cause: grid.CauseStopped}})
	none[protocol.Exited](r)
	if got := only[step.Discard](r.out); len(got) != 1 || got[0].Attempt != old {
		t.Errorf("discards %v, want %s", got, old)
	}
}

// As many as fit now are taken, in order; the rest is declined with what is
// missing.
func TestAwardOfMoreThanFits(t *testing.T) {
	r := newRig(t)
	a := announcement(job1, alice)
	a.Count = 6
	offer := r.bid(a)
	if offer.TasksNow != 4 {
		t.Fatalf("offers %d tasks, want 4", offer.TasksNow)
	}
	r.receive(alice, award(job1, offer, 6, 1))
	want := []grid.AttemptID{
		attemptID(job1, 0, 1), attemptID(job1, 1, 1), attemptID(job1, 2, 1), attemptID(job1, 3, 1),
	}
	if got := one[protocol.Accepted](r, alice).Attempts; !slices.Equal(got, want) {
		t.Errorf("accepted %v, want %v", got, want)
	}
	d := r.declinedWith(alice, grid.ReasonCPUs, attemptID(job1, 4, 1), attemptID(job1, 5, 1))
	if want := (grid.Refusal{Reason: grid.ReasonCPUs, Want: 1_000}); d.Refusal != want {
		t.Errorf("refusal %+v, want %+v", d.Refusal, want)
	}
}

// In the seconds map what does not fit now is planned for later, and starts when
// its place has come, also earlier than planned.
func TestSecondsMapStartsWhatWaitedInThePlan(t *testing.T) {
	r := newRig(t)
	seconds := func(s *grid.Spec) { s.Map = grid.MapSeconds }
	a := announcement(job1, alice, seconds)
	a.Count = 5
	r.receive(alice, award(job1, r.bid(a), 5, 1, seconds))
	list := one[protocol.Accepted](r, alice).Attempts
	if len(list) != 5 {
		t.Fatalf("accepted %d, want 5", len(list))
	}
	r.lease(alice, list, 8*time.Hour)
	for _, id := range list {
		r.step(step.Staged{Attempt: id})
		if got, want := len(only[step.StartAttempt](r.out)), 1; (id.Task.Index < 4) != (got == want) {
			t.Errorf("%s: %d started", id, got)
		}
	}
	r.now = r.now.Add(10 * time.Second)
	r.exited(list[2])
	if got := only[step.StartAttempt](r.out); len(got) != 1 || got[0].Attempt != list[4] {
		t.Errorf("after an early end %v starts, want %s", got, list[4])
	}
}

// Without an early end the plan's own timer starts it, and what overran in the
// meantime keeps its capacity.
func TestOverrunKeepsItsCapacity(t *testing.T) {
	r := newRig(t)
	r.running(job2, bob, 4)
	seconds := func(s *grid.Spec) { s.Map = grid.MapSeconds }
	r.receive(alice, award(job1, r.bid(announcement(job1, alice, seconds)), 1, 1, seconds))
	list := one[protocol.Accepted](r, alice).Attempts
	r.lease(alice, list, 8*time.Hour)
	r.step(step.Staged{Attempt: list[0]})
	r.advance(2 * time.Minute)
	if got := only[step.StartAttempt](r.out); len(got) != 0 {
		t.Errorf("%v starts although nothing is free", got)
	}
	r.exited(attemptID(job2, 0, 1))
	if got := only[step.StartAttempt](r.out); len(got) != 1 {
		t.Errorf("%v starts, want the one that waited", got)
	}
}

func TestAwardThatBecameWorse(t *testing.T) {
	for _, tt := range []struct {
		name             string
		quoted, runnerUp float64 // in parts of the distance at the award
		hasNext, accepts bool
	}{
		{"as quoted", 1, 1, true, true},
		{"much worse, but nobody else", 0.5, 0.5, false, true},
		{"much worse, but nearer than the next", 0.5, 1.1, true, true},
		{"a little worse than the next", 0.95, 0.95, true, true},
		{"much worse, and as near as the next", 0.5, 1, true, true},
		{"much worse than the next", 0.5, 0.9, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			offer := r.bid(announcement(job1, alice))
			a := award(job1, offer, 1, 1)
			a.Quoted, a.HasNext = tt.quoted*offer.Parts.Distance, tt.hasNext
			a.RunnerUp = tt.runnerUp * offer.Parts.Distance
			r.receive(alice, a)
			if tt.accepts {
				one[protocol.Accepted](r, alice)
				return
			}
			d := r.declinedWith(alice, grid.ReasonWorse, attemptID(job1, 0, 1))
			if d.Quote == nil || d.Quote.ID == a.OfferID || d.Quote.Parts.Distance <= 0 {
				t.Errorf("new quote %+v", d.Quote)
			}
			r.receive(alice, award(job1, *d.Quote, 1, 1)) // the task may run elsewhere by now
			r.declinedWith(alice, grid.ReasonStale, attemptID(job1, 0, 1))
			r.receive(alice, award(job1, *d.Quote, 1, 2))
			one[protocol.Accepted](r, alice)
		})
	}
}

// Items are put into the task, and cannot lead out of the sandbox or blow it up.
func TestAwardExpandsItems(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*grid.Spec)
		item   string
		ok     bool
	}{
		{"plain", func(*grid.Spec) {}, "x", true},
		{
			"into a path", func(s *grid.Spec) { s.Outputs = []grid.Output{{Path: "/out/{{item}}"}} },
			"a.json", true,
		},
		{
			"out of the sandbox", func(s *grid.Spec) { s.Outputs = []grid.Output{{Path: "/out/{{item}}"}} },
			"../../etc", false,
		},
		{
			"without end", func(s *grid.Spec) { s.Args = []string{strings.Repeat("{{item}}", 10_000)} },
			strings.Repeat("x", 4_000), false,
		},
		{
			"without end, in a variable", func(s *grid.Spec) {
				s.Env = []grid.EnvVar{{Name: "V", Value: strings.Repeat("{{item}}", 10_000)}}
			},
			strings.Repeat("x", 4_000), false,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			a := award(job1, r.bid(announcement(job1, alice)), 1, 1, tt.change)
			a.Tasks[0].Item.Value = tt.item
			r.receive(alice, a)
			if !tt.ok {
				r.declinedWith(alice, grid.ReasonInvalid, attemptID(job1, 0, 1))
				return
			}
			one[protocol.Accepted](r, alice)
			if got := r.m.roster.all[attemptID(job1, 0, 1)].task.Args; tt.name == "plain" &&
				!slices.Equal(got, []string{"--task", "0", "x"}) {
				t.Errorf("args %v", got)
			}
		})
	}
}

func TestOwnersLimitIsTheTimeLimit(t *testing.T) {
	for _, tt := range []struct{ spec, owner, want time.Duration }{
		{0, 0, 0},
		{0, time.Hour, time.Hour},
		{2 * time.Hour, time.Hour, time.Hour},
		{time.Minute, time.Hour, time.Minute},
	} {
		r := newRig(t, func(c *Config) { c.MaxRuntime = tt.owner })
		limit := func(s *grid.Spec) { s.TimeLimit = tt.spec }
		r.receive(alice, award(job1, r.bid(announcement(job1, alice)), 1, 1, limit))
		if got := r.m.roster.all[attemptID(job1, 0, 1)].task.TimeLimit; got != tt.want {
			t.Errorf("limit %s under an owner's %s: %s, want %s", tt.spec, tt.owner, got, tt.want)
		}
	}
}

// A task that asks for nothing is counted with what it may use all the same, so that the
// ceilings hold for the sum of all attempts.
func TestNothingIsForNothing(t *testing.T) {
	r := newRig(t)
	small := func(s *grid.Spec) { s.Need = grid.Resources{} }
	a := announcement(job1, alice, small)
	a.Count = 1_000
	offer := r.bid(a)
	r.receive(alice, award(job1, offer, 1_000, 1, small))
	taken := len(one[protocol.Accepted](r, alice).Attempts)
	used := fourCores().Total
	each := grid.Resources{}.Counted()
	if int64(taken)*each.MemoryBytes > used.MemoryBytes ||
		taken != int(used.MemoryBytes/each.MemoryBytes) {
		t.Errorf("took %d attempts of %d bytes each, the ceiling is %d",
			taken, each.MemoryBytes, used.MemoryBytes)
	}
	if free := r.m.Status().Free; free.MemoryBytes != 0 {
		t.Errorf("%d bytes are free, want none", free.MemoryBytes)
	}
}

// Every place counts into which an item's text would be put.
func TestFillingsAreCounted(t *testing.T) {
	const item = "{{item}}"
	s := grid.Spec{
		Args: []string{item + item, "-", item}, Env: []grid.EnvVar{{Name: item, Value: item + item}},
		Inputs:  []grid.Input{{Path: "/" + item}, {Path: "/-"}},
		Outputs: []grid.Output{{Path: "/" + item + item, To: item}, {To: item + item}},
	}
	if got := fillings(s); got != 3+2+1+3+2 {
		t.Errorf("%d fillings, want 3 in arguments, 2 in variables, 1 in inputs, 5 in outputs", got)
	}
	if got := fillings(grid.Spec{}); got != 0 {
		t.Errorf("%d fillings of nothing", got)
	}
}

// A task gets more than its share of a hold when the cores are faster by the time of the award:
// the hold has served its purpose then, and nothing of it is left.
func TestAFasterTaskOutgrowsItsShareOfAHold(t *testing.T) {
	all, slow := fourCores(), fourCores()
	all.Total.MFLOPS, slow.Total.MFLOPS, slow.CoreMFLOPS = 2_000, 2_000, 1_000
	r := newRig(t, func(c *Config) { c.HoldAll, c.Capability = true, all })
	r.step(step.CapacityChanged{Capability: all, Left: &slow})
	a := announcement(job1, alice)
	a.Count = 2
	offer := r.bid(a)
	if held := r.m.plan.Offers(); len(held) != 1 || held[0].Holds != 2 {
		t.Fatalf("held %+v, want two tasks of 1,000 MFLOP/s each", held)
	}
	r.step(step.CapacityChanged{Capability: all})
	r.advance(time.Second) // whatever was noted before
	r.receive(alice, award(job1, offer, 1, 1))
	one[protocol.Accepted](r, alice)
	if _, noted := r.timers[step.TimerKey{Name: timerVacancy}]; !noted {
		t.Error("others are not told that what was held for more tasks is free")
	}
	c, _ := r.m.plan.Commitment(attemptID(job1, 0, 1))
	if left := r.m.plan.Offers(); c.Give.MFLOPS != 2_000 || len(left) != 0 {
		t.Errorf("got %+v, and %+v is held still", c.Give, left)
	}
}
