package yield

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Reading is a measured value, or the fact that it is unknown.
type Reading struct {
	Value float64
	Known bool
}

// Measured is a reading that is known.
func Measured(v float64) Reading { return Reading{Value: v, Known: true} }

// above reports whether the value is known and more than that.
func (r Reading) above(most float64) bool { return r.Known && r.Value > most }

// Sample holds the measurements of a machine since the last look.
type Sample struct {
	At     time.Time // on a clock that does not step back
	Cores  float64   // processors of the machine
	Others Reading   // processors that others than this agent and its jobs use, stolen time included
	Stolen Reading   // of these, processors that the host gave to other guests
	Jobs   float64   // processors that this agent and its jobs use
	Live   bool      // there are jobs, be they frozen or not

	CPU    Reading // share of the time, 0 to 1, in which somebody else waits for a processor
	Memory Reading // likewise for memory
	IO     Reading // likewise for a disk
	Load   Reading // processes that run or wait, over the last minute
}

// Rules say how much is too much.
type Rules struct {
	Reserve  float64       // cores that stay free beside what the owner uses
	Floor    float64       // cores; what others use below this never counts
	CPU      float64       // share of the time that others may wait for a processor
	Memory   float64       // likewise for memory
	IO       float64       // likewise for a disk
	Looks    int           // looks in a row that must find the owner in need
	Calm     time.Duration // of calm before jobs go on
	CalmMost time.Duration // the same at most, when the owner keeps coming back right away
}

// DefaultRules keep a quarter of a core free and give way when others wait for
// memory a tenth, for a disk three tenths, or for a processor half of the time.
func DefaultRules() Rules {
	return Rules{
		Reserve: .25, Floor: .25, CPU: .5, Memory: .1, IO: .3, Looks: 2,
		Calm: 10 * time.Second, CalmMost: 5 * time.Minute,
	}
}

// Validate reports everything that is out of its range.
func (r Rules) Validate() error {
	var errs []error
	for _, f := range []struct {
		name      string
		have, top float64
	}{
		{"Reserve", r.Reserve, 1 << 16},
		{"Floor", r.Floor, 1 << 16},
		{"CPU", r.CPU, 1},
		{"Memory", r.Memory, 1},
		{"IO", r.IO, 1},
	} {
		if !(f.have >= 0 && f.have <= f.top) {
			errs = append(errs, fmt.Errorf("%s: want 0 to %g, have %g", f.name, f.top, f.have))
		}
	}
	if r.Looks < 1 || r.Looks > 100 {
		errs = append(errs, fmt.Errorf("rules: Looks: want 1 to 100, have %d", r.Looks))
	}
	if r.Calm <= 0 || r.CalmMost < r.Calm {
		errs = append(errs, fmt.Errorf("rules: Calm: want more than 0 and at most CalmMost %s, have %s",
			r.CalmMost, r.Calm))
	}
	return errors.Join(errs...)
}

// Verdict is the result of a look at the machine.
type Verdict struct {
	Busy    bool   // the owner needs the machine
	Changed bool   // it was otherwise before
	Why     string // for people; empty while the owner does not need it
}

const (
	gap         = 5 * time.Second  // without a look: what was seen before says nothing
	wantHalf    = 30 * time.Second // in which the memory of what jobs used fades by half
	relaxed     = .8               // of each threshold: what counts as calm
	slack       = .1               // cores; likewise
	comesBack   = time.Minute      // an owner who is back within this was never away
	longerEach  = 2                // times, the wait for calm after that
	longestWant = 1 << 16          // cores; no machine has more
	percent     = 100
)

// Judge remembers what is needed from look to look. It has one owner.
type Judge struct {
	rules  Rules
	busy   bool
	streak int           // looks in a row that found the owner in need
	last   time.Time     // of the last look
	want   float64       // cores that the jobs used lately, and would use again
	calm   time.Time     // since when it is calm, while busy; zero: it is not
	hold   time.Duration // of calm that is waited for
	back   time.Time     // when the jobs last went on
}

// New makes a judge. The rules must be valid; New panics on others.
func New(r Rules) *Judge {
	if err := r.Validate(); err != nil {
		panic(fmt.Sprintf("new judge: %v", err))
	}
	return &Judge{rules: r, hold: r.Calm}
}

// Look judges a sample. Samples come in the order of time.
func (j *Judge) Look(s Sample) Verdict {
	passed := s.At.Sub(j.last)
	if j.last.IsZero() || passed > gap || passed < 0 {
		j.streak, j.calm, passed = 0, time.Time{}, 0
	}
	j.last = s.At
	j.remember(s, passed)
	why := j.need(s)
	if j.busy {
		return j.whileBusy(s.At, why)
	}
	if why == "" {
		j.streak = 0
		return Verdict{}
	}
	if j.streak++; j.streak < j.rules.Looks {
		return Verdict{}
	}
	j.busy, j.calm, j.streak = true, time.Time{}, 0
	if !j.back.IsZero() && s.At.Sub(j.back) < comesBack {
		j.hold = min(longerEach*j.hold, j.rules.CalmMost)
	} else {
		j.hold = j.rules.Calm
	}
	return Verdict{Busy: true, Changed: true, Why: why}
}

func (j *Judge) whileBusy(now time.Time, why string) Verdict {
	if why != "" {
		j.calm = time.Time{}
		return Verdict{Busy: true, Why: why}
	}
	if j.calm.IsZero() {
		j.calm = now
	}
	if now.Sub(j.calm) < j.hold {
		return Verdict{Busy: true, Why: "it is calm, but not for long enough"}
	}
	j.busy, j.back = false, now
	return Verdict{Changed: true}
}

// remember keeps what the jobs use for the time in which they are frozen or get
// no processor.
func (j *Judge) remember(s Sample, passed time.Duration) {
	switch {
	case !s.Live:
		j.want = 0
	case j.busy: // they are suspended
	default:
		fade := math.Exp2(-passed.Seconds() / wantHalf.Seconds())
		j.want = min(max(finite(s.Jobs), j.want*fade), longestWant)
	}
}

// need says why the owner needs the machine, nothing if they do not. When jobs are
// suspended already, the thresholds are lower.
func (j *Judge) need(s Sample) string {
	part, spare := 1.0, 0.0
	if j.busy {
		part, spare = relaxed, slack
	}
	if s.Others.Known && s.Others.Value > j.rules.Floor*part &&
		s.Others.Value+j.want+j.rules.Reserve+spare > s.Cores {
		return fmt.Sprintf("others use %.1f of %g cores", s.Others.Value, s.Cores)
	}
	quiet := s.Others.Known && s.Others.Value <= j.rules.Floor
	switch {
	case s.Memory.above(j.rules.Memory * part):
		return fmt.Sprintf("processes wait for memory %.0f %% of the time", percent*s.Memory.Value)
	case s.IO.above(j.rules.IO * part):
		return fmt.Sprintf("others wait for a disk %.0f %% of the time", percent*s.IO.Value)
	case !quiet && s.CPU.above(j.rules.CPU*part):
		return fmt.Sprintf("others wait for a processor %.0f %% of the time", percent*s.CPU.Value)
	}
	if !s.Others.Known && s.Load.Known && s.Load.Value-finite(s.Jobs) > s.Cores*part {
		return fmt.Sprintf("the load is %.1f on %g cores", s.Load.Value, s.Cores)
	}
	return ""
}

func finite(v float64) float64 {
	if v > 0 && !math.IsInf(v, 0) {
		return v
	}
	return 0
}
