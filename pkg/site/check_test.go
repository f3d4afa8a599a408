package site

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/plan"
)

// TestCheckFindsWhatIsBroken breaks the state of a site that runs an attempt of alice's and
// keeps a place for one of bob's, in one way at a time.
func TestCheckFindsWhatIsBroken(t *testing.T) {
	type broken struct {
		m              *Machine
		runs, promised *attempt
	}
	for _, c := range []struct {
		want string
		by   func(b broken)
	}{
		{"phase 0", func(b broken) { b.runs.phase = 0 }},
		{"without ever having held a lease", func(b broken) { b.runs.leased = false }},
		{"is running and was not started", func(b broken) { b.runs.started = false }},
		{"was started while", func(b broken) { b.promised.started, b.promised.leased = true, true }},
		{"nobody asks alice", func(b broken) { delete(b.m.submitters.tenants, alice) }},
		{"suspended is true", func(b broken) { b.runs.suspended = true }},
		{"suspended is false", func(b broken) { b.m.owner.busy = grid.ReasonOwnerBusy }},
		{"2 attempts live and the plan holds", func(b broken) { b.m.plan.Release(b.runs.id) }},
		{"which does not live", func(b broken) {
			if err := b.m.plan.Commit(b.m.now, plan.Commitment{
				Attempt: attemptID(job3, 0, 1), Submitter: bob, Give: grid.Resources{MilliCPUs: 1},
				Start: b.m.now, End: b.m.now.Add(time.Minute),
			}, 0); err != nil {
				t.Fatal(err)
			}
		}},
		{"started before its place", func(b broken) {
			b.promised.phase, b.promised.started, b.promised.leased = phaseRunning, true, true
		}},
		{"nothing is to wake the site", func(b broken) { b.m.plan.timer = time.Time{} }},
		{"bound to another submitter", func(b broken) { b.m.roster.byJob[job1].submitter = bob }},
		{"is not counted", func(b broken) { b.m.roster.byJob[job1].attempts = 0 }},
		{"is not counted", func(b broken) { b.m.roster.bySite[alice] = 0 }},
		{"out of order", func(b broken) {
			task := b.runs.id.Task
			b.m.roster.byTask[task] = append(b.m.roster.byTask[task], b.runs)
		}},
		{"attempts are out of order", func(b broken) { slices.Reverse(b.m.roster.order) }},
		{"indices do not match", func(b broken) { b.m.roster.all[attemptID(job3, 0, 1)] = b.runs }},
		{"indices do not match", func(b broken) { b.m.roster.bySite["nobody"] = 1 }},
		{"indices do not match", func(b broken) { b.m.roster.byJob[job3] = b.m.roster.byJob[job1] }},
		{"indices do not match", func(b broken) { delete(b.m.roster.byTask, b.runs.id.Task) }},
		{"facts, want", func(b broken) { b.m.owner.paused.on = true }},
		{"a pause until", func(b broken) { b.m.owner.paused.until = b.m.now }},
		{"cached requirements", func(b broken) { b.m.cfg.CacheEntries = 1 }},
		{"tenants", func(b broken) { b.m.cfg.MaxAttempts = 1 }},
	} {
		r := newRig(t)
		promised := r.promised(job2, bob, at(10*time.Minute))
		runs := r.running(job1, alice, 1)[0]
		c.by(broken{r.m, r.m.roster.all[runs], r.m.roster.all[promised]})
		if err := r.m.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Check = %v, want %q", err, c.want)
		}
	}
}
