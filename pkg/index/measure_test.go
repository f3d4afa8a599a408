package index

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const gib = 1 << 30

// need is a task for one core at 1 GFLOP/s with one input of 125 MB.
func need() grid.Requirement {
	return grid.Requirement{
		Kind:    grid.KindWasm,
		Need:    grid.Resources{MilliCPUs: 1000, MemoryBytes: gib, DiskBytes: gib, MFLOPS: 1000},
		Runtime: 100 * time.Second,
		Sources: []grid.DataSource{
			{Bytes: 125_000_000, UploadBps: 100_000_000, PotentialBps: 400_000_000},
		},
		Weights: grid.DefaultWeights(),
	}
}

// plenty is a site that meets need with 10 s of transfer.
func plenty() Site {
	total := grid.Resources{MilliCPUs: 4000, MemoryBytes: 8 * gib, DiskBytes: 8 * gib, MFLOPS: 8000}
	return Site{
		Capability: grid.Capability{
			Total: total, CoreMFLOPS: 2000, OS: "linux",
			Arch: "amd64", Kinds: []grid.WorkKind{grid.KindWasm},
		},
		Free: total, PotentialBps: 400_000_000, Up: 1,
		Sources: []Access{{Bytes: 125_000_000, DownBps: 1_000_000_000, UpBps: 100_000_000}},
	}
}

func TestMeasureThesisMap(t *testing.T) {
	want := grid.Parts{Y: 0.1, Distance: 0.1, StageIn: 10 * time.Second, Run: 100 * time.Second}
	got, _, ok := Measure(need(), plenty())
	if diff := cmp.Diff(want, got); diff != "" || !ok {
		t.Errorf("Measure: %v, -want +got:\n%s", ok, diff)
	}

	site := plenty()
	site.Free.MFLOPS, site.PotentialBps, site.Up = 250, 300_000_000, 0.5
	got, _, ok = Measure(need(), site)
	want = grid.Parts{
		X: math.Hypot(0.75, 0.25), Y: 0.1, Z: 0.5, StageIn: 10 * time.Second, Run: 400 * time.Second,
	}
	want.Distance = math.Sqrt(want.X*want.X + want.Y*want.Y + want.Z*want.Z)
	if !ok || !near(got.X, want.X) || !near(got.Distance, want.Distance) || got.Run != want.Run ||
		got.Z != 0.5 {
		t.Errorf("Measure of a slow site = %+v, %v, want %+v", got, ok, want)
	}
}

func TestMeasureSecondsMap(t *testing.T) {
	req, site := need(), plenty()
	req.Map = grid.MapSeconds
	site.Wait, site.Up = 20*time.Second, 0.9
	got, _, ok := Measure(req, site)
	// One core of 2 GFLOP/s halves the run.
	want := math.Sqrt(70*70 + 10*10 + 8*8)
	if !ok || got.Run != 50*time.Second || !near(got.Distance, want) {
		t.Errorf("Measure = %+v, %v, want a run of 50s and a distance of %v", got, ok, want)
	}
}

func TestMeasureWeights(t *testing.T) {
	req, site := need(), plenty()
	site.Free.MFLOPS, site.PotentialBps = 500, 0
	req.Weights = grid.Weights{C: 4, M: 1, F: 1, P: 0}
	if got, _, _ := Measure(req, site); !near(got.X, 1) {
		t.Errorf("x = %v, want 1: half the computation with weight 4, the potential ignored", got.X)
	}
}

