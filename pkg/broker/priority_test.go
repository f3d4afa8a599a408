package broker

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

func ranked(priority int) grid.Job {
	j := testJob(1)
	j.Spec.Priority = priority
	return j
}

// waitsFor leaves jobs with some priorities without a place.
func (b *bench) waitsFor(priorities ...int) []grid.JobID {
	b.Helper()
	var ids []grid.JobID
	for _, p := range priorities {
		id := b.submit(ranked(p))
		for _, site := range append(b.m.peers.connected(), self) {
			b.refusal(id, site, false)
		}
		b.wantPhase(id, 0, grid.PhaseWaiting)
		ids = append(ids, id)
	}
	return ids
}

// onePlace plays a site with room for one task: who asks first gets it. It returns
// the job that was awarded the place.
func (b *bench) onePlace(site grid.SiteID, effects []step.Effect) (placed grid.JobID) {
	b.Helper()
	inbox := effects
	for number := uint64(100); len(inbox) > 0; number++ {
		send, is := inbox[0].(step.Send)
		inbox = inbox[1:]
		if !is || send.To != site {
			continue
		}
		switch msg := send.Message.(type) {
		case protocol.Reannounce: // offers are quotes: all may have the place, until one is awarded
			if placed == "" {
				inbox = append(inbox, b.hear(site, protocol.Bid{
					Job: msg.Job, Seq: msg.Seq, Offer: offer(number, 1, 1),
				})...)
			} else {
				inbox = append(inbox, b.refusal(msg.Job, site, false)...)
			}
		case protocol.Award:
			id := attemptOf(msg.Job, 0, msg.Tasks[0].Token)
			if placed == "" {
				placed = msg.Job
				b.hear(site, protocol.Accepted{Attempts: []grid.AttemptID{id}, Renewal: 1})
				continue
			}
			b.hear(site, protocol.Declined{
				Attempts: []grid.AttemptID{id}, Refusal: grid.Refusal{Reason: grid.ReasonCPUs},
			})
		}
	}
	return placed
}

// One place becomes free, or a site with one place comes, or a pause is over: whatever
// the site says of it, the waiting job with the highest priority is awarded first.
func TestTheHighestPriorityIsAwardedFirst(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := newBench(t, func(c *Config) { c.BackoffMin, c.BackoffMax = time.Hour, time.Hour }, "a", "b")
		distinct := rapid.SliceOfNDistinct(rapid.IntRange(-5, 5), 2, 6, rapid.ID[int])
		priorities := distinct.Draw(rt, "priorities")
		ids := b.waitsFor(priorities...)
		var effects []step.Effect
		site := grid.SiteID("a")
		switch rapid.IntRange(0, 2).Draw(rt, "event") {
		case 0:
			named := rapid.Permutation(ids).Draw(rt, "order")
			effects = b.hear("a", protocol.Vacancy{
				Jobs: named[:rapid.IntRange(1, len(ids)).Draw(rt, "named")],
			})
		case 1:
			site = "c"
			effects = b.do(step.PeerSeen{Site: "c"})
		case 2:
			j := rapid.SampledFrom(ids).Draw(rt, "job")
			effects = b.do(step.TimerFired{Key: step.TimerKey{Name: timerAgain, ID: string(j)}})
			for _, id := range ids { // all sites were asked; the others have no capacity
				if b.m.jobs.all[id].round() != nil {
					b.refusal(id, "b", false)
					b.refusal(id, self, false)
				}
			}
		}
		highest := ids[slices.Index(priorities, slices.Max(priorities))]
		if got := b.onePlace(site, effects); got != highest {
			rt.Fatalf("priorities %v: awarded job %d first", priorities, slices.Index(ids, got))
		}
	})
}

// Equal priorities are served in the order of their submission.
func TestEqualPrioritiesAreServedInTurn(t *testing.T) {
	b := newBench(t, func(c *Config) { c.BackoffMin, c.BackoffMax = time.Hour, time.Hour }, "a")
	var ids []grid.JobID
	for range 4 {
		ids = append(ids, b.waitsFor(3)...)
		b.pass(time.Second)
	}
	_, asked := sent[protocol.Reannounce](b.do(step.PeerSeen{Site: "c"}))
	for i, msg := range asked {
		if msg.Job != ids[i] {
			t.Errorf("place %d: %s, want %s", i, msg.Job, ids[i])
		}
	}
}

// What already runs is not taken back for a higher one, and the sites learn the
// priority of what they queue.
func TestPriorityTravelsWithTheAward(t *testing.T) {
	b := newBench(t, nil, "a")
	job := ranked(7)
	job.Spec.Map = grid.MapSeconds
	id := b.submit(job)
	b.offers(id, 1, "a", self)
	if _, award := one[protocol.Award](t, b.last); award.Spec.Priority != 7 {
		t.Errorf("awarded with priority %d", award.Spec.Priority)
	}
	b.accept("a", id, 0, 1)
	b.submit(ranked(9))
	b.wantPhase(id, 0, grid.PhaseStaging)
}
