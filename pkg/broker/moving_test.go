package broker

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// wantsMove lets a job's user move its tasks, and returns the probe that seeks other sites.
func (b *bench) wantsMove(id grid.JobID, anew bool) (scout grid.JobID) {
	b.Helper()
	b.do(step.MoveTasks{Command: 9, Job: id, Anew: anew})
	if r := only[step.Reply](b.last); len(r) != 1 || r[0].Err != nil || r[0].Command != 9 {
		b.Fatalf("answered %+v", r)
	}
	return b.scout()
}

// scout is the job that the last input has announced.
func (b *bench) scout() grid.JobID {
	b.Helper()
	_, msgs := sent[protocol.Announce](b.last)
	if len(msgs) == 0 {
		b.Fatal("nothing is announced")
	}
	return msgs[0].Job
}

// told wants that a task's site was told this by the last input, and nobody anything else.
func (b *bench) told(site grid.SiteID, want protocol.Move) {
	b.Helper()
	if to, msg := one[protocol.Move](b.T, b.last); to != site || msg != want {
		b.Fatalf("told %s %+v, want %s %+v", to, msg, site, want)
	}
}

// faultOf is the fault index of a site.
func (b *bench) faultOf(site grid.SiteID) float64 { return b.m.peers.faults.Index(site, b.now) }

// saying returns the answer of a site about the first attempt of a job.
func saying(id grid.JobID, next uint64) protocol.Movable {
	return protocol.Movable{Attempt: attemptOf(id, 0, 1), Saves: true, Begun: true, Next: next}
}

// One after the other: another site offers, a last checkpoint counts, the attempt ends, and only
// then the task is awarded again, elsewhere. That is nobody's fault, and no try.
func TestTheWayOfAMove(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.started(1)
	at := attemptOf(id, 0, 1)
	scout := b.wantsMove(id, false)
	if scout == id {
		t.Fatal("the job itself is announced")
	}
	b.offers(scout, 1, "a", "b")
	if _, moves := sent[protocol.Move](b.last); len(moves) > 0 {
		t.Fatal("its site is told before all have answered")
	}
	b.refusal(scout, self, false)
	b.told("a", protocol.Move{Attempt: at})
	b.hear("a", saying(id, 2))
	b.saves("a", at, checkpoint(1))
	if _, moves := sent[protocol.Move](b.last); len(moves) > 0 {
		t.Fatal("it is stopped after a checkpoint that is not the last")
	}
	b.saves("a", at, checkpoint(2))
	b.told("a", protocol.Move{Attempt: at, Stop: true})
	b.wantPhase(id, 0, grid.PhaseRunning)
	if again := b.pass(moveRepeat); len(again) == 0 {
		t.Error("its site is told once")
	}
	b.hear("a", protocol.Exited{Attempt: at, Exit: grid.Exit{Cause: grid.CauseStopped}})
	if to, ack := one[protocol.ExitAck](t, b.last); to != "a" || ack.Attempts[0] != at {
		t.Errorf("acknowledged %+v to %s", ack, to)
	}
	to, award := one[protocol.Award](t, b.last) // by the offer that it has of the others
	if to != "b" || len(award.Tasks[0].Saved) != 2 || award.Tasks[0].Saved[0] != checkpoint(2) {
		t.Errorf("awarded %+v to %s", award.Tasks, to)
	}
	s, _ := b.m.Job(id)
	try := s.Tasks[0].Tries[0]
	if try.Outcome != "moved" || b.faultOf("a") != 0 || b.m.jobs.all[id].tasks[0].losses != 0 {
		t.Errorf("%+v, fault %g", try, b.faultOf("a"))
	}
}

