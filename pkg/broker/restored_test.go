package broker

import (
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// rewind goes back to a state that was saved before, as a run of a later incarnation.
func (b *bench) rewind(saved []byte, boot step.Boot, sites ...grid.SiteID) {
	b.Helper()
	facts, err := step.DecodeFacts(saved)
	if err != nil {
		b.Fatal(err)
	}
	b.facts = step.NewFacts()
	for _, f := range facts {
		b.facts.Apply(f)
	}
	again := New(b.m.cfg)
	if err := again.Restore(saved); err != nil {
		b.Fatal(err)
	}
	b.m, b.timers = again, make(map[step.TimerKey]time.Time)
	b.do(boot)
	for _, s := range sites {
		b.do(step.PeerSeen{Site: s, Name: string(s)})
	}
}

// lost is a job whose state was saved while it waited; afterwards site a got it, fell silent,
// and site b runs it. The state is restored.
func (b *bench) lost(boot step.Boot) (id grid.JobID, later grid.Token) {
	b.Helper()
	id = b.submit(testJob(1))
	saved := b.m.Snapshot()
	b.offers(id, 1, "a", "b", self)
	b.hear("a", protocol.Accepted{Attempts: []grid.AttemptID{attemptOf(id, 0, 1)}, Renewal: 1})
	b.pass(3600 * time.Millisecond)
	for i, site := range []grid.SiteID{"b", self} {
		b.hear(site, protocol.Bid{
			Job: id, Seq: b.m.asked(id).seq, Offer: offer(uint64(10+i), float64(1+i), 1),
		})
	}
	b.wantSite(id, 0, "b", 2)
	b.hear("b", protocol.Accepted{Attempts: []grid.AttemptID{attemptOf(id, 0, 2)}, Renewal: 1})
	b.rewind(saved, boot, "a", "b")
	return id, 2
}

func (b *bench) wantSite(id grid.JobID, index int, site grid.SiteID, token grid.Token) {
	b.Helper()
	s, _ := b.m.Job(id)
	if got := s.Tasks[index]; got.Site != site || got.Token != token {
		b.Fatalf("task %d is at %s with token %d, want %s, %d", index, got.Site, got.Token, site, token)
	}
}

func (b *bench) renewAttempt(site grid.SiteID, id grid.AttemptID) []step.Effect {
	b.Helper()
	return b.hear(site, protocol.Renew{Renewal: 9, Attempts: []grid.AttemptID{id}})
}

// A task that waits in a restored state may run: nothing of it is placed, and nothing is
// granted, before a lease of the lost time has ended; then the latest attempt has it.
func TestARestoredStateAsksFirst(t *testing.T) {
	b := newBench(t, nil, "a", "b", "c")
	id, later := b.lost(step.Boot{Incarnation: 5, Restored: true})
	for at, site := range map[grid.Token]grid.SiteID{later - 1: "a", later: "b"} {
		effects := b.renewAttempt(site, attemptOf(id, 0, at))
		if _, leases := sent[protocol.Lease](effects); len(leases) > 0 {
			t.Fatalf("%s got a lease", site)
		}
	}
	b.do(step.PeerSeen{Site: "d", Name: "d"}) // it may have room
	effects := b.pass(3400 * time.Millisecond)
	if _, asked := sent[protocol.Announce](effects); len(asked) > 0 {
		t.Fatal("announced while an attempt may run")
	}
	b.pass(200 * time.Millisecond)
	b.wantSite(id, 0, "b", later)
	_, fence := one[protocol.Fence](t, b.renewAttempt("a", attemptOf(id, 0, later-1)))
	if fence.Below[0].Token != later {
		t.Errorf("a is fenced below %d, want %d", fence.Below[0].Token, later)
	}
	if to, _ := one[protocol.Lease](t, b.renewAttempt("b", attemptOf(id, 0, later))); to != "b" {
		t.Errorf("%s got the lease, want b", to)
	}
}

// Nobody asks: the task is placed anew, with a token above all of the lost time.
func TestARestoredStateGivesHigherTokens(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id, later := b.lost(step.Boot{Incarnation: 5, Restored: true})
	b.pass(3600 * time.Millisecond)
	b.offers(id, 1, "a", "b", self)
	award := b.m.jobs.all[id].tasks[0]
	if award.phase != grid.PhaseAwarded || award.token <= later {
		t.Fatalf("task is %s with token %d, want it awarded above %d", award.phase, award.token, later)
	}
	if n := award.token.Number(); n != 1 {
		t.Errorf("attempt %d of the task, want 1 as far as is known", n)
	}
	effects := b.renewAttempt("b", attemptOf(id, 0, later))
	if _, fences := sent[protocol.Fence](effects); len(fences) != 1 {
		t.Error("what comes back too late is not fenced off")
	}
}

// Without being told so a run sees from what a site asks for that its state is too old.
func TestASiteThatKnowsMore(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id, later := b.lost(step.Boot{Incarnation: 5})
	effects := b.renewAttempt("b", attemptOf(id, 0, later))
	if _, leases := sent[protocol.Lease](effects); len(leases) > 0 {
		t.Fatal("granted, and an attempt later still may run")
	}
	b.do(step.PeerSeen{Site: "c", Name: "c"})
	effects = b.pass(3400 * time.Millisecond)
	if _, asked := sent[protocol.Reannounce](effects); len(asked) > 0 {
		t.Fatal("asked for a place while an attempt may run")
	}
	b.pass(200 * time.Millisecond)
	b.wantSite(id, 0, "b", later)
}

// A liar that names earlier attempts cannot hold jobs up forever: a run doubts its state
// soon after its start, and once.
func TestDoubtComesSoonOrNever(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id, later := b.lost(step.Boot{Incarnation: 5})
	b.now = b.now.Add(doubtWithin + time.Second)
	effects := b.renewAttempt("b", attemptOf(id, 0, later))
	if _, fences := sent[protocol.Fence](effects); len(fences) != 1 {
		t.Error("a request long after the start is believed")
	}
	b = newBench(t, nil, "a", "b")
	id, _ = b.lost(step.Boot{Incarnation: 5})
	for _, never := range []grid.Token{
		grid.TokenOf(4, 0), grid.TokenOf(4, 1), grid.TokenOf(900, 1), 1<<64 - 1,
	} {
		effects := b.renewAttempt("b", attemptOf(id, 0, never))
		if _, fences := sent[protocol.Fence](effects); len(fences) != 1 {
			t.Errorf("token %d, which no earlier run can have given, is believed", never)
		}
	}
}

// A run that ends before the time is over leaves the doubt to the next one.
func TestDoubtOutlivesACrash(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id, _ := b.lost(step.Boot{Incarnation: 5, Restored: true})
	b.pass(time.Second)
	b.rerun(rerun{})
	if got := b.m.jobs.all[id].presumed.Sub(b.now); got != 3500*time.Millisecond {
		t.Fatalf("waits for %s, want 3.5s", got)
	}
	b.do(step.PeerSeen{Site: "a", Name: "a"})
	b.pass(4 * time.Second)
	b.rerun(rerun{})
	if b.m.jobs.all[id].isPresumed(b.now) {
		t.Error("doubts forever")
	}
}

// A copy that has no network yet knows less than any: it begins nothing, not even here, before
// it has met a member.
func TestDoubtLastsUntilAMemberIsMet(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id, _ := b.lost(step.Boot{Incarnation: 5, Restored: true})
	for _, site := range []grid.SiteID{"a", "b"} {
		b.do(step.PeerGone{Site: site})
	}
	b.now = b.now.Add(time.Second)
	b.rerun(rerun{})
	b.pass(time.Minute)
	if !b.m.jobs.all[id].isPresumed(b.now) {
		t.Fatal("it goes on without having met anybody")
	}
	b.do(step.PeerSeen{Site: "a", Name: "a"})
	b.pass(4 * time.Second)
	if b.m.jobs.all[id].isPresumed(b.now) {
		t.Error("doubts forever")
	}
}

// The end of an attempt that a restored state does not know of is the task's result.
func TestAnUnknownAttemptEnds(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id, later := b.lost(step.Boot{Incarnation: 5, Restored: true})
	b.hear("b", protocol.Exited{
		Attempt: attemptOf(id, 0, later), Exit: grid.Exit{Cause: grid.CauseExited},
	})
	b.wantPhase(id, 0, grid.PhaseDone)
	one[protocol.ExitAck](t, b.last)
}

// Nothing waits for the leases of a job that has ended: no timer is left, and the next run
// does not doubt its state for it.
func TestDoubtEndsWithTheJob(t *testing.T) {
	for name, end := range map[string]func(b *bench, id grid.JobID, later grid.Token){
		"done": func(b *bench, id grid.JobID, later grid.Token) {
			b.hear("b", protocol.Exited{
				Attempt: attemptOf(id, 0, later), Exit: grid.Exit{Cause: grid.CauseExited},
			})
		},
		"cancelled": func(b *bench, id grid.JobID, _ grid.Token) { b.do(step.CancelJob{Job: id}) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil, "a", "b")
			id, later := b.lost(step.Boot{Incarnation: 5, Restored: true})
			end(b, id, later)
			if got := b.phase(id, 0); !got.Ended() {
				t.Fatalf("the task is %s, want it ended", got)
			}
			if at, is := b.timers[step.TimerKey{Name: timerPresumed, ID: string(id)}]; is {
				t.Errorf("the job has ended, and its leases are waited for, for %s", at.Sub(b.now))
			}
			next := b.submit(testJob(1))
			b.rerun(rerun{})
			if b.m.jobs.all[next].isPresumed(b.now) {
				t.Error("the next run doubts a job that this one has seen from its start")
			}
		})
	}
}

