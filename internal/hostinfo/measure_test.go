package hostinfo

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMeasureCore(t *testing.T) {
	began := time.Now()
	got, err := measureCore(t.Context())
	took := time.Since(began)
	if err != nil {
		t.Fatal(err)
	}
	// From a slow single-board computer to ten times today's fastest core.
	if got.MFLOPS < 10 || got.MFLOPS > 100_000 {
		t.Errorf("MeasureCore = %d MFLOP/s, out of any processor's range", got.MFLOPS)
	}
	if got.Disturbed > got.Runs || got.Steady && got.Runs-got.Disturbed < kernelEnough {
		t.Errorf("MeasureCore = %+v, which does not fit together", got)
	}
	t.Logf("%+v in %s", got, took)
}

// TestFiveRunsAgree is the promise for a quiet machine. Quiet is one on which each
// of five measurements calls itself steady and lost not more than a tenth of its
// runs; elsewhere the spread is printed only.
func TestFiveRunsAgree(t *testing.T) {
	const tries, runs, promise = 2, 5, .10
	for range tries {
		low, high, quiet := 0.0, 0.0, true
		for range runs {
			s, err := measureCore(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			v := float64(s.MFLOPS)
			if low == 0 || v < low {
				low = v
			}
			high = max(high, v)
			if !s.Steady || s.Disturbed*10 > s.Runs {
				quiet = false
			}
		}
		spread := (high - low) / high
		t.Logf("five runs: %.0f to %.0f MFLOP/s, spread %.2f %%, quiet %t", low, high, 100*spread, quiet)
		if quiet && spread <= promise {
			return
		}
		if quiet {
			t.Errorf("five runs on a quiet machine differ by %.1f %%, want at most 10 %%", 100*spread)
			return
		}
		if testing.Short() {
			break
		}
	}
	t.Skip("the machine is not quiet: measurements were disturbed in each try; the spreads are above")
}

func TestMeasureCoreStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got, err := measureCore(ctx)
	if got != (coreSpeed{}) || !errors.Is(err, context.Canceled) {
		t.Errorf("MeasureCore = %+v, %v; want nothing and the context's error", got, err)
	}
}

func TestDisturbedRunsDoNotCount(t *testing.T) {
	if (kernelTimes{wall: time.Second, busy: 990 * time.Millisecond, busyKnown: true}).disturbed() {
		t.Error("a run that had the processor for 99 % of its time counts as disturbed")
	}
	if !(kernelTimes{wall: time.Second, busy: 900 * time.Millisecond, busyKnown: true}).disturbed() {
		t.Error("a run that had the processor for 90 % of its time counts as undisturbed")
	}
	if (kernelTimes{wall: time.Second}).disturbed() {
		t.Error("a run counts as disturbed where the system does not tell")
	}
	many := make([]float64, kernelEnough)
	for i := range many {
		many[i] = 2e9
	}
	apart := append([]float64{4e9}, many...)
	for name, tt := range map[string]struct {
		clean, shared []float64
		want          int64
		steady        bool
	}{
		"undisturbed":         {clean: many, shared: []float64{9e9}, want: 2000, steady: true},
		"too few":             {clean: many[:3], want: 2000},
		"they do not agree":   {clean: apart, want: 4000},
		"all disturbed":       {shared: []float64{1e9, 3e9, 2e9}, want: 3000},
		"slower than a MFLOP": {clean: []float64{10}, want: 1},
		"no run at all":       {want: 1},
	} {
		got, steady := judge(append([]float64(nil), tt.clean...), tt.shared)
		if got != tt.want || steady != tt.steady {
			t.Errorf("%s: %d, steady %t; want %d, %t", name, got, steady, tt.want, tt.steady)
		}
	}
}

