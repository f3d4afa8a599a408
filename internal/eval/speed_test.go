package eval

import (
	"testing"
)

// BenchmarkEvents plays MRS of thesis-1 with its 16 sites and some 1,400 jobs, and reports how many
// events a second of one core has: messages, timers, transfers and runs of the product's machines.
func BenchmarkEvents(b *testing.B) {
	const seed = 1
	source, err := OpenExperiment("thesis-1")
	if err != nil {
		b.Fatal(err)
	}
	compare, err := source.Compare()
	if err != nil {
		b.Fatal(err)
	}
	e := compare.Experiment
	d := drawn{grid: drawGrid(e.Grid, seed), speeds: drawSpeeds(e.Grid, seed)}
	d.jobs = drawJobs(e.Jobs, e.Grid, capacity(e.Grid, d.grid, d.speeds), seed)
	events := 0
	for b.Loop() {
		for _, s := range e.Strategies {
			if s.Name != "MRS" {
				continue
			}
			r := newMeshRun(e, s, d, seed)
			if err := r.play(b.Context(), e); err != nil {
				b.Fatal(err)
			}
			events += r.world.Events()
		}
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
}