func TestFeasibleTellsNeverFromNotNow(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*grid.Requirement, *Site)
		want   grid.Refusal
	}{
		"kind": {func(r *grid.Requirement, _ *Site) {
			r.Kind = grid.KindCommand
		}, grid.Refusal{Reason: grid.ReasonKind, Never: true}},
		"saving whole": {func(r *grid.Requirement, _ *Site) {
			r.Saves = true
		}, grid.Refusal{Reason: grid.ReasonWhole, Never: true}},
		"os": {func(r *grid.Requirement, _ *Site) {
			r.OS = "plan9"
		}, grid.Refusal{Reason: grid.ReasonPlatform, Never: true}},
		"arch": {func(r *grid.Requirement, _ *Site) {
			r.Arch = "arm64"
		}, grid.Refusal{Reason: grid.ReasonPlatform, Never: true}},
		"cores, never": {
			func(r *grid.Requirement, _ *Site) { r.Need.MilliCPUs = 4001 },
			grid.Refusal{Reason: grid.ReasonCPUs, Never: true, Want: 4001, Have: 4000},
		},
		"memory, not now": {
			func(_ *grid.Requirement, s *Site) { s.Free.MemoryBytes = gib - 1 },
			grid.Refusal{Reason: grid.ReasonMemory, Want: gib, Have: gib - 1},
		},
		"never comes before not now": {
			func(r *grid.Requirement, s *Site) { s.Free.MilliCPUs, r.Need.DiskBytes = 0, 9*gib },
			grid.Refusal{Reason: grid.ReasonDisk, Never: true, Want: 9 * gib, Have: 8 * gib},
		},
		"bandwidth, never": {
			func(r *grid.Requirement, s *Site) { r.Need.NetBps, s.Capability.Total.NetBps = 20e6, 10e6 },
			grid.Refusal{Reason: grid.ReasonBandwidth, Never: true, Want: 20e6, Have: 10e6},
		},
		"bandwidth, not now": {
			func(r *grid.Requirement, s *Site) {
				r.Need.NetBps, s.Capability.Total.NetBps, s.Free.NetBps = 20e6, 20e6, 5e6
			},
			grid.Refusal{Reason: grid.ReasonBandwidth, Want: 20e6, Have: 5e6},
		},
		"bandwidth, unknown": {
			func(r *grid.Requirement, _ *Site) { r.Need.NetBps = 20e6 },
			grid.Refusal{Reason: grid.ReasonBandwidth, Want: 20e6},
		},
		"computation, not now": {
			func(_ *grid.Requirement, s *Site) { s.Free.MFLOPS = 0 },
			grid.Refusal{Reason: grid.ReasonComputation, Want: 1000},
		},
		"computation, never": {
			func(_ *grid.Requirement, s *Site) { s.Capability.Total.MFLOPS = 0 },
			grid.Refusal{Reason: grid.ReasonComputation, Never: true, Want: 1000},
		},
		"more promised than there is": {
			func(_ *grid.Requirement, s *Site) { s.Free.MemoryBytes = -gib },
			grid.Refusal{Reason: grid.ReasonMemory, Want: gib},
		},
		"data": {
			func(_ *grid.Requirement, s *Site) { s.Sources[0].Unreachable = true },
			grid.Refusal{Reason: grid.ReasonData, Want: 125_000_000},
		},
	} {
		req, site := need(), plenty()
		c.change(&req, &site)
		_, got, ok := Measure(req, site)
		if got != c.want || ok {
			t.Errorf("%s: Measure = %+v, %v, want %+v", name, got, ok, c.want)
		}
		if err := got.Validate(); err != nil {
			t.Errorf("%s: the refusal is invalid: %v", name, err)
		}
	}
}

func TestFeasibleIsLenientWhereItMust(t *testing.T) {
	req, site := need(), plenty()
	req.Need = grid.Resources{} // nothing asked for is always there
	site.Free = grid.Resources{MilliCPUs: -1, MemoryBytes: -1, DiskBytes: -1, MFLOPS: -1, NetBps: -1}
	site.Sources[0].Unreachable, site.Sources[0].Local = true, true // even if other sites have it
	if refusal, ok := Feasible(req, site); !ok {
		t.Errorf("refused: %s", refusal.Explain())
	}
	site.Capability.Total.MFLOPS = 1 // slow is not never
	req.Need.MFLOPS, site.Free.MFLOPS = 1000, 1
	if refusal, ok := Feasible(req, site); !ok {
		t.Errorf("refused: %s", refusal.Explain())
	}
}

