package eval

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/scenario"
)

const smallCkpt = `resources name=often n=16 mtbf=1h spread=.5 repair=10m
resources name=seldom n=16 mtbf=50h shape=.6
tasks    n=80 run=1h..3h load=.4 checkpoint=2m restart=1m deadline=1.5
strategy name=optimum save=known
strategy name=auto place=shape
strategy name=periodic save=every interval=10m,1h
strategy name=LFCA save=lfca interval=10m,1h
expect   ratio=auto/periodic of=waste to=50
expect   ratio=auto/periodic of=met to=1e9 at=often
expect   ratio=auto/optimum of=waste from=50 to=51 paper=50
expect   more=LFCA/periodic of=checkpoints to=0.25
expect   less=LFCA/periodic of=checkpoints from=.5 shortest=1h
seeds    n=3
`

// The results do not depend on the number of workers, and each part of them not on the others.
func TestFailingDoesNotDependOnWorkers(t *testing.T) {
	var texts []string
	for _, workers := range []int{1, 3} {
		told := 0
		c := Compare{
			Name: "small", Experiment: mustParse(t, smallCkpt), First: 7, Workers: workers,
			Progress: func(done int) { told = done },
		}
		r, err := c.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(r)
		if err != nil || told != c.Runs() || c.Runs() != 36 {
			t.Fatalf("%v, %d of %d runs were told", err, told, c.Runs())
		}
		texts = append(texts, string(text))
	}
	if texts[0] != texts[1] {
		t.Errorf("with one worker %s\nwith three %s", texts[0], texts[1])
	}
	c := Compare{
		Name: "small", Experiment: mustParse(t, smallCkpt), First: 8, Seeds: 1,
		Only: []string{"periodic", "LFCA-1h"},
	}
	alone, err := c.Run(t.Context())
	if err != nil || len(alone.Strategies) != 6 || len(alone.Claims) != 2 ||
		!slices.Equal(alone.Names, []string{"periodic-10m", "periodic-1h", "LFCA-1h"}) {
		t.Fatalf("%+v, %v", alone, err)
	}
	c.Only = nil
	whole, err := c.Run(t.Context())
	const name = "LFCA-1h@often"
	if err != nil || whole.Strategies[name]["waste"] != alone.Strategies[name]["waste"] {
		t.Errorf("alone %+v, beside others %+v: %v", alone.Strategies, whole.Strategies, err)
	}
	c.Only = []string{"MFCA"}
	if _, err := c.Run(t.Context()); !errors.Is(err, ErrUsage) {
		t.Errorf("a strategy that there is not: %v", err)
	}
}

// Each case has all strategies and measures, ratios are of one case, and of several intervals the
// best one is compared.
func TestFailingResults(t *testing.T) {
	c := Compare{Name: "small", Experiment: mustParse(t, smallCkpt), First: 1}
	r, err := c.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.Cases, []string{"often", "seldom"}) || len(r.Names) != 6 ||
		len(r.Strategies) != 12 {
		t.Errorf("%v, %v, %d strategies", r.Cases, r.Names, len(r.Strategies))
	}
	for name, m := range r.Strategies {
		for _, measure := range r.Measures {
			if x, known := m[measure]; !known || math.IsNaN(x.Mean) || x.Mean < 0 || x.CI95 < 0 {
				t.Errorf("%s of %s: %+v, %t", measure, name, x, known)
			}
		}
		if m["waste"].Mean <= 0 || m["met"].Mean > 1 || m["completion"].Mean < time.Hour.Seconds() {
			t.Errorf("%s: %+v", name, m)
		}
	}
	for name := range r.Ratios {
		above, below, _ := strings.Cut(name, "/")
		_, one, _ := strings.Cut(above, "@")
		if _, other, _ := strings.Cut(below, "@"); one != other || above == below {
			t.Errorf("a ratio %s", name)
		}
	}
	if len(r.Claims) != 7 {
		t.Fatalf("%+v", r.Claims)
	}
	for i, in := range r.Cases {
		claim := r.Claims[i]
		best := "periodic-10m@" + in
		if r.Strategies["periodic-1h@"+in]["waste"].Mean < r.Strategies[best]["waste"].Mean {
			best = "periodic-1h@" + in
		}
		if claim.Ratio != "auto@"+in+"/"+best || claim.Interval != r.Ratios[claim.Ratio]["waste"] ||
			!claim.Holds {
			t.Errorf("%+v, want beside %s", claim, best)
		}
	}
	best := "periodic-10m@often"
	if r.Strategies["periodic-1h@often"]["met"].Mean > r.Strategies[best]["met"].Mean {
		best = "periodic-1h@often"
	}
	if claim := r.Claims[2]; claim.Ratio != "auto@often/"+best || claim.Measure != "met" {
		t.Errorf("%+v, want beside %s, which meets most", claim, best)
	}
	if claim := r.Claims[3]; claim.Holds || claim.Paper != 50 {
		t.Errorf("%+v holds", claim)
	}
	// LFCA leaves checkpoints out, so that it has fewer of them with each interval.
	claim := r.Claims[5]
	if claim.Kind != "more" || claim.Cells != 4 || claim.Mean > .25 || !claim.Holds {
		t.Errorf("%+v", claim)
	}
	if claim := r.Claims[6]; claim.Kind != "less" || claim.Cells != 2 || !claim.Holds {
		t.Errorf("%+v", claim)
	}
}

