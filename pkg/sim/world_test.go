package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/site"
)

// fleet makes n sites of growing size; s0 has capacity for two tasks.
func fleet(n int) []SiteSpec {
	var specs []SiteSpec
	for i := range n {
		specs = append(specs, SiteSpec{
			ID: grid.SiteID(fmt.Sprintf("s%d", i)),
			Capability: grid.Capability{
				Total: grid.Resources{
					MilliCPUs: int64(2+i) * 1000, MemoryBytes: int64(4+i) << 30, DiskBytes: 64 << 30,
					MFLOPS: int64(2+i) * 4000,
				},
				CoreMFLOPS: 4000, DownBps: 100_000_000, UpBps: int64(20+10*i) * 1_000_000,
				OS: "linux", Arch: "amd64", Kinds: []grid.WorkKind{grid.KindWasm},
			},
		})
	}
	return specs
}

func lan() Network {
	return Network{
		Latency: 2 * time.Millisecond, Jitter: time.Millisecond, Detect: 5 * time.Millisecond,
	}
}

func wasmJob(count uint32, run time.Duration) grid.Job {
	return grid.Job{
		Spec: grid.Spec{
			Name: "sim", Kind: grid.KindWasm,
			Module:  grid.Input{Path: "/module.wasm", CID: "bmodule", Bytes: 1 << 20},
			Need:    grid.Resources{MilliCPUs: 1000, MemoryBytes: 1 << 28, DiskBytes: 1 << 20, MFLOPS: 4000},
			Runtime: run, Weights: grid.DefaultWeights(),
		},
		Count: count, TTL: time.Second,
	}
}

func (w *World) ended(at grid.SiteID, id grid.JobID) bool {
	b := w.Broker(at)
	if b == nil {
		return false
	}
	s, ok := b.Job(id)
	return ok && !s.Ended.IsZero()
}

