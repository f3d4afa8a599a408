package site

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// storiesOfSites are about a site, its owner, and those around it.
func storiesOfSites() []story {
	return []story{
		{name: "owner", happen: anOwner},
		{name: "disk", happen: aFullDisk},
		{name: "pauses", happen: pauses},
		{name: "terms", happen: newTerms},
		{name: "restart", change: func(c *Config) { c.RenewRetry = 2 * time.Minute }, happen: aRestart},
		{name: "bans", happen: bans},
		{name: "peers", happen: peers},
		{name: "clock", happen: aClock},
		{name: "nonsense", happen: nonsense},
	}
}

// anOwner comes, goes, comes again for good, and has the machine alone in the end.
func anOwner(r *rig) {
	runs, waits := r.running(job1, alice, 1)[0], r.accepted(job2, bob, 1)[0]
	r.grant(runs, time.Hour)
	r.step(step.OwnerBusy{Reason: grid.ReasonOwnerBusy, Text: "2 cores"})
	r.step(step.AttemptFrozen{Attempt: runs})
	r.step(step.Staged{Attempt: waits})
	r.grant(waits, time.Hour)
	refused := announcement(job3, alice)
	refused.Explain = true
	r.receive(alice, refused)
	r.step(step.OwnerBusy{Reason: grid.ReasonOwnerBusy, Text: "3 cores"})
	r.step(step.OwnerBusy{Reason: grid.ReasonOwnerHours})
	r.step(step.OwnerAway{})
	r.step(step.AttemptResumed{Attempt: runs})
	r.step(step.AttemptStarted{Attempt: waits})
	r.step(step.OwnerAway{})
	r.step(step.OwnerBusy{})
	r.step(step.AttemptFrozen{Attempt: runs})
	r.advance(10 * time.Minute)
	r.step(step.AttemptExited{Attempt: runs, Exit: grid.Exit{Cause: grid.CauseStopped}})
}

// aFullDisk is like an owner, and outlasts one.
func aFullDisk(r *rig) {
	runs, staging := r.running(job1, alice, 1)[0], r.accepted(job2, bob, 1)[0]
	r.grant(runs, time.Hour)
	r.step(step.SpaceChanged{Full: true})
	r.step(step.AttemptFrozen{Attempt: runs})
	r.step(step.Staged{Attempt: staging, Problem: "no space left on the device", Local: true})
	r.step(ownerBusy())
	r.step(step.OwnerAway{})
	r.step(step.SpaceChanged{})
	other := r.accepted(job3, bob, 1)[0]
	r.step(step.Staged{Attempt: other, Problem: "nobody has it"})
}

// pauses end by themselves, or by their owner's word; a drain stops running jobs.
func pauses(r *rig) {
	list := r.running(job1, alice, 2)
	r.receive(alice, announcement(job2, alice))
	r.step(step.Pause{Until: r.now.Add(-time.Second)})
	r.step(step.Pause{Until: r.now.Add(2 * time.Second)})
	r.advance(3 * time.Second)
	r.step(step.Resume{})
	r.step(step.Pause{Until: r.now.Add(time.Minute)})
	r.step(step.Pause{})
	r.step(step.Resume{})
	r.step(step.Drain{})
	a := announcement(job3, alice)
	a.Explain = true
	r.receive(alice, a)
	r.exited(list[0])
	r.step(step.Drain{Now: true})
	r.step(step.Resume{})
	r.step(step.AttemptExited{Attempt: list[1], Exit: grid.Exit{Cause: grid.CauseStopped}})
}

// newTerms and other ceilings count for what comes; a promise that they exclude is given back.
func newTerms(r *rig) {
	runs := r.running(job1, alice, 1)[0]
	promised := r.promised(job2, bob, at(10*time.Minute), cores(3))
	terms := termsOf(r.m.cfg)
	terms.MaxRuntime, terms.Price, terms.Priced = 30*time.Second, 2, true
	r.step(terms)
	a := announcement(job3, alice)
	a.Explain = true
	r.receive(alice, a)
	terms.MaxRuntime = 0
	r.step(terms)
	terms.Price = -1
	r.step(terms)
	left := fourCores()
	left.Total.MilliCPUs, left.CoreMFLOPS = 1_500, 1_000
	r.step(step.CapacityChanged{Capability: fourCores(), Left: &left})
	a.Seq = 2
	r.receive(alice, a)
	smaller := fourCores()
	smaller.Total.MilliCPUs = 2_000
	r.step(step.CapacityChanged{Capability: smaller})
	r.step(step.AttemptExited{Attempt: promised, Exit: grid.Exit{Cause: grid.CauseStopped}})
	r.step(step.CapacityChanged{Capability: fourCores()})
	smaller.Total.MilliCPUs = -1
	r.step(step.CapacityChanged{Capability: smaller})
	r.step(step.PlanningChanged{Policy: "sjf", Backfill: "easy"})
	r.step(step.PlanningChanged{Policy: "sometimes", Backfill: "easy"})
	r.exited(runs)
}