// Cells in which both have the same do not count, and of none there is no verdict.
func TestEqualCellsDoNotCount(t *testing.T) {
	text := strings.ReplaceAll(smallCkpt, "name=LFCA save=lfca", "name=LFCA save=every")
	c := Compare{Name: "small", Experiment: mustParse(t, text), First: 1, Seeds: 1}
	r, err := c.Run(t.Context())
	if err != nil || len(r.Claims) != 5 {
		t.Errorf("%+v, %v", r.Claims, err)
	}
}

func TestFailingTellsWhichRunWentWrong(t *testing.T) {
	c := Compare{Name: "small", Experiment: mustParse(t, smallCkpt), First: 4}
	c.Experiment.Failing.Rules[1].Place = "no such word"
	if _, err := c.Run(t.Context()); err != nil {
		t.Errorf("a word that means nothing is the first one: %v", err)
	}
	c.Experiment.Failing.Tasks.Load = 0
	if _, err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "@often, seed 4: ") {
		t.Errorf("no load: %v", err)
	}
}

// Each word of the format has a rule of its own.
func TestAllWordsMeanSomething(t *testing.T) {
	saves, places := map[any]bool{}, map[any]bool{}
	for _, word := range scenario.SaveWords() {
		saves[policyOf(scenario.Rule{Save: word}).Save] = true
	}
	for _, word := range scenario.PlaceWords() {
		places[policyOf(scenario.Rule{Place: word}).Place] = true
	}
	if len(saves) != len(scenario.SaveWords()) || len(places) != len(scenario.PlaceWords()) {
		t.Errorf("%d rules for checkpoints, %d for places", len(saves), len(places))
	}
}

// The default needs no setting: with what it learns it wastes hardly more than with the true rates,
// and less than each other rule with its best interval, which nobody knows before.
func TestTheDefaultNeedsNoSetting(t *testing.T) {
	e, err := loadExperiment("ckpt")
	if err != nil {
		t.Fatal(err)
	}
	c := Compare{Name: "ckpt", Experiment: e, First: 1001, Seeds: 3}
	r, err := c.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	judged := 0
	for _, claim := range r.Claims {
		if strings.HasPrefix(claim.Ratio, "auto@") {
			if judged++; !claim.Holds {
				t.Errorf("%+v", claim)
			}
		}
	}
	if judged != 16 {
		t.Errorf("%d expectations of auto, want 4 in 4 cases", judged)
	}
}

// "The curve depicting the case of no resource outages occurring has its minimum in n = 0 ...
// approximately four checkpoints in the case of one expected outage, it is approximately 7 in the
// case of two outages" (OpenCCS, figure 2).
func TestPaperFigure2(t *testing.T) {
	r, err := Checkpoints{Run: time.Hour, Cost: 2 * time.Minute, MTBF: 4 * time.Hour, Most: 12}.Plan()
	if err != nil {
		t.Fatal(err)
	}
	for outages, best := range []int64{0, 4, 7} {
		curve := r.Outages[outages]
		if curve.Best != best || len(curve.Seconds) != 13 ||
			slices.Min(curve.Seconds) != curve.Seconds[best] {
			t.Errorf("%d outages: %+v, want %d checkpoints", outages, curve, best)
		}
	}
}

// Equal segments take the shortest time, and no rule saves the state at the end.
func TestPlans(t *testing.T) {
	for _, c := range []Checkpoints{
		{Run: 10 * time.Hour, Cost: 2 * time.Minute, MTBF: 8 * time.Hour},
		{Run: time.Hour, Cost: 2 * time.Minute, MTBF: 10 * time.Minute},
		{Run: time.Minute, Cost: 2 * time.Minute, MTBF: time.Hour},
	} {
		r, err := c.Plan()
		if err != nil || len(r.Plans) != 4 {
			t.Fatalf("%+v, %v", r.Plans, err)
		}
		for i, p := range r.Plans {
			atEnd := len(p.At) > 0 && p.At[len(p.At)-1] >= c.Run.Seconds()
			if p.Expected < r.Plans[0].Expected && i < 3 || atEnd {
				t.Errorf("%+v: %+v, equal segments take %v", c, p, r.Plans[0].Expected)
			}
		}
	}
	good := Checkpoints{Run: time.Hour, Cost: time.Minute, MTBF: time.Hour}
	for want, change := range map[string]func(*Checkpoints){
		"run, cost, mtbf: want": func(c *Checkpoints) { c.Cost = 0 },
		"most: 0 to 1000":       func(c *Checkpoints) { c.Most = 1001 },
		"at most 10000 times":   func(c *Checkpoints) { c.MTBF = time.Millisecond },
	} {
		c := good
		change(&c)
		if _, err := c.Plan(); !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
}
