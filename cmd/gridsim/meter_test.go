package main

import (
	"strings"
	"testing"
	"time"
)

// steps is a clock that goes on by so much with each look.
func steps(by time.Duration) func() time.Time {
	now := time.Unix(0, 0)
	return func() time.Time {
		now = now.Add(by)
		return now
	}
}

// Where nothing can be redrawn there is one line in ten seconds at most, and none of the end.
func TestMeterWritesLines(t *testing.T) {
	var out strings.Builder
	m := newMeter(&out, steps(4*time.Second), 10)
	for done := 1; done <= 10; done++ {
		m.tell(done)
	}
	m.clear()
	const want = "3 of 10 runs, about 28s left\n6 of 10 runs, about 16s left\n" +
		"9 of 10 runs, about 4s left\n"
	if out.String() != want {
		t.Errorf("have %q, want %q", out.String(), want)
	}
}

// On a terminal one line is redrawn, and in the end nothing of it is left.
func TestMeterRedraws(t *testing.T) {
	var out strings.Builder
	m := newMeter(&out, steps(40*time.Millisecond), 6)
	m.terminal, m.next = true, m.began
	for done := 1; done <= 6; done++ {
		m.tell(done)
	}
	m.clear()
	const erase = "\r\x1b[K"
	drawn := strings.Split(out.String(), erase)
	if len(drawn) != 4 || drawn[0] != "" || drawn[3] != "" || strings.Contains(out.String(), "\n") ||
		drawn[1] != "[####....................] 1 of 6 runs, about 0s left" ||
		!strings.HasPrefix(drawn[2], "[################........] 4 of 6") {
		t.Errorf("drawn %q", drawn)
	}
	if m.clear(); !strings.HasSuffix(out.String(), "left"+erase) {
		t.Errorf("cleared twice: %q", out.String())
	}
}

func TestRoughly(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": 300 * time.Millisecond, "41s": 41200 * time.Millisecond, "1m0s": 62 * time.Second,
		"3m20s": 199 * time.Second, "2h5m": 2*time.Hour + 4*time.Minute + 50*time.Second,
	} {
		if got := roughly(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}
