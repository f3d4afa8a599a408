package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/site"
)

// BenchmarkThousandSites is the time for one job of one task among a thousand sites that
// all answer: announcement, a thousand offers, award, run, end. The sites know their
// submitter only, so that it is the job that is measured and not how they all meet.
func BenchmarkThousandSites(b *testing.B) {
	for _, n := range []int{125, 250, 500, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := star(b, n)
			for b.Loop() {
				id, err := w.Submit("s0", wasmJob(1, time.Second))
				if err != nil {
					b.Fatal(err)
				}
				for limit := w.elapsed + time.Minute; !w.ended("s0", id); {
					if w.Run(w.elapsed+200*time.Millisecond) != nil || w.elapsed > limit {
						b.Fatalf("the job has not ended: %v", w.failure)
					}
				}
			}
		})
	}
}

// star is a mesh in which s0 and each other site know each other.
func star(b *testing.B, n int) *World {
	b.Helper()
	const never = 1 << 30
	w := New(Config{Seed: 1, Network: lan(), CheckEvery: never})
	for i, spec := range fleet(n) {
		spec.Capability.Total = grid.Resources{
			MilliCPUs: 2000, MemoryBytes: 4 << 30, DiskBytes: 64 << 30, MFLOPS: 8000 + int64(i),
		}
		spec.Tune = func(_ *site.Config, c *broker.Config) { c.MaxJobs = never }
		w.hosts[spec.ID] = newHost(w, spec)
		w.hosts[spec.ID].place = i
		w.order = append(w.order, spec.ID)
		w.hosts[spec.ID].start()
	}
	w.meet(w.hosts["s0"])
	if err := w.Run(time.Second); err != nil {
		b.Fatal(err)
	}
	return w
}
