package site

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// storiesOfJobs are about jobs on their way through a site.
func storiesOfJobs() []story {
	return []story{
		{name: "life", change: talkative, happen: aLife},
		{name: "announcements", happen: announcements},
		{name: "awards", happen: awards},
		{name: "promise", happen: aPromise},
		{name: "reservation", happen: aReservation},
		{name: "overrun", happen: anOverrun},
		{name: "rival", change: func(c *Config) { c.RenewRetry = 10 * time.Second }, happen: aRival},
		{name: "leases", change: talkative, happen: leases},
		{name: "fences", happen: fences},
		{name: "vacancies", happen: vacancies},
		{name: "holds", change: func(c *Config) { c.HoldAll = true }, happen: vacancies},
	}
}

// talkative asks for leases as often as sites do by default.
func talkative(c *Config) { c.RenewRetry = time.Second }

// grant answers the last request for one attempt's lease.
func (r *rig) grant(id grid.AttemptID, d time.Duration) {
	r.t.Helper()
	a := r.m.roster.all[id]
	r.receive(a.submitter, protocol.Lease{
		Renewal: a.request, Attempts: []grid.AttemptID{id}, Duration: d,
	})
}

// aLife is that of one attempt from its announcement to the acknowledged end.
func aLife(r *rig) {
	r.step(step.PeerSeen{Site: alice, Capability: grid.Capability{UpBps: 10_000_000}})
	id := r.accepted(job1, alice, 1)[0]
	for _, done := range []int64{0, 10, 1_000_000} {
		r.step(step.StageProgress{Attempt: id, Done: done, Total: 1_000_000})
	}
	r.advance(1500 * time.Millisecond) // the first request for a lease is repeated
	r.step(step.Staged{Attempt: id, Bytes: 1_000_000})
	r.grant(id, lease)
	r.step(step.AttemptStarted{Attempt: id, Preparing: true})
	r.step(step.AttemptStarted{Attempt: id})
	r.advance(1500 * time.Millisecond)
	r.grant(id, lease)
	r.receive(alice, protocol.Clear{Job: job1, Submitter: alice, Kind: protocol.ClearPlaced})
	r.exited(id)
	r.advance(3 * time.Second)
	r.receive(alice, protocol.ExitAck{Attempts: []grid.AttemptID{id}})
	r.receive(alice, protocol.Clear{Job: job1, Submitter: alice, Kind: protocol.ClearEnded})
	r.receive(alice, announcement(job1, alice))
	r.advance(time.Hour)
}

// announcements are heard, heard again, and refused.
func announcements(r *rig) {
	a := announcement(job1, alice)
	again := protocol.Reannounce{
		Job: job1, Seq: 2, Submitter: alice, Digest: protocol.DigestOf(a.Req), Count: 1,
		TTL: time.Second, Explain: true,
	}
	r.receive(alice, again) // of what is not known here
	r.receive(alice, protocol.Requirements{Announce: a})
	r.receive(alice, a)
	r.receive(alice, again)
	r.receive(alice, again)
	again.Seq, again.Digest = 3, protocol.Digest{}
	r.receive(alice, again) // the requirement is another one
	r.receive(bob, a)
	r.receive(bob, announcement(job1, bob))
	large := announcement(job2, bob, cores(5))
	r.receive(bob, large) // nobody asks why not
	large.Seq, large.Explain = 2, true
	r.receive(bob, large)
	few := announcement(job3, bob)
	few.Sample = 1e-9
	r.receive(bob, few)
	few.Seq, few.Theta = 2, 1
	r.receive(bob, few) // it is near enough to answer all the same
	r.step(step.HeldChanged{Added: []grid.CID{"bmodule"}})
	few.Seq, few.Theta = 3, 0
	r.receive(bob, few) // it has the data
	r.receive(bob, protocol.Clear{Job: job3, Submitter: alice, Kind: protocol.ClearEnded})
	r.receive(alice, protocol.Clear{Job: job3, Submitter: alice, Kind: protocol.ClearEnded})
	r.receive(bob, protocol.Clear{Job: job3, Submitter: bob, Kind: protocol.ClearWithdrawn})
	r.receive(alice, announcement(job3, alice)) // it stays bob's
	r.advance(time.Minute)
	r.receive(alice, protocol.Reannounce{
		Job: job1, Seq: 1, Submitter: alice, Digest: protocol.DigestOf(a.Req), Count: 1, TTL: time.Second,
	}) // its submitter counts from 1 again
}

