package site

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// anchor says where a clock that is never set stood as a time was written: the wall clock may be
// set before that is read again.
type anchor struct {
	Clock  string `json:"clock,omitempty"`   // as step.Clock.Of; empty: there is none
	ZeroMS int64  `json:"zero_ms,omitempty"` // as step.Clock.Zero, ms since 1970 UTC
}

// anchor is for times that count on this machine's clock.
func (c clocks) anchor() anchor {
	if c.lasting.Of == "" {
		return anchor{}
	}
	return anchor{Clock: c.lasting.Of, ZeroMS: step.MS(c.lasting.Zero)}
}

// setSince is by how much the wall clock was set since an earlier run wrote a time; 0 after a
// boot of the machine, when nothing tells.
func (a anchor) setSince(now step.Clock) time.Duration {
	if now.Of == "" || a.Clock != now.Of {
		return 0
	}
	return time.Duration(step.MS(now.Zero)-a.ZeroMS) * time.Millisecond
}

// endedFact says when an attempt ended, on the wall clock as it stood when this was written.
type endedFact struct {
	EndedMS int64 `json:"ended_ms,omitempty"` // ms since 1970 UTC
	anchor
}

func (m *Machine) newEndedFact(ended time.Time) endedFact {
	f := endedFact{EndedMS: step.MS(ended), anchor: m.clocks.anchor()}
	f.shift(m.clocks.ahead)
	return f
}

// shift moves all times.
func (f *endedFact) shift(by time.Duration) {
	f.EndedMS += by.Milliseconds()
	if f.ZeroMS != 0 {
		f.ZeroMS += by.Milliseconds()
	}
}

// rereadEnds moves the ends of an earlier run to where they are on the clock of this one.
func (m *Machine) rereadEnds() {
	for _, a := range m.roster.where((*attempt).hasExited) {
		if by := a.shown.setSince(m.clocks.lasting); by != 0 {
			a.shown.shift(by)
			a.ended = a.ended.Add(by)
			m.save(a)
		}
	}
}
