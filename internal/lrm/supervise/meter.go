package supervise

import (
	"math"
	"runtime"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	meterBurst = 200 * time.Millisecond // of its share a program may be ahead
	// between two looks at a program that is near its share, at least
	meterEvery  = 20 * time.Millisecond
	meterRarely = 250 * time.Millisecond // the same where it takes long to look and to stop
	meterLatest = 100 * time.Millisecond // between two looks at one that is far from it or waits
	meterIdle   = time.Millisecond       // of use between two looks: the program waits
	longestHold = time.Second            // of one pause
	milli       = 1000
)

// meter says when a program that has used more than its share of the processors
// must pause. What it does not use it may catch up on, for a moment only.
type meter struct {
	cores  float64       // its share
	many   float64       // how many it could use at most
	credit time.Duration // of processor time; below 0 it is ahead of its share
	used   time.Duration // at the last look
	idle   bool          // between the last two looks
	at     time.Time     // of the last look; zero: none
	every  time.Duration // between two looks, at least
}

// newMeter makes the meter of a runner. Where its processes have to be found and
// stopped one by one it looks less often.
func newMeter(spec Spec) meter {
	cores := float64(spec.Limits.OrDefault().MilliCPUs) / milli
	m := meter{
		cores: cores, many: float64(runtime.NumCPU()), credit: scale(meterBurst, cores),
		every: meterEvery,
	}
	if spec.Tree && spec.FreezeDir == "" {
		m.every = meterRarely
	}
	return m
}

// beganAt is the meter of a runner that has begun at a time and used nothing yet.
func beganAt(now time.Time, spec Spec) meter {
	m := newMeter(spec)
	m.at = now
	return m
}

func scale(d time.Duration, by float64) time.Duration {
	return time.Duration(math.Round(float64(d) * by))
}

// look notes what the program has used by now and returns how long it must
// pause, 0 if it need not.
func (m *meter) look(now time.Time, used time.Duration) time.Duration {
	if m.at.IsZero() {
		m.at, m.used = now, used
		return 0
	}
	earned := scale(now.Sub(m.at), m.cores)
	m.credit = min(m.credit+earned-max(used-m.used, 0), scale(meterBurst, m.cores))
	m.idle = used-m.used <= meterIdle
	m.at, m.used = now, max(used, m.used)
	if m.credit >= 0 {
		return 0
	}
	return min(scale(-m.credit, 1/m.cores), longestHold)
}

// forget leaves out the time since the last look, in which the program could not
// run.
func (m *meter) forget() { m.at = time.Time{} }

// nextLook is the time until the program can have used up its credit, or until
// its pause ends. One that waits is trusted to go on doing so for a moment: each look
// wakes a process, and most programs with a small share wait.
func (m *meter) nextLook(now, heldTill time.Time) time.Duration {
	if !heldTill.IsZero() {
		return heldTill.Sub(now)
	}
	if m.idle {
		return max(meterLatest, m.every)
	}
	return max(min(scale(max(m.credit, 0), 1/m.many), meterLatest), m.every)
}

// share holds the runner to its share of the processors: it lets it pause, and go
// on when that is over.
func (s *supervisor) share(now time.Time) {
	if !s.heldTill.IsZero() {
		if now.Before(s.heldTill) {
			return
		}
		s.heldTill = time.Time{}
		if err := s.runner.resume(); err != nil {
			s.kill(grid.CauseSandbox, "go on after a pause: "+err.Error())
			return
		}
	}
	if !s.meter.at.IsZero() && now.Sub(s.meter.at) < s.meter.every {
		return
	}
	used, ok := s.spec.runnerTime(s.runner.pid())
	if !ok {
		return
	}
	pause := s.meter.look(now, used)
	if pause == 0 {
		return
	}
	if err := s.runner.freeze(); err != nil {
		s.kill(grid.CauseSandbox, "pause: "+err.Error())
		return
	}
	s.heldTill = now.Add(pause)
}
