package eval

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A profile counts the lines of the log: with one job and many, on a machine of one processor and
// of many, with estimates that cut runs.
func TestProfileIsThatOfTheLog(t *testing.T) {
	for _, log := range []JobLog{
		{Procs: 1, Jobs: 1, Seed: 1},
		{Procs: 100, Jobs: 700, Seed: 2},
		{Procs: 64, Jobs: 300, Seed: 3, Typed: true, Estimates: true, Longest: time.Hour},
	} {
		var text bytes.Buffer
		p, err := log.Profile()
		if err = errors.Join(err, log.Write(&text)); err != nil {
			t.Fatal(err)
		}
		if p.Jobs != log.Jobs || !strings.Contains(text.String(), "a model: "+p.Model+"\n") {
			t.Errorf("%d jobs of %q", p.Jobs, p.Model)
		}
		wantUpTo(t, p.Procs, fieldOf(t, text.String(), 5))
		wantUpTo(t, p.Runs, fieldOf(t, text.String(), 4))
		hours := make(map[int]float64)
		for _, submit := range fieldOf(t, text.String(), 2) {
			hours[submit/3600%24]++
		}
		for hour, s := range p.Hours {
			if s.At != float64(hour) || math.Abs(s.Part*float64(log.Jobs)-hours[hour]) > 1e-9 {
				t.Errorf("hour %d: %+v, counted %v", hour, s, hours[hour])
			}
		}
		if len(p.Hours) != 24 {
			t.Errorf("%d hours", len(p.Hours))
		}
	}
	if _, err := (JobLog{Procs: 1}).Profile(); !errors.Is(err, ErrUsage) {
		t.Errorf("no jobs: %v", err)
	}
}

// fieldOf is a field of all jobs of a log, from 1.
func fieldOf(t *testing.T, log string, field int) []int {
	t.Helper()
	var all []int
	for line := range strings.Lines(log) {
		if strings.HasPrefix(line, ";") {
			continue
		}
		n, err := strconv.Atoi(strings.Fields(line)[field-1])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, n)
	}
	return all
}

// wantUpTo says that shares are counted up to each power of two, and no further than needed.
func wantUpTo(t *testing.T, shares []Share, values []int) {
	t.Helper()
	for i, s := range shares {
		count := 0
		for _, v := range values {
			if float64(v) <= s.At {
				count++
			}
		}
		if s.At != math.Ldexp(1, i) || s.Part != float64(count)/float64(len(values)) ||
			s.Part == 1 && i+1 < len(shares) && i > 0 {
			t.Errorf("share %d of %d: %+v, counted %d of %d", i, len(shares), s, count, len(values))
		}
	}
	if len(shares) < 2 || shares[len(shares)-1].Part != 1 {
		t.Errorf("%v", shares)
	}
}
