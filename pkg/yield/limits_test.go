package yield

import (
	"math"
	"strings"
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

// An owner who is back a minute after the jobs went on, or later, was away; one who is back
// before is waited for twice as long.
func TestWhoIsBackWithinAMinuteWasNotAway(t *testing.T) {
	for after, want := range map[time.Duration]time.Duration{
		comesBack - 1: longerEach * DefaultRules().Calm, comesBack: DefaultRules().Calm,
		comesBack + 1: DefaultRules().Calm,
	} {
		j := New(DefaultRules())
		j.back = start()
		s := sharing()
		s.Memory, s.At = Measured(1), start().Add(after-every)
		j.Look(s)
		s.At = start().Add(after)
		if v := j.Look(s); !v.Busy || j.hold != want {
			t.Errorf("back after %s: %+v, waits %s, want %s", after, v, j.hold, want)
		}
	}
}

// Looks that find the owner in need count only in a row, also after the jobs went on.
func TestLooksCountInARow(t *testing.T) {
	p := newPlayer()
	busy, calm := sharing(), sharing()
	busy.Memory = Measured(.5)
	for range 5 {
		if p.look(busy).Busy || p.look(calm).Busy {
			t.Fatal("busy after one look in two")
		}
	}
	for range 2 {
		if first, second := p.look(busy), p.look(busy); first.Busy || !second.Busy {
			t.Errorf("in a row: %+v, %+v", first, second)
		}
		if _, changed := p.looks(calm, time.Hour); !changed {
			t.Fatal("busy forever")
		}
	}
}

// While jobs are suspended each threshold is at four fifths, or at a tenth of a core less: what
// lies between is no calm.
func TestCalmIsWellBelowTheThresholds(t *testing.T) {
	set := func(change func(*Sample, float64)) func(float64) Sample {
		return func(v float64) Sample {
			s := sharing()
			s.Jobs, s.Others = 0, Measured(.3)
			change(&s, v)
			return s
		}
	}
	for name, c := range map[string]struct {
		sample            func(float64) Sample
		busy, still, calm float64
	}{
		"cpu":    {set(func(s *Sample, v float64) { s.CPU = Measured(v) }), .51, .41, .39},
		"memory": {set(func(s *Sample, v float64) { s.Memory = Measured(v) }), .11, .081, .079},
		"io":     {set(func(s *Sample, v float64) { s.IO = Measured(v) }), .31, .241, .239},
		"load": {set(func(s *Sample, v float64) {
			s.Load, s.Others = Measured(v), Reading{}
		}), 4.1, 3.3, 3.1},
		"others": {set(func(s *Sample, v float64) { s.Others = Measured(v) }), 3.76, 3.66, 3.64},
		"others below the floor": {set(func(s *Sample, v float64) {
			s.Others, s.Cores = Measured(v), .3
		}), .26, .21, .19},
	} {
		p := newPlayer()
		if _, changed := p.looks(c.sample(c.busy), 2*every); !changed {
			t.Errorf("%s: not busy at %v", name, c.busy)
		}
		if took, changed := p.looks(c.sample(c.still), time.Hour); changed {
			t.Errorf("%s: calm after %s at %v", name, took, c.still)
		}
		if took, _ := p.looks(c.sample(c.calm), time.Hour); took != 10*time.Second+every {
			t.Errorf("%s: calm after %s at %v, want 10 s after the first look", name, took, c.calm)
		}
		if took, changed := p.looks(c.sample(c.still), time.Hour); changed {
			t.Errorf("%s: busy after %s at %v, with jobs that run", name, took, c.still)
		}
	}
}

// What jobs used is remembered by half after half a minute: with 3 cores that they used then,
// and a quarter that stays free, 2.25 of four cores are left to others after half a minute.
func TestWhatJobsUsedFadesByHalf(t *testing.T) {
	for others, busy := range map[float64]bool{2.20: false, 2.32: true} {
		p := newPlayer()
		p.look(sharing())
		idle := sharing()
		idle.Jobs = 0
		if _, changed := p.looks(idle, wantHalf-2*every); changed {
			t.Fatal("busy without a reason")
		}
		idle.Others = Measured(others)
		if _, changed := p.looks(idle, 2*every); changed != busy {
			t.Errorf("%v cores of others: busy %t", others, changed)
		}
	}
}

// Rules that make no sense make no judge.
func TestNewRefusesWrongRules(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a judge without rules")
		}
	}()
	New(Rules{})
}

// Hours are equal where they are written alike, and always where nothing is written.
func TestHoursThatAreEqual(t *testing.T) {
	parse := func(text string) Hours {
		h, err := ParseHours(text)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	always, night, day := parse(" "), parse("18:00-08:00"), parse("08:00-18:00")
	if !always.Always() || night.Always() || !(Hours{}).Always() {
		t.Error("always is wrong")
	}
	if !night.Equal(parse(" 18:00-08:00 ")) || night.Equal(day) || !always.Equal(Hours{}) {
		t.Error("equal is wrong")
	}
	if night.String() != "18:00-08:00" {
		t.Errorf("written as %q", night)
	}
	most := strings.Repeat("mon 10:00-11:00,", maxWindow-1) + "mon 10:00-11:00"
	parse(most)
	if _, err := ParseHours(most + ",mon 10:00-11:00"); err == nil {
		t.Errorf("more than %d windows", maxWindow)
	}
}

// Calm counts from the last look that was none: an owner who is back for a moment is waited for
// all of the time again.
func TestCalmIsWithoutABreak(t *testing.T) {
	p := newPlayer()
	busy, calm := sharing(), sharing()
	busy.Memory = Measured(.5)
	p.looks(busy, time.Minute)
	for range 3 {
		if took, changed := p.looks(calm, 9*time.Second); changed {
			t.Fatalf("went on after %s", took)
		}
		p.look(busy)
	}
	if took, changed := p.looks(calm, time.Minute); !changed || took != 10*time.Second+every {
		t.Errorf("went on after %s, %t", took, changed)
	}
}