func TestTaskMFLOPS(t *testing.T) {
	for _, c := range []struct{ milliCPUs, free, core, want int64 }{
		{1000, 8000, 2000, 2000},
		{1001, 8000, 2000, 4000}, // a part of a core counts as one
		{0, 8000, 2000, 2000},    // no core asked for: one thread
		{4000, 3000, 2000, 3000}, // not more than is free
		{1000, 8000, 0, 8000},    // unknown speed
		{1000, -5, 2000, 0},
		{2000, 8000, 1, 2}, // known, however slow
		{2000, 0, 1, 0},
		{1 << 43, 1 << 43, 1 << 43, 1 << 43}, // no overflow
	} {
		got := TaskMFLOPS(grid.Resources{MilliCPUs: c.milliCPUs}, grid.Resources{MFLOPS: c.free}, c.core)
		if got != c.want {
			t.Errorf("TaskMFLOPS(%d cores/1000, %d free, %d a core) = %d, want %d",
				c.milliCPUs, c.free, c.core, got, c.want)
		}
	}
}

func TestRunTime(t *testing.T) {
	for _, c := range []struct {
		kind      grid.MapKind
		g, mflops int64
		want      time.Duration
	}{
		{grid.MapThesis, 1000, 1000, 100 * time.Second},
		{grid.MapThesis, 1000, 4000, 100 * time.Second},
		{grid.MapSeconds, 1000, 4000, 25 * time.Second},
		{grid.MapThesis, 1000, 500, 200 * time.Second},
		{grid.MapSeconds, 1000, 500, 200 * time.Second},
		{grid.MapSeconds, 0, 500, 100 * time.Second},
		{grid.MapSeconds, 1000, 0, maxSpan},
		{grid.MapSeconds, 1 << 43, 1, maxSpan},
		{grid.MapSeconds, 1, 1 << 43, 1},
	} {
		req := need()
		req.Map, req.Need.MFLOPS = c.kind, c.g
		if got := RunTime(req, c.mflops); got != c.want {
			t.Errorf("RunTime(%v map, %d required, %d given) = %v, want %v",
				c.kind, c.g, c.mflops, got, c.want)
		}
	}
}

func TestStageIn(t *testing.T) {
	for name, c := range map[string]struct {
		access Access
		disk   int64
		want   time.Duration
	}{
		"holder is slower":   {Access{Bytes: 125, DownBps: 2000, UpBps: 1000}, 0, time.Second},
		"own link is slower": {Access{Bytes: 125, DownBps: 500, UpBps: 1000}, 0, 2 * time.Second},
		"holder unknown":     {Access{Bytes: 125, DownBps: 500}, 0, 2 * time.Second},
		"own link unknown":   {Access{Bytes: 125, UpBps: 1000}, 0, time.Second},
		"both unknown":       {Access{Bytes: 12_500_000}, 0, time.Second},
		"local, no disk":     {Access{Bytes: 125, Local: true, DownBps: 1}, 0, 0},
		"local, known disk":  {Access{Bytes: 125, Local: true, DownBps: 1}, 100, 10 * time.Second},
		"nothing":            {Access{}, 0, 0},
	} {
		site := plenty()
		site.Sources, site.Capability.DiskBps = []Access{c.access}, c.disk
		if got, _, ok := Measure(need(), site); got.StageIn != c.want || !ok {
			t.Errorf("%s: stage-in = %v, %v, want %v", name, got.StageIn, ok, c.want)
		}
	}
}

