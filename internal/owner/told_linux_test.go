package owner

import (
	"context"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

// Processors are counted by their lines, whatever these hold; a file that is longer than it
// matters is read as far as it does.
func TestProcessorsAreCounted(t *testing.T) {
	for text, want := range map[string]int{
		"cpu": 0, "cpu\n": 0, "cpu0": 1, "cpu9": 1, "cpu/": 0, "cpu:": 0, "xcpu0 1\n": 0, "": 0,
		"cpu 1\ncpu0 1\ncpu1 1\nintr 1": 2,
	} {
		root := machineRoot(t, map[string]string{"proc/stat": text})
		if got := countCores(filepath.Join(root, "proc/stat")); got != want {
			t.Errorf("%q has %d processors, want %d", text, got, want)
		}
	}
	if got := countCores(filepath.Join(t.TempDir(), "none")); got != 0 {
		t.Errorf("no file has %d processors", got)
	}
	long := strings.Repeat("intr 1 2 3\n", enough)
	root := machineRoot(t, map[string]string{"proc/stat": "cpu 1 1 1 1 1\ncpu0 1\n" + long})
	p, err := newProbe(root)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	if c := p.read(time.Unix(1, 0)); c.busy != 3*clockTick {
		t.Errorf("of a long file %s are busy, want %s", c.busy, 3*clockTick)
	}
}

// A glance leaves no file open.
func TestAGlanceLeavesNothing(t *testing.T) {
	root := machineRoot(t, map[string]string{"proc/stat": "cpu 1 1 1 1 1\ncpu0 1\n"})
	over, cancel := context.WithCancel(t.Context())
	cancel()
	const often = 50
	before := openFiles(t)
	for range often {
		Glance(over, root, yield.DefaultRules(), time.Hour)
	}
	if after := openFiles(t); after > before+often/2 {
		t.Errorf("%d files are open, before %d", after, before)
	}
}

// However often the rules were changed meanwhile, one look follows.
func TestChangesAreLookedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(Config{Root: t.TempDir(), Rules: yield.DefaultRules()})
		for range 3 {
			w.Change(Config{Rules: yield.DefaultRules()})
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.Run(ctx, func(State) {}) }()
		synctest.Wait()
		if r := w.Report(); r.Looks != 2 {
			t.Errorf("%d looks, want the first and one more", r.Looks)
		}
		cancel()
		<-done
	})
}

// The cost of looking is a part of any time that has passed, however short.
func TestTheCostOfAMoment(t *testing.T) {
	now := time.Unix(1000, 0)
	w := New(Config{Root: t.TempDir(), Now: func() time.Time { return now }})
	w.since = now
	w.note(State{}, yield.Sample{}, 3*time.Nanosecond)
	for passed, want := range map[time.Duration]float64{-1: 0, 0: 0, 1: 3, 2: 1.5} {
		now = w.since.Add(passed)
		if r := w.Report(); math.Abs(r.Cost-want) > 1e-9 {
			t.Errorf("after %s the cost is %v, want %v", passed, r.Cost, want)
		}
	}
}
