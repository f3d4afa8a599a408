package hostinfo

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/shirou/gopsutil/v4/cpu"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

// What is left at the bounds: of what is used, of what is known, and of what is held.
func TestLeftAtTheBounds(t *testing.T) {
	full := nominal()
	cores, memory := full.Total.MilliCPUs, full.Total.MemoryBytes
	for name, c := range map[string]struct {
		n      grid.Capability
		l      Load
		change func(want *grid.Capability)
	}{
		"others use the floor": {
			full,
			Load{Cores: 4, Others: yield.Measured(1), Floor: 1, Reserve: 2, FreeMemory: -1, FreeDisk: -1},
			func(*grid.Capability) {},
		},
		"others use more than the floor": {
			full,
			Load{Cores: 4, Others: yield.Measured(1.5), Floor: 1, Reserve: 1, FreeMemory: -1, FreeDisk: -1},
			func(w *grid.Capability) { w.Total.MilliCPUs, w.Total.MFLOPS = 1500, full.Total.MFLOPS/2 },
		},
		"what is not known takes nothing": {
			full,
			Load{
				Cores: 4, Others: yield.Reading{Value: 9}, Stolen: yield.Reading{Value: 2}, FreeMemory: -1,
				FreeDisk: -1,
			},
			func(*grid.Capability) {},
		},
		"no cores are given": {
			grid.Capability{Total: grid.Resources{MFLOPS: 7}, CoreMFLOPS: 8},
			Load{Cores: 4, Others: yield.Measured(3), FreeMemory: -1, FreeDisk: -1},
			func(*grid.Capability) {},
		},
		"no cores are known": {
			full, Load{Stolen: yield.Measured(1), FreeMemory: -1, FreeDisk: -1}, func(*grid.Capability) {},
		},
		"no memory and no disk are free": {
			full,
			Load{Cores: 4, Held: grid.Resources{MemoryBytes: 3, DiskBytes: 4}},
			func(w *grid.Capability) { w.Total.MemoryBytes, w.Total.DiskBytes = 3, 4 },
		},
		"a byte of each is free": {
			full,
			Load{Cores: 4, FreeMemory: 1, FreeDisk: 1},
			func(w *grid.Capability) { w.Total.MemoryBytes, w.Total.DiskBytes = 1, 1 },
		},
		"more is held than was given": {
			full,
			Load{
				Cores: 4, Others: yield.Measured(9),
				Held: grid.Resources{
					MilliCPUs: cores + 1, MemoryBytes: memory + 1, DiskBytes: 1 << 40, MFLOPS: 1 << 40,
				},
			},
			func(*grid.Capability) {},
		},
		"computation is held": {
			full,
			Load{
				Cores: 4, Others: yield.Measured(9), FreeMemory: -1, FreeDisk: -1,
				Held: grid.Resources{MFLOPS: 500},
			},
			func(w *grid.Capability) { w.Total.MilliCPUs, w.Total.MFLOPS = 0, 500 },
		},
		"fairly, and there is more than all want": {
			full,
			Load{Cores: 40, Others: yield.Measured(1), Fair: true, FreeMemory: -1, FreeDisk: -1},
			func(*grid.Capability) {},
		},
	} {
		want := c.n
		c.change(&want)
		if diff := cmp.Diff(want, Left(c.n, c.l)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A part of what is known is 1 at least, and what is beyond all numbers is all.
func TestParts(t *testing.T) {
	for _, c := range []struct {
		of    int64
		share float64
		want  int64
	}{{-1, 1, 0}, {0, 1, 0}, {1, .5, 1}, {1, 0, 1}, {2, .5, 1}, {3, .7, 2}, {3, 2, 3}} {
		if got := part(c.of, c.share); got != c.want {
			t.Errorf("%v of %d is %d, want %d", c.share, c.of, got, c.want)
		}
	}
	for _, c := range []struct {
		v               float64
		low, high, want int64
	}{
		{math.MaxInt64, 0, math.MaxInt64, math.MaxInt64},
		{math.NaN(), 2, 5, 2},
		{1, 2, 5, 2},
		{3.9, 2, 5, 3},
		{6, 2, 5, 5},
		{1, 7, 5, 5},
		{6, 7, 5, 5},
	} {
		if got := within(c.v, c.low, c.high); got != c.want {
			t.Errorf("%v from %d to %d is %d, want %d", c.v, c.low, c.high, got, c.want)
		}
	}
}

// Each amount is told when it changed by more than a tenth of the nominal one, and when all of
// it is back.
func TestEachAmountIsTold(t *testing.T) {
	for name, at := range map[string]func(*grid.Capability) *int64{
		"cores":       func(c *grid.Capability) *int64 { return &c.Total.MilliCPUs },
		"memory":      func(c *grid.Capability) *int64 { return &c.Total.MemoryBytes },
		"disk":        func(c *grid.Capability) *int64 { return &c.Total.DiskBytes },
		"computation": func(c *grid.Capability) *int64 { return &c.Total.MFLOPS },
		"speed":       func(c *grid.Capability) *int64 { return &c.CoreMFLOPS },
	} {
		full := nominal()
		less := func(by int64) grid.Capability {
			c := nominal()
			*at(&c) -= by
			return c
		}
		tenth := *at(&full) / 10
		for _, c := range []struct {
			told, now grid.Capability
			want      bool
		}{
			{full, full, false},
			{full, less(tenth), false},
			{full, less(tenth + 1), true},
			{less(tenth + 1), less(1), false},
			{less(tenth + 2), less(1), true},
			{less(1), full, true},
			{less(9 * tenth), less(8 * tenth), false},
		} {
			if got := Differs(full, c.told, c.now); got != c.want {
				t.Errorf("%s: told %d, now %d: %t", name, *at(&c.told), *at(&c.now), got)
			}
		}
	}
}

// What an owner wants is given up to what there is, and nothing less than nothing.
func TestACeiling(t *testing.T) {
	for _, c := range []struct{ owner, usual, have, want int64 }{
		{0, 3, 9, 3},
		{1, 3, 9, 1},
		{9, 3, 9, 9},
		{10, 3, 9, 9},
		{-1, 3, 9, 3},
		{0, -3, 9, 0},
		{0, 3, 0, 0},
		{5, 3, 0, 0},
		{5, 3, -1, 5},
		{0, 3, -1, 0},
		{-5, 3, -1, 0},
	} {
		if got := ceiling(c.owner, c.usual, c.have); got != c.want {
			t.Errorf("of %+v are given %d", c, got)
		}
	}
	for value, want := range map[int64]int64{-1: -1, 0: -1, 1: 1, 2: 2} {
		if got := known(value); got != want {
			t.Errorf("%d is known as %d, want %d", value, got, want)
		}
	}
	got := Ceilings(Machine{Cores: 2, FreeDiskBytes: 7, MemoryBytes: 7}, grid.Resources{}, 5)
	want := grid.Resources{MilliCPUs: 1000, MemoryBytes: 3, DiskBytes: 1, MFLOPS: 5}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// All that is found out of this machine agrees with what is asked of its parts.
func TestThisMachine(t *testing.T) {
	dir := t.TempDir()
	m, err := Probe(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	room, err := ProbeRoom(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	infos, err := cpu.InfoWithContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := Machine{
		OS: runtime.GOOS, Arch: runtime.GOARCH, Cores: runtime.NumCPU(), MemoryBytes: room.MemoryBytes,
		DiskBytes: room.DiskBytes, FreeMemory: m.FreeMemory, FreeDiskBytes: m.FreeDiskBytes,
	}
	if len(infos) > 0 {
		want.CPUModel = strings.Join(strings.Fields(infos[0].ModelName), " ")
	}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if m.FreeMemory <= 0 || m.FreeDiskBytes <= 0 {
		t.Errorf("%d bytes of memory and %d of disk are free", m.FreeMemory, m.FreeDiskBytes)
	}
	none := filepath.Join(dir, "none")
	text := "read free disk of " + none + ": no such file or directory"
	if _, err = Probe(t.Context(), none); err == nil || err.Error() != text {
		t.Errorf("%v, want %q", err, text)
	}
}

// A run is as long as it is to be, by the time that its thread had where that is known.
func TestHowManyRoundsMakeARun(t *testing.T) {
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		each time.Duration // of a round
		busy time.Duration // of it; 0 = not known
		fail error
		want int
	}{
		"as long as half a run":  {each: kernelRun / 2 / kernelChunk, want: 2 * kernelChunk},
		"nearly half a run":      {each: kernelRun * 2 / 5 / kernelChunk, want: kernelChunk * 5 / 2},
		"a run":                  {each: kernelRun / kernelChunk, want: kernelChunk},
		"four runs":              {each: 4 * kernelRun / kernelChunk, want: kernelChunk / 4},
		"doubled until it is":    {each: 10, want: int(kernelRun / 10)},
		"by the thread's time":   {each: time.Second, busy: kernelRun / kernelChunk, want: kernelChunk},
		"less than its thread's": {each: kernelRun / kernelChunk, busy: time.Second, want: kernelChunk},
		"very slow":              {each: time.Second, want: 1},
		"broken":                 {fail: boom},
	} {
		var asked []int
		got, err := calibrate(func(rounds int) (kernelTimes, error) {
			asked = append(asked, rounds)
			of := func(each time.Duration) time.Duration {
				return time.Duration(int64(rounds) * each.Nanoseconds())
			}
			return kernelTimes{
				rounds: rounds, wall: of(c.each), busy: of(c.busy), busyKnown: c.busy > 0,
			}, c.fail
		}, 0)
		if got != c.want || !errors.Is(err, c.fail) {
			t.Errorf("%s: %d rounds, %v, want %d", name, got, err, c.want)
		}
		for i, rounds := range asked {
			if rounds != kernelChunk<<i || i > 0 && kernelChunk<<(i-1) >= (c.want+1)/2 {
				t.Errorf("%s: it asks for %d rounds", name, asked)
			}
		}
	}
	warm, runs := 2*time.Millisecond, 0
	began := time.Now()
	if _, err := calibrate(func(rounds int) (kernelTimes, error) {
		runs++
		return kernelTimes{rounds: rounds, wall: kernelRun}, nil
	}, warm); err != nil || time.Since(began) < warm || runs < 2 {
		t.Errorf("warmed up in %d runs, %s, %v", runs, time.Since(began), err)
	}
}

// Runs are made until enough were undisturbed, or the time is over; the fastest one counts.
func TestRunsThatAreSampled(t *testing.T) {
	const rounds = 1_000_000
	const run = time.Millisecond
	base := kernelTimes{rounds: rounds, wall: run, busy: run, busyKnown: true}
	rate := int64(rounds * kernelLanes * flopsPerLane / 1000) // MFLOP/s of a millisecond
	after := func(n int, err error) func(int) (kernelTimes, error) {
		return func(asked int) (kernelTimes, error) {
			if asked != rounds {
				t.Errorf("a run of %d rounds", asked)
			}
			r := base
			if n--; n >= 0 {
				r.busy /= 2
			}
			if n == 0 {
				return r, err
			}
			return r, nil
		}
	}
	boom := errors.New("boom")
	for _, c := range []struct {
		disturbed int
		most      time.Duration
		fail      error
		want      coreSpeed
	}{
		{0, time.Hour, nil, coreSpeed{MFLOPS: rate, Runs: kernelEnough, Steady: true}},
		{
			3, time.Hour, nil,
			coreSpeed{MFLOPS: rate, Runs: kernelEnough + 3, Disturbed: 3, Steady: true},
		},
		{3, time.Hour, boom, coreSpeed{}},
		{0, 0, nil, coreSpeed{MFLOPS: 1}},
	} {
		got, err := sample(after(c.disturbed, c.fail), rounds, c.most)
		if got != c.want || !errors.Is(err, c.fail) {
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
	}
	got, err := sample(after(math.MaxInt, nil), rounds, time.Millisecond)
	want := coreSpeed{MFLOPS: 2 * rate, Runs: got.Runs, Disturbed: got.Runs}
	if got != want || err != nil || got.Runs == 0 {
		t.Errorf("all disturbed: %+v, %v, want %+v", got, err, want)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = runKernel(over, 1); err == nil ||
		err.Error() != "measure computation: context canceled" {
		t.Errorf("after the end: %v", err)
	}
	runtime.LockOSThread() // a run's time is that of one thread, which has had more before
	defer runtime.UnlockOSThread()
	if r, err := runKernel(t.Context(), rounds); err != nil || r.rounds != rounds || r.wall <= 0 ||
		r.busyKnown && r.busy <= 0 {
		t.Errorf("%+v, %v", r, err)
	}
	least := time.Duration(1)
	want0 := float64(rounds) * kernelLanes * flopsPerLane / least.Seconds()
	if got := base.rate(0); got != want0 || base.rate(least) != want0 {
		t.Errorf("no time gives %v, want %v", got, want0)
	}
	if _, fault := runKernel(t.Context(), rounds); fault != nil {
		t.Fatal(fault)
	}
	began := time.Now()
	short, fault := runKernel(t.Context(), 1)
	if took := time.Since(began); fault != nil || short.busyKnown && short.busy > took {
		t.Errorf("a run within %s had a processor for %s, %v", took, short.busy, fault)
	}
}

// Enough undisturbed runs agree when the middle one is near the fastest.
func TestWhichRunsAgree(t *testing.T) {
	const fast, slow = 100e6, 100e6 * (1 - agreement)
	runs := func(n, slower int, slow float64) (list []float64) {
		for i := range n {
			v := fast
			if i < slower {
				v = slow
			}
			list = append(list, v)
		}
		return list
	}
	const half = kernelEnough / 2
	for name, c := range map[string]struct {
		clean  []float64
		steady bool
	}{
		"all alike":             {runs(kernelEnough, 0, 0), true},
		"one too few":           {runs(kernelEnough-1, 0, 0), false},
		"less than half slower": {runs(kernelEnough, half, 1e6), true},
		"half slower":           {runs(kernelEnough, half+1, 1e6), false},
		"near enough":           {runs(kernelEnough, half+1, slow), true},
		"not near enough":       {runs(kernelEnough, half+1, slow-1), false},
	} {
		if mflops, steady := judge(c.clean, nil); steady != c.steady || mflops != fast/1e6 {
			t.Errorf("%s: %d, steady %t", name, mflops, steady)
		}
	}
	for rate, want := range map[float64]int64{2e6: 2, 1e6: 1, 1: 1, 2.9e6: 2} {
		clean, _ := judge([]float64{rate}, nil)
		shared, steady := judge(nil, []float64{rate / 2, rate})
		if clean != want || shared != want || steady {
			t.Errorf("%v FLOP/s are %d and %d, want %d", rate, clean, shared, want)
		}
	}
}

// After a trial as much is written as goes in the time that is left, in whole blocks.
func TestHowMuchMoreIsWritten(t *testing.T) {
	for _, c := range []struct {
		trial time.Duration
		want  int64
	}{
		{1, diskMost - diskTrial},
		{diskSpan / 32, diskMost - diskTrial},
		{diskSpan / 31, 30 * diskTrial},
		{diskSpan / 3, 2 * diskTrial},
		{diskSpan / 2, diskTrial},
		{diskSpan/2 + 1, 0},
		{diskSpan, 0},
		{2 * diskSpan, 0},
		{diskSpan * 4 / 9, diskTrial + diskBlock},
	} {
		if got := moreAfter(c.trial); got != c.want {
			t.Errorf("after %s: %d bytes, want %d", c.trial, got, c.want)
		}
	}
	for rate, want := range map[float64]int64{0: 1, .1: 1, .25: 2, 1: 8, 1e6: 8e6} {
		if got := inBits(rate); got != want {
			t.Errorf("%v byte/s are %d bit/s, want %d", rate, got, want)
		}
	}
}

// What is written is as long as it is to be, of blocks that differ, and can be read again.
func TestTheBlocksOfATrial(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const blocks = 3
	took, err := writeSynced(t.Context(), f, make([]byte, diskBlock), blocks*diskBlock)
	if err != nil || took <= 0 {
		t.Fatal(took, err)
	}
	if _, err = f.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(f)
	if err != nil || len(raw) != blocks*diskBlock {
		t.Fatal(len(raw), err)
	}
	seen := map[string]bool{}
	for i := range blocks {
		seen[string(raw[i*diskBlock:(i+1)*diskBlock])] = true
	}
	if len(seen) != blocks {
		t.Errorf("%d of %d blocks differ", len(seen), blocks)
	}
	began := time.Now()
	rate, err := readDisk(t.Context(), f, blocks*diskBlock)
	if least := blocks * diskBlock / time.Since(began).Seconds(); err != nil || rate < least {
		t.Errorf("read at %v byte/s, %v, want at least %v", rate, err, least)
	}
	if !forget(f) {
		t.Error("the system keeps what was written")
	}
	n, rate, err := writeDisk(t.Context(), f)
	if err != nil || n < diskTrial || n > diskMost || n%diskBlock != 0 || rate <= 0 {
		t.Errorf("%d bytes at %v byte/s, %v", n, rate, err)
	}
	info, err := f.Stat()
	if err != nil || info.Size() != int64(len(raw))+n {
		t.Errorf("%+v is there, %v, want %d bytes more", info, err, n)
	}
	if err = f.Close(); err != nil || forget(f) {
		t.Errorf("%v, and what is closed is forgotten", err)
	}
}

// What cannot be measured is said with the step that failed.
func TestWhatIsSaidOfADisk(t *testing.T) {
	dir := t.TempDir()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		dir  string
		free int64
		want string
	}{
		{dir, 0, "measure disk: less than 256 MiB are free"},
		{dir, diskSpare, "measure disk: write: context canceled"},
		{
			filepath.Join(dir, "none"), -1,
			"measure disk: open " + filepath.Join(dir, "none", diskName) + ": no such file or directory",
		},
	} {
		bps, err := measureDisk(over, c.dir, c.free)
		if bps != 0 || err == nil || err.Error() != c.want {
			t.Errorf("%d, %v, want %q", bps, err, c.want)
		}
	}
	// What a crash left is overwritten, and gone.
	if err := os.WriteFile(filepath.Join(dir, diskName), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if bps, err := measureDisk(t.Context(), dir, diskSpare); err != nil || bps <= 1 {
		t.Errorf("%d bit/s, %v", bps, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// The file of what was measured, and what is said when it cannot be written.
func TestTheFileOfMeasurements(t *testing.T) {
	m := Machine{CPUModel: "A", Cores: 4, Arch: "amd64", DiskBytes: 9}
	dir := t.TempDir()
	fine := &counted{speed: coreSpeed{MFLOPS: 42, Steady: true}}
	all := Want{Core: true, Disk: true}
	if _, err := measure(t.Context(), m, dir, Measured{}, all, fine.meters()); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, cacheName))
	if err != nil {
		t.Fatal(err)
	}
	want := `{
  "core": {
    "cpu_model": "A",
    "cores": 4,
    "arch": "amd64",
    "go_version": "` + runtime.Version() + `",
    "kernel": 2,
    "mflops": 42,
    "steady": true
  },
  "disk": {
    "bytes": 9,
    "bps": 5000
  }
}
`
	if diff := cmp.Diff(want, string(raw)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	none := filepath.Join(dir, "none")
	boom := &counted{fault: errors.New("boom")}
	_, err = measure(t.Context(), m, none, Measured{}, all, boom.meters())
	if head := "boom\nboom\nkeep measurement: "; err == nil || !strings.HasPrefix(err.Error(), head) {
		t.Errorf("%v, want %q", err, head)
	}
	for _, c := range []struct {
		w     Want
		known Measured
		want  Want
	}{
		{all, Measured{}, all},
		{all, Measured{CoreMFLOPS: 1, DiskBps: 1}, Want{Core: true}},
		{all, Measured{CoreMFLOPS: 1, Steady: true}, Want{Disk: true}},
		{Want{}, Measured{}, Want{}},
	} {
		if got := c.w.Missing(c.known); got != c.want {
			t.Errorf("%+v of %+v is missing: %+v, want %+v", c.w, c.known, got, c.want)
		}
	}
	for value, want := range map[int64]int64{mostMFLOPS: mostMFLOPS, mostMFLOPS + 1: 0} {
		c := keyOf(m)
		c.Core.MFLOPS, c.Core.Steady, c.Disk.Bps = value, true, 8
		if err := writeCache(filepath.Join(dir, cacheName), c); err != nil {
			t.Fatal(err)
		}
		if got := Recall(m, dir); got != (Measured{CoreMFLOPS: want, Steady: want > 0, DiskBps: 8}) {
			t.Errorf("of %d is kept %+v", value, got)
		}
	}
}

// An interface whose address is of an unknown kind is no part of the machine.
func TestWhichInterfacesAreParts(t *testing.T) {
	for _, c := range []struct {
		device   bool
		assigned string
		want     bool
	}{{true, "0\n", true}, {true, "1\n", false}, {true, "", false}, {false, "0\n", false}} {
		dir := t.TempDir()
		if c.device {
			if err := os.Mkdir(filepath.Join(dir, "device"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if c.assigned != "" {
			err := os.WriteFile(filepath.Join(dir, "addr_assign_type"), []byte(c.assigned), 0o600)
			if err != nil {
				t.Fatal(err)
			}
		}
		if got := isPart(dir); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}
