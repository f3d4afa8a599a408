package owner

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

// told writes what the kernel tells in files below a directory.
func told(t *testing.T, dir string) func(name, text string) {
	return func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// laptop is a machine with a plug, a battery and a mouse.
func laptop(t *testing.T) (root string, plug func(in bool)) {
	t.Helper()
	root = t.TempDir()
	write := told(t, filepath.Join(root, "sys/class/power_supply"))
	write("AC/type", "Mains")
	write("BAT0/type", "Battery")
	write("mouse/type", "Battery")
	write("mouse/scope", "Device")
	write("mouse/status", "Discharging")
	return root, func(in bool) {
		write("AC/online", map[bool]string{true: "1", false: "0"}[in])
		write("BAT0/status", map[bool]string{true: "Full", false: "Discharging"}[in])
	}
}

// TestASiteYieldsOnBattery unplugs a machine, plugs it in, and lets its owner share it anyway.
func TestASiteYieldsOnBattery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root, plug := laptop(t)
		plug(true)
		rules := yield.DefaultRules()
		w, states := watching(t, Config{Root: root, Rules: rules, Mains: true})
		time.Sleep(time.Minute)
		if len(states) != 0 {
			t.Fatalf("plugged in, and the site yields: %+v", <-states)
		}
		plug(false)
		began := time.Now()
		if s := <-states; s.Reason != grid.ReasonOwnerBusy || s.Why != yield.WhyBattery {
			t.Errorf("unplugged: %+v", s)
		}
		if waited := time.Since(began); waited > powerEvery+every {
			t.Errorf("it yields only %s after it was unplugged", waited)
		}
		plug(true)
		if s := <-states; s.Reason != grid.ReasonNone {
			t.Errorf("plugged in again: %+v", s)
		}
		plug(false)
		if s := <-states; s.Why != yield.WhyBattery {
			t.Errorf("unplugged again: %+v", s)
		}
		w.Change(Config{Rules: rules})
		if s := <-states; s.Reason != grid.ReasonNone {
			t.Errorf("shared on battery, too: %+v", s)
		}
	})
}

// TestHoursAreStrongerThanBattery tells the reason that lasts longer.
func TestHoursAreStrongerThanBattery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root, plug := laptop(t)
		plug(false)
		closed, err := yield.ParseHours("mon 01:00-01:01") // the bubble begins on a Saturday
		if err != nil {
			t.Fatal(err)
		}
		cfg := Config{Root: root, Rules: yield.DefaultRules(), Hours: closed, Mains: true}
		_, states := watching(t, cfg)
		if s := <-states; s.Reason != grid.ReasonOwnerHours {
			t.Errorf("state %+v", s)
		}
	})
}

// What is no folder of supplies, or too much of it, is looked at in bounded time.
func TestSuppliesAreBounded(t *testing.T) {
	root, plug := laptop(t)
	plug(false)
	dir := filepath.Join(root, "sys/class/power_supply")
	if !HasBattery(root) || HasBattery(t.TempDir()) {
		t.Error("a laptop has a battery, and a machine without supplies has none")
	}
	if got := len(supplies(dir)); got != 3 {
		t.Errorf("%d supplies, want 3", got)
	}
	long := strings.Repeat("x", 1<<20)
	if err := os.WriteFile(filepath.Join(dir, "AC/type"), []byte(long), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, s := range supplies(dir) {
		if len(s.Kind) > supplyLength {
			t.Errorf("%d bytes of a kind", len(s.Kind))
		}
	}
	for i := range 2 * maxSupplies {
		if err := os.Mkdir(filepath.Join(dir, fmt.Sprint("more", i)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(supplies(dir)); got != maxSupplies {
		t.Errorf("%d supplies, want %d", got, maxSupplies)
	}
	if got := supplies(filepath.Join(dir, "AC", "type")); got != nil {
		t.Errorf("of a file %+v", got)
	}
}
