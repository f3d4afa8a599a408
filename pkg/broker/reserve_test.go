package broker

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// reservation holds two places for an hour, in half an hour.
func (b *bench) reservation() grid.Job {
	j := b.fixed(1)
	j.Spec.Kind, j.Spec.Module, j.Spec.Runtime = grid.KindReservation, grid.Input{}, time.Hour
	j.Spec.Need = grid.Resources{MilliCPUs: 2000, MemoryBytes: 1 << 30}
	return j
}

// inside is a job that is bound to a reservation.
func inside(id grid.JobID) grid.Job {
	j := testJob(1)
	j.Spec.Reservation = id
	return j
}

func (b *bench) refusedBy(job grid.Job) error {
	b.Helper()
	for _, e := range b.do(step.Submit{Command: 1, Job: job}) {
		if r, is := e.(step.Reply); is {
			return r.Err
		}
	}
	return nil
}

func (b *bench) wantText(id grid.JobID, index int, want string) {
	b.Helper()
	s, _ := b.m.Job(id)
	if exit := s.Tasks[index].Exit; exit == nil || !strings.Contains(exit.Text, want) {
		b.Errorf("task %d ended with %+v, want %q", index, exit, want)
	}
}

func (b *bench) renew(site grid.SiteID, id grid.JobID, token grid.Token) []step.Effect {
	b.Helper()
	return b.hear(site, protocol.Renew{
		Renewal: 7, Attempts: []grid.AttemptID{attemptOf(id, 0, token)},
	})
}

// restart makes a machine of the facts alone; the sites are back right away.
func (b *bench) restart(sites ...grid.SiteID) {
	b.Helper()
	again := New(b.m.cfg)
	if err := again.Restore(b.m.Snapshot()); err != nil {
		b.Fatal(err)
	}
	life := b.m.incarnation + 1
	b.m, b.timers = again, make(map[step.TimerKey]time.Time)
	b.do(step.Boot{Incarnation: life})
	for _, s := range sites {
		b.do(step.PeerSeen{Site: s, Name: string(s)})
	}
}

func TestAReservationIsHeldUnderALongLease(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.placed(b.reservation(), "a")
	_, lease := one[protocol.Lease](t, b.renew("a", id, 1))
	if lease.Duration != time.Minute {
		t.Errorf("a lease of %s, want a minute", lease.Duration)
	}
	b.do(step.PeerGone{Site: "a", Refusing: true}) // it starts again
	b.pass(50 * time.Second)
	b.do(step.PeerSeen{Site: "a"})
	one[protocol.Lease](t, b.renew("a", id, 1))
	b.wantPhase(id, 0, grid.PhaseStaging)

	b.restart("a", "b") // and this site does
	b.pass(50 * time.Second)
	one[protocol.Lease](t, b.renew("a", id, 1))
	b.hear("a", protocol.Progress{Attempt: attemptOf(id, 0, 1), Phase: grid.PhaseRunning})
	b.wantPhase(id, 0, grid.PhaseRunning)
	b.hear("a", protocol.Exited{
		Attempt: attemptOf(id, 0, 1), Exit: grid.Exit{Cause: grid.CauseExited},
	})
	b.wantPhase(id, 0, grid.PhaseDone)
}

func TestAReservationMovesWhenItsSiteStaysAway(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.placed(b.reservation(), "a")
	bound := b.submit(inside(id))
	if to, _ := sent[protocol.Announce](b.last); fmt.Sprint(to) != "[a]" {
		t.Fatalf("the bound job was announced to %v, want a alone", to)
	}
	b.refusal(bound, "a", false) // its time has not come
	b.do(step.PeerGone{Site: "a", Refusing: true})
	b.pass(time.Minute + b.m.cfg.LeaseMargin)
	b.wantPhase(id, 0, grid.PhaseAnnounced)
	b.hear("b", protocol.Bid{Job: id, Seq: b.m.asked(id).seq, Offer: offer(31, 1, 1)})
	b.refusal(id, self, false)
	b.firm(id, "b", offer(32, 1, 1))
	effects := b.accept("b", id, 0, 2)
	if to, _ := sent[protocol.Announce](effects); fmt.Sprint(to) != "[b]" {
		t.Errorf("the bound job followed to %v, want b", to)
	}
	b.offers(bound, 1, "b")
	if to, _ := one[protocol.Award](t, b.last); to != "b" {
		t.Errorf("the bound job was awarded to %s", to)
	}
}

