package figures

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/eval"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/metrics"
	"github.com/mrsmesh/mrsmesh/pkg/sim/baseline"
)

// ruled is a result of rules for checkpoints in two cases: one rule has no interval, one was not
// measured with one of its intervals.
func ruled() eval.CompareResult {
	r := eval.CompareResult{
		Scenario: "made-up", First: 3, Seeds: 2, Cases: []string{"4h", "a/b"},
		Measures: []string{"met"}, Strategies: make(map[string]map[string]metrics.Interval),
		Rules: []eval.RuleOf{{Name: "auto", Line: "auto"}}, Names: []string{"auto"},
	}
	for _, line := range []string{"LFCA", "MFCA"} {
		for _, interval := range []time.Duration{
			5 * time.Minute, 20 * time.Minute, 160 * time.Minute,
		} {
			r.Rules = append(r.Rules, eval.RuleOf{
				Name: line + "-" + interval.String(), Line: line, Interval: interval,
			})
		}
	}
	for i, rule := range r.Rules {
		for k, in := range r.Cases {
			r.Strategies[rule.Name+"@"+in] = map[string]metrics.Interval{
				"met": {Mean: .5 + .05*float64(i) - .1*float64(k), CI95: .02},
			}
		}
	}
	delete(r.Strategies, "MFCA-20m0s@4h")
	return r
}

// remapped is a result of rules for reservations in two cases: two curves and two levels, one of
// which has a threshold alone; one was not measured in one case.
func remapped() eval.CompareResult {
	r := eval.CompareResult{
		Scenario: "made-up", First: 7, Seeds: 2, Cases: []string{"300", "1000"},
		Measures: []string{"termination"}, Strategies: make(map[string]map[string]metrics.Interval),
		Curves: map[string]map[string]map[string]metrics.Interval{"300": nil},
		Lengths: []eval.LengthsOf{
			{Case: "300", Rule: "paper-0.8", Slots: []int64{9, 8, 7, 1, 1, 12}},
			{Case: "1000", Rule: "paper-0.8", Slots: []int64{40, 39, 38, 37, 36, 1}},
		},
	}
	for _, line := range []string{"paper", "ours"} {
		for _, eta := range []float64{.4, .8, 1} {
			r.Rules = append(r.Rules, eval.RuleOf{
				Name: fmt.Sprint(line, "-", eta), Line: line, Share: eta,
			})
		}
	}
	r.Rules = append(r.Rules, eval.RuleOf{Name: "end", Line: "end", Share: -1},
		eval.RuleOf{Name: "alone", Line: "alone", Share: .5})
	for i, rule := range r.Rules {
		for k, in := range r.Cases {
			r.Strategies[rule.Name+"@"+in] = map[string]metrics.Interval{
				"termination": {Mean: .5 + .05*float64(i) - .1*float64(k), CI95: .02},
			}
		}
	}
	delete(r.Strategies, "end@1000")
	return r
}

// settled is a result in settings of two laws, two readings and two factors, of which one
// combination was not played.
func settled() eval.CompareResult {
	r := eval.CompareResult{
		Scenario: "made-up", First: 1, Seeds: 3, Names: []string{"A", "B"},
		Strategies: make(map[string]map[string]metrics.Interval),
		Ratios:     make(map[string]map[string]metrics.Interval),
	}
	for i, law := range []string{"normal", "weibull"} {
		for k, reading := range []string{"over", "times"} {
			for n, factor := range []string{"run factor 0.1", "run factor 0.01"} {
				if i*k*n == 1 {
					continue
				}
				s := eval.SettingOf{
					Name: fmt.Sprint(law, reading, n), Law: law, Reading: reading, Value: factor,
				}
				r.Differ, r.Settings = append(r.Differ, s), append(r.Settings, s.Name)
				of := func(mean float64) map[string]metrics.Interval {
					x := metrics.Interval{Mean: mean, CI95: mean * float64(k) * 3}
					return map[string]metrics.Interval{"failed": x}
				}
				r.Strategies[eval.InSetting("A", s.Name)] = of(float64(1 + i))
				r.Strategies[eval.InSetting("B", s.Name)] = of(float64(2 + n))
				r.Ratios[eval.InSetting("B/A", s.Name)] = of(.5 + .3*float64(n))
			}
		}
	}
	return r
}

// mapped is a run of four sites and twelve jobs, of which one had no offer: two sites stand at
// the same point, and the others farther away as time passes.
func mapped() eval.RunRecord {
	r := eval.RunRecord{
		Experiment: "made-up", Strategy: "A:B", Seed: 4,
		Grid: baseline.Grid{Sites: make([]grid.Resources, 4)},
	}
	for job := range 12 {
		at := time.Duration(job) * time.Hour
		r.Jobs = append(r.Jobs, baseline.Job{Submit: at})
		for site := range 4 {
			if job == 5 || site > 2 && job > 8 {
				continue
			}
			far := float64(max(site, 1)) * float64(job+1) / 10
			r.Offers = append(r.Offers, eval.Offer{
				At: at, Job: job, Round: 1, Site: site, X: far, Y: far / 2, Z: far / 8,
				Distance: far, Taken: site == 1,
			})
		}
	}
	held := r.Offers[len(r.Offers)-1] // says again, with the award, where it is
	held.X, held.Y, held.Taken = 55555, 55555, true
	r.Offers = append(r.Offers, held)
	last := held
	last.Round, last.X, last.Y = 2, 77777, 77777 // not an answer to the first announcement
	r.Offers = append(r.Offers, last)
	return r
}

