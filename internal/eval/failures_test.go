package eval

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/scenario"
	"github.com/mrsmesh/mrsmesh/pkg/metrics"
	"github.com/mrsmesh/mrsmesh/pkg/sim/baseline"
	"github.com/mrsmesh/mrsmesh/pkg/workload"
)

const failingOne = `grid n=4 nodes=16 spread=.5 memspread=.2 rate=8Mbps ratespread=.5
` + `jobs procs=16 time=.02 longest=5m load=.9 for=20m mem=.1..0.3 data=1MiB out=.1 estimate=1..2
failures availability=.6 factor=.5 reading=over,times law=weibull spread=.5 end=40m
strategy name=BACKFILL on=queue split=greedy
strategy name=BACKFILL+NSA on=queue split=greedy policy=nsa
strategy name=AGAIN on=queue split=greedy retry=last
strategy name=REP on=queue copies=2 order=random split=greedy
strategy name=MRS on=mesh split=greedy
strategy name=MRS+NSA on=mesh split=greedy policy=nsa likeliest=first
strategy name=FAILOVER on=mesh split=greedy retry=failover
expect   ratio=REP/BACKFILL of=failures from=1 to=100
expect   ratio=REP/BACKFILL of=failed from=0 to=1 reading=times
seeds    n=2
`

// Strategies are compared in each setting, and the number of workers changes nothing.
func TestCompareInSettings(t *testing.T) {
	var texts []string
	var r CompareResult
	for _, workers := range []int{1, 3} {
		c := Compare{Name: "f", Experiment: mustParse(t, failingOne), First: 1, Workers: workers}
		var err error
		if r, err = c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(r)
		if err != nil || c.Runs() != 28 {
			t.Fatalf("%v, %d runs", err, c.Runs())
		}
		texts = append(texts, string(text))
	}
	if texts[0] != texts[1] {
		t.Errorf("with one worker %s\nwith three %s", texts[0], texts[1])
	}
	if len(r.Settings) != 2 || len(r.Names) != 7 || len(r.Strategies) != 14 || len(r.Ratios) != 2*7*6 {
		t.Fatalf("%v %v, %d and %d", r.Settings, r.Names, len(r.Strategies), len(r.Ratios))
	}
	if len(r.Claims) != 3 || r.Claims[2].Setting != "weibull-0.5-times" || !r.Claims[0].Holds {
		t.Errorf("%+v", r.Claims)
	}
	at := func(strategy, measure string) float64 {
		return r.Strategies[InSetting(strategy, "weibull-0.5-times")][measure].Mean
	}
	for _, name := range r.Names {
		failed, failures := at(name, "failed"), at(name, "failures")
		if failed > failures+1e-12 || failures == 0 {
			t.Errorf("%s: %v jobs and %v runs failed", name, failed, failures)
		}
	}
	if at("AGAIN", "failed") >= at("BACKFILL", "failed") ||
		at("FAILOVER", "failed") >= at("MRS", "failed") ||
		at("BACKFILL", "failed") != at("BACKFILL", "failures") {
		t.Errorf("tried again %v, by the mesh %v; once %v, on the mesh %v", at("AGAIN", "failed"),
			at("FAILOVER", "failed"), at("BACKFILL", "failed"), at("MRS", "failed"))
	}
}

// Each job is done, failed or rejected: nothing is counted twice, and nothing forgotten.
func TestEveryJobIsCounted(t *testing.T) {
	e := mustParse(t, failingOne)
	for _, s := range inSettings(e.Strategies, e.Settings) {
		for seed := range uint64(2) {
			g := drawGrid(e.Grid, seed)
			speeds := drawSpeeds(e.Grid, seed)
			jobs := drawJobs(e.Jobs, e.Grid, capacity(e.Grid, g, speeds), seed)
			ends, _, err := place(t.Context(), e, s, drawn{grid: g, speeds: speeds, jobs: jobs}, seed)
			if err != nil || len(ends) != len(jobs) {
				t.Fatalf("%s: %d of %d jobs: %v", s.label, len(ends), len(jobs), err)
			}
			for i, end := range ends {
				switch {
				case end.failed && end.failures == 0 && s.Retry == "":
					t.Errorf("%s, job %d failed without a failure: %+v", s.label, i, end)
				case end.failed || !end.started:
				case end.finish < end.start+jobs[i].Run || end.start < jobs[i].Submit:
					t.Errorf("%s, job %d of %v: %+v", s.label, i, jobs[i].Run, end)
				case end.failures > 0 && s.Copies == 1 && s.Retry == "":
					t.Errorf("%s, job %d is done after a failure: %+v", s.label, i, end)
				}
			}
		}
	}
}

// Sites live as the setting says, for the queue and for the mesh alike, and have a past.
func TestDrawLives(t *testing.T) {
	s := scenario.FailureSetting{
		Availability: .3, Law: workload.Weibull, Up: time.Hour, Spread: .5, End: 1000 * time.Hour,
	}
	lives, err := drawLives(s, 50, 1)
	if err != nil {
		t.Fatal(err)
	}
	var up, all, mean float64
	for _, l := range lives {
		mean += l.turns.Up.Mean() / 50
		if a := l.turns.Availability(); math.Abs(a-.3) > 1e-9 {
			t.Errorf("a site is up for %v of the time", a)
		}
		for _, spell := range l.spells {
			if spell.Up {
				up += spell.To - spell.From
			}
			all += spell.To - spell.From
		}
		last := time.Duration(-1)
		for _, o := range l.outages() {
			if o.From <= last || o.To <= o.From {
				t.Fatalf("outages %v", l.outages())
			}
			if last = o.To; o.To-o.From < time.Millisecond {
				continue // within a blink
			}
			if middle := (o.From + o.To) / 2; l.isUp(middle.Seconds()) {
				t.Errorf("up in the middle of an outage: %+v", o)
			}
		}
		if l.spells[0].From > -pastCycles*l.turns.Up.Mean() || l.since(0) > 0 {
			t.Errorf("its past begins at %v, its state at %v", l.spells[0].From, l.since(0))
		}
	}
	if math.Abs(mean-3600) > 1e-6 || math.Abs(up/all-.3) > .03 {
		t.Errorf("mean time up %v s, up for %v of the time", mean, up/all)
	}
	if _, err := drawLives(scenario.FailureSetting{Law: "none", Availability: .5}, 1, 1); err == nil {
		t.Error("lives of an unknown law")
	}
}

