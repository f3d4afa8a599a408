package play

import (
	"context"
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/sim"
	"github.com/mrsmesh/mrsmesh/pkg/site"
)

// again is a simulation of what was observed.
type again struct {
	o      *Observed
	w      *sim.World
	ids    []grid.JobID // of the jobs, here
	places map[grid.JobID]int
	open   int
	stones milestones
	err    error
}

// Simulate lets the same machines with the same configurations have the same jobs at the same
// times in the simulator. Each task runs as long as it did; everything else takes as long as was
// measured, drawn by the seed. When jobs are placed, where, and when they end is the simulation's
// own. It stops when ctx is done, and when jobs have not ended after ten times the time that they
// took.
func (o *Observed) Simulate(ctx context.Context, seed uint64) ([]Course, error) {
	a := &again{
		o: o, ids: make([]grid.JobID, len(o.jobs)), places: make(map[grid.JobID]int),
		open: len(o.jobs),
	}
	a.w = sim.New(a.config(seed))
	for _, in := range o.outside {
		tell := a.w.Input
		if in.broker {
			tell = a.w.InputSubmitter
		}
		a.w.At(in.at, func() { tell(in.site, in.in) })
	}
	for i, j := range o.jobs {
		a.w.At(j.at, func() { a.submit(i, j) })
	}
	const slowest, pieces = 10, 20
	last := lastEnd(o.Courses)
	for a.open > 0 && a.err == nil {
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case a.w.Elapsed() > slowest*last:
			return nil, fmt.Errorf("%d of %d jobs have not ended after %s",
				a.open, len(o.jobs), a.w.Elapsed())
		}
		if err := a.w.Run(a.w.Elapsed() + last/pieces + time.Second); err != nil {
			return nil, err
		}
	}
	return a.stones.courses(o, a.ids), a.err
}

func (a *again) config(seed uint64) sim.Config {
	const never, instantly = 1 << 30, 1e18
	c := sim.Config{
		Seed: seed, Fast: true, CheckEvery: never, Run: a.run, Watch: a.see,
		Lags: a.o.Lags.lags(a.now),
	}
	for _, s := range a.o.sites {
		c.Sites = append(c.Sites, sim.SiteSpec{
			ID: s.id, Capability: s.site.Capability,
			Tune: func(of *site.Config, by *broker.Config) { *of, *by = s.site, s.broker },
		})
	}
	for range c.Sites { // data is on its way for as long as was measured
		row := make([]float64, len(c.Sites))
		for i := range row {
			row[i] = instantly
		}
		c.Network.Rates = append(c.Network.Rates, row)
	}
	return c
}

// now is 0 while the world is made.
func (a *again) now() time.Duration {
	if a.w == nil {
		return 0
	}
	return a.w.Elapsed()
}

func (a *again) submit(i int, j observedJob) {
	do := a.w.Submit
	if j.in.NoWait {
		do = a.w.SubmitNow
	}
	id, err := do(j.by, j.in.Job)
	if err != nil && a.err == nil {
		a.err = fmt.Errorf("submit %s: %w", j.in.Job.Spec.Name, err)
	}
	a.ids[i], a.places[id] = id, i
}

// run lets a task do what it did.
func (a *again) run(
	task grid.Task, estimate time.Duration, _ sim.SiteSpec,
) (time.Duration, grid.Exit) {
	was := a.o.jobs[a.places[task.ID.Job]].id
	end, known := a.o.ends[grid.TaskID{Job: was, Index: task.ID.Index}]
	if !known {
		return estimate, grid.Exit{Cause: grid.CauseExited}
	}
	return end.ran, end.exit
}

func (a *again) see(s sim.Sight) {
	if s.Kind != sim.SightReported {
		return
	}
	a.stones.note(s.Site, s.Broker, s.At, s.Report)
	if s.Broker && s.Report.Event == eventEnded {
		a.open--
	}
}