// awards are taken in part, repeated, overtaken, and declined.
func awards(r *rig) {
	a := announcement(job1, alice, cores(2))
	a.Count = 3
	offer := r.bid(a)
	r.receive(bob, award(job1, offer, 1, 1, cores(2)))
	r.receive(alice, award(job1, offer, 3, 1, cores(2)))
	r.receive(alice, award(job1, offer, 3, 1, cores(2)))
	r.receive(alice, award(job1, offer, 1, 2, cores(2)))
	r.step(step.AttemptExited{
		Attempt: attemptID(job1, 0, 1), Exit: grid.Exit{Cause: grid.CauseStopped},
	})
	r.receive(alice, award(job1, offer, 1, 3, cores(1))) // of something else
	r.exited(attemptID(job1, 1, 1))
	r.receive(alice, award(job1, offer, 2, 1, cores(2)))
	r.receive(bob, award(job2, offer, 1, 1))
	other := r.bid(announcement(job2, bob))
	worse := award(job2, other, 1, 1)
	worse.Quoted, worse.RunnerUp, worse.HasNext = other.Parts.Distance/2, other.Parts.Distance/2, true
	r.receive(bob, worse)
	broken := award(job2, other, 1, 2, func(s *grid.Spec) {
		s.Inputs = []grid.Input{{Path: "/{{item}}", CID: "bdata"}}
	})
	broken.Tasks[0].Item.Value = "../up"
	r.receive(bob, broken)
}

// aPromise is kept, and one after it is not, because nobody grants it a lease.
func aPromise(r *rig) {
	id := r.promised(job1, alice, at(time.Minute), cores(3))
	r.receive(bob, protocol.HoldOffer{Job: job1, Seq: 1, OfferID: 1, Tasks: 1})
	r.receive(bob, protocol.HoldOffer{Job: job3, Seq: 1, OfferID: 1, Tasks: 1})
	late := r.hold(job2, bob, by(4*time.Minute), cores(2))
	r.receive(bob, award(job2, late, 1, 1, by(4*time.Minute), cores(2)))
	r.step(step.Verified{Attempt: attemptID(job2, 0, 1), Problem: "no such program"})
	late = r.hold(job3, bob, by(4*time.Minute), cores(2))
	r.receive(bob, award(job3, late, 1, 1, by(4*time.Minute), cores(2)))
	r.step(step.Verified{Attempt: attemptID(job3, 0, 1)})
	r.step(step.Staged{Attempt: id})
	r.grant(id, time.Hour)
	r.advance(61 * time.Second)
	r.step(step.AttemptStarted{Attempt: id})
	r.exited(id)
	r.receive(alice, protocol.ExitAck{Attempts: []grid.AttemptID{id}})
	r.advance(3 * time.Minute)
}

// aReservation opens, takes a job in, and is over.
func aReservation(r *rig) {
	place := []func(*grid.Spec){at(time.Minute), cores(3), reserving(5 * time.Minute)}
	id := r.promised(job1, alice, place...)
	bound := func(s *grid.Spec) { s.Reservation = job1 }
	r.receive(bob, announcement(job3, bob, bound))
	inside := r.hold(job2, alice, bound)
	r.receive(alice, award(job2, inside, 1, 1, bound))
	r.step(step.Verified{Attempt: attemptID(job2, 0, 1)})
	r.grant(id, time.Hour)
	r.grant(attemptID(job2, 0, 1), time.Hour)
	r.step(step.Staged{Attempt: attemptID(job2, 0, 1)})
	r.advance(time.Minute)
	r.step(step.AttemptStarted{Attempt: attemptID(job2, 0, 1)})
	r.advance(5 * time.Minute)
	r.step(step.AttemptExited{
		Attempt: attemptID(job2, 0, 1), Exit: grid.Exit{Cause: grid.CauseStopped},
	})
	r.receive(alice, protocol.ExitAck{Attempts: []grid.AttemptID{id, attemptID(job2, 0, 1)}})
}

// anOverrun stands aside for a promise, goes on, and one that its job ends is stopped.
func anOverrun(r *rig) {
	ends := func(s *grid.Spec) { s.Overrun = grid.OverrunStop }
	list := append(r.accepted(job1, alice, 1, cores(3)), r.accepted(job2, bob, 1, ends)...)
	for _, id := range list {
		r.step(step.Staged{Attempt: id})
		r.grant(id, time.Hour)
		r.step(step.AttemptStarted{Attempt: id})
	}
	promise := r.promised(job3, self, at(2*time.Minute), func(s *grid.Spec) {
		s.Need = grid.Resources{MilliCPUs: 4_000, MemoryBytes: 1 << 30, MFLOPS: 8_000}
	})
	r.step(step.Staged{Attempt: promise})
	r.advance(2 * time.Minute)
	r.step(step.AttemptFrozen{Attempt: list[0]})
	r.step(step.AttemptExited{Attempt: list[1], Exit: grid.Exit{Cause: grid.CauseStopped}})
	r.grant(promise, time.Hour)
	r.step(step.AttemptStarted{Attempt: promise})
	r.exited(promise)
	r.step(step.AttemptResumed{Attempt: list[0]})
	r.exited(list[0])
}