func mustSubmit(t *testing.T, w *World, at grid.SiteID, job grid.Job) grid.JobID {
	t.Helper()
	id, err := w.Submit(at, job)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func mustEnd(
	t *testing.T, w *World, limit time.Duration, at grid.SiteID, id grid.JobID,
) broker.JobState {
	t.Helper()
	if !w.runUntil(limit, func() bool { return w.ended(at, id) }) {
		s, _ := w.Broker(at).Job(id)
		for _, task := range s.Tasks {
			t.Logf("%s %s at %s, token %d, tries %+v",
				task.ID, task.Phase, task.Site, task.Token, task.Tries)
		}
		t.Fatalf("job %s has not ended at %s: %v, counts %v", id, w.now(), w.err(), w.Trace().Brokers)
	}
	s, _ := w.Broker(at).Job(id)
	return s
}

func wantAllDone(t *testing.T, s broker.JobState) {
	t.Helper()
	for _, task := range s.Tasks {
		if task.Phase != grid.PhaseDone {
			t.Errorf("task %s ended %s: %+v", task.ID, task.Phase, task.Exit)
		}
	}
}

func TestOneJob(t *testing.T) {
	w := New(Config{Seed: 1, Sites: fleet(5), Network: lan(), CheckFacts: true})
	if err := w.Run(time.Second); err != nil {
		t.Fatal(err)
	}
	id := mustSubmit(t, w, "s0", wasmJob(1, 10*time.Second))
	wantAllDone(t, mustEnd(t, w, time.Minute, "s0", id))
}

func TestArrayFillsTheFleetAndEnds(t *testing.T) {
	w := New(Config{Seed: 2, Sites: fleet(5), Network: lan(), CheckFacts: true})
	_ = w.Run(time.Second)
	id := mustSubmit(t, w, "s0", wasmJob(100, 10*time.Second))
	s := mustEnd(t, w, 10*time.Minute, "s0", id)
	wantAllDone(t, s)
	// 20 slots, 100 tasks of 10 s: five waves.
	if took := s.Ended.Sub(s.Submitted); took > 60*time.Second {
		t.Errorf("took %s, want little more than 50 s", took)
	}
	if n := w.Trace().overlaps(); n != 0 {
		t.Errorf("%d pairs of attempts overlap", n)
	}
}

func TestNearestOfEightThousandTimes(t *testing.T) {
	sites := fleet(8)
	for i := range sites {
		sites[i].Tune = func(_ *site.Config, b *broker.Config) { b.Requote = false }
	}
	w := New(Config{Seed: 3, Sites: sites, Network: lan()})
	_ = w.Run(time.Second)
	const jobs = 1000
	for n := range jobs {
		at := grid.SiteID(fmt.Sprintf("s%d", n%8))
		id := mustSubmit(t, w, at, wasmJob(1, time.Second))
		s := mustEnd(t, w, w.elapsed+time.Minute, at, id)
		best := s.Answers[0]
		if best.Offer == nil || len(s.Answers) != 8 {
			t.Fatalf("job %d: %d answers, the first %+v", n, len(s.Answers), best)
		}
		got := s.Tasks[0]
		if got.Distance-best.Offer.Parts.Distance > 1e-9 {
			t.Errorf("job %d went to %s at %v; %s offered %v",
				n, got.Site, got.Distance, best.Site, best.Offer.Parts.Distance)
		}
	}
}

func TestKilledSiteLosesNothing(t *testing.T) {
	for seed := range uint64(6) {
		w := New(Config{Seed: seed, Sites: fleet(5), Network: lan(), CheckFacts: true})
		_ = w.Run(time.Second)
		id := mustSubmit(t, w, "s0", wasmJob(40, 20*time.Second))
		w.At(10*time.Second, func() { w.Crash("s3") })
		w.At(60*time.Second, func() { w.Restart("s3") })
		wantAllDone(t, mustEnd(t, w, 20*time.Minute, "s0", id))
		if n := w.Trace().overlaps(); n != 0 {
			t.Errorf("seed %d: %d pairs of attempts overlap", seed, n)
		}
	}
}

func TestKilledSubmitterComesBack(t *testing.T) {
	for seed := range uint64(6) {
		w := New(Config{Seed: seed, Sites: fleet(5), Network: lan(), CheckFacts: true})
		_ = w.Run(time.Second)
		id := mustSubmit(t, w, "s0", wasmJob(40, 20*time.Second))
		w.At(10*time.Second, func() { w.Crash("s0") })
		w.At(time.Duration(12+seed*5)*time.Second, func() { w.Restart("s0") })
		_ = w.Run(w.elapsed + 2*time.Minute)
		wantAllDone(t, mustEnd(t, w, 20*time.Minute, "s0", id))
		if n := w.Trace().overlaps(); n != 0 {
			t.Errorf("seed %d: %d pairs of attempts overlap", seed, n)
		}
	}
}

func TestChaos(t *testing.T) {
	for seed := range uint64(10) {
		net := Network{
			Latency: 20 * time.Millisecond, Jitter: 30 * time.Millisecond, Loss: .1, Duplicate: .1,
			Reorder: .1, Detect: 5 * time.Millisecond,
		}
		w := New(Config{Seed: seed, Sites: fleet(6), Network: net, CheckFacts: true})
		_ = w.Run(time.Second)
		id := mustSubmit(t, w, "s0", wasmJob(30, 15*time.Second))
		for n := range 12 {
			at := time.Duration(5+n*7) * time.Second
			victim := grid.SiteID(fmt.Sprintf("s%d", w.rng.IntN(6)))
			if w.rng.IntN(2) == 0 {
				w.At(at, func() { w.Crash(victim) })
				w.At(at+time.Duration(w.rng.IntN(30))*time.Second, func() { w.Restart(victim) })
			} else {
				w.At(at, func() { w.Isolate(victim) })
				w.At(at+time.Duration(w.rng.IntN(60))*time.Second, w.heal)
			}
		}
		w.At(3*time.Minute, func() {
			w.heal()
			for _, id := range w.order {
				w.Restart(id)
			}
		})
		_ = w.Run(3*time.Minute + time.Second)
		wantAllDone(t, mustEnd(t, w, time.Hour, "s0", id))
		if n := w.Trace().overlaps(); n != 0 {
			t.Errorf("seed %d: %d pairs of attempts overlap", seed, n)
		}
	}
}

func TestSameSeedSameHash(t *testing.T) {
	run := func(seed uint64) uint64 {
		w := New(Config{
			Seed: seed, Sites: fleet(5),
			Network: Network{Latency: 5 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: .05},
		})
		_ = w.Run(time.Second)
		id := mustSubmit(t, w, "s0", wasmJob(30, 5*time.Second))
		w.At(5*time.Second, func() { w.Crash("s2") })
		mustEnd(t, w, 10*time.Minute, "s0", id)
		return w.Hash()
	}
	if a, b := run(7), run(7); a != b {
		t.Errorf("the same seed gave %x and %x", a, b)
	}
	if a, b := run(7), run(8); a == b {
		t.Error("two seeds gave the same events")
	}
}

func TestWithoutTheWatchdogAttemptsOverlap(t *testing.T) {
	n := 0
	for seed := range uint64(5) {
		w := New(Config{Seed: seed, Sites: fleet(5), Network: lan(), NoWatchdog: true})
		_ = w.Run(time.Second)
		id := mustSubmit(t, w, "s0", wasmJob(20, 60*time.Second))
		w.At(10*time.Second, func() { w.Isolate("s4") })
		mustEnd(t, w, 20*time.Minute, "s0", id)
		n += w.Trace().overlaps()
	}
	if n == 0 {
		t.Error("no overlap was seen although nothing enforced the leases: the check is blind")
	}
}

// Sites that are given new tasks all the time keep what they run: nothing is lost or frozen where
// nothing is wrong.
func TestASteadyStreamOfTasksDisturbsNothing(t *testing.T) {
	w := New(Config{Seed: 1, Sites: fleet(3), Network: lan()})
	for range 3 {
		mustSubmit(t, w, "s0", wasmJob(1, time.Minute))
	}
	for n := range 300 {
		w.At(time.Second+time.Duration(n)*200*time.Millisecond, func() {
			mustSubmit(t, w, "s0", wasmJob(1, 300*time.Millisecond))
		})
	}
	if err := w.Run(90 * time.Second); err != nil {
		t.Fatal(err)
	}
	brokers, sites := w.Trace().Brokers, w.Trace().Sites
	if brokers["attempt_lost"] != 0 || sites["frozen"] != 0 {
		t.Errorf("%d attempts were lost, %d frozen", brokers["attempt_lost"], sites["frozen"])
	}
	if done := brokers["task_done"]; done != 303 {
		t.Errorf("%d of 303 tasks are done", done)
	}
}
