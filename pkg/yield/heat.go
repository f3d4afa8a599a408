package yield

import (
	"fmt"
	"strings"
)

// WhyHeat begins why a site yields to the heat of its processors, for people.
const WhyHeat = "owner.heat: "

// Sensor is a thermometer of the machine, as its driver calls it.
type Sensor struct {
	Name    string // such as coretemp_core_0
	Celsius float64
}

// Heat watches that processors stay below a temperature. It has one owner.
type Heat struct {
	limit float64 // degrees Celsius
	hot   bool    // the limit was reached, and it has not cooled down since
}

// cools is by how much it must be cooler before jobs go on, in degrees: work that stops at the
// limit and goes on right below it would switch back and forth.
const cools = 5

// NewHeat watches for a limit in degrees Celsius.
func NewHeat(limit int) *Heat { return &Heat{limit: float64(limit)} }

// Look judges what the thermometers show. Where none is of the processors the site pauses: the
// owner wanted to be sure.
func (h *Heat) Look(all []Sensor) Said {
	hottest, known := 0.0, false
	for _, s := range all {
		if ofProcessor(s.Name) && s.Celsius > lowest && s.Celsius < highest {
			hottest, known = max(hottest, s.Celsius), true
		}
	}
	if !known {
		const text = "this machine does not tell how hot its processors are"
		return Said{Why: WhyHeat + text, Trouble: text}
	}
	switch {
	case hottest >= h.limit:
		h.hot = true
	case hottest < h.limit-cools:
		h.hot = false
	}
	if !h.hot {
		return Said{}
	}
	return Said{Why: fmt.Sprintf(WhyHeat+"the processors have %.0f °C, want less than %.0f °C",
		hottest, h.limit-cools)}
}

// What a thermometer shows that works, in degrees Celsius.
const (
	lowest  = -60
	highest = 200
)

// ofProcessor reports whether a thermometer is that of processors, by how Linux' drivers call
// theirs.
func ofProcessor(name string) bool {
	name = strings.ToLower(name)
	for _, begins := range [...]string{
		"coretemp", "k8temp", "k10temp", "zenpower", "x86_pkg_temp", // Intel and AMD
		"cpu", "soc", "bigcore", "littlecore", "package", // boards with ARM and others
	} {
		if strings.HasPrefix(name, begins) {
			return true
		}
	}
	return false
}