// profiled is a log of eight jobs on a machine of four processors.
func profiled() eval.Profile {
	r := eval.Profile{
		Model: "made-up", Jobs: 8,
		Procs: []eval.Share{{At: 1, Part: .25}, {At: 2, Part: .5}, {At: 4, Part: 1}},
	}
	for i := range 14 {
		r.Runs = append(r.Runs, eval.Share{At: math.Ldexp(1, i), Part: float64(i*i) / 169})
	}
	for hour := range 24 {
		r.Hours = append(r.Hours, eval.Share{At: float64(hour), Part: float64(hour%2) / 12})
	}
	return r
}

func drawKinds(t *testing.T, a Album) {
	t.Helper()
	task := eval.Checkpoints{Run: time.Hour, Cost: 2 * time.Minute, MTBF: 4 * time.Hour, Most: 12}
	planned, err := task.Plan()
	tries := eval.Odds{Resources: 4}
	odds, wrong := tries.WorkOut()
	err = errors.Join(err, wrong, a.Open(), a.Odds(tries, odds), a.Outages(task, planned),
		a.Intervals(ruled()), a.Compare(settled(), []string{"failed", "rejected"}), a.Map(mapped()),
		a.Profile(profiled()), a.Compare(remapped(), nil))
	if err != nil {
		t.Fatal(err)
	}
}

