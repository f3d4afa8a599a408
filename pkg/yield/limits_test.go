package yield

import (
	"math"
	"testing"
	"time"
)

// Rules have a last value that is taken and a first that is not.
func TestEachLimitIsExact(t *testing.T) {
	above := func(v float64) float64 { return math.Nextafter(v, math.Inf(1)) }
	below := math.Nextafter(0, -1)
	share := func(field func(*Rules) *float64, v float64) func(*Rules) {
		return func(r *Rules) { *field(r) = v }
	}
	type limit struct{ last, first func(*Rules) }
	table := map[string]limit{
		"looks": {func(r *Rules) { r.Looks = 100 }, func(r *Rules) { r.Looks = 101 }},
		"look":  {func(r *Rules) { r.Looks = 1 }, func(r *Rules) { r.Looks = 0 }},
		"calm":  {func(r *Rules) { r.Calm = 1 }, func(r *Rules) { r.Calm = 0 }},
		"most calm": {
			func(r *Rules) { r.CalmMost = r.Calm }, func(r *Rules) { r.CalmMost = r.Calm - 1 },
		},
	}
	for name, f := range map[string]struct {
		top   float64
		field func(*Rules) *float64
	}{
		"reserve": {1 << 16, func(r *Rules) *float64 { return &r.Reserve }},
		"floor":   {1 << 16, func(r *Rules) *float64 { return &r.Floor }},
		"cpu":     {1, func(r *Rules) *float64 { return &r.CPU }},
		"memory":  {1, func(r *Rules) *float64 { return &r.Memory }},
		"io":      {1, func(r *Rules) *float64 { return &r.IO }},
	} {
		table[name+" most"] = limit{share(f.field, f.top), share(f.field, above(f.top))}
		table[name+" least"] = limit{share(f.field, 0), share(f.field, below)}
	}
	for name, c := range table {
		last, first := DefaultRules(), DefaultRules()
		c.last(&last)
		c.first(&first)
		if err := last.Validate(); err != nil {
			t.Errorf("%s: the last that is taken: %v", name, err)
		}
		if first.Validate() == nil {
			t.Errorf("%s: the first that is not is taken", name)
		}
	}
}

// A minute is four digits and a colon, from 00:00 to 24:00, and nothing beside an error.
func TestMinutes(t *testing.T) {
	for text, want := range map[string]int{
		"00:00": 0, "00:59": 59, "09:30": 570, "19:09": 1149, "23:59": 1439, "24:00": 1440,
	} {
		if got, ok := parseMinute(text); got != want || !ok {
			t.Errorf("%q is minute %d, %t, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"", "0:00", "00:000", "00-00", "/0:00", ":0:00", "0/:00", "0::00", "00:/0", "00::0", "00:0/",
		"00:0:", "a0:00",
	} {
		if got, ok := parseMinute(text); got != 0 || ok {
			t.Errorf("%q is minute %d, %t", text, got, ok)
		}
	}
	for _, text := range []string{"00:60", "24:01", "99:99"} {
		if _, ok := parseMinute(text); ok {
			t.Errorf("%q is a minute", text)
		}
	}
}

// What jobs use is an amount, or counts as nothing.
func TestUseIsFinite(t *testing.T) {
	for v, want := range map[float64]float64{
		0: 0, 0.5: 0.5, -1: 0, math.MaxFloat64: math.MaxFloat64, math.Inf(1): 0, math.Inf(-1): 0,
	} {
		if got := finite(v); got != want {
			t.Errorf("%v counts as %v, want %v", v, got, want)
		}
	}
	if got := finite(math.NaN()); got != 0 {
		t.Errorf("no number counts as %v", got)
	}
}

// A streak lasts over a pause of exactly the gap, and not over a longer one.
func TestAStreakLastsOverTheGap(t *testing.T) {
	for pause, busy := range map[time.Duration]bool{gap: true, gap + 1: false, 0: true, -1: false} {
		s := sharing()
		s.Memory, s.At = Measured(1), start()
		j := New(DefaultRules()) // two looks in a row
		j.Look(s)
		s.At = s.At.Add(pause)
		if got := j.Look(s).Busy; got != busy {
			t.Errorf("after %v: busy = %t", pause, got)
		}
	}
}
