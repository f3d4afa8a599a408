package sim

import (
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Task i fails its first i mod 4 runs by itself and may run three times: those that fail three
// times have failed, the others are done, and each has run as often as it had to. No site is blamed
// for a program.
func TestTasksThatFailRunAgainAsOftenAsTheyMay(t *testing.T) {
	for seed := range uint64(5) {
		runs := make(map[uint32]int)
		w := New(Config{
			Seed: seed, Sites: fleet(5), Network: lan(), CheckFacts: true,
			Run: func(task grid.Task, d time.Duration, _ SiteSpec) (time.Duration, grid.Exit) {
				runs[task.ID.Index]++
				exit := grid.Exit{Cause: grid.CauseExited}
				if runs[task.ID.Index] <= int(task.ID.Index%4) {
					exit.Code = 1
				}
				return d, exit
			},
		})
		_ = w.Run(time.Second)
		job := wasmJob(40, 2*time.Second)
		job.Retries = 2
		id := mustSubmit(t, w, "s0", job)
		s := mustEnd(t, w, time.Hour, "s0", id)
		for i, task := range s.Tasks {
			fails := i % 4
			phase, times := grid.PhaseDone, fails+1
			if fails == 3 {
				phase, times = grid.PhaseFailed, 3
			}
			if task.Phase != phase || runs[uint32(i)] != times {
				t.Errorf("seed %d: task %d is %s after %d runs, want %s after %d",
					seed, i, task.Phase, runs[uint32(i)], phase, times)
			}
		}
		for _, m := range w.Broker("s0").Members() {
			if m.Fault.Own != 0 {
				t.Errorf("seed %d: %s has fault index %v", seed, m.Site, m.Fault.Own)
			}
		}
		if n := w.trace.overlaps(); n > 0 {
			t.Errorf("seed %d: %d overlaps", seed, n)
		}
	}
}