// A task stays when no other site offers, or its program saves nothing, and its user reads why.
func TestWhyATaskStays(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(b *bench, id, scout grid.JobID)
		want   Move
	}{
		"nobody offers": {func(b *bench, _, scout grid.JobID) {
			b.refusal(scout, "b", false)
		}, Move{
			Stays: grid.ReasonNowhere, Note: "not now: too little memory (wants 2 B, has 1 B)",
		}},
		"it saves nothing": {func(b *bench, id, scout grid.JobID) {
			b.offers(scout, 1, "b")
			b.hear("a", protocol.Movable{Attempt: attemptOf(id, 0, 1), Begun: true})
		}, Move{Stays: grid.ReasonCannotSave, Note: noteAnew}},
		"it does not save in time": {func(b *bench, id, scout grid.JobID) {
			b.offers(scout, 1, "b")
			b.hear("a", saying(id, 1))
			b.keep(id, saveWithin+moveLook)
		}, Move{Stays: grid.ReasonCannotSave, Note: noteUnread}},
		"its site is of an earlier version": {func(b *bench, id, scout grid.JobID) {
			b.offers(scout, 1, "b")
			b.keep(id, saveWithin+moveLook)
		}, Move{Stays: grid.ReasonVersion, Note: noteOld}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil, "a", "b")
			id := b.started(1)
			scout := b.wantsMove(id, false)
			b.offers(scout, 1, "a")
			b.refusal(scout, self, false)
			c.answer(b, id, scout)
			s, _ := b.m.Job(id)
			if got := s.Tasks[0].Move; got == nil || *got != c.want {
				t.Errorf("shown %+v, want %+v", got, c.want)
			}
			if s.Tasks[0].Phase != grid.PhaseRunning || s.Tasks[0].Token != 1 {
				t.Errorf("it is %s by %d", s.Tasks[0].Phase, s.Tasks[0].Token)
			}
		})
	}
}

// Frozen, or told that it may begin anew, it moves from what counts, or from nothing.
func TestWhatMovesWithoutSaving(t *testing.T) {
	for name, c := range map[string]struct {
		anew, saved bool
		phase       grid.Phase
		stops       bool
	}{
		"frozen, and saved before":   {false, true, grid.PhaseFrozen, true},
		"frozen, and never saved":    {false, false, grid.PhaseFrozen, false},
		"running, and may begin new": {true, false, grid.PhaseRunning, true},
		"running, saved elsewhere":   {false, true, grid.PhaseRunning, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil, "a", "b")
			id := b.started(1)
			at := attemptOf(id, 0, 1)
			if c.saved {
				b.saves("a", at, checkpoint(1))
			}
			b.hear("a", protocol.Progress{Attempt: at, Phase: c.phase})
			scout := b.wantsMove(id, c.anew)
			b.offers(scout, 1, "a", "b")
			b.refusal(scout, self, false)
			b.hear("a", protocol.Movable{Attempt: at, Begun: true})
			_, moves := sent[protocol.Move](b.last)
			if stops := len(moves) == 1 && moves[0].Stop; stops != c.stops {
				t.Errorf("stopped: %t, want %t", stops, c.stops)
			}
		})
	}
}

// A site that had rather not go on is asked like a user's move, and may change its mind until the
// attempt is told to end.
func TestASiteWantsAnAttemptToLeave(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.started(1)
	at := attemptOf(id, 0, 1)
	wish := saying(id, 0)
	wish.Reason = grid.ReasonPaused
	b.hear("a", protocol.Movable{Attempt: at, Reason: grid.ReasonPaused, Begun: true})
	if len(b.last) > 0 {
		t.Errorf("what cannot go on elsewhere: %+v", b.last)
	}
	b.hear("b", wish)
	if len(b.last) > 0 {
		t.Errorf("another site says so: %+v", b.last)
	}
	b.hear("a", wish)
	scout := b.scout()
	if s, _ := b.m.Job(id); s.Tasks[0].Move.Why != grid.ReasonPaused {
		t.Errorf("shown %+v", s.Tasks[0].Move)
	}
	b.hear("a", saying(id, 0)) // it has changed its mind
	b.offers(scout, 1, "a", "b")
	b.refusal(scout, self, false)
	if _, moves := sent[protocol.Move](b.last); len(moves) > 0 {
		t.Errorf("it is told %+v", moves)
	}
	b.hear("a", wish)
	b.offers(b.scout(), 1, "a", "b")
	b.refusal(b.scoutOpen(), self, false)
	b.told("a", protocol.Move{Attempt: at})
	b.saves("a", at, checkpoint(1))
	b.hear("a", wish)
	b.told("a", protocol.Move{Attempt: at, Stop: true})
	b.hear("a", saying(id, 0))
	b.hear("a", protocol.Exited{Attempt: at, Exit: grid.Exit{Cause: grid.CauseStopped}})
	b.wantPhase(id, 0, grid.PhaseAwarded)
}

