package hostinfo

import (
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

func nominal() grid.Capability {
	return grid.Capability{
		Total:      grid.Resources{MilliCPUs: 3000, MemoryBytes: 8000, DiskBytes: 5000, MFLOPS: 6000},
		CoreMFLOPS: 2000,
	}
}

func TestLeft(t *testing.T) {
	quiet := Load{
		Cores: 4, Others: yield.Measured(.2), Reserve: .25, Floor: .25, FreeMemory: 9000, FreeDisk: 9000,
	}
	for name, tt := range map[string]struct {
		change func(*Load)
		total  grid.Resources
		core   int64
	}{
		"quiet": {func(*Load) {}, nominal().Total, 2000},
		"nothing known": {
			func(l *Load) { *l = Load{Cores: 4, FreeMemory: -1, FreeDisk: -1} }, nominal().Total, 2000,
		},
		"in the reserve": {func(l *Load) { l.Others = yield.Measured(.75) }, nominal().Total, 2000},
		"two cores taken": {
			func(l *Load) { l.Others = yield.Measured(2) },
			grid.Resources{MilliCPUs: 1750, MemoryBytes: 8000, DiskBytes: 5000, MFLOPS: 3500},
			2000,
		},
		"half is stolen": {
			func(l *Load) { l.Others, l.Stolen = yield.Measured(2), yield.Measured(2) },
			grid.Resources{MilliCPUs: 1750, MemoryBytes: 8000, DiskBytes: 5000, MFLOPS: 3500},
			1000,
		},
		"shared fairly": {
			func(l *Load) { l.Others, l.Fair = yield.Measured(3), true },
			grid.Resources{MilliCPUs: 3000, MemoryBytes: 8000, DiskBytes: 5000, MFLOPS: 4000},
			2000,
		},
		"room for all": {
			func(l *Load) { l.Others, l.Fair = yield.Measured(1), true }, nominal().Total, 2000,
		},
		"all taken": {
			func(l *Load) { l.Others = yield.Measured(9) },
			grid.Resources{MemoryBytes: 8000, DiskBytes: 5000, MFLOPS: 1},
			2000,
		},
		"little memory": {
			func(l *Load) { l.FreeMemory = 1000 },
			grid.Resources{MilliCPUs: 3000, MemoryBytes: 1000, DiskBytes: 5000, MFLOPS: 6000},
			2000,
		},
		"no disk": {
			func(l *Load) { l.FreeDisk = 0 },
			grid.Resources{MilliCPUs: 3000, MemoryBytes: 8000, MFLOPS: 6000},
			2000,
		},
		"own jobs' part": {
			func(l *Load) { l.FreeMemory, l.Held.MemoryBytes = 1000, 4000 },
			grid.Resources{MilliCPUs: 3000, MemoryBytes: 5000, DiskBytes: 5000, MFLOPS: 6000},
			2000,
		},
		"held is kept": {
			func(l *Load) { l.Others, l.Held.MilliCPUs = yield.Measured(4), 1000 },
			grid.Resources{MilliCPUs: 1000, MemoryBytes: 8000, DiskBytes: 5000, MFLOPS: 2000},
			2000,
		},
		"nonsense": {func(l *Load) { l.Stolen = yield.Measured(math.NaN()) }, nominal().Total, 1},
	} {
		t.Run(name, func(t *testing.T) {
			l := quiet
			tt.change(&l)
			got := Left(nominal(), l)
			want := nominal()
			want.Total, want.CoreMFLOPS = tt.total, tt.core
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("Left (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnknownSpeedStaysUnknown(t *testing.T) {
	n := nominal()
	n.CoreMFLOPS, n.Total.MFLOPS = 0, 0
	got := Left(n, Load{
		Cores: 4, Others: yield.Measured(2), Stolen: yield.Measured(1), FreeMemory: -1, FreeDisk: -1,
	})
	if got.CoreMFLOPS != 0 || got.Total.MFLOPS != 0 {
		t.Errorf("Left = %+v, want no computation", got)
	}
}

// What is left is within the nominal whatever is measured, and the more others use
// the less it is.
func TestLeftIsWithinTheNominal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := func(name string) int64 { return rapid.Int64Range(0, 1<<43).Draw(t, name) }
		n := grid.Capability{
			Total: grid.Resources{
				MilliCPUs: amount("cpus"), MemoryBytes: amount("memory"), DiskBytes: amount("disk"),
				MFLOPS: amount("mflops"),
			},
			CoreMFLOPS: amount("core"),
		}
		reading := func(name string) yield.Reading {
			return yield.Reading{
				Value: rapid.Float64().Draw(t, name), Known: rapid.Bool().Draw(t, name+" known"),
			}
		}
		l := Load{
			Cores: rapid.Float64Range(.1, 1e4).Draw(t, "cores"), Others: reading("others"),
			Stolen:  reading("stolen"),
			Reserve: rapid.Float64Range(0, 8).Draw(t, "reserve"), FreeMemory: amount("free memory") - 1,
			FreeDisk: amount("free disk") - 1,
			Fair:     rapid.Bool().Draw(t, "fair"),
			Held:     grid.Resources{MilliCPUs: amount("held cpus"), MemoryBytes: amount("held memory")},
		}
		got := Left(n, l)
		if !n.Total.Fits(got.Total) || got.CoreMFLOPS > n.CoreMFLOPS || got.Validate() != nil {
			t.Fatalf("Left = %+v of %+v: %v", got, n, got.Validate())
		}
		if !got.Total.Fits(l.Held.Min(n.Total)) {
			t.Fatalf("Left = %+v, less than is held: %+v", got.Total, l.Held)
		}
		more := l
		more.Others = yield.Measured(l.Others.Value + 1)
		if l.Others.Known && !got.Total.Fits(Left(n, more).Total) {
			t.Fatalf("others use more and leave more")
		}
	})
}

func TestDiffers(t *testing.T) {
	at := func(cpus, core int64) grid.Capability {
		c := nominal()
		c.Total.MilliCPUs, c.CoreMFLOPS = cpus, core
		return c
	}
	for name, tt := range map[string]struct {
		told, now grid.Capability
		want      bool
	}{
		"the same":        {at(3000, 2000), at(3000, 2000), false},
		"a little less":   {at(3000, 2000), at(2710, 1810), false},
		"less":            {at(3000, 2000), at(2690, 2000), true},
		"slower":          {at(3000, 2000), at(3000, 1790), true},
		"a little more":   {at(2000, 2000), at(2290, 2000), false},
		"more":            {at(2000, 2000), at(2310, 2000), true},
		"all is back":     {at(2900, 2000), at(3000, 2000), true},
		"the speed, too":  {at(3000, 1990), at(3000, 2000), true},
		"nothing is left": {at(200, 2000), at(0, 2000), false},
	} {
		if got := Differs(nominal(), tt.told, tt.now); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
}

// TestCost looks at the real machine. With the watcher of internal/owner, which
// has a test of its own, all looking is to cost less than a thousandth of a
// processor; this part of it gets a tenth of that.
func TestCost(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began, told := threadTime()
	if !told {
		t.Skip("this system does not tell the processor time of a thread")
	}
	dir := t.TempDir()
	const looks = 200
	const every = 10 * time.Second // owner.look's default
	for range looks {
		room, err := ProbeRoom(t.Context(), dir)
		if err != nil {
			t.Skip(err)
		}
		left := Left(nominal(), Load{
			Cores: 4, Others: yield.Measured(1), FreeMemory: room.FreeMemory, FreeDisk: room.FreeDiskBytes,
		})
		Differs(nominal(), nominal(), left)
	}
	now, _ := threadTime()
	each := (now - began) / looks
	share := each.Seconds() / every.Seconds()
	t.Logf("a look takes %s of processor time: %.5f %% of one processor", each, 100*share)
	if share > .0001 {
		t.Errorf("looking costs %.4f %% of a processor, want at most 0.01 %%", 100*share)
	}
}