// The figures of rules, settings, maps and outages are those in testdata; XML that others can read,
// and the same when they are drawn again.
func TestKindsAreThoseInTestdata(t *testing.T) {
	dir := t.TempDir()
	drawKinds(t, Album{SVG: dir})
	first := filesIn(t, dir)
	drawKinds(t, Album{SVG: dir, PNG: dir})
	again := filesIn(t, dir)
	var names []string
	for name, drawn := range first {
		if again[name] != drawn {
			t.Errorf("%s differs when it is drawn again", name)
		}
		names = append(names, name)
		golden := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(golden, []byte(drawn), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil || string(want) != drawn {
			t.Errorf("%s is not as in testdata (%v): look at it, and run with -update", name, err)
		}
		decoder := xml.NewDecoder(strings.NewReader(drawn))
		for err = nil; err == nil; {
			_, err = decoder.Token()
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", name, err)
		}
	}
	slices.Sort(names)
	want := []string{
		"checkpoints.svg", "failed-ratio.svg", "failed.svg", "interval-length.svg",
		"map-A_B.svg", "met-interval.svg", "odds-copies.svg", "odds-once.svg", "odds-tries.svg",
		"termination-eta.svg", "termination-references.svg", "workload.svg",
	}
	if !slices.Equal(names, want) || len(again) != 2*len(want) {
		t.Errorf("drawn %q, want %q; %d with pixels", names, want, len(again))
	}
}

// The words in them name their axes, plots and lines.
func TestKindsSayWhatTheyShow(t *testing.T) {
	dir := t.TempDir()
	drawKinds(t, Album{SVG: dir})
	drawn := filesIn(t, dir)
	for name, wants := range map[string][]string{
		"checkpoints.svg": {
			">A task of 1 h, checkpoints of 2 min<", ">no outage<", ">two outages<",
			">time that the task takes (min)<",
		},
		"met-interval.svg": {
			">4h<", ">a/b<", ">auto<", ">LFCA<", ">MFCA<", ">5 min<", ">160 min<",
			">made-up, 2 seeds, 95 % intervals<", ">part of jobs that met their deadlines<",
		},
		"termination-eta.svg": {
			">300<", ">1000<", ">paper<", ">ours<", ">threshold eta<", ">termination ratio<",
			">made-up, 2 seeds, 95 % intervals<",
		},
		"termination-references.svg": {">paper<", ">end<", ">alone<"},
		"interval-length.svg": {
			">made-up, paper-0.8: the first failure of seed 7<", ">slot of the failure<",
			">length of the interval (slots)<", ">1000<",
		},
		"failed.svg": {
			">normal, over<", ">weibull, times<", ">run factor 0.01<", ">A<", ">B<",
			">JFR: jobs failed (1/s)<",
		},
		"odds-copies.svg": {
			">K=2<", ">K=2, thesis<", ">availability<", ">One of K copies survives<",
		},
		"odds-once.svg":  {">k=16<", ">All of k resources are predicted rightly<"},
		"odds-tries.svg": {">R=4, thesis<", ">One of R tries succeeds, resources in each: 4<"},
		"workload.svg": {
			">made-up: number of jobs 8<", ">processors<",
			">part of jobs with at most so many<", ">4<",
			">run time<", ">10 min<", ">1 h<", ">hour of the day<",
		},
		"failed-ratio.svg": {">JFR: jobs failed, beside A<"},
		"map-A_B.svg": {
			">after 0 h: 4 of 4 sites offer<", ">after 10 h: 3 of 4 sites offer<", ">2 sites<",
			">x: computation<", ">y: data<", ">nearest<", ">chosen<",
			"seed 4: sites around a job (+)",
		},
	} {
		for _, want := range wants {
			if !strings.Contains(drawn[name], want) {
				t.Errorf("%s has no %q", name, want)
			}
		}
	}
	if strings.Contains(drawn["termination-eta.svg"], ">end<") ||
		strings.Contains(drawn["termination-references.svg"], ">ours<") {
		t.Error("a level among the curves, or a second curve among the levels")
	}
	asked := firstRounds(mapped())
	for i, job := range asked {
		for _, o := range job.offers {
			taken := i == 11 && o.Site == 2 || o.Site == 1
			if o.X > 10 || o.Round != 1 || o.Taken != taken {
				t.Errorf("job %d: %+v", i, o)
			}
		}
	}
	if n := len(asked[11].offers); n != 3 || len(asked[11].taken) != 3 {
		t.Errorf("%d sites, %v", n, asked[11].taken)
	}
	if n := strings.Count(drawn["met-interval.svg"], ">LFCA<"); n != 1 {
		t.Errorf("%d times LFCA beside the plots", n)
	}
}

// A map of seconds says so, and so does one that is cut; without offers or without intervals
// there is nothing to draw.
func TestKindsThatAreLess(t *testing.T) {
	dir := t.TempDir()
	r := mapped()
	r.InSeconds, r.OffersCut = true, true
	if err := (Album{SVG: dir}).Map(r); err != nil {
		t.Fatal(err)
	}
	drawn := filesIn(t, dir)["map-A_B.svg"]
	for _, want := range []string{
		">wait and run (s)<", ">data on its way (s)<", ">distance (s)<",
		fmt.Sprintf("; the first %d offers<", len(r.Offers)),
	} {
		if !strings.Contains(drawn, want) {
			t.Errorf("no %q", want)
		}
	}
	empty := t.TempDir()
	a, none, one := Album{SVG: empty}, Album{}, ruled()
	one.Rules = one.Rules[:2]
	err := errors.Join(a.Map(recorded(t)), a.Intervals(one), a.Thresholds(one),
		none.Map(r), none.Intervals(ruled()),
		none.Settings(settled(), []string{"failed"}), none.Odds(eval.Odds{}, eval.OddsResult{}),
		none.Outages(eval.Checkpoints{}, eval.CheckpointsResult{}), none.Profile(eval.Profile{}),
		none.Thresholds(remapped()))
	if err != nil {
		t.Fatal(err)
	}
	if files := filesIn(t, empty); len(files) != 0 {
		t.Errorf("drawn %d", len(files))
	}
}

// Jobs are shown from each sixth of the time on, those without an offer are not.
func TestMoments(t *testing.T) {
	if got := moments(firstRounds(mapped())); !slices.Equal(got, []int{0, 2, 4, 6, 8, 10}) {
		t.Errorf("%v", got)
	}
	r := mapped()
	r.Offers = r.Offers[:1]
	if got := moments(firstRounds(r)); !slices.Equal(got, []int{0}) {
		t.Errorf("one offer: %v", got)
	}
	for want, seconds := range map[string]float64{
		"5 min": 300, "2 h": 7200, "90 min": 5400, "1.5 s": 1.5, "61 s": 61,
	} {
		if got := brief(seconds); got != want {
			t.Errorf("%v s: %q, want %q", seconds, got, want)
		}
	}
}

// Times are where they belong on an axis, as numbers are; one that covers powers is logarithmic.
func TestPositions(t *testing.T) {
	at, numbers := positions([]string{"300ms", "1s", "1m30s"})
	if !numbers || !slices.Equal(at, []float64{.3, 1, 90}) {
		t.Errorf("%v, %t", at, numbers)
	}
	at, numbers = positions([]string{"1s", "turns"})
	if numbers || !slices.Equal(at, []float64{0, 1}) {
		t.Errorf("%v, %t", at, numbers)
	}
	dir := t.TempDir()
	middle := func(file string, values ...string) string {
		s := series{name: "one"}
		for range values {
			s.values = append(s.values, &metrics.Interval{Mean: 1})
		}
		c := chart{values: values, series: []series{s}}
		if err := (Album{SVG: dir}).lines(file, c); err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(filesIn(t, dir)[file+".svg"], ">"+values[0]+"<")
		label, _, found := strings.Cut(after, ">"+values[1]+"<")
		if !found {
			t.Fatalf("%s: no label %s", file, values[1])
		}
		return label[strings.LastIndex(label, "<text"):]
	}
	even, powers := middle("even", "1", "8", "15"), middle("powers", "1", "8", "64")
	if even != powers {
		t.Errorf("powers are %s, where even numbers are %s", powers, even)
	}
}
