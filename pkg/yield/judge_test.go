package yield

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const every = 500 * time.Millisecond

func start() time.Time { return time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC) }

// player gives a judge one sample after the other.
type player struct {
	j   *Judge
	now time.Time
}

func newPlayer() *player { return &player{j: New(DefaultRules()), now: start()} }

func (p *player) look(s Sample) Verdict {
	p.now = p.now.Add(every)
	s.At = p.now
	return p.j.Look(s)
}

// looks gives the same sample for a while, and how long it took until the verdict
// changed; false if it did not.
func (p *player) looks(s Sample, during time.Duration) (time.Duration, bool) {
	began := p.now
	for p.now.Sub(began) < during {
		if p.look(s).Changed {
			return p.now.Sub(began), true
		}
	}
	return 0, false
}

func sharing() Sample { // four cores, three of which the jobs use
	return Sample{
		Cores: 4, Others: Measured(.2), Jobs: 3, Live: true, CPU: Measured(.1), Memory: Measured(0),
		IO: Measured(0),
	}
}

func TestLook(t *testing.T) {
	with := func(change func(*Sample)) Sample {
		s := sharing()
		change(&s)
		return s
	}
	tests := []struct {
		name   string
		sample Sample
		want   string // in Why; empty: not busy
	}{
		{"jobs alone", sharing(), ""},
		{"jobs alone on all cores, which wait for each other", with(func(s *Sample) {
			s.Jobs, s.CPU = 3.8, Measured(1)
		}), ""},
		{"the owner's share is enough", with(func(s *Sample) { s.Others = Measured(.7) }), ""},
		{"it is not", with(func(s *Sample) { s.Others = Measured(.8) }), "others use 0.8 of 4 cores"},
		{"no jobs, and room", with(func(s *Sample) { s.Live, s.Others = false, Measured(3.7) }), ""},
		{"no jobs, and just enough", with(func(s *Sample) {
			s.Live, s.Others = false, Measured(3.75)
		}), ""},
		{"no jobs, and no capacity", with(func(s *Sample) {
			s.Live, s.Others = false, Measured(3.8)
		}), "others use 3.8"},
		{"memory", with(func(s *Sample) { s.Memory = Measured(.2) }), "memory 20 %"},
		{"disk", with(func(s *Sample) { s.IO = Measured(.5) }), "disk 50 %"},
		{"processors", with(func(s *Sample) {
			s.Others, s.CPU = Measured(.3), Measured(.6)
		}), "processor 60 %"},
		{"nothing is known", Sample{Cores: 4, Jobs: 9, Live: true}, ""},
		{
			"only the load is known",
			Sample{Cores: 4, Load: Measured(6), Jobs: 1, Live: true},
			"load is 6.0",
		},
		{"the load is the jobs'", Sample{Cores: 4, Load: Measured(4.5), Jobs: 3, Live: true}, ""},
		{"the load does not count where better is known", with(func(s *Sample) {
			s.Load = Measured(50)
		}), ""},
		{"nonsense", Sample{
			Cores: math.NaN(), Others: Measured(math.NaN()), Jobs: math.Inf(1), CPU: Measured(math.NaN()),
			Live: true,
		}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlayer()
			first, second := p.look(tt.sample), p.look(tt.sample)
			if first.Busy {
				t.Errorf("busy after one look: %+v", first)
			}
			if second.Busy != (tt.want != "") || !strings.Contains(second.Why, tt.want) ||
				second.Changed != second.Busy {
				t.Errorf("verdict %+v, want %q", second, tt.want)
			}
		})
	}
}

// From the first process of the owner's to the verdict: less than two seconds, also when
// they come right after a look.
func TestYieldsWithinTwoSeconds(t *testing.T) {
	p := newPlayer()
	p.looks(sharing(), time.Minute)
	half := sharing()
	half.Others = Measured(.5) // the owner came in the midst of the interval
	p.look(half)
	full := sharing()
	full.Others, full.Jobs = Measured(4), 0 // idle priority: nothing is left to the jobs
	if took, changed := p.looks(full, time.Minute); !changed || took+every > 2*time.Second {
		t.Errorf("took %s, changed %t", took+every, changed)
	}
	// While the owner is there it stays so, and suspended jobs are no sign of calm.
	if took, changed := p.looks(full, time.Hour); changed {
		t.Errorf("went on after %s while others used everything", took)
	}
	calm := sharing()
	calm.Jobs = 0
	if took, changed := p.looks(calm, time.Hour); !changed || took < 10*time.Second ||
		took > 11*time.Second {
		t.Errorf("went on after %s, changed %t; want 10 s", took, changed)
	}
}