// aRival asks, asks again, and starts; another one is given up.
func aRival(r *rig) {
	for _, job := range []grid.JobID{job1, job2} {
		a := award(job, r.bid(announcement(job, alice)), 1, 1)
		a.AskFirst = true
		r.receive(alice, a)
		r.step(step.Staged{Attempt: attemptID(job, 0, 1)})
	}
	r.advance(1500 * time.Millisecond)
	r.grant(attemptID(job2, 0, 1), time.Hour)
	r.step(step.AttemptStarted{Attempt: attemptID(job2, 0, 1)})
	r.advance(31 * time.Second)
	r.step(step.AttemptExited{
		Attempt: attemptID(job1, 0, 1), Exit: grid.Exit{Cause: grid.CauseStopped},
	})
}

// leases come late, for others, and not at all.
func leases(r *rig) {
	list := r.running(job1, alice, 2)
	waits := r.accepted(job2, bob, 1)
	r.lease(bob, list, lease)
	r.receive(alice, protocol.Lease{Renewal: 5, Attempts: list, Duration: lease})
	r.lease(bob, []grid.AttemptID{attemptID(job3, 0, 1), waits[0]}, 0)
	r.advance(4 * time.Second)
	r.step(step.AttemptFrozen{Attempt: list[0]})
	r.receive(alice, protocol.Lease{
		Renewal: r.m.roster.all[list[0]].request - 1, Attempts: list[:1], Duration: time.Hour,
	})
	r.step(step.AttemptResumed{Attempt: list[0]})
	r.step(step.AttemptExited{Attempt: list[1], Exit: grid.Exit{Cause: grid.CauseStopped}})
	r.lease(alice, list[1:], lease)
	r.now = r.now.Add(30 * time.Second) // nothing was heard of bob
	r.step(step.TimerFired{Key: step.TimerKey{Name: timerWatch, ID: waits[0].String()}})
	r.step(step.AttemptFrozen{Attempt: list[0]})
	r.step(step.AttemptExited{Attempt: waits[0], Exit: grid.Exit{Cause: grid.CauseStopped}})
	r.receive(alice, protocol.ExitAck{Attempts: list})
	r.receive(bob, protocol.ExitAck{Attempts: list})
	r.now = r.now.Add(2 * time.Hour)
	r.step(step.TimerFired{Key: step.TimerKey{Name: timerWatch, ID: list[0].String()}})
}

// fences stop what was overtaken; a cancelled job ends.
func fences(r *rig) {
	list := r.running(job1, alice, 2)
	ended := r.running(job2, bob, 1)[0]
	r.exited(ended)
	below := func(id grid.AttemptID, by grid.Token) grid.AttemptID {
		return grid.AttemptID{Task: id.Task, Token: id.Token + by}
	}
	r.receive(bob, protocol.Fence{Below: []grid.AttemptID{below(list[0], 1)}})
	r.receive(alice, protocol.Fence{Below: []grid.AttemptID{list[0], below(list[1], 1)}})
	r.receive(alice, protocol.Fence{Below: []grid.AttemptID{below(list[1], 1)}})
	r.receive(bob, protocol.Fence{Below: []grid.AttemptID{below(ended, 1), {
		Task: grid.TaskID{Job: job3}, Token: 2,
	}}})
	r.step(step.AttemptExited{Attempt: list[1], Exit: grid.Exit{Cause: grid.CauseStopped}})
	r.receive(bob, protocol.Cancel{Job: job1})
	r.receive(alice, protocol.Cancel{Job: job1})
	r.receive(alice, award(job1, grid.Offer{ID: 1}, 1, 1))
	r.step(step.AttemptExited{Attempt: list[0], Exit: grid.Exit{Cause: grid.CauseStopped}})
}

// vacancies are told to those who wait, some at a time.
func vacancies(r *rig) {
	list := r.running(job1, alice, 4)
	for _, id := range list {
		r.grant(id, time.Hour)
	}
	for i, job := range []grid.JobID{job2, job3, "dddddddddddddddd", "eeeeeeeeeeeeeeee"} {
		r.receive([]grid.SiteID{alice, bob}[i%2], announcement(job, []grid.SiteID{alice, bob}[i%2]))
	}
	r.exited(list[0])
	r.advance(time.Second)
	r.receive(alice, protocol.Clear{Job: job2, Submitter: alice, Kind: protocol.ClearPlaced})
	r.exited(list[1])
	r.advance(10 * time.Second)
	r.receive(bob, protocol.Clear{Job: job3, Submitter: bob, Kind: protocol.ClearWithdrawn})
	r.receive(alice, protocol.ExitAck{Attempts: list[:2]})
	r.step(step.Pause{})
	r.exited(list[2])
	r.advance(time.Second)
	r.step(step.Resume{})
	r.advance(time.Second)
}
