//go:build e2e

package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// punctual is the most a promised start may be late.
const punctual = time.Second

// stamp is a moment as the command line takes it.
func stamp(t time.Time) string { return t.Format(time.RFC3339Nano) }

// fresh is a job's ID as a command printed it.
func fresh(t *testing.T, a answer) grid.JobID {
	t.Helper()
	id := grid.JobID(strings.TrimSpace(a.out))
	if a.code != 0 || id.Validate() != nil {
		t.Fatalf("%+v", a)
	}
	return id
}

// handedIn is the job that a submission names, whether it was placed or refused.
func handedIn(t *testing.T, a answer) grid.JobID {
	t.Helper()
	if a.code == 4 {
		a.code = 0
	}
	return fresh(t, a)
}

// wantPunctual fails if a job's only task was not started in its second.
func (m *mesh) wantPunctual(t *testing.T, id grid.JobID, at time.Time) {
	t.Helper()
	started := m.tasks(t, id)[0].Started.Time
	if late := started.Sub(at); started.IsZero() || late < -100*time.Millisecond || late > punctual {
		t.Errorf("job %s was started %s after its time", id, late)
	}
}

// A reservation is kept although its site is killed and started again before its
// time, while jobs without a promise fill all sites and leave them in time.
func TestReservationIsKept(t *testing.T) {
	t.Parallel()
	m := newMesh(t, submitOnly, oneCore, oneCore, oneCore, oneCore)
	at := time.Now().Add(30 * time.Second).Truncate(time.Second)
	reservation := fresh(
		t, m.submit(t, "reserve", "--parsable", "--at", stamp(at), "--for", "20s", "--cpus", "1"),
	)
	bound := m.begin(t, []string{"--reservation", string(reservation), "--runtime", "10s"}, "ticks=5")
	fixed := m.begin(t, []string{"--at", stamp(at), "--runtime", "10s"}, "ticks=5")
	filling := m.begin(t, []string{"--count", "40", "--runtime", "2s"}, "ticks=10")

	holder := m.heldBy(t, reservation)
	holder.kill(t)
	holder.start(t)
	for _, id := range []grid.JobID{bound, fixed, filling} {
		m.submit(t, "wait", string(id)).want(t, 0)
	}
	m.wantPunctual(t, bound, at)
	m.wantPunctual(t, fixed, at)
	if now := m.heldBy(t, reservation); now != holder {
		t.Errorf("the reservation is at %s, and was at %s", now.name, holder.name)
	}
	m.submit(t, "wait", string(reservation)).want(t, 0)
	for _, s := range m.sites {
		s.awaitNoProcess(t)
	}
	m.audit(t)
	m.replay(t)
}

// heldBy is the site that has a job's only task.
func (m *mesh) heldBy(t *testing.T, id grid.JobID) *site {
	t.Helper()
	var found *site
	eventually(t, patience, "a site has the task", func() bool {
		task := m.tasks(t, id)[0]
		for _, s := range m.sites {
			if s.id == task.Site {
				found = s
			}
		}
		return found != nil
	})
	return found
}

// Six of ten jobs can end before their deadline: those are accepted and do, and the
// others are refused right away, with the earliest time that could be kept. It is not parallel:
// programs get what of the processors nobody else wants, and may then need more than twice their
// ten seconds, of which no planner knows.
func TestDeadlinesAreKeptOrRefusedAtOnce(t *testing.T) {
	m := newMesh(t, oneCore, oneCore, oneCore, oneCore, twoCores)
	deadline := time.Now().Add(22 * time.Second)
	flags := []string{ // they run for 10 s: none makes room for one that could still be promised
		"--parsable", "-d", "--wasm", bin.guest, "--runtime", "12s", "--deadline", stamp(deadline), "--",
		"ticks=100",
	}
	var accepted []grid.JobID
	refused := 0
	for i := range 10 {
		began := time.Now()
		id := handedIn(t, m.submit(t, append([]string{"run"}, flags...)...))
		eventually(t, patience, "the job is placed or refused", func() bool {
			phase := m.job(t, id).Phase
			return phase != view.PhaseWaiting && phase != view.PhaseAnnounced && phase != view.PhaseAwarded
		})
		if m.job(t, id).Phase != view.PhaseRefused {
			accepted = append(accepted, id)
			continue
		}
		refused++
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("job %d was refused after %s only", i, took)
		}
		if why := m.submit(t, "why", string(id)); !strings.Contains(
			why.out+why.err, "could be promised in",
		) {
			t.Errorf("job %d is refused without the earliest time:\n%s%s", i, why.out, why.err)
		}
	}
	if len(accepted) != 6 || refused != 4 {
		t.Errorf("%d accepted and %d refused, want 6 and 4", len(accepted), refused)
	}
	for _, id := range accepted {
		m.submit(t, "wait", string(id)).want(t, 0)
		if ended := m.tasks(t, id)[0].Ended.Time; ended.After(deadline) {
			t.Errorf("job %s ended %s after its deadline", id, ended.Sub(deadline))
		}
	}
	m.audit(t)
}

// onMap submits the guest on one of the virtual maps.
func (m *mesh) onMap(t *testing.T, kind, runtime, arg string) grid.JobID {
	t.Helper()
	file := fmt.Sprintf(
		"wasm: %s\nargs: [%q]\nruntime: %s\nmap: {kind: %s}\n", bin.guest, arg, runtime, kind,
	)
	return fresh(t, m.submitWith(t, file, "job", "--parsable", "--allow-outside", "-"))
}

// A short job never queues behind a long one while another site idles, in either map.
func TestAShortJobDoesNotQueueWhileASiteIdles(t *testing.T) {
	t.Parallel()
	m := newMesh(t, oneCore, oneCore, oneCore, oneCore, oneCore)
	for _, kind := range []string{"thesis", "seconds"} {
		var long []grid.JobID
		for range 4 {
			long = append(long, m.onMap(t, kind, "10m", "ticks=6000"))
		}
		for _, id := range long {
			m.awaitPhase(t, id, view.PhaseRunning)
		}
		began := time.Now()
		short := m.onMap(t, kind, "1s", "exit=0")
		m.submit(t, "wait", string(short)).want(t, 0)
		if waited := m.tasks(t, short)[0].Started.Sub(began); waited > 5*time.Second {
			t.Errorf(
				"map %s: the short job waited for %s\n%s", kind, waited, m.submit(t, "why", string(short)).out,
			)
		}
		for _, id := range long {
			m.submit(t, "cancel", string(id)).want(t, 0)
		}
		eventually(t, patience, fmt.Sprintf("map %s: all has stopped", kind), func() bool {
			for _, s := range m.sites {
				status, err := s.client.Status(t.Context())
				if err != nil || len(status.Running) > 0 {
					return false
				}
			}
			return true
		})
	}
	m.audit(t)
}