// What frozen jobs would use again is remembered: they do not go on when that
// would only bring the owner back.
func TestRemembersWhatJobsWant(t *testing.T) {
	p := newPlayer()
	p.looks(sharing(), time.Minute)
	busy := sharing()
	busy.Others, busy.Jobs = Measured(1.5), 2.5
	if _, changed := p.looks(busy, time.Minute); !changed {
		t.Fatal("not busy")
	}
	busy.Jobs = 0
	if took, changed := p.looks(busy, time.Hour); changed {
		t.Errorf("went on after %s", took)
	}
	busy.Live = false // they moved away
	if _, changed := p.looks(busy, time.Minute); !changed {
		t.Error("busy forever, with nothing that could disturb the owner")
	}
}

// An owner who keeps coming back right away is waited for longer each time.
func TestWaitsLongerEachTime(t *testing.T) {
	p := newPlayer()
	busy, calm := sharing(), sharing()
	busy.Memory = Measured(.5)
	var waits []time.Duration
	for range 8 {
		p.looks(busy, time.Minute)
		took, _ := p.looks(calm, time.Hour)
		waits = append(waits, took.Round(time.Second))
	}
	for i, seconds := range []int{10, 20, 40, 80, 160, 300, 300, 300} {
		want := time.Duration(seconds) * time.Second
		if got := waits[i] - waits[i]%(10*time.Second); got != want {
			t.Errorf("wait %d is %s, want %s", i, waits[i], want)
		}
	}
	p.looks(calm, 2*time.Minute)
	p.looks(busy, time.Minute)
	if took, _ := p.looks(calm, time.Hour); took > 11*time.Second {
		t.Errorf("after a long absence the wait is %s", took)
	}
}

// A machine whose only load is its jobs never yields to its owner, whatever the
// jobs do to the processors' queue.
func TestJobsAloneNeverYield(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPlayer()
		cores := float64(rapid.IntRange(1, 64).Draw(t, "cores"))
		for range 100 {
			s := Sample{
				Cores: cores, Jobs: rapid.Float64Range(0, cores).Draw(t, "jobs"), Live: true,
				Others: Measured(rapid.Float64Range(0, .25).Draw(t, "noise")),
				CPU:    Measured(rapid.Float64Range(0, 1).Draw(t, "waiting")),
				Load:   Measured(rapid.Float64Range(0, 1e3).Draw(t, "load")),
				Memory: Measured(rapid.Float64Range(0, .1).Draw(t, "memory")), IO: Reading{},
			}
			if v := p.look(s); v.Busy {
				t.Fatalf("yielded to itself: %+v for %+v", v, s)
			}
		}
	})
}

// Whatever is measured: a verdict changes to busy only after two bad looks in a
// row, and back only after ten calm seconds; so it cannot flutter.
func TestNeverFlutters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPlayer()
		value := rapid.Custom(func(t *rapid.T) Reading {
			return Reading{Value: rapid.SampledFrom(
				[]float64{0, .05, .3, 1, 4, math.Inf(1), math.NaN(), -1},
			).Draw(t, "value"), Known: rapid.Bool().Draw(t, "known")}
		})
		changed, busy := p.now, false
		for range 300 {
			v := p.look(Sample{
				Cores: 4, Others: value.Draw(t, "others"),
				Jobs: value.Draw(t, "jobs").Value, Live: rapid.Bool().Draw(t, "live"),
				CPU: value.Draw(t, "cpu"), Memory: value.Draw(t, "memory"), IO: value.Draw(t, "io"),
				Load: value.Draw(t, "load"),
			})
			if v.Changed != (v.Busy != busy) || v.Busy != (v.Why != "") {
				t.Fatalf("inconsistent: %+v, busy before: %t", v, busy)
			}
			if v.Changed {
				least := 2 * every
				if !v.Busy {
					least = 10 * time.Second
				}
				if p.now.Sub(changed) < least {
					t.Fatalf("changed after %s, want at least %s", p.now.Sub(changed), least)
				}
				changed, busy = p.now, v.Busy
			}
		}
	})
}

// A pause between looks, as by a suspend, says nothing about the owner.
func TestGap(t *testing.T) {
	p := newPlayer()
	busy := sharing()
	busy.Memory = Measured(.5)
	p.look(busy)
	p.now = p.now.Add(time.Hour)
	if v := p.look(busy); v.Busy {
		t.Errorf("two looks an hour apart are no two in a row: %+v", v)
	}
}

func TestValidateRules(t *testing.T) {
	if err := DefaultRules().Validate(); err != nil {
		t.Error(err)
	}
	bad := Rules{
		Reserve: -1, Floor: math.NaN(), CPU: 2, Memory: -1, IO: math.Inf(1), Calm: 2, CalmMost: 1,
	}
	err := bad.Validate()
	if err == nil {
		t.Fatal("bad rules are fine")
	}
	for _, field := range []string{"Reserve", "Floor", "CPU", "Memory", "IO", "Looks", "Calm"} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("%s is not named in %v", field, err)
		}
	}
}
