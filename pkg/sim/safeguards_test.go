package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/site"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// safeguard is one of those that keep jobs from being lost, doubled or stuck. What switches it
// off is a field of this package's or of a machine's configuration, which no agent sets.
type safeguard struct {
	name string
	off  func(*Config)
	// play tells a story that needs it, and says since when all is well.
	play func(*trial) (well time.Duration)
	flaw Flaw // that the oracle finds without it
}

func safeguards() []safeguard {
	return []safeguard{
		{
			"fencing", submitters(func(b *broker.Config) { b.NoFencing = true }),
			(*trial).cutOff, flawOverlap,
		},
		{"watchdog", func(c *Config) { c.NoWatchdog = true }, (*trial).cutOff, flawOverlap},
		{
			"margin", submitters(func(b *broker.Config) { b.LeaseMargin = 1 }),
			(*trial).cutOffAndSlow, flawOverlap,
		},
		{
			"boot binding", submitters(func(b *broker.Config) { b.NoBinding = true }),
			(*trial).restartedWhileItRuns, flawOverlap,
		},
		{
			"sync of facts before they are told", func(c *Config) { c.NoSyncFacts = true },
			(*trial).powerCutAmidAJob, flawLost,
		},
		{
			"sync of data before it is acknowledged", func(c *Config) { c.NoSyncData = true },
			(*trial).powerCutAfterAJob, flawOutput,
		},
		{
			"checkpoints held before they count",
			submitters(func(b *broker.Config) { b.NoHolding = true }),
			(*trial).lostWithItsCheckpoints, flawBack,
		},
		{
			"a last checkpoint before a move",
			submitters(func(b *broker.Config) { b.NoLastSave = true }),
			(*trial).movedByItsUser, flawMoved,
		},
		{
			"another site before a move",
			submitters(func(b *broker.Config) { b.NoSeeking = true }),
			(*trial).movedAndNowhereToGo, flawMoved,
		},
		{
			"results compared", submitters(func(b *broker.Config) { b.NoComparing = true }),
			(*trial).givenWrongResults, flawWrong,
		},
		{
			"copies apart", submitters(func(b *broker.Config) { b.NoApart = true }),
			(*trial).givenWrongResults, flawWrong,
		},
		{
			"a lease that is over before a task leaves for the controller",
			submitters(func(b *broker.Config) { b.NoLeaseWait = true }),
			(*trial).cutOffWithAPromise, flawOverlap,
		},
		{
			"submitter's bound", submitters(func(b *broker.Config) { b.NoBounds = true }),
			(*trial).liedTo, flawUnended,
		},
	}
}

// submitters changes the configuration of all submitters.
func submitters(change func(*broker.Config)) func(*Config) {
	return func(c *Config) {
		for i := range c.Sites {
			c.Sites[i].Tune = func(_ *site.Config, b *broker.Config) { change(b) }
		}
	}
}

// cutOff runs a job of eight tasks, one of whose sites is cut off for a while.
func (x *trial) cutOff() time.Duration {
	id := x.submit(wasmJob(8, 60*time.Second))
	_ = x.Run(10 * time.Second)
	cut := x.victim(id)
	x.Isolate(cut)
	x.At(40*time.Second, func() { x.Rejoin(cut) })
	return 40 * time.Second
}

// cutOffAndSlow is cutOff with clocks that are 5 % slow at all other sites: a lease of 3 s lasts
// 150 ms longer there, which the margin covers.
func (x *trial) cutOffAndSlow() time.Duration {
	for _, s := range x.World.order[1:] {
		x.Drift(s, -50_000)
	}
	return x.cutOff()
}

// restartedWhileItRuns restarts the submitter of a task that runs on by a long lease, unseen.
func (x *trial) restartedWhileItRuns() time.Duration {
	job := elsewhere(4 * time.Minute)
	job.Spec.Unattended = grid.UnattendedFinish
	id := x.submit(job)
	_ = x.Run(20 * time.Second)
	cut := x.victim(id)
	x.Isolate(cut)
	x.Crash("s0")
	x.At(22*time.Second, func() { x.Restart("s0") })
	x.At(3*time.Minute, func() { x.Rejoin(cut) })
	return 3 * time.Minute
}

func (x *trial) powerCutAmidAJob() time.Duration {
	x.submit(elsewhere(20 * time.Second))
	_ = x.Run(3 * time.Second)
	return x.powerCut()
}

