package broker

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// rerun is a restart with another configuration, another wall clock or on another boot.
type rerun struct {
	tune  func(*Config)
	clock reading
	ahead time.Duration // of the wall clock
}

func (b *bench) rerun(r rerun) {
	b.Helper()
	cfg := b.m.cfg
	if r.tune != nil {
		r.tune(&cfg)
	}
	again := New(cfg)
	if err := again.Restore(b.m.Snapshot()); err != nil {
		b.Fatal(err)
	}
	life := b.m.incarnation + 1
	b.m, b.timers, b.now = again, make(map[step.TimerKey]time.Time), b.now.Add(r.ahead)
	b.do(step.Boot{
		Incarnation: life, Clock: step.Clock{Of: r.clock.of, Zero: b.now.Add(-r.clock.at)},
	})
}

// leaseOf is for how long nothing else of task 0 is started.
func (b *bench) leaseOf(id grid.JobID) time.Duration {
	b.Helper()
	return b.m.jobs.all[id].tasks[0].leaseEnd.Sub(b.now)
}

func unattended() grid.Job {
	job := testJob(1)
	job.Spec.Unattended = grid.UnattendedFinish
	return job
}

// granted brings a job to run on site a under its own lease.
func (b *bench) granted(job grid.Job) grid.JobID {
	b.Helper()
	id := b.submit(job)
	b.offers(id, 1, "a", "b", self)
	_, award := one[protocol.Award](b.T, b.last)
	at := []grid.AttemptID{attemptOf(id, 0, award.Tasks[0].Token)}
	b.hear("a", protocol.Accepted{Attempts: at, Renewal: 1})
	b.hear("a", protocol.Progress{Attempt: at[0], Phase: grid.PhaseRunning})
	b.hear("a", renew(2, time.Second, at[0])) // it holds the first lease: a long one may follow
	return id
}

func TestALongGrantDoesNotRestOnTheWallClock(t *testing.T) {
	boot := func(hours int) reading {
		return reading{of: "boot-1", at: time.Duration(hours) * time.Hour}
	}
	const all = 8*time.Hour + 28_800*time.Millisecond
	for _, c := range []struct {
		what          string
		before, after reading
		ahead, want   time.Duration
	}{
		{"same boot", boot(5), boot(7), 2 * time.Hour, all - 2*time.Hour},
		{"same boot, the clock set ahead", boot(5), boot(5), 9 * time.Hour, all},
		{"same boot, the clock set back", boot(5), boot(7), -365 * 24 * time.Hour, all - 2*time.Hour},
		{"same boot, long over", boot(5), boot(50), 0, 3*time.Second + 500*time.Millisecond},
		{"a reading before the grant", boot(5), boot(4), 0, all},
		{"another boot", boot(5), reading{of: "boot-2", at: time.Minute}, 9 * time.Hour, all},
		{"no such clock", reading{}, reading{}, 9 * time.Hour, all},
		{"no such clock, set back", reading{}, reading{}, -365 * 24 * time.Hour, all},
	} {
		t.Run(c.what, func(t *testing.T) {
			b := newBench(t, nil, "a", "b")
			b.rerun(rerun{clock: c.before})
			b.do(step.PeerSeen{Site: "a"})
			id := b.granted(unattended())
			b.rerun(rerun{clock: c.after, ahead: c.ahead})
			if got := b.leaseOf(id); got != c.want {
				t.Errorf("its attempt is presumed to run for %s, want %s", got, c.want)
			}
		})
	}
}

// The first start on another boot waits for all of it, a later one for what is left then.
func TestALongGrantIsWaitedForOnce(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.granted(unattended())
	b.rerun(rerun{clock: reading{of: "boot-2", at: time.Minute}})
	b.rerun(rerun{clock: reading{of: "boot-2", at: time.Hour + time.Minute}})
	if got, want := b.leaseOf(id), 7*time.Hour+28_800*time.Millisecond; got != want {
		t.Errorf("presumed to run for %s, want %s", got, want)
	}
}

// A fact of an earlier version says when the lease ends by the wall clock.
func TestALongGrantOfAnEarlierVersion(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.granted(unattended())
	facts, err := step.DecodeFacts(b.m.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	table := step.NewFacts()
	for _, f := range facts {
		if f.Kind == factTask {
			var v map[string]any
			if err := json.Unmarshal(f.Value, &v); err != nil {
				t.Fatal(err)
			}
			delete(v, "grant")
			v["lease_end_ms"] = b.now.Add(-time.Hour).UnixMilli()
			f = step.NewFact(f.Kind, f.Key, v)
		}
		if f.Kind != factGrants {
			table.Apply(f)
		}
	}
	b.m = New(b.m.cfg)
	if err := b.m.Restore(table.Encode()); err != nil {
		t.Fatal(err)
	}
	b.facts = table
	b.do(step.Boot{Incarnation: 2})
	if got, want := b.leaseOf(id), 8*time.Hour+28_800*time.Millisecond; got != want {
		t.Errorf("presumed to run for %s, want %s", got, want)
	}
}

func TestALeaseMadeShorterIsWaitedFor(t *testing.T) {
	long := func(c *Config) { c.Lease, c.LeaseMargin = 10*time.Second, time.Second }
	short := func(c *Config) { c.Lease, c.LeaseMargin = 3*time.Second, 500*time.Millisecond }
	b := newBench(t, long, "a", "b")
	id := b.granted(testJob(1))
	for range 2 { // also over a second restart, which knows the short one only
		b.rerun(rerun{tune: short})
		if got := b.leaseOf(id); got != 11*time.Second {
			t.Fatalf("presumed to run for %s, want 11s", got)
		}
	}
	b.pass(11 * time.Second) // from then on it counts no more
	b.rerun(rerun{tune: short})
	if b.m.covered != 3500*time.Millisecond {
		t.Errorf("presumes %s, want the lease of the configuration", b.m.covered)
	}
}

// What was granted longer before, by another configuration, still stands after a shorter
// grant.
func TestAShorterGrantTakesNothingBack(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.granted(unattended())
	b.rerun(rerun{tune: func(c *Config) { c.LongLease = time.Minute }})
	b.renew("a", id, 1)
	if got, want := b.leaseOf(id), 8*time.Hour+28_800*time.Millisecond; got != want {
		t.Errorf("presumed to run for %s, want %s", got, want)
	}
}

func TestAReservationMadeShorterIsWaitedFor(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.placed(b.reservation(), "a")
	b.renew("a", id, 1)
	b.rerun(rerun{tune: func(c *Config) { c.ReservationLease = 5 * time.Second }})
	if got, want := b.leaseOf(id), time.Minute+500*time.Millisecond; got != want {
		t.Errorf("held for %s, want %s", got, want)
	}
}