// What an unknown attempt could not bring to an end waits on.
func TestAnUnknownAttemptFails(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id, later := b.lost(step.Boot{Incarnation: 5, Restored: true})
	b.hear("b", protocol.Exited{
		Attempt: attemptOf(id, 0, later), Exit: grid.Exit{Cause: grid.CauseSiteRestart},
	})
	one[protocol.ExitAck](t, b.last)
	b.wantPhase(id, 0, grid.PhaseWaiting)
	if _, asked := sent[protocol.Announce](b.pass(3 * time.Second)); len(asked) > 0 {
		t.Error("placed while an attempt later still may run")
	}
}

// A state that counts jobs from where it was saved does not name a job like a lost one.
func TestRunsNameJobsApart(t *testing.T) {
	names := make(map[grid.JobID]bool)
	for _, nonce := range []uint64{0, 1, 2} {
		names[newJobID(&run{cfg: Default(self), incarnation: 7, nonce: nonce}, 3)] = true
	}
	if len(names) != 3 {
		t.Errorf("%d names of 3 runs", len(names))
	}
}

// An unattended attempt holds its lease for hours, and so long nothing is placed anew.
func TestARestoredStateWaitsForLongLeases(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.submit(unattended())
	saved := b.m.Snapshot()
	b.rewind(saved, step.Boot{Incarnation: 5, Restored: true}, "a", "b")
	want := b.m.cfg.LongLease + b.m.cfg.margin(b.m.cfg.LongLease)
	if got := b.m.jobs.all[id].presumed.Sub(b.now); got != want {
		t.Errorf("waits for %s, want %s", got, want)
	}
}

// Parts start together: what is known of the attempts of one is known of all.
func TestAnUnknownAttemptOfAPart(t *testing.T) {
	told := map[string]func(b *bench, id grid.AttemptID){
		"ends": func(b *bench, id grid.AttemptID) {
			b.hear("a", protocol.Exited{Attempt: id, Exit: grid.Exit{Cause: grid.CauseStopped}})
		},
		"asks": func(b *bench, id grid.AttemptID) {
			b.renewAttempt("a", id)
			b.pass(3600 * time.Millisecond)
		},
	}
	for name, tell := range told {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil, "a", "b")
			id := b.submit(splitJob(grid.SplitGreedy, 2))
			b.rewind(b.m.Snapshot(), step.Boot{Incarnation: 5, Restored: true}, "a", "b")
			tell(b, attemptOf(id, 1, 7))
			for i := range b.m.jobs.all[id].tasks {
				if next := b.m.jobs.all[id].tasks[i]; next.isBefore(7) || !next.isBefore(8) {
					t.Errorf("part %d: the latest attempt is %d, want 7", i, next.top)
				}
			}
		})
	}
}