func TestBoundJobsAreAskedForWhenTheTimeHasCome(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.submit(b.reservation())
	early := b.submit(inside(id)) // nobody holds it yet
	if to, _ := sent[protocol.Announce](b.last); len(to) != 0 {
		t.Fatalf("announced to %v", to)
	}
	b.place(id, "a")
	if to, _ := sent[protocol.Announce](b.last); fmt.Sprint(to) != "[a]" {
		t.Fatalf("the bound job was announced to %v when it was held, want a", to)
	}
	b.refusal(early, "a", false)
	b.do(step.PeerSeen{Site: "c"}) // a new site is asked for what is not bound alone
	if to, _ := sent[protocol.Reannounce](b.last); len(to) != 0 {
		t.Errorf("a bound job was announced to %v", to)
	}
	b.hear("a", protocol.Progress{Attempt: attemptOf(id, 0, 1), Phase: grid.PhaseRunning})
	if to, _ := sent[protocol.Announce](b.last); fmt.Sprint(to) != "[a]" {
		t.Errorf("announced to %v when its time came, want a", to)
	}
	if got := b.m.jobs.boundTo(id); fmt.Sprint(got) != fmt.Sprint([]grid.JobID{early}) {
		t.Errorf("bound to it: %v", got)
	}
	b.restart("a", "b", "c")
	if got := b.m.jobs.boundTo(id); fmt.Sprint(got) != fmt.Sprint([]grid.JobID{early}) {
		t.Errorf("bound to it after a restart: %v", got)
	}
}

func TestWhatIsBoundEndsWithItsReservation(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(b *bench, id grid.JobID)
		text string
	}{
		"over": {func(b *bench, id grid.JobID) {
			b.hear("a", protocol.Exited{
				Attempt: attemptOf(id, 0, 1), Exit: grid.Exit{Cause: grid.CauseExited},
			})
		}, "is over"},
		"released": {
			func(b *bench, id grid.JobID) { b.do(step.CancelJob{Command: 5, Job: id}) }, "was released",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil, "a", "b")
			id := b.placed(b.reservation(), "a")
			runs, waits := b.submit(inside(id)), b.submit(inside(id))
			b.offers(runs, 1, "a")
			b.accept("a", runs, 0, 1)
			b.refusal(waits, "a", false)
			c.end(b, id)
			b.wantPhase(waits, 0, grid.PhaseRefused)
			b.wantText(waits, 0, c.text)
			if name == "released" {
				if to, _ := sent[protocol.Cancel](b.last); fmt.Sprint(to) != "[a a]" {
					t.Errorf("cancelled at %v, want a for both", to)
				}
			} else { // its site stops a running job
				b.wantPhase(runs, 0, grid.PhaseStaging)
				b.hear("a", protocol.Exited{
					Attempt: attemptOf(runs, 0, 1), Exit: grid.Exit{Cause: grid.CauseStopped},
				})
			}
			b.wantPhase(runs, 0, grid.PhaseRefused)
			b.wantText(runs, 0, c.text)
			if err := b.refusedBy(inside(id)); !errors.Is(err, grid.ErrInvalid) ||
				!strings.Contains(err.Error(), "reservation: "+string(id)+" is over") {
				t.Errorf("bound to what is over: %v", err)
			}
		})
	}
}

// Outputs that are still being fetched outlive an early release.
func TestAReleaseKeepsWhatHasEnded(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.placed(b.reservation(), "a")
	job := inside(id)
	job.Count = 2
	two := b.submit(job)
	b.offers(two, 2, "a")
	b.accept("a", two, 0, 1)
	b.accept("a", two, 1, 1)
	exit := grid.Exit{Cause: grid.CauseExited, Stdout: grid.Produced{Path: "/out", CID: "bout"}}
	b.hear("a", protocol.Exited{Attempt: attemptOf(two, 0, 1), Exit: exit})
	effects := b.do(step.CancelJob{Command: 5, Job: id})
	if _, cancels := sent[protocol.Cancel](effects); len(cancels) != 1 || cancels[0].Job != id {
		t.Errorf("cancelled %v, want the reservation alone", cancels)
	}
	if _, fence := one[protocol.Fence](t, effects); fence.Below[0] != attemptOf(two, 1, 2) {
		t.Errorf("fenced below %v", fence.Below)
	}
	b.do(step.Collected{Attempt: attemptOf(two, 0, 1)})
	b.wantPhase(two, 0, grid.PhaseDone)
	b.wantPhase(two, 1, grid.PhaseRefused)
}

func TestWhatCannotBeBoundIsRefused(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.placed(b.reservation(), "a")
	large := inside(id)
	large.Spec.Need.MilliCPUs = 4000
	for name, c := range map[string]struct {
		job  grid.Job
		want string
	}{
		"unknown":        {inside("aaaaaaaaaaaaaaaa"), "reservation: aaaaaaaaaaaaaaaa is none"},
		"no reservation": {inside(b.submit(testJob(1))), "is none that was made here; name one"},
		"too large":      {large, "ask for less, or reserve more"},
	} {
		if err := b.refusedBy(c.job); !errors.Is(err, grid.ErrInvalid) ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