func (x *trial) powerCutAfterAJob() time.Duration {
	mustEnd(x.t, x.World, time.Minute, "s0", x.submit(elsewhere(2*time.Second)))
	return x.powerCut()
}

// powerCut takes the submitter's power: what was written a moment ago and not synced is gone.
func (x *trial) powerCut() time.Duration {
	x.PowerCut("s0")
	back := x.elapsed + 2*time.Second
	x.At(back, func() { x.Restart("s0") })
	return back
}

// lostWithItsCheckpoints loses a site for good that has saved a task's state twice.
func (x *trial) lostWithItsCheckpoints() time.Duration {
	job := elsewhere(2 * time.Minute)
	job.Spec.Checkpoint.Every = 20 * time.Second
	id := x.submit(job)
	x.At(50*time.Second, func() { x.Crash(x.victim(id)) })
	return 50 * time.Second
}

// movedByItsUser moves a task that has computed for a while since its last checkpoint.
func (x *trial) movedByItsUser() time.Duration {
	job := elsewhere(5 * time.Minute)
	job.Spec.Checkpoint.Every = 100 * time.Second
	id := x.submit(job)
	x.At(90*time.Second, func() { x.move(id) })
	return 90 * time.Second
}

// movedAndNowhereToGo moves a task that fits at one other site, which takes none for a while.
func (x *trial) movedAndNowhereToGo() time.Duration {
	job := elsewhere(5 * time.Minute)
	job.Spec.Need.MilliCPUs, job.Spec.Checkpoint.Every = 5000, 20*time.Second
	id := x.submit(job) // s3 and s4 are large enough
	x.At(30*time.Second, func() {
		x.settled(id)
		for _, s := range x.World.order {
			x.Input(s, step.Pause{Until: x.Clock(s).Add(2 * time.Minute)})
		}
		x.move(id)
	})
	return 150 * time.Second
}

// liedTo gives a site that runs nothing and renews for as long as it may a job with a limit. It
// is to end within that, the submitter's grace and the time that a job may always take.
func (x *trial) liedTo() time.Duration {
	x.Lie("s4", lieHold)
	x.submit(toldJob())
	return toldLimit*11/10 + time.Minute
}

// cutOffWithAPromise cuts a site off that runs a task at a fixed start by a long lease, so that the
// controller takes it for failed.
func (x *trial) cutOffWithAPromise() time.Duration {
	x.appoint("s1")
	_ = x.Run(time.Second)
	job := elsewhere(time.Minute)
	job.Spec.Unattended = grid.UnattendedFinish
	job.Spec.Window.At = x.Clock("s0").Add(2 * time.Minute)
	id := x.submit(job)
	_ = x.Run(10 * time.Second)
	cut := x.victim(id)
	x.Isolate(cut)
	x.At(4*time.Minute, func() { x.Rejoin(cut) })
	return 4 * time.Minute
}

// givenWrongResults runs tasks twice that are to agree, with a site among the nearest whose results
// are all wrong.
func (x *trial) givenWrongResults() time.Duration {
	x.Err("s4", 1, 0)
	job := elsewhere(20 * time.Second)
	job.Count, job.Redundancy = 4, grid.Redundancy{Replicas: 2, Agreement: 2}
	x.submit(job)
	return x.elapsed
}

// Each safeguard is needed: with it the oracle finds nothing, and without it what it is there
// to prevent.
func TestSafeguards(t *testing.T) {
	const seeds = 3
	for _, guard := range safeguards() {
		t.Run(guard.name, func(t *testing.T) {
			found := uint64(0)
			for seed := uint64(1); seed <= seeds; seed++ {
				if got := guard.flaws(t, seed, false); len(got) > 0 {
					t.Errorf("seed %d: found %v with it", seed, got)
				}
				if found == 0 && slices.Contains(guard.flaws(t, seed, true), guard.flaw) {
					found = seed
				}
			}
			if found == 0 {
				t.Errorf("none of %d seeds shows %q without it", seeds, guard.flaw)
			}
			t.Logf("without it seed %d shows: %s", found, guard.flaw)
		})
	}
}

// flaws are those of its story, with the safeguard or without.
func (g safeguard) flaws(t *testing.T, seed uint64, off bool) []Flaw {
	t.Helper()
	cfg := Config{
		Seed: seed, Sites: fleet(5), CheckEvery: 100,
		Saves: func(t grid.Task) bool { return t.Checkpoint.Every > 0 },
	}
	if off {
		g.off(&cfg)
	}
	x := newTrial(t, cfg)
	return x.flaws(g.play(x))
}
