package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// arrivals moves bytes from the first site to the second at given times, in seconds, and tells
// when they have come, in the order of the transfers.
func arrivals(t *testing.T, sharing Sharing, bytes []int64, at []float64) []float64 {
	t.Helper()
	rates := [][]float64{{8e6, 8}, {8, 8e6}} // a byte a second
	w := New(Config{Seed: 1, Sites: fleet(2), Network: Network{Rates: rates, Sharing: sharing}})
	came := make([]float64, len(bytes))
	for i := range bytes {
		w.At(time.Duration(at[i]*float64(time.Second)), func() {
			w.hosts["s1"].transfer(bytes[i], "s0", func() { came[i] = w.elapsed.Seconds() })
		})
	}
	if err := w.Run(time.Hour); err != nil {
		t.Fatal(err)
	}
	for i := range came {
		came[i] = float64(int64(came[i]*1e6+.5)) / 1e6 // to a microsecond
	}
	return came
}

// Three transfers on one way: alone each takes as many seconds as it has bytes.
func TestWaysAreShared(t *testing.T) {
	bytes, at := []int64{10, 10, 1}, []float64{0, 4, 4}
	for sharing, want := range map[Sharing][]float64{
		SharingNone:  {10, 14, 5},
		SharingTurns: {10, 20, 21},
		// 6, 10 and 1 left at 4; by thirds until 7: 5, 9; by halves until 17: 4 left.
		SharingFair: {17, 21, 7},
	} {
		if got := arrivals(t, sharing, bytes, at); !slices.Equal(got, want) {
			t.Errorf("sharing %d: they come at %v, want %v", sharing, got, want)
		}
	}
}

// Each direction, and each pair of sites, is a way of its own; a disk is shared by nobody.
func TestWaysAreApart(t *testing.T) {
	rates := [][]float64{{8, 8, 8}, {8, 8, 8}, {8, 8, 8}}
	w := New(Config{
		Seed: 1, Sites: fleet(3), Network: Network{Rates: rates, Sharing: SharingTurns},
	})
	came := 0
	for _, way := range [][2]grid.SiteID{{"s0", "s1"}, {"s1", "s0"}, {"s0", "s2"}, {"s0", "s0"}} {
		w.hosts[way[1]].transfer(10, way[0], func() { came++ })
		w.hosts[way[1]].transfer(0, way[0], func() { came++ })
	}
	w.hosts["s0"].transfer(10, "s0", func() { came++ })
	if err := w.Run(10*time.Second - 1); err != nil || came != 4 {
		t.Errorf("%d have come before their time, want those without bytes: %v", came, err)
	}
	if err := w.Run(10 * time.Second); err != nil || came != 9 {
		t.Errorf("%d of 9 have come, %v", came, err)
	}
}

// A host that has crashed gets nothing, and the way is free for others.
func TestACrashEndsTransfers(t *testing.T) {
	rates := [][]float64{{8, 8}, {8, 8}}
	w := New(Config{
		Seed: 1, Sites: fleet(2), Network: Network{Rates: rates, Sharing: SharingTurns},
	})
	came := 0
	w.hosts["s1"].transfer(10, "s0", func() { came++ })
	w.At(time.Second, func() { w.Crash("s1") })
	w.At(2*time.Second, func() { w.Restart("s1") })
	if err := w.Run(time.Minute); err != nil || came != 0 {
		t.Errorf("%d have come, %v", came, err)
	}
}

// megabyteASecond is a submitter without capacity of its own and a site, a second after they have
// begun. Data take turns.
func megabyteASecond(t *testing.T) *World {
	t.Helper()
	specs := fleet(2)
	specs[0].Capability.Total.MilliCPUs = 100 // too little for the job
	rates := [][]float64{{8e6, 8e6}, {8e6, 8e6}}
	w := New(Config{
		Seed: 1, Sites: specs, Network: Network{Rates: rates, Sharing: SharingTurns},
	})
	if err := w.Run(time.Second); err != nil {
		t.Fatal(err)
	}
	return w
}

// Jobs stage in over the ways that are given, whatever the sites declare.
func TestStagingTakesTheWaysThatAreGiven(t *testing.T) {
	w := megabyteASecond(t)
	job := wasmJob(1, time.Second)
	job.Spec.Inputs = []grid.Input{{Path: "/in/x", CID: "bin", Bytes: 30e6}} // 30 s
	id := mustSubmit(t, w, "s0", job)
	mustEnd(t, w, 2*time.Minute, "s0", id)
	first := w.Trace().Intervals[0]
	if first.From < 31*time.Second || first.From > 34*time.Second {
		t.Errorf("it began at %s, want after 31 MB", first.From)
	}
}

// Tasks that want the same input at the same time wait for one transfer; and what has come stays,
// although the attempt that wanted it was stopped.
func TestAnInputIsMovedOnce(t *testing.T) {
	w := megabyteASecond(t)
	job := wasmJob(3, time.Second)
	job.Spec.Inputs = []grid.Input{{Path: "/in/x", CID: "bin", Bytes: 20e6}} // 20 s
	id := mustSubmit(t, w, "s0", job)
	w.At(10*time.Second, func() {
		if err := w.Cancel("s0", id); err != nil {
			t.Error(err)
		}
	})
	w.At(12*time.Second, func() { id = mustSubmit(t, w, "s0", job) })
	if err := w.Run(12 * time.Second); err != nil {
		t.Fatal(err)
	}
	mustEnd(t, w, time.Minute, "s0", id)
	for _, ran := range w.Trace().Intervals {
		if ran.From < 22*time.Second || ran.From > 25*time.Second {
			t.Errorf("a task began at %s, want after the 21 MB that were on their way", ran.From)
		}
	}
}