// With a falling rate of failures an old site is likelier to stay; the thesis says the opposite.
// Without memory age says nothing.
func TestStays(t *testing.T) {
	life := func(law string, shape float64) siteLife {
		up := workload.Law{Name: law, Scale: 3600, Shape: shape}
		return siteLife{
			turns:  workload.Turns{Up: up, Down: up},
			spells: []workload.Spell{{From: -100_000, To: 1e6, Up: true}},
		}
	}
	hour := time.Hour
	weibull, exponential := life(workload.Weibull, .5), life(workload.Exponential, 0)
	if a, b := weibull.stays(0, hour), weibull.stays(100*hour, hour); !(a < b && b < 1) {
		t.Errorf("young %v, old %v", a, b)
	}
	if a, want := exponential.stays(hour, hour), math.Exp(-1); math.Abs(a-want) > 1e-9 {
		t.Errorf("without memory %v, want %v", a, want)
	}
	a, err := weibull.staysThesis(0, hour)
	if b, err2 := weibull.staysThesis(100*hour, hour); err != nil || err2 != nil || !(a > b) {
		t.Errorf("by the thesis: young %v, old %v", a, b)
	}
	if old := life(workload.Normal, .25).stays(100*hour, hour); old != 0 {
		t.Errorf("older than anything can be: %v", old)
	}
}

// A ratio of rare things is that of their means; one without anything below is not known.
func TestRatioOfMeans(t *testing.T) {
	r, known := ratioOfMeans([]float64{1, 0, 2}, []float64{2, 4, 0})
	if !known || r.Mean != .5 || r.CI95 <= 0 {
		t.Errorf("%+v, %t", r, known)
	}
	r, known = ratioOfMeans([]float64{1, 2}, []float64{2, 4})
	if !known || r.Mean != .5 || r.CI95 > 1e-12 {
		t.Errorf("always half: %+v, %t", r, known)
	}
	if _, known := ratioOfMeans([]float64{1, 2}, []float64{0, 0}); known {
		t.Error("beside nothing there is a ratio")
	}
	if r, _ := ratioOfMeans([]float64{1, 2}, []float64{0, 4}); math.IsInf(r.CI95, 1) || r.CI95 == 0 {
		t.Errorf("one seed has all: %+v", r)
	}
	if (metrics.Interval{}) != func() metrics.Interval { i, _ := ratioOfMeans(nil, nil); return i }() {
		t.Error("of nothing")
	}
}

// A job has failed if no copy of it came to its end; shares of one run are one failure.
func TestNoteFailures(t *testing.T) {
	lost := runOf(0, 0, 0, 0, 5)
	lost.Failed = true
	other, second := lost, runOf(0, 1, 0, 0, 9)
	other.Site = 1
	ends := queueOutcomes(make([]baseline.Job, 2), []baseline.Run{lost, other, second})
	if ends[0].failed || ends[0].failures != 1 || ends[0].finish.Seconds() != 9 {
		t.Errorf("its other copy came to its end: %+v", ends[0])
	}
	if ends = queueOutcomes(make([]baseline.Job, 1), []baseline.Run{lost, other}); !ends[0].failed {
		t.Errorf("no copy did: %+v", ends[0])
	}
}

// Forecasts without ends of spells are right, and each knows the outcomes of those before only.
func TestForecastsInSettings(t *testing.T) {
	c := Compare{Experiment: mustParse(t, `grid n=20 nodes=20
jobs procs=1 for=1h
failures availability=.5 mttf=8000h law=exponential end=1h
failures availability=.9 mttf=1h law=weibull end=20h
forecast name=EQ by=equation ahead=6m
forecast name=BARE by=bare ahead=6m
forecast name=NODES by=nodes ahead=6m
forecast name=SAME by=unchanged ahead=6m
forecast name=MEAN by=average ahead=6m
expect strategy=SAME of=within2 from=.9 to=1
expect ratio=MEAN/SAME of=off from=0 to=1
seeds n=2
`), First: 1}
	r, err := c.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	calm := r.Strategies["SAME@exponential-0.5"]
	if calm["off"].Mean > .1 || calm["within2"].Mean != 1 {
		t.Errorf("nothing changes: %+v", calm)
	}
	if len(r.Claims) < 3 || r.Claims[0].Ratio != "SAME" || !r.Claims[0].Holds {
		t.Errorf("%+v", r.Claims)
	}
	for _, name := range r.Names {
		of := r.Strategies[InSetting(name, "weibull-0.9")]
		w, off, bias := of["within2"].Mean, of["off"].Mean, of["bias"].Mean
		if !(w >= 0 && w <= 1) || off < math.Abs(bias)-1e-9 {
			t.Errorf("%s: %+v", name, of)
		}
	}
}