func TestMeasureDisk(t *testing.T) {
	dir := t.TempDir()
	began := time.Now()
	bps, err := measureDisk(t.Context(), dir, -1)
	if err != nil {
		t.Fatal(err)
	}
	if bps < 1 || bps > mostBps {
		t.Errorf("MeasureDisk = %d bit/s, out of any disk's range", bps)
	}
	t.Logf("%.0f Mbit/s in %s", float64(bps)/1e6, time.Since(began))
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestMeasureDiskSaysWhyNot(t *testing.T) {
	dir := t.TempDir()
	if bps, err := measureDisk(t.Context(), dir, diskSpare-1); bps != 0 ||
		!errors.Is(err, errDiskFull) {
		t.Errorf("a full disk: %d, %v", bps, err)
	}
	if bps, err := measureDisk(t.Context(), filepath.Join(dir, "missing"), -1); bps != 0 ||
		!errors.Is(err, os.ErrNotExist) {
		t.Errorf("no directory: %d, %v", bps, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if bps, err := measureDisk(ctx, dir, -1); bps != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("no time: %d, %v", bps, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// counted are meters that count and answer with what a test says.
type counted struct {
	speed coreSpeed
	fault error
	cores int
	disks int
}

func (c *counted) meters() meters {
	return meters{
		core: func(context.Context) (coreSpeed, error) { c.cores++; return c.speed, c.fault },
		disk: func(context.Context, string, int64) (int64, error) { c.disks++; return 5000, c.fault },
	}
}

func TestMeasuredOncePerMachine(t *testing.T) {
	m := Machine{CPUModel: "A", Cores: 4, Arch: "amd64", DiskBytes: 9}
	all := Measured{CoreMFLOPS: 100, Steady: true, DiskBps: 5000}
	for name, tt := range map[string]struct {
		change func(*Machine)
		want   Measured
	}{
		"the same":           {func(*Machine) {}, all},
		"free space differs": {func(m *Machine) { m.FreeDiskBytes, m.FreeMemory = 1, 2 }, all},
		"other processor":    {func(m *Machine) { m.CPUModel = "B" }, Measured{DiskBps: 5000}},
		"other core count":   {func(m *Machine) { m.Cores = 8 }, Measured{DiskBps: 5000}},
		"other architecture": {func(m *Machine) { m.Arch = "arm64" }, Measured{DiskBps: 5000}},
		"other disk": {
			func(m *Machine) { m.DiskBytes = 10 }, Measured{CoreMFLOPS: 100, Steady: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c := &counted{speed: coreSpeed{MFLOPS: 100, Steady: true}}
			got, err := measure(
				t.Context(), m, dir, Recall(m, dir), Want{Core: true, Disk: true}, c.meters(),
			)
			if err != nil || got != all || c.cores != 1 || c.disks != 1 {
				t.Fatalf("first: %+v, %v after %+v", got, err, c)
			}
			later := m
			tt.change(&later)
			if got := Recall(later, dir); got != tt.want {
				t.Errorf("Recall = %+v, want %+v", got, tt.want)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
				t.Errorf("state directory holds %v, want the one file", left)
			}
		})
	}
}

func TestOtherCompilersAndKernelsDoNotCount(t *testing.T) {
	m := Machine{CPUModel: "A", Cores: 4, Arch: "amd64", DiskBytes: 9}
	for name, change := range map[string]func(*content){
		"compiler": func(c *content) { c.Core.GoVersion = "go1.1" },
		"kernel":   func(c *content) { c.Core.Kernel-- },
		"absurd":   func(c *content) { c.Core.MFLOPS = mostMFLOPS + 1 },
		"negative": func(c *content) { c.Core.MFLOPS = -1 },
	} {
		dir := t.TempDir()
		c := keyOf(m)
		c.Core.MFLOPS, c.Disk.Bps = 7, -8
		change(&c)
		if err := writeCache(filepath.Join(dir, cacheName), c); err != nil {
			t.Fatal(err)
		}
		if got := Recall(m, dir); got != (Measured{}) {
			t.Errorf("%s: %+v, want nothing", name, got)
		}
	}
	for _, text := range []string{"", "{", `{"core_mflops": 100}`, `{"core": 7}`} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, cacheName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := Recall(m, dir); got != (Measured{}) {
			t.Errorf("%q: %+v, want nothing", text, got)
		}
	}
}

// What a busy machine gave is used until a quiet one gives better.
func TestSteadyReplacesUnsteady(t *testing.T) {
	m := Machine{CPUModel: "A", Cores: 4}
	dir := t.TempDir()
	want := Want{Core: true}
	c := &counted{}
	for _, tt := range []struct {
		speed   coreSpeed
		known   Measured
		missing bool
	}{
		{coreSpeed{MFLOPS: 60}, Measured{CoreMFLOPS: 60}, true},
		{coreSpeed{MFLOPS: 90}, Measured{CoreMFLOPS: 60}, true},
		{coreSpeed{MFLOPS: 80, Steady: true}, Measured{CoreMFLOPS: 80, Steady: true}, false},
		{coreSpeed{MFLOPS: 20}, Measured{CoreMFLOPS: 80, Steady: true}, false},
	} {
		c.speed = tt.speed
		got, err := measure(t.Context(), m, dir, Recall(m, dir), want, c.meters())
		if err != nil || got != tt.known || Recall(m, dir) != tt.known {
			t.Fatalf("after %+v: %+v, %v, kept %+v; want %+v", tt.speed, got, err, Recall(m, dir), tt.known)
		}
		if missing := want.Missing(got).Core; missing != tt.missing {
			t.Errorf("after %+v: missing %t, want %t", tt.speed, missing, tt.missing)
		}
	}
	if c.disks != 0 {
		t.Error("the disk was measured although nobody wanted that")
	}
}

func TestMeasureErrors(t *testing.T) {
	dir := t.TempDir()
	boom := errors.New("boom")
	broken := &counted{fault: boom}
	got, err := measure(
		t.Context(), Machine{}, dir, Measured{DiskBps: 3}, Want{Core: true, Disk: true}, broken.meters(),
	)
	if diff := cmp.Diff(Measured{DiskBps: 3}, got); diff != "" || !errors.Is(err, boom) {
		t.Errorf("failed measurement: %v, want unknown and the cause; (-want +got):\n%s", err, diff)
	}
	fine := &counted{speed: coreSpeed{MFLOPS: 42, Steady: true}}
	got, err = measure(
		t.Context(), Machine{}, filepath.Join(dir, "missing"), Measured{}, Want{Core: true},
		fine.meters(),
	)
	if got.CoreMFLOPS != 42 || err == nil {
		t.Errorf("unwritable directory = %+v, %v; want the value and an error", got, err)
	}
}
