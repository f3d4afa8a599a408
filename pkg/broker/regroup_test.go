package broker

import (
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

func TestAPartIsLost(t *testing.T) {
	lose := map[string]func(*bench, grid.JobID, map[grid.SiteID]protocol.Award) []step.Effect{
		"declined": func(b *bench, id grid.JobID, awards map[grid.SiteID]protocol.Award) []step.Effect {
			delete(awards, "a")
			if leases := b.allAccept(id, awards); len(leases) > 0 {
				b.Errorf("%v got leases although a has not accepted", leases)
			}
			return b.hear("a", protocol.Declined{
				Attempts: []grid.AttemptID{attemptOf(id, 0, 1), attemptOf(id, 1, 1)},
				Refusal:  grid.Refusal{Reason: grid.ReasonAdapter},
			})
		},
		"missed": func(b *bench, id grid.JobID, awards map[grid.SiteID]protocol.Award) []step.Effect {
			delete(awards, "a")
			if leases := b.allAccept(id, awards); len(leases) > 0 {
				b.Errorf("%v got leases although a has not accepted", leases)
			}
			return b.pass(b.m.cfg.AwardWindow)
		},
		"stopped": func(b *bench, id grid.JobID, awards map[grid.SiteID]protocol.Award) []step.Effect {
			b.runParts(id, awards)
			return b.hear("a", protocol.Exited{
				Attempt: attemptOf(id, 1, 1), Exit: grid.Exit{Cause: grid.CauseStopped},
			})
		},
		"dead": func(b *bench, id grid.JobID, awards map[grid.SiteID]protocol.Award) []step.Effect {
			b.runParts(id, awards)
			return b.do(step.AttemptsDied{
				Site: "a", Attempts: []grid.AttemptID{attemptOf(id, 0, 1), attemptOf(id, 1, 1)},
			})
		},
		"after others are done": func(
			b *bench, id grid.JobID, awards map[grid.SiteID]protocol.Award,
		) []step.Effect {
			b.runParts(id, awards)
			b.hear("c", protocol.Exited{
				Attempt: attemptOf(id, 3, 1), Exit: grid.Exit{Cause: grid.CauseExited},
			})
			b.wantPhase(id, 3, grid.PhaseDone)
			b.hear("c", protocol.Exited{Attempt: attemptOf(id, 4, 1), Exit: grid.Exit{
				Cause: grid.CauseExited, Stdout: grid.Produced{Path: "/out", CID: "bout", Bytes: 3},
			}})
			b.wantPhase(id, 4, grid.PhaseCollecting)
			return b.hear("a", protocol.Exited{
				Attempt: attemptOf(id, 1, 1), Exit: grid.Exit{Cause: grid.CauseData},
			})
		},
	}
	for name, how := range lose {
		t.Run(name, func(t *testing.T) {
			b, id := offered(t, grid.SplitIfNeeded, 6) // a: 0, 1; c: 2 to 5
			effects := how(b, id, b.allHold(id, holdsAsked(b.last)))
			fenced := make(map[grid.SiteID]bool)
			to, _ := sent[protocol.Fence](effects)
			for _, site := range to {
				fenced[site] = true
			}
			if !fenced["c"] {
				t.Fatalf("told to stop: %v, want c", to)
			}
			for i := range 6 {
				if p := b.phase(id, i); p != grid.PhaseWaiting && p != grid.PhaseAnnounced {
					t.Errorf("part %d is %s", i, p)
				}
			}
			end := b.now.Add(b.m.cfg.Lease + b.m.cfg.LeaseMargin)
			for b.now.Before(end) {
				effects := b.pass(100 * time.Millisecond)
				if to, _ := sent[protocol.HoldOffer](effects); len(to) > 0 {
					break
				}
			}
			b.do(step.PeerSeen{Site: "a"})
			again := b.announcedAgain(id)
			for site, tasks := range map[grid.SiteID]uint32{"b": 2, "c": 4} {
				again = append(again, b.room(id, site, tasks, time.Second)...)
			}
			b.pass(time.Second) // the round closes
			awards := b.allHold(id, holdsAsked(again))
			for site, award := range awards {
				for _, part := range award.Tasks {
					if part.Token < 2 {
						t.Errorf("%s is awarded part %d with token %d", site, part.Index, part.Token)
					}
				}
			}
			if len(awards) != 2 || len(awards["b"].Tasks) != 2 || len(awards["c"].Tasks) != 4 {
				t.Errorf("awarded %+v, want 2 to b and 4 to c", awards)
			}
		})
	}
}

// announcedAgain waits for the next round and lets all but b and c refuse.
func (b *bench) announcedAgain(id grid.JobID) []step.Effect {
	b.Helper()
	for range 100 {
		if b.m.jobs.all[id].round() != nil {
			break
		}
		b.pass(100 * time.Millisecond)
	}
	effects := b.refusal(id, self, false)
	return append(effects, b.refusal(id, "a", false)...)
}

// What failed by itself does not come back, so the others need not wait for it.
func TestALostPartOfAFailedJobFails(t *testing.T) {
	b, id := offered(t, grid.SplitIfNeeded, 6)
	b.runParts(id, b.allHold(id, holdsAsked(b.last)))
	b.hear("c", protocol.Exited{
		Attempt: attemptOf(id, 3, 1), Exit: grid.Exit{Cause: grid.CauseExited, Code: 3},
	})
	b.wantPhase(id, 3, grid.PhaseFailed)
	b.wantPhase(id, 2, grid.PhaseRunning)
	b.hear("a", protocol.Exited{
		Attempt: attemptOf(id, 1, 1), Exit: grid.Exit{Cause: grid.CauseStopped},
	})
	state, _ := b.m.Job(id)
	for _, task := range state.Tasks {
		if task.Phase != grid.PhaseFailed {
			t.Errorf("%s is %s", task.ID, task.Phase)
		}
	}
	if state.Ended.IsZero() {
		t.Error("the job has not ended")
	}
}

// The only part of a split job is heard of while another site is asked to hold a place
// for it: what is held is free again, and nothing is awarded.
func TestTheOnlyPartIsHeardOfWhileAPlaceIsHeld(t *testing.T) {
	for name, c := range map[string]struct {
		says  func(grid.AttemptID) protocol.Message
		phase grid.Phase
	}{
		"it runs on": {func(id grid.AttemptID) protocol.Message {
			return protocol.Renew{Renewal: 9, Attempts: []grid.AttemptID{id}}
		}, grid.PhaseRunning},
		"it has ended": {func(id grid.AttemptID) protocol.Message {
			return protocol.Exited{Attempt: id, Exit: grid.Exit{Cause: grid.CauseExited}}
		}, grid.PhaseDone},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil, "a", "b")
			id := b.submit(splitJob(grid.SplitIfNeeded, 1))
			b.refusal(id, self, false)
			b.refusal(id, "b", false)
			b.runParts(id, b.allHold(id, holdsAsked(b.room(id, "a", 1, time.Second))))
			b.pass(b.m.cfg.Lease + b.m.cfg.LeaseMargin) // a is silent
			b.room(id, "b", 1, time.Second)
			asked := holdsAsked(append(b.refusal(id, self, false), b.pass(time.Second)...))
			if len(asked) != 1 || asked["b"].Tasks != 1 {
				t.Fatalf("asked to hold: %+v, want 1 place of b", asked)
			}
			b.hear("a", c.says(attemptOf(id, 0, 1)))
			b.wantPhase(id, 0, c.phase)
			effects := b.holds(id, "b", asked["b"])
			to, cleared := sent[protocol.Clear](effects)
			if len(to) != 1 || to[0] != "b" {
				t.Errorf("%v was sent %+v, want b to be told that its place is not wanted", to, cleared)
			}
			if len(awardsBySite(effects)) != 0 {
				t.Errorf("awarded %+v", awardsBySite(effects))
			}
			b.wantPhase(id, 0, c.phase)
		})
	}
}