// aRestart ends what ran, tells of what ended, and keeps what was promised for later.
func aRestart(r *rig) {
	list := r.running(job1, alice, 2)
	r.exited(list[0])
	later := r.promised(job2, bob, at(10*time.Minute))
	soon := r.promised(job3, bob, at(2*time.Minute))
	r.step(step.Pause{Until: r.now.Add(5 * time.Minute)})
	r.now = r.now.Add(3 * time.Minute)
	next := r.restart(2)
	next.receive(alice, protocol.ExitAck{Attempts: list[:1]})
	next.advance(time.Minute)
	next.receive(alice, protocol.ExitAck{Attempts: list})
	next.receive(bob, protocol.ExitAck{Attempts: []grid.AttemptID{soon}})
	next.advance(4 * time.Minute)
	next.step(step.Staged{Attempt: later})
	next.grant(later, time.Hour)
	next.advance(2 * time.Minute)
	next.step(step.AttemptStarted{Attempt: later})
}

// bans stop all that a site has here, and nothing of it is heard until they are lifted.
func bans(r *rig) {
	ids := append(r.running(job1, alice, 1), r.running(job2, bob, 1)...)
	r.receive(alice, announcement(job3, alice))
	r.step(step.BansChanged{Banned: []grid.SiteID{alice, self}})
	r.receive(alice, announcement(job3, alice))
	r.step(step.AttemptExited{Attempt: ids[0], Exit: grid.Exit{Cause: grid.CauseStopped}})
	r.step(step.BansChanged{})
	again := announcement(job3, alice)
	again.Seq = 2
	r.receive(alice, again)
}

// peers come and go, and hear how their attempts are.
func peers(r *rig) {
	list := r.running(job1, alice, 3)
	r.exited(list[0])
	r.lease(alice, list[1:], lease)
	r.step(step.AttemptFrozen{Attempt: list[1]})
	waits := r.promised(job2, alice, at(time.Hour))
	r.advance(20 * time.Second)
	r.step(step.PeerSeen{Site: alice, Capability: grid.Capability{UpBps: 1e6, DownBps: 2e6}})
	r.step(step.PeerSeen{Site: alice, Capability: grid.Capability{UpBps: 1e6, DownBps: 2e6}})
	r.step(step.PeerSeen{Site: self})
	r.step(step.PeerSeen{Site: bob, Capability: grid.Capability{UpBps: -1}})
	r.step(step.BandwidthMeasured{Peer: bob, UpBps: 5})
	r.step(step.BandwidthMeasured{Peer: alice, UpBps: -5})
	r.step(step.BandwidthMeasured{Peer: alice, UpBps: 5e6, DownBps: 4e6})
	r.step(step.HeldChanged{Added: []grid.CID{"bdata"}, Removed: []grid.CID{"bmodule"}})
	r.receive(alice, announcement(job3, alice, func(s *grid.Spec) {
		s.Inputs = []grid.Input{{Path: "/data", CID: "bdata", Bytes: 5e9}}
	}))
	r.step(step.PeerGone{Site: alice})
	r.step(step.PeerGone{Site: alice})
	r.receive(alice, protocol.Cancel{Job: waits.Task.Job})
}

// aClock is set; what was promised comes when it would have.
func aClock(r *rig) {
	id := r.promised(job1, alice, at(time.Minute))
	r.step(step.Pause{Until: r.now.Add(30 * time.Second)})
	r.step(step.ClockStepped{By: time.Hour})
	r.step(step.ClockStepped{})
	r.advance(31 * time.Second)
	a := announcement(job2, bob, at(90*time.Second))
	a.Clock = r.now
	r.receive(bob, a)
	r.step(step.Staged{Attempt: id})
	r.grant(id, time.Hour)
	r.advance(30 * time.Second)
}

// nonsense comes from no driver and from no other site that is in its right mind.
func nonsense(r *rig) {
	id := attemptID(job1, 0, 1)
	r.step(step.Boot{Incarnation: 2})
	for _, in := range []step.Input{
		step.Staged{Attempt: id},
		step.AttemptStarted{Attempt: id},
		step.AttemptFrozen{Attempt: id},
		step.AttemptResumed{Attempt: id},
		step.StageProgress{Attempt: id},
		step.Verified{Attempt: id},
		step.AttemptExited{Attempt: id},
		step.Submit{},
		step.MessageReceived{},
		step.MessageReceived{From: alice},
		step.MessageReceived{From: alice, Message: protocol.Bid{Job: job1, Seq: 1}},
		step.MessageReceived{From: alice, Message: protocol.Vacancy{Jobs: []grid.JobID{job1}}},
	} {
		r.step(in)
	}
	for _, name := range []string{
		timerWatch, timerExited, timerAsk, timerRenew, timerVacancy, timerPause, timerOwner, timerPlan,
		"other",
	} {
		r.step(step.TimerFired{Key: step.TimerKey{Name: name, ID: id.String()}})
		r.step(step.TimerFired{Key: step.TimerKey{Name: name, ID: "x"}})
	}
	id = r.running(job1, alice, 1)[0]
	for _, in := range []step.Input{
		step.Staged{Attempt: id},
		step.AttemptStarted{Attempt: id},
		step.AttemptResumed{Attempt: id},
		step.StageProgress{Attempt: id},
		step.Verified{Attempt: id},
	} {
		r.step(in)
	}
	r.receive(alice, protocol.ExitAck{Attempts: []grid.AttemptID{id, attemptID(job1, 7, 1)}})
	r.step(step.AttemptExited{Attempt: id, Exit: grid.Exit{Cause: 99}})
	for _, name := range []string{timerWatch, timerAsk} {
		r.step(step.TimerFired{Key: step.TimerKey{Name: name, ID: id.String()}})
	}
	r.receive(bob, protocol.ExitAck{Attempts: []grid.AttemptID{id}})
}
