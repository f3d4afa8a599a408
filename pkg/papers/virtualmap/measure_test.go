package virtualmap

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/index"
)

// measured draws a requirement with one source, and a site on which it fits.
func measured(t *rapid.T) (grid.Requirement, index.Site) {
	rate := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(1, 1<<53))
	amount := rapid.Int64Range(1, 1<<43)
	k := rapid.Float64Range(0, 1e9)
	req := grid.Requirement{
		Kind: grid.KindWasm,
		Need: grid.Resources{
			MilliCPUs: 1, MemoryBytes: 1, DiskBytes: 1, MFLOPS: amount.Draw(t, "need") - 1,
		},
		Runtime: time.Duration(rapid.Int64Range(1, int64(grid.MaxRuntime)).Draw(t, "runtime")),
		Map:     grid.MapThesis,
		Weights: grid.Weights{C: k.Draw(t, "C"), M: k.Draw(t, "M"), F: k.Draw(t, "F"), P: k.Draw(t, "P")},
		Sources: []grid.DataSource{{Bytes: rate.Draw(t, "size"), PotentialBps: rate.Draw(t, "P_src")}},
	}
	enough := grid.Resources{MilliCPUs: 9, MemoryBytes: 9, DiskBytes: 9, MFLOPS: 9}
	site := index.Site{
		Capability: grid.Capability{
			Total: enough, CoreMFLOPS: rate.Draw(t, "core"), DiskBps: rate.Draw(t, "disk"),
			Kinds: []grid.WorkKind{grid.KindWasm},
		},
		Free: enough, PotentialBps: rate.Draw(t, "P_i"), Up: rapid.Float64Range(0, 1).Draw(t, "up"),
		Sources: []index.Access{{
			Bytes: req.Sources[0].Bytes, Local: rapid.Bool().Draw(t, "local"),
			DownBps: rate.Draw(t, "down"), UpBps: rate.Draw(t, "upload"),
		}},
	}
	site.Free.MFLOPS = amount.Draw(t, "free")
	return req, site
}

// link returns the rate that pkg/index assumes between two ends; 0 is unknown.
func link(down, up int64) Rate {
	switch {
	case down == 0 && up == 0:
		return KnownRate(index.DefaultLinkBps)
	case down == 0 || up == 0:
		return KnownRate(float64(max(down, up)))
	default:
		return KnownRate(float64(min(down, up)))
	}
}

// What the machines measure on integers agrees with equations (1) and (2).
func TestMeasureAgreesWithTheEquations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req, site := measured(t)
		parts, refusal, ok := index.Measure(req, site)
		if !ok {
			t.Fatalf("refused: %+v", refusal)
		}
		need, src := req.Need.MFLOPS, req.Sources[0]
		given := index.TaskMFLOPS(req.Need, site.Free, site.Capability.CoreMFLOPS)
		potential := src.PotentialBps
		if src.Bytes == 0 { // nothing is to be brought, so that nobody's potential counts
			potential = 0
		}
		x, err := ComputationIndex([]Dimension{
			{float64(given), float64(need), req.Weights.C},
			{float64(site.PotentialBps), float64(potential), req.Weights.P},
		}, ModeWeight, false)
		if err != nil || !near(x, parts.X) {
			t.Errorf("x = %v, want %v (%v)", parts.X, x, err)
		}
		at := site.Sources[0]
		transfer := Transfer{Bytes: float64(src.Bytes), Local: at.Local, Link: link(at.DownBps, at.UpBps)}
		if site.Capability.DiskBps > 0 {
			transfer.Disk = KnownRate(float64(site.Capability.DiskBps))
		}
		y, err := DataIndex(transfer, req.Runtime.Seconds())
		if err != nil || !near(y, parts.Y) {
			t.Errorf("y = %v, want %v (%v)", parts.Y, y, err)
		}
		d, err := index.Distance(x, parts.Y, parts.Z)
		if err != nil || !near(d, parts.Distance) {
			t.Errorf("distance = %v, want %v (%v)", parts.Distance, d, err)
		}
	})
}
