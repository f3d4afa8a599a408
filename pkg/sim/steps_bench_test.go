package sim

import (
	"testing"
	"time"
)

// BenchmarkSteps plays ten minutes of 100 sites that know each other, with a job of ten tasks
// each second, and reports how many steps of machines a second of one core has.
func BenchmarkSteps(b *testing.B) {
	for name, fast := range map[string]bool{"checked": false, "fast": true} {
		b.Run(name, func(b *testing.B) {
			const never = 1 << 30
			steps := 0
			for b.Loop() {
				w := New(Config{Seed: 1, Sites: fleet(100), Network: lan(), CheckEvery: never, Fast: fast})
				sites := w.order
				for n := range 300 {
					w.At(time.Duration(n)*time.Second, func() {
						job := wasmJob(10, 20*time.Second)
						if _, err := w.Submit(sites[n%len(sites)], job); err != nil {
							b.Error(err)
						}
					})
				}
				if err := w.Run(10 * time.Minute); err != nil {
					b.Fatal(err)
				}
				steps += w.steps
			}
			b.ReportMetric(float64(steps)/b.Elapsed().Seconds(), "steps/s")
		})
	}
}
