package broker

import (
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// A site's certificate ends the lease of the attempt that it names: it moves immediately,
// although the site is still connected, as over QUIC.
func TestADeathCertificateMovesTheAttempt(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.started(1)
	attempt := attemptOf(id, 0, 1)
	effects := b.do(step.AttemptsDied{Site: "a", Attempts: []grid.AttemptID{attempt}})
	if to, award := one[protocol.Award](t, effects); to != "b" || award.Tasks[0].Token != 2 {
		t.Fatalf("moved to %s by %+v, want b with the next token", to, award)
	}
	if index := b.faultIndex("a"); index != 1 {
		t.Errorf("the dead site's fault index is %d, want 1", index)
	}
	again := b.do(step.AttemptsDied{Site: "a", Attempts: []grid.AttemptID{attempt}})
	if len(again) != 0 {
		t.Errorf("the certificate read again did %+v", again)
	}
	if index := b.faultIndex("a"); index != 1 {
		t.Errorf("the certificate read again blames: index %d", index)
	}
	b.hear("a", protocol.Renew{Renewal: 9, Attempts: []grid.AttemptID{attempt}})
	if _, fence := one[protocol.Fence](t, b.last); fence.Below[0] != attemptOf(id, 0, 2) {
		t.Errorf("what is dead was not fenced off: %+v", fence)
	}
}

// Nobody ends what another site runs, another attempt, or what a site only seems to have
// left.
func TestWhatIsNoDeathCertificate(t *testing.T) {
	for name, in := range map[string]func(grid.JobID) step.Input{
		"another site's": func(id grid.JobID) step.Input {
			return step.AttemptsDied{Site: "b", Attempts: []grid.AttemptID{attemptOf(id, 0, 1)}}
		},
		"an earlier attempt's": func(id grid.JobID) step.Input {
			return step.AttemptsDied{Site: "a", Attempts: []grid.AttemptID{attemptOf(id, 0, 2)}}
		},
		"another task's": func(id grid.JobID) step.Input {
			return step.AttemptsDied{Site: "a", Attempts: []grid.AttemptID{attemptOf(id, 7, 1)}}
		},
		"nobody's": func(grid.JobID) step.Input { return step.AttemptsDied{Site: "a"} },
		"a refused connection": func(grid.JobID) step.Input {
			return step.PeerGone{Site: "a", Refusing: true}
		},
		"a lost connection": func(grid.JobID) step.Input { return step.PeerGone{Site: "a"} },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil, "a", "b")
			id := b.started(1)
			b.do(in(id))
			end := b.m.jobs.all[id].tasks[0].leaseEnd
			if left := end.Sub(b.now); left <= b.m.cfg.LeaseMargin+time.Second {
				t.Fatalf("the lease has %s left", left)
			}
			b.pass(end.Sub(b.now) - time.Millisecond)
			b.wantPhase(id, 0, grid.PhaseRunning)
			if to, _ := sent[protocol.Award](b.last); len(to) != 0 {
				t.Errorf("awarded to %v before the lease's end", to)
			}
		})
	}
}

// What a site was awarded and has no lease for cannot have begun: it moves when the site's
// address refuses connections.
func TestAnAwardToASiteThatRefuses(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	b.offers(b.submit(testJob(1)), 1, "a", "b", self)
	if to, _ := one[protocol.Award](t, b.last); to != "a" {
		t.Fatalf("awarded to %s, want a", to)
	}
	if to, _ := one[protocol.Award](t, b.do(step.PeerGone{Site: "a", Refusing: true})); to != "b" {
		t.Errorf("moved to %s, want b", to)
	}
}
