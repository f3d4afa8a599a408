//go:build e2e

package e2e_test

import (
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

var failovers = flag.Int("failovers", 2, "how many agents the tests of failovers kill, each")

// longLease is so long that no task moves by the end of one while a test waits.
const longLease = 30 * time.Second

// The submitter learns from a killed agent's supervisors that its attempts are dead, over
// TCP as over QUIC, where nothing refuses a connection: the task runs elsewhere long before
// its lease's end.
func TestFailoverByCertificate(t *testing.T) {
	t.Parallel()
	for name, quic := range map[string]bool{"tcp": false, "quic": true} {
		t.Run(name, func(t *testing.T) {
			m := prepareMeshWith(t, func(s *site) { s.quic, s.lease = quic, longLease },
				submitOnly, twoCores, twoCores)
			for _, s := range m.sites {
				s.start(t)
			}
			m.awaitWhole(t)
			var took []time.Duration
			for range *failovers {
				took = append(took, m.failover(t))
			}
			if _, longest := tellFailovers(t, took); longest > longLease/2 {
				t.Error("a task waited for its lease's end")
			}
			m.audit(t)
		})
	}
}

// tellFailovers logs how long failovers took, and returns the 95th percentile and the longest.
func tellFailovers(t *testing.T, took []time.Duration) (p95, longest time.Duration) {
	t.Helper()
	slices.Sort(took)
	at := func(share int) time.Duration { return took[(len(took)-1)*share/100] }
	t.Logf("running elsewhere after: p50 %s, p95 %s, longest %s of %d",
		at(50), at(95), at(100), len(took))
	return at(95), at(100)
}

// failover kills the agent that runs a job, and tells when the job runs elsewhere.
func (m *mesh) failover(t *testing.T) time.Duration {
	t.Helper()
	id := m.begin(t, nil, "ticks=100000")
	took, victim := m.killHolder(t, id)
	m.afterFailover(t, id, victim)
	return took
}

// killHolder kills the agent that runs a job, and tells when the job runs elsewhere.
func (m *mesh) killHolder(t *testing.T, id grid.JobID) (took time.Duration, victim *site) {
	t.Helper()
	victim = m.holder(t, id)
	eventually(t, patience, "its processes run", func() bool { return len(victim.processes()) > 0 })
	killed := time.Now()
	if err := victim.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		task := m.tasks(t, id)[0]
		if task.Site != victim.id && task.Phase == view.PhaseRunning {
			break
		}
		if <-tick.C; time.Since(killed) > patience {
			t.Fatalf("the task is %s at %s", task.Phase, task.Site)
		}
	}
	return time.Since(killed), victim
}

// afterFailover calls a job off, and brings the agent back that was killed.
func (m *mesh) afterFailover(t *testing.T, id grid.JobID, victim *site) {
	t.Helper()
	<-victim.ended
	victim.awaitNoProcess(t)
	m.submit(t, "cancel", string(id)).want(t, 0)
	victim.start(t)
	m.awaitWhole(t)
}
