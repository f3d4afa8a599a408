package site

import (
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// meets lets the site see alice, whose wall clock seems to be ahead by so much.
func (r *rig) meets(skew time.Duration) {
	r.step(step.PeerSeen{Site: alice, Name: "alice", Capability: fourCores(), Skew: skew})
}

// clocked has a job of alice promised that is to start after so long, as her wall clock says,
// which is ahead of this machine's by so much.
func (r *rig) clocked(in, ahead time.Duration) grid.AttemptID {
	r.t.Helper()
	shows := r.now.Add(ahead)
	start := func(s *grid.Spec) { s.Window.At = shows.Add(in) }
	call := announcement(job1, alice, start)
	call.Clock = shows
	r.receive(alice, call)
	r.receive(alice, protocol.HoldOffer{
		Job: job1, Seq: call.Seq, OfferID: one[protocol.Bid](r, alice).Offer.ID, Tasks: 1, Clock: shows,
	})
	give := award(job1, one[protocol.Bid](r, alice).Offer, 1, 1, start)
	give.Clock = shows
	r.receive(alice, give)
	id := attemptID(job1, 0, 1)
	r.step(step.Verified{Attempt: id})
	if got := one[protocol.Accepted](r, alice).Attempts; len(got) != 1 {
		r.t.Fatalf("accepted %v", got)
	}
	r.step(step.Staged{Attempt: id})
	return id
}

// A start is a time on the submitter's clock: neither how wrong a clock is matters, nor what was
// believed of it, nor that the site's own is set while the promise waits.
func TestAStartIsOnTheSubmittersClock(t *testing.T) {
	for name, test := range map[string]struct{ ahead, believed, set time.Duration }{
		"both are right":                {},
		"the submitter is ahead":        {ahead: 2 * time.Hour, believed: 2 * time.Hour},
		"the submitter is behind":       {ahead: -2 * time.Hour, believed: -2 * time.Hour},
		"the submitter's was set":       {ahead: time.Hour},
		"the submitter's was set back":  {ahead: -time.Hour},
		"this one is set":               {set: time.Hour},
		"this one is set back":          {set: -time.Hour},
		"both are wrong, this is set":   {ahead: time.Hour, believed: time.Hour, set: -time.Hour},
		"both were set, this one again": {ahead: -time.Hour, set: 2 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.meets(test.believed)
			id := r.clocked(15*time.Minute, test.ahead)
			r.advance(time.Minute)
			if test.set != 0 {
				r.step(step.ClockStepped{By: test.set})
			}
			want := epoch().Add(15*time.Minute + test.set)
			if shown := r.m.Status().Attempts[0].Start; !shown.Equal(want) {
				t.Errorf("shown for %s, want %s", shown, want)
			}
			if got := r.starts(id, time.Hour); (got - 15*time.Minute).Abs() > startGuard {
				t.Errorf("began after %s, want 15m", got)
			}
		})
	}
}

// What a message says of a clock is believed as far as the message may have been on its way.
func TestAClockIsLearnedFromMessages(t *testing.T) {
	r := newRig(t)
	r.meets(0)
	ahead := r.m.aheadOf(alice)
	for _, said := range []struct{ says, want time.Duration }{
		{-300 * time.Millisecond, 0}, // it was on its way for so long
		{200 * time.Millisecond, 200 * time.Millisecond},
		{-700 * time.Millisecond, 200 * time.Millisecond},
		{time.Hour, time.Hour}, // it was set
		{time.Minute, time.Minute},
	} {
		if r.m.hearClock(alice, r.now.Add(said.says)); *ahead != said.want {
			t.Errorf("told %s: believed %s, want %s", said.says, *ahead, said.want)
		}
	}
}

// A promise outlives a restart of the agent while the clock is set. On the same boot of the
// machine another clock goes on; after another boot there is only the wall clock, and the
// submitter is told where the place is.
func TestARestartFindsItsPlacesWhenTheClockWasSet(t *testing.T) {
	for name, test := range map[string]struct {
		before, down time.Duration // by how much the clock is set, while the agent runs and after
		boot         string
		want         time.Duration // until the start
	}{
		"not at all":             {boot: "b1", want: 14 * time.Minute},
		"while it ran":           {before: time.Hour, boot: "b1", want: 14 * time.Minute},
		"while it was down":      {down: time.Hour, boot: "b1", want: 14 * time.Minute},
		"back while it was down": {down: -time.Hour, boot: "b1", want: 14 * time.Minute},
		"before another boot":    {before: time.Hour, boot: "b2", want: 14 * time.Minute},
		"within another boot":    {down: -time.Hour, boot: "b2", want: 74 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			r := unbooted(t)
			r.step(step.Boot{Incarnation: 1, Clock: step.Clock{Of: "b1", Zero: epoch().Add(-time.Hour)}})
			r.meets(0)
			r.clocked(15*time.Minute, 0)
			r.advance(time.Minute)
			if test.before != 0 {
				r.step(step.ClockStepped{By: test.before})
			}
			next := &rig{
				t: t, m: New(r.m.cfg), now: r.now.Add(test.before + test.down),
				timers: map[step.TimerKey]time.Time{}, facts: r.facts,
			}
			if err := next.m.Restore(r.m.Snapshot()); err != nil {
				t.Fatal(err)
			}
			next.step(step.Boot{Incarnation: 2, Clock: step.Clock{
				Of: test.boot, Zero: next.now.Add(-time.Hour - time.Minute),
			}})
			told := sent[protocol.Progress](next.out, alice)
			if len(told) != 1 || told[0].StartsIn != test.want {
				t.Errorf("told %+v, want that it starts in %s", told, test.want)
			}
		})
	}
}

// A pause lasts for as long as the owner said, and is shown until when by the clock as it is.
func TestAPauseLastsWhateverTheClockShows(t *testing.T) {
	r := newRig(t)
	r.step(step.ClockStepped{By: time.Hour})
	r.step(step.Pause{Until: epoch().Add(time.Hour + 10*time.Minute)})
	r.step(step.ClockStepped{By: -2 * time.Hour})
	if got, want := r.m.Status().PausedUntil, epoch().Add(10*time.Minute-time.Hour); !got.Equal(want) {
		t.Errorf("shown until %s, want %s", got, want)
	}
	r.advance(9 * time.Minute)
	if !r.m.Status().Paused {
		t.Error("it ended early")
	}
	r.advance(time.Minute)
	if r.m.Status().Paused {
		t.Error("it goes on")
	}
}

// Each message about a job that names a clock tells it: one that is asked again may have been set.
func TestAReannouncementTellsTheClock(t *testing.T) {
	r := newRig(t)
	r.meets(0)
	a := announcement(job1, alice)
	a.Clock = r.now
	r.receive(alice, a)
	r.receive(alice, protocol.Reannounce{
		Job: job1, Seq: 2, Submitter: alice, Digest: protocol.DigestOf(a.Req), Count: 1,
		TTL: time.Second, Clock: r.now.Add(time.Hour),
	})
	if ahead := *r.m.aheadOf(alice); ahead != time.Hour {
		t.Errorf("alice's clock is believed to be %s ahead, and she said an hour", ahead)
	}
}