// scoutOpen is the probe that is not answered yet.
func (b *bench) scoutOpen() grid.JobID {
	b.Helper()
	ids := b.m.probes.ids()
	at := slices.IndexFunc(ids, func(id grid.JobID) bool { return b.m.probes[id].ended.IsZero() })
	if at < 0 {
		b.Fatal("no probe is open")
	}
	return ids[at]
}

// A site of an earlier version does not understand that it is to stop: it is fenced off, and the
// task moves when it has it no more, or its lease has ended. That is not its fault.
func TestAnOldSiteIsFencedOff(t *testing.T) {
	for name, renews := range map[string]bool{"its list lacks it": true, "its lease ends": false} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil, "a", "b")
			id := b.started(1)
			at := attemptOf(id, 0, 1)
			b.saves("a", at, checkpoint(1))
			b.hear("a", protocol.Progress{Attempt: at, Phase: grid.PhaseFrozen})
			scout := b.wantsMove(id, false)
			b.offers(scout, 1, "a", "b")
			b.refusal(scout, self, false)
			b.hear("a", saying(id, 1))
			fenced := false
			for range 40 {
				for _, f := range only[step.Send](b.hear("a", protocol.Renew{
					Renewal: 7, Attempts: []grid.AttemptID{at}, Left: []time.Duration{time.Second},
				})) {
					_, is := f.Message.(protocol.Fence)
					fenced = fenced || is
				}
				b.pass(time.Second)
				if fenced && renews {
					b.hear("a", protocol.Renew{Renewal: 9, List: &protocol.Listing{}})
				}
			}
			s, _ := b.m.Job(id)
			if !fenced || s.Tasks[0].Token == 1 && s.Tasks[0].Phase == grid.PhaseFrozen {
				t.Errorf("fenced %t, it is %s at %s", fenced, s.Tasks[0].Phase, s.Tasks[0].Site)
			}
			if b.faultOf("a") != 0 {
				t.Error("its site is blamed")
			}
		})
	}
}

// A move goes on after a restart of the submitter, and one whose attempt has ended meanwhile is
// one, too.
func TestAMoveOutlivesARestart(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.started(1)
	at := attemptOf(id, 0, 1)
	b.saves("a", at, checkpoint(1))
	b.wantsMove(id, false)
	b.restart("a", "b")
	b.hear("a", protocol.Renew{Renewal: 3, Attempts: []grid.AttemptID{at}})
	b.hear("a", protocol.Progress{Attempt: at, Phase: grid.PhaseRunning})
	for range 50 {
		b.hear("a", protocol.Renew{Renewal: 3, Attempts: []grid.AttemptID{at}})
		if b.pass(100 * time.Millisecond); b.m.probes.open() > 0 {
			break
		}
	}
	scout := b.scoutOpen()
	b.offers(scout, 1, "a", "b")
	b.refusal(scout, self, false)
	b.told("a", protocol.Move{Attempt: at})
	b.restart("a", "b")
	b.hear("a", protocol.Exited{Attempt: at, Exit: grid.Exit{Cause: grid.CauseStopped}})
	s, _ := b.m.Job(id)
	if got := fmt.Sprint(s.Tasks[0].Tries[0].Outcome); got != "moved" {
		t.Errorf("it has %s", got)
	}
}

// As many tasks move as other sites offer to take.
func TestAsManyMoveAsFitElsewhere(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.started(3)
	scout := b.wantsMove(id, false)
	if got := b.m.asked(scout).spec.Count; got != 3 {
		t.Errorf("asks for %d", got)
	}
	b.offers(scout, 3, "a")
	b.hear("b", protocol.Bid{Job: scout, Seq: b.m.asked(scout).seq, Offer: offer(8, 2, 2)})
	b.refusal(scout, self, false)
	to, moves := sent[protocol.Move](b.last)
	if len(moves) != 2 || to[0] != "a" || moves[1].Attempt.Task.Index != 1 {
		t.Errorf("told %v %+v", to, moves)
	}
	if s, _ := b.m.Job(id); s.Tasks[2].Move.Stays != grid.ReasonNowhere {
		t.Errorf("the third: %+v", s.Tasks[2].Move)
	}
}
