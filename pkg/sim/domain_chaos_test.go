package sim

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/domain"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// drawFar draws a promise that begins in one to ten minutes.
func (w *World) drawFar(t *rapid.T) grid.Job {
	at := w.now().Add(time.Duration(rapid.IntRange(60, 600).Draw(t, "at s")) * time.Second)
	job := reservation(at, 30*time.Second, uint32(rapid.IntRange(1, 2).Draw(t, "count")))
	if rapid.IntRange(0, 3).Draw(t, "kind") == 0 {
		job = wasmJob(1, 20*time.Second)
		job.Spec.Window.At = at
	}
	job.Spec.Need.MilliCPUs = int64(1000 * rapid.IntRange(1, 2).Draw(t, "cores"))
	return job
}

// unrest schedules one thing that goes wrong with a site, or with who is the controller.
func (w *World) unrest(t *rapid.T) {
	at := time.Duration(rapid.IntRange(10, 300).Draw(t, "at s")) * time.Second
	back := at + time.Duration(rapid.IntRange(1, 400).Draw(t, "for s"))*time.Second
	victim := rapid.SampledFrom(w.order).Draw(t, "victim")
	other := rapid.SampledFrom(w.order).Draw(t, "other")
	switch rapid.IntRange(0, 7).Draw(t, "unrest") {
	case 0:
		w.At(at, func() { w.CrashInStep(victim) })
	case 1, 2:
		w.At(at, func() { w.PowerCut(victim) })
	case 3:
		w.At(at, func() { w.Isolate(victim) })
		w.At(back, func() { w.Rejoin(victim) })
		return
	case 4:
		w.At(at, func() { w.appoint(victim) })
		return
	case 5: // two parts, of which both have a controller
		w.At(at, func() { w.Part([]grid.SiteID{victim, other}) })
		w.At(at+15*time.Second, func() { w.appoint(victim) })
		w.At(back, func() { w.Join([]grid.SiteID{victim, other}) })
		return
	case 6: // its owner gives less, for a while
		all := w.hosts[victim].spec.Capability
		less := all
		less.Total.MilliCPUs = 1000 * int64(rapid.IntRange(1, 2).Draw(t, "cores"))
		w.At(at, func() { w.Input(victim, step.CapacityChanged{Capability: less}) })
		w.At(back, func() { w.Input(victim, step.CapacityChanged{Capability: all}) })
		return
	default:
		w.At(at, func() { w.Silence(victim) })
		w.At(back, func() { w.Unsilence(victim) })
		return
	}
	w.At(back, func() { w.Restart(victim) })
}

// Whatever goes wrong with sites, with the network and with controllers, of which there may be two
// at a time: nothing runs twice, each job comes to an end, each promise is kept on time or said not
// to be, and nothing of it is left.
func TestADomainUnderTroubles(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		net := lan()
		net.Loss = rapid.SampledFrom([]float64{0, 0, .05, .2}).Draw(rt, "loss")
		net.Duplicate = rapid.Float64Range(0, .3).Draw(rt, "duplicate")
		net.Reorder = rapid.Float64Range(0, .3).Draw(rt, "reorder")
		w := New(Config{
			Seed: rapid.Uint64().Draw(rt, "seed"), Sites: fleet(5), Network: net, CheckFacts: true,
			CheckEvery: 29, Controllers: []grid.SiteID{"s1", "s2", "s3", "s4"},
			Domain: func(c *domain.Config) { c.Slot = 20 * time.Second },
		})
		_ = w.Run(time.Second)
		jobs := make(map[grid.JobID]grid.SiteID)
		for range rapid.IntRange(2, 8).Draw(rt, "jobs") {
			by := rapid.SampledFrom([]grid.SiteID{"s0", "s2"}).Draw(rt, "by")
			if id, err := w.Submit(by, w.drawFar(rt)); err == nil {
				jobs[id] = by
			}
			_ = w.Run(w.elapsed + time.Second)
		}
		for range rapid.IntRange(0, 4).Draw(rt, "troubles") {
			w.unrest(rt)
		}
		w.At(700*time.Second, w.healAll)
		w.recoverAt(701 * time.Second)
		_ = w.Run(702 * time.Second)
		for id, by := range jobs {
			if !w.runUntil(40*time.Minute, func() bool { return w.ended(by, id) }) {
				s, _ := w.Broker(by).Job(id)
				rt.Fatalf("not ended: %v, %+v", w.err(), s.Tasks)
			}
		}
		if n := w.Trace().overlaps(); n != 0 {
			rt.Errorf("%d pairs of attempts overlap", n)
		}
		_ = w.Run(w.elapsed + 5*time.Minute)
		if err := w.err(); err != nil {
			rt.Error(err)
		}
		for _, s := range w.order {
			if n := len(w.Site(s).Status().Attempts); n > 0 {
				rt.Errorf("%s still has %d attempts", s, n)
			}
		}
	})
}
