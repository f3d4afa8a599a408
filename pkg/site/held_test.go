package site

import (
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// ended is a rig with one attempt that has ended and was not acknowledged.
func ended(t *testing.T) (*rig, grid.AttemptID) {
	t.Helper()
	r := newRig(t)
	id := r.running(job1, alice, 1)[0]
	r.exited(id)
	return r, id
}

// A clock that is far ahead, or far behind, when the agent starts again drops no result: the
// time that counts is the time that the agent was up.
func TestAResultOutlivesAClockThatWasSetWrongly(t *testing.T) {
	for _, jump := range []time.Duration{8 * 24 * time.Hour, -8 * 24 * time.Hour} {
		r, id := ended(t)
		r.now = r.now.Add(jump)
		next := r.restart(2)
		if got := one[protocol.Exited](next, alice); got.Attempt != id {
			t.Fatalf("after a jump of %s: told the end of %s, want %s", jump, got.Attempt, id)
		}
		told := sent[protocol.Exited](next.advance(6*24*time.Hour), alice)
		if len(told) < 1000 || len(next.m.Status().Attempts) != 1 {
			t.Fatalf("after a jump of %s the result was dropped, told %d times", jump, len(told))
		}
		next.receive(alice, protocol.ExitAck{Attempts: []grid.AttemptID{id}})
		if got := only[step.Discard](next.out); len(got) != 1 {
			t.Errorf("after a jump of %s: acknowledged, it discards %v", jump, got)
		}
	}
}

// How long ago an attempt ended is told by a restarted agent, too, whatever became of the wall
// clock: on the same boot of the machine another clock goes on; after another boot there is only
// the wall clock, as it was when this agent was last told that it was set.
func TestARestartKnowsHowLongAgoAnEndWas(t *testing.T) {
	for name, c := range map[string]struct {
		before, down time.Duration // by how much the clock is set, while the agent runs and after
		boot         string
		want         time.Duration // since the end
	}{
		"not at all":             {boot: "b1", want: time.Minute},
		"while it ran":           {before: time.Hour, boot: "b1", want: time.Minute},
		"while it was down":      {down: time.Hour, boot: "b1", want: time.Minute},
		"back while it was down": {down: -time.Hour, boot: "b1", want: time.Minute},
		"both":                   {before: -time.Hour, down: time.Hour, boot: "b1", want: time.Minute},
		"before another boot":    {before: time.Hour, boot: "b2", want: time.Minute},
		"within another boot":    {down: time.Hour, boot: "b2", want: 61 * time.Minute},
		"without such a clock":   {before: time.Hour, want: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			r := unbooted(t)
			r.step(step.Boot{Incarnation: 1, Clock: step.Clock{Of: "b1", Zero: epoch().Add(-time.Hour)}})
			r.meets(0)
			r.exited(r.running(job1, alice, 1)[0])
			ended := r.now
			r.advance(time.Minute / 2)
			if c.before != 0 {
				r.step(step.ClockStepped{By: c.before})
			}
			r.advance(time.Minute / 2)
			age := r.now.Sub(epoch())
			for n := uint64(2); n <= 3; n++ { // the second one goes by what the first has kept
				next := &rig{
					t: t, m: New(r.m.cfg), now: ended.Add(time.Minute + c.before + c.down),
					timers: map[step.TimerKey]time.Time{}, facts: r.facts,
				}
				if err := next.m.Restore(r.m.Snapshot()); err != nil {
					t.Fatal(err)
				}
				next.step(step.Boot{Incarnation: n, Clock: step.Clock{
					Of: c.boot, Zero: next.now.Add(-time.Hour - age),
				}})
				if told := one[protocol.Exited](next, alice); told.EndedAgo != c.want {
					t.Errorf("run %d tells that it ended %s ago, want %s", n, told.EndedAgo, c.want)
				}
				r = next
			}
		})
	}
}

// What each run of the agent has held counts: a result is dropped after ResultHold in all,
// however often the agent was started anew.
func TestHoldingCountsOverRestarts(t *testing.T) {
	r, _ := ended(t)
	hold := r.m.cfg.ResultHold
	for n := uint64(2); n < 9; n++ {
		r.advance(hold / 8)
		r = r.restart(n)
		if len(r.m.Status().Attempts) != 1 {
			t.Fatalf("start %d: dropped after %d eighths of the time", n, n-1)
		}
	}
	r.advance(hold/8 + 8*hold/heldParts) // a crash forgets a part at most
	if left := r.m.Status().Attempts; len(left) != 0 || len(r.facts.All()) != 0 {
		t.Errorf("held for longer than %s in eight runs: %+v", hold, left)
	}
}

func TestTimesOfAFactAreChecked(t *testing.T) {
	r, id := ended(t)
	for _, ms := range []int64{-1, grid.MaxRuntime.Milliseconds() + 1} {
		for _, f := range []attemptFact{{HeldMS: ms}, {LastedMS: ms}} {
			f.Attempt, f.Submitter, f.Phase = id, alice, factExited
			f.Exit = &grid.Exit{Cause: grid.CauseExited}
			facts := step.NewFacts()
			facts.Apply(step.NewFact(kindAttempt, id.String(), f))
			if err := New(r.m.cfg).Restore(facts.Encode()); err == nil {
				t.Errorf("held for %d ms and lasted %d ms: restored", f.HeldMS, f.LastedMS)
			}
		}
	}
}

// A submitter that comes again after an absence hears of ends immediately, and once more soon; one
// that has just been told does not.
func TestASubmitterThatComesIsToldOfEnds(t *testing.T) {
	r, id := ended(t)
	r.step(step.PeerSeen{Site: alice})
	if got := sent[protocol.Exited](r.out, alice); len(got) != 0 {
		t.Errorf("told %+v again, just after it ended", got)
	}
	r.step(step.PeerGone{Site: alice})
	r.advance(time.Hour)
	r.step(step.PeerSeen{Site: alice})
	if got := one[protocol.Exited](r, alice); got.Attempt != id {
		t.Errorf("told the end of %s, want %s", got.Attempt, id)
	}
	if got := sent[protocol.Exited](r.advance(firstExitRepeat), alice); len(got) != 1 {
		t.Errorf("told %d times within %s, want once more", len(got), firstExitRepeat)
	}
}
