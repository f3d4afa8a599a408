package yield

import (
	"math"
	"strings"
	"testing"
)

// Jobs stop at the limit, and go on when it is five degrees cooler: not in between.
func TestHeatStopsAndCools(t *testing.T) {
	h := NewHeat(80)
	for i, c := range []struct {
		celsius float64
		hot     bool
	}{
		{60, false},
		{79.9, false},
		{80, true},
		{76, true},
		{75, true},
		{74.9, false},
		{79, false},
		{95, true},
	} {
		said := h.Look([]Sensor{{"coretemp_core_1", 40}, {"coretemp_package_id_0", c.celsius}})
		if (said.Why != "") != c.hot || said.Trouble != "" {
			t.Errorf("look %d, %g °C: %+v, want hot %t", i, c.celsius, said, c.hot)
		}
	}
}

// What disks and batteries have does not count, nor what no thermometer shows that works; without
// one of the processors the site pauses and says so.
func TestHeatGoesByProcessors(t *testing.T) {
	for _, c := range []struct {
		name string
		all  []Sensor
		want string // begins why it pauses, after WhyHeat; empty: it does not
	}{
		{"a hot disk", []Sensor{{"nvme_composite", 85}, {"k10temp_tctl", 50}}, ""},
		{"a board", []Sensor{{"cpu_thermal", 81}}, "the processors have 81"},
		{"a broken one", []Sensor{{"coretemp_core_0", 50}, {"coretemp_core_1", 6553}}, ""},
		{"none", nil, "this machine does not tell"},
		{"a disk alone", []Sensor{{"nvme_composite", 40}}, "this machine does not tell"},
		{"no number", []Sensor{{"coretemp_core_0", math.NaN()}}, "this machine does not tell"},
	} {
		said := NewHeat(80).Look(c.all)
		text, _ := strings.CutPrefix(said.Why, WhyHeat)
		if c.want == "" && said.Why != "" || !strings.HasPrefix(text, c.want) {
			t.Errorf("%s: %q, want %q", c.name, said.Why, c.want)
		}
	}
}
