package fault

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const week = DefaultHalfLife

// Without a half-life it is the paper's count with a floor.
func TestLedgerAgainstAMap(t *testing.T) {
	sites := []grid.SiteID{"a", "b", "c", "d"}
	rapid.Check(t, func(t *rapid.T) {
		var l Ledger
		twin, tried := map[grid.SiteID]int64{}, map[grid.SiteID]uint64{}
		last := map[grid.SiteID]time.Time{}
		counts := map[grid.SiteID]*Counts{"a": {}, "b": {}, "c": {}, "d": {}}
		for i := range rapid.IntRange(0, 40).Draw(t, "events") {
			now := noon.Add(time.Duration(i) * time.Hour)
			site := rapid.SampledFrom(sites).Draw(t, "site")
			kinds := []string{"missed", "succeeded", "forgotten"}
			switch rapid.SampledFrom(kinds).Draw(t, "event") {
			case "missed":
				cause := Cause(rapid.Uint8Max(uint8(causes)).Draw(t, "cause"))
				l.Missed(site, cause, now)
				twin[site]++
				counts[site][cause%causes]++
				tried[site]++
				last[site] = now
			case "succeeded":
				l.Succeeded(site, now)
				twin[site] = max(twin[site]-1, 0)
				tried[site]++
			default:
				l.Forget(site)
				counts[site] = &Counts{}
				delete(twin, site)
				delete(tried, site)
				delete(last, site)
			}
		}
		var known []grid.SiteID
		for _, site := range sites {
			r := l.Record(site)
			if int64(r.Index) != twin[site] || r.Tried != tried[site] || r.Last != last[site] ||
				r.Counts != *counts[site] || l.Index(site, noon.Add(1e6*time.Hour)) != r.Index {
				t.Fatalf("%s: %+v, want index %d, %d tried, last %s, %v",
					site, r, twin[site], tried[site], last[site], *counts[site])
			}
			if tried[site] > 0 {
				known = append(known, site)
			}
		}
		if !slices.Equal(l.Sites(), known) {
			t.Fatalf("sites %v, want %v", l.Sites(), known)
		}
	})
}

// The twin sums up what is left of each fault by the definition, 2^-(t/h).
func TestDecayAgainstItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Ledger{HalfLife: week}
		twin, now := 0., noon
		for range rapid.IntRange(0, 100).Draw(t, "events") {
			passed := time.Duration(rapid.Int64Range(0, int64(3*week)).Draw(t, "passed"))
			passed >>= rapid.IntRange(0, 60).Draw(t, "shift")
			twin *= math.Exp2(-float64(passed) / float64(week))
			now = now.Add(passed)
			if rapid.IntRange(0, 2).Draw(t, "event") > 0 {
				l.Missed("a", Silent, now)
				twin++
			} else {
				l.Succeeded("a", now)
				twin = max(twin-1, 0)
			}
		}
		if got := l.Index("a", now); math.Abs(got-twin) > 1e-6+negligible {
			t.Fatalf("index %v, by definition %v", got, twin)
		}
	})
}

func TestAnIndexHalves(t *testing.T) {
	for _, c := range []struct {
		passed time.Duration
		want   float64
	}{
		{0, 8},
		{-time.Hour, 8},
		{week, 4},
		{2 * week, 2},
		{3 * week, 1},
		{week / 2, 8 / math.Sqrt2},
		{9 * week, negligible},
		{9*week + time.Hour, 0},
		{math.MaxInt64, 0},
	} {
		if got := Decayed(8, c.passed, week); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("of 8 after %s: %v, want %v", c.passed, got, c.want)
		}
	}
	if got := Decayed(3, 1e6*time.Hour, 0); got != 3 {
		t.Errorf("without a half-life 3 becomes %v", got)
	}
}

