package owner

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

// oven is a machine whose processors have a thermometer, beside that of a disk which is hot.
func oven(t *testing.T) (root string, heat func(celsius int)) {
	t.Helper()
	root = t.TempDir()
	write := told(t, filepath.Join(root, "sys/class/hwmon"))
	write("hwmon0/name", "nvme")
	write("hwmon0/temp1_input", "95000")
	write("hwmon1/name", "coretemp")
	return root, func(celsius int) { write("hwmon1/temp1_input", fmt.Sprint(celsius*1000)) }
}

// TestASiteYieldsToHeat heats processors up and lets them cool down.
func TestASiteYieldsToHeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root, heat := oven(t)
		heat(60)
		_, states := watching(t, Config{Root: root, Rules: yield.DefaultRules(), Heat: 80})
		time.Sleep(time.Minute)
		if len(states) != 0 {
			t.Fatalf("it is cool, and the site yields: %+v", <-states)
		}
		heat(83)
		began := time.Now()
		if s := <-states; s.Reason != grid.ReasonOwnerBusy || !strings.Contains(s.Why, "83 °C") {
			t.Errorf("hot: %+v", s)
		}
		if waited := time.Since(began); waited > heatEvery+every {
			t.Errorf("it yields only %s after it was hot", waited)
		}
		heat(78)
		time.Sleep(time.Minute)
		if len(states) != 0 {
			t.Errorf("hardly cooler: %+v", <-states)
		}
		heat(70)
		if s := <-states; s.Reason != grid.ReasonNone {
			t.Errorf("cool again: %+v", s)
		}
	})
}

// Without a thermometer of processors the site pauses, and says so.
func TestNobodyTellsOfHeat(t *testing.T) {
	w, states := watching(t, Config{Root: t.TempDir(), Rules: yield.DefaultRules(), Heat: 80})
	<-w.Looked()
	if s := stateWithin(t, states); s.Reason != grid.ReasonOwnerBusy || s.Heat == "" {
		t.Errorf("state %+v", s)
	}
}
