package hostinfo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A machine's name is the first one that is a name, and hidden; what is empty, unset or too long
// is none.
func TestTheNameOfAMachine(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	longest := strings.Repeat("a", maxMachineID)
	good, other := file("good", "0123\n"), file("other", "4567")
	none := filepath.Join(dir, "none")
	for name, c := range map[string]struct {
		files []string
		want  string
	}{
		"one":           {[]string{good}, hidden("0123")},
		"the first":     {[]string{other, good}, hidden("4567")},
		"none":          {[]string{none}, ""},
		"no file":       {nil, ""},
		"another":       {[]string{none, good}, hidden("0123")},
		"empty":         {[]string{file("empty", " \n"), good}, hidden("0123")},
		"uninitialized": {[]string{file("un", "uninitialized\n"), good}, hidden("0123")},
		"longest":       {[]string{file("longest", longest), good}, hidden(longest)},
		"too long":      {[]string{file("long", longest+"a"), good}, hidden("0123")},
	} {
		if got := machineName(c.files...); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if name := hidden("0123"); len(name) != 32 || strings.Contains(name, "0123") {
		t.Errorf("hidden it is %q", name)
	}
}

// Interfaces without an address are left out, and so are those beyond a number.
func TestPartsAreBounded(t *testing.T) {
	dir := t.TempDir()
	for i := range maxParts + 4 {
		at := filepath.Join(dir, fmt.Sprintf("eth%02d", i))
		if err := os.MkdirAll(filepath.Join(at, "device"), 0o700); err != nil {
			t.Fatal(err)
		}
		address := fmt.Sprint("02:", i, "\n")
		if i == 1 {
			address = "\n"
		}
		for name, text := range map[string]string{"address": address, "addr_assign_type": "0\n"} {
			if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	parts := partsIn(dir)
	if len(parts) != maxParts || parts[0] != hidden("02:0") || parts[1] != hidden("02:2") {
		t.Errorf("%d parts: %v", len(parts), parts)
	}
	if got := partsIn(filepath.Join(dir, "none")); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

// Memory and disk are asked about each by itself: what one does not tell is unknown, and the
// other is known.
func TestSpaceOfTheMachine(t *testing.T) {
	r, err := ProbeRoom(t.Context(), t.TempDir())
	if err != nil || r.MemoryBytes <= 0 || r.FreeMemory < 0 || r.FreeMemory > r.MemoryBytes ||
		r.DiskBytes <= 0 || r.FreeDiskBytes < 0 || r.FreeDiskBytes > r.DiskBytes {
		t.Errorf("%+v, %v", r, err)
	}
	none := filepath.Join(t.TempDir(), "none")
	r, err = ProbeRoom(t.Context(), none)
	if err == nil || !strings.Contains(err.Error(), none) || r.DiskBytes != 0 ||
		r.FreeDiskBytes != -1 || r.MemoryBytes <= 0 {
		t.Errorf("of no directory: %+v, %v", r, err)
	}
	for n, want := range map[uint64]int64{
		0: 0, math.MaxInt64: math.MaxInt64, math.MaxInt64 + 1: math.MaxInt64,
	} {
		if got := toInt64(n); got != want {
			t.Errorf("%d is %d", n, got)
		}
	}
}

// A run is disturbed whose thread had a processor for less than nearly all of its time.
func TestWhichRunsAreDisturbed(t *testing.T) {
	for _, c := range []struct {
		busy  time.Duration
		known bool
		want  bool
	}{
		{970 * time.Millisecond, true, false},
		{969 * time.Millisecond, true, true},
		{time.Second, true, false},
		{0, true, true},
		{0, false, false},
	} {
		for _, parts := range []int64{1, 7} {
			busy := time.Duration(parts * c.busy.Nanoseconds())
			wall := time.Duration(parts * time.Second.Nanoseconds())
			r := kernelTimes{wall: wall, busy: busy, busyKnown: c.known}
			if got := r.disturbed(); got != c.want {
				t.Errorf("%s of %s, known %t: disturbed %t", r.busy, r.wall, c.known, got)
			}
		}
	}
	r := kernelTimes{rounds: 1000}
	if got := r.rate(time.Second); got != 16_000 {
		t.Errorf("1000 rounds in a second are %v FLOP/s", got)
	}
	if got := r.rate(0); math.IsInf(got, 0) {
		t.Error("no time gives no rate")
	}
}

// Each lane goes its own way to 1.
func TestTheLanesOfTheKernel(t *testing.T) {
	before := [kernelLanes]float64{1, 2, 3, 4, 5, 6, 7, 8}
	want := before
	for i := range want {
		want[i] = want[i]*.999999 + .000001
	}
	if got := multiplyAdd(before, 1); got != want {
		t.Errorf("after a round %v, want %v", got, want)
	}
	if got := multiplyAdd(before, 0); got != before {
		t.Errorf("after none %v", got)
	}
}

// What is kept of a machine is believed up to a size, and where it makes sense.
func TestWhatIsKeptIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), cacheName)
	c := content{Core: coreContent{MFLOPS: 7}}
	if err := writeCache(path, c); err != nil {
		t.Fatal(err)
	}
	if got, ok := readCache(path); !ok || got != c {
		t.Errorf("%+v, %t", got, ok)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for size, want := range map[int]bool{maxCacheBytes: true, maxCacheBytes + 1: false} {
		long := string(text) + strings.Repeat(" ", size-len(text))
		if err := os.WriteFile(path, []byte(long), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, ok := readCache(path); ok != want {
			t.Errorf("of %d bytes: %t", size, ok)
		}
	}
	if got, ok := readCache(path + ".none"); ok || got != (content{}) {
		t.Errorf("of nothing: %+v, %t", got, ok)
	}
	if got, ok := readCache(t.TempDir()); ok || got != (content{}) {
		t.Errorf("of a directory: %+v, %t", got, ok)
	}
	for value, want := range map[int64]int64{-1: 0, 0: 0, 1: 1, mostBps: mostBps, mostBps + 1: 0} {
		if got := plausible(value, mostBps); got != want {
			t.Errorf("%d counts as %d, want %d", value, got, want)
		}
	}
}

// A disk that cannot be written or read gives no rate, and nothing is left of the trial.
func TestADiskThatFails(t *testing.T) {
	readOnly := func() *os.File {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, make([]byte, 3*diskBlock), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	f := readOnly()
	if n, rate, err := writeDisk(t.Context(), f); err == nil || n != 0 || rate != 0 {
		t.Errorf("written are %d bytes at %v, %v", n, rate, err)
	}
	took, fault := writeSynced(t.Context(), f, make([]byte, diskBlock), diskBlock)
	if fault == nil || took != 0 {
		t.Errorf("a block is written to a file that is only read: %s, %v", took, fault)
	}
	if rate, err := readDisk(t.Context(), f, 3*diskBlock); err != nil || rate <= 0 {
		t.Errorf("read at %v, %v", rate, err)
	}
	if rate, err := readDisk(t.Context(), f, 4*diskBlock); !errors.Is(err, io.ErrUnexpectedEOF) ||
		rate != 0 {
		t.Errorf("more than there is: %v, %v", rate, err)
	}
	f.Close()
	if rate, err := readDisk(t.Context(), f, 1); !errors.Is(err, os.ErrClosed) || rate != 0 {
		t.Errorf("of a file that is closed: %v, %v", rate, err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if rate, err := readDisk(over, readOnly(), 1); !errors.Is(err, context.Canceled) || rate != 0 {
		t.Errorf("after the end: %v, %v", rate, err)
	}
	took, fault = writeSynced(over, f, make([]byte, diskBlock), diskBlock)
	if !errors.Is(fault, context.Canceled) || took != 0 {
		t.Errorf("after the end: %s, %v", took, fault)
	}
	dir := t.TempDir()
	for free, want := range map[int64]error{
		diskSpare - 1: errDiskFull, diskSpare: context.Canceled, -1: context.Canceled,
	} {
		if _, err := measureDisk(over, dir, free); !errors.Is(err, want) {
			t.Errorf("with %d bytes free: %v, want %v", free, err, want)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