func randomCase(t *rapid.T) (grid.Requirement, Site) {
	resources := func(name string, low int64) grid.Resources {
		v := rapid.Int64Range(low, 1<<43)
		return grid.Resources{
			MilliCPUs: v.Draw(t, name+" cpus"), MemoryBytes: v.Draw(t, name+" memory"),
			DiskBytes: v.Draw(t, name+" disk"), MFLOPS: v.Draw(t, name+" mflops"),
			NetBps: v.Draw(t, name+" bandwidth"),
		}
	}
	rate := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(1, 1<<53))
	k := rapid.Float64Range(0, 1e9)
	req := grid.Requirement{
		Kind: grid.KindWasm, Need: resources("need", 0),
		Runtime: time.Duration(rapid.Int64Range(1, int64(grid.MaxRuntime)).Draw(t, "runtime")),
		Map:     rapid.SampledFrom([]grid.MapKind{grid.MapThesis, grid.MapSeconds}).Draw(t, "map"),
		Weights: grid.Weights{C: k.Draw(t, "C"), M: k.Draw(t, "M"), F: k.Draw(t, "F"), P: k.Draw(t, "P")},
		Sources: []grid.DataSource{{Bytes: rate.Draw(t, "size"), PotentialBps: rate.Draw(t, "P_src")}},
	}
	site := Site{
		Capability: grid.Capability{
			Total:      resources("total", 0),
			CoreMFLOPS: rate.Draw(t, "core"), DiskBps: rate.Draw(t, "disk rate"),
			Kinds: []grid.WorkKind{grid.KindWasm},
		},
		Free: resources("free", -(1 << 43)), PotentialBps: rate.Draw(t, "P_i"),
		Up:   rapid.Float64().Draw(t, "up"),
		Wait: time.Duration(rapid.Int64().Draw(t, "wait")),
		Sources: []Access{{
			Bytes: req.Sources[0].Bytes, Local: rapid.Bool().Draw(t, "local"),
			DownBps: rate.Draw(t, "down"), UpBps: rate.Draw(t, "upload"),
		}},
	}
	return req, site
}

// A site's answer always passes the receiver's validation, whatever numbers went
// into it: nothing infinite, nothing negative, no overflow.
func TestMeasureAlwaysMakesAValidAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req, site := randomCase(t)
		parts, refusal, ok := Measure(req, site)
		if ok {
			if err := parts.Validate(); err != nil {
				t.Fatalf("parts %+v: %v", parts, err)
			}
		} else if err := refusal.Validate(); err != nil {
			t.Fatalf("refusal %+v: %v", refusal, err)
		}
	})
}

// A better site is never further away.
func TestMeasureIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req, site := randomCase(t)
		site.Free = req.Need.Add(grid.Resources{MFLOPS: 1})
		site.Free.MFLOPS -= rapid.Int64Range(0, req.Need.MFLOPS).Draw(t, "missing")
		site.Capability.Total = site.Free
		site.Up = rapid.Float64Range(0, 1).Draw(t, "probability")
		site.Wait = max(site.Wait, 0)
		before, refusal, ok := Measure(req, site)
		if !ok {
			t.Fatalf("refused: %+v", refusal)
		}
		better := site
		better.Free.MFLOPS += 1 << 20
		better.PotentialBps += 1 << 20
		better.Up += (1 - better.Up) / 2
		better.Wait /= 2
		after, _, ok := Measure(req, better)
		if !ok || after.Distance > before.Distance*(1+1e-9) {
			t.Errorf("%+v became %+v, %v", before, after, ok)
		}
	})
}

func TestMeasureDoesNotAllocate(t *testing.T) {
	for _, kind := range []grid.MapKind{grid.MapThesis, grid.MapSeconds} {
		req, site := need(), plenty()
		req.Map = kind
		var sum float64
		if n := testing.AllocsPerRun(100, func() {
			parts, _, _ := Measure(req, site)
			sum += parts.Distance
		}); n != 0 {
			t.Errorf("%v map: %v allocations, want 0", kind, n)
		}
	}
}

func BenchmarkMeasure(b *testing.B) {
	for _, kind := range []grid.MapKind{grid.MapThesis, grid.MapSeconds} {
		b.Run(kind.String(), func(b *testing.B) {
			req, site := need(), plenty()
			req.Map = kind
			b.ReportAllocs()
			for b.Loop() {
				if _, _, ok := Measure(req, site); !ok {
					b.Fatal("refused")
				}
			}
		})
	}
}