// Reading changes nothing, time alone never raises an index, and a record that was kept and put
// back gives the same for all times.
func TestAnIndexNeverRisesByItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		half := time.Duration(rapid.Int64Range(1, int64(60*24*time.Hour)).Draw(t, "half-life"))
		l := Ledger{HalfLife: half}
		l.Put("a", Record{Index: rapid.Float64Range(0, maxIndex).Draw(t, "index"), At: noon})
		again := Ledger{HalfLife: half}
		again.Put("a", l.Record("a"))
		before := l.Index("a", noon)
		now := noon
		for range 20 {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(half)/2+1).Draw(t, "passed")))
			index := l.Index("a", now)
			if index > before || index < 0 {
				t.Fatalf("the index rose from %v to %v", before, index)
			}
			if other := again.Index("a", now); other != index {
				t.Fatalf("after a restart it is %v, not %v", other, index)
			}
			before = index
		}
	})
}

// A pardon leaves all as it would be without the fault, as long as no success fell below
// the floor in between.
func TestPardon(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		with, without := Ledger{HalfLife: week}, Ledger{HalfLife: week}
		now := noon
		var counted time.Time
		which := rapid.IntRange(0, 9).Draw(t, "which")
		for i := range 10 {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(week/10)).Draw(t, "passed")))
			with.Missed("a", Silent, now)
			if i == which {
				counted = now
				continue
			}
			without.Missed("a", Silent, now)
		}
		with.Pardon("a", Silent, counted, now)
		with.Pardon("never counted", Silent, counted, now)
		got, want := with.Record("a"), without.Record("a")
		if math.Abs(with.Index("a", now)-without.Index("a", now)) > 1e-9 ||
			got.Tried != want.Tried || got.Counts != want.Counts || len(with.Sites()) != 1 {
			t.Fatalf("%+v, want %+v", got, want)
		}
	})
	var l Ledger
	l.Missed("a", Silent, noon)
	l.Succeeded("a", noon)
	l.Pardon("a", Silent, noon, noon)
	if r := l.Record("a"); r.Index != 0 || !r.Last.IsZero() || r.Tried != 1 {
		t.Errorf("pardoned after a success: %+v", r)
	}
}

func TestRecordsFromElsewhere(t *testing.T) {
	var l Ledger
	for in, want := range map[float64]float64{-1: 0, 2.5: 2.5, math.Inf(1): maxIndex} {
		if l.Put("a", Record{Index: in}); l.Record("a").Index != want {
			t.Errorf("index %v is kept as %v, want %v", in, l.Record("a").Index, want)
		}
	}
	if l.Put("a", Record{Index: math.NaN()}); l.Record("a").Index != 0 {
		t.Errorf("an index that is no number is kept as %v", l.Record("a").Index)
	}
	for range 3 {
		l.Put("a", Record{Index: maxIndex, Counts: Counts{Wrong: maxCount}})
		l.Missed("a", Wrong, noon)
	}
	if r := l.Record("a"); r.Index != maxIndex || r.Counts[Wrong] != maxCount {
		t.Errorf("beyond the largest: %+v", r)
	}
}

// A clock that was set back while the agent was down does not keep a fault alive, and a record
// without a time, of an earlier version, fades from now on.
func TestTimesOfEarlierRuns(t *testing.T) {
	l := Ledger{HalfLife: week}
	ahead := noon.Add(1000 * week)
	l.Put("ahead", Record{Index: 4, At: ahead, Last: ahead})
	l.Put("old version", Record{Index: 4})
	l.Put("fine", Record{Index: 4, At: noon.Add(-week), Last: noon.Add(-week)})
	l.Begin(noon)
	for site, want := range map[grid.SiteID]float64{"ahead": 2, "old version": 2, "fine": 1} {
		if got := l.Index(site, noon.Add(week)); got != want || l.Record(site).Last.After(noon) {
			t.Errorf("%s after a week: %v, want %v; %+v", site, got, want, l.Record(site))
		}
	}
}

func TestCausesInWords(t *testing.T) {
	seen := map[string]bool{}
	for c := range causes {
		if seen[c.String()] {
			t.Errorf("cause %d is %s, as another", c, c)
		}
		seen[c.String()] = true
	}
	n := Counts{Wrong: 2, Silent: 1}
	if got := n.InWords(); !slices.Equal(got, []Counted{{"lost lease", 1}, {"wrong result", 2}}) {
		t.Errorf("in words %v are %v", n, got)
	}
	if got := causes.String(); got != "cause 8" {
		t.Errorf("a cause that is not known: %s", got)
	}
}
