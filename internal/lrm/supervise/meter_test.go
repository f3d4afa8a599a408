package supervise

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A program that takes all it can get has, over any stretch, no more than its
// share, the burst, and what it can take between two looks.
func TestMeterHoldsAnyProgram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMeter(Spec{})
		m.cores, m.many = rapid.Float64Range(.05, 4).Draw(t, "share"), 8
		m.credit = scale(meterBurst, m.cores)
		start := time.Unix(1_700_000_000, 0)
		now, used, till := start, time.Duration(0), time.Time{}
		m.look(now, used)
		for range 200 {
			step := max(m.nextLook(now, till), time.Millisecond)
			if till.IsZero() {
				used += scale(step, rapid.Float64Range(0, m.many).Draw(t, "appetite"))
			}
			now = now.Add(step)
			if !till.IsZero() && now.Before(till) {
				continue
			}
			till = time.Time{}
			if pause := m.look(now, used); pause > 0 {
				till = now.Add(pause)
			}
		}
		most := scale(now.Sub(start), m.cores) + scale(meterBurst, m.cores) + scale(meterLatest, m.many)
		if used > most {
			t.Fatalf("used %s in %s, want at most %s", used, now.Sub(start), most)
		}
	})
}

// One that keeps to its share is never held, however it spreads its use.
func TestMeterLetsThemBeWhoKeepToTheirShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMeter(Spec{})
		m.cores = rapid.Float64Range(.1, 4).Draw(t, "share")
		m.credit = scale(meterBurst, m.cores)
		now, used := time.Unix(1_700_000_000, 0), time.Duration(0)
		m.look(now, used)
		for range 100 {
			step := time.Duration(rapid.Int64Range(1e6, 1e8).Draw(t, "step"))
			now, used = now.Add(step), used+scale(step, m.cores*.999)
			if pause := m.look(now, used); pause > 0 {
				t.Fatalf("held for %s", pause)
			}
		}
	})
}
