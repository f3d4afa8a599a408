package eval

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/scenario"
	"github.com/mrsmesh/mrsmesh/pkg/remap"
	"github.com/mrsmesh/mrsmesh/pkg/sim/remapping"
)

const smallRemapping = `machines name=300 lead=300 nodes=128,64,32,32 every=600 down=200
machines name=900 lead=900 nodes=128,64,32,32 every=600 down=200
requests slots=3000 load=2 run=100..300 widest=64
strategy name=paper full=all eta=.6,.8,1
strategy name=ours eta=.6,.8
strategy name=end remap=until-end
strategy name=slot remap=slot
expect   ratio=slot/end of=terminated from=1 to=99
expect   ratio=end/paper of=saved from=0 to=9 at=300
expect   less=end/slot of=terminated from=1
expect   more=ours/paper of=overhead from=.5
expect   lowest=paper of=overhead from=1 to=1 paper=.8
expect   lowest=ours of=overhead from=.7 to=1 at=900
seeds    n=4
`

func smallVRM(t *testing.T) Compare {
	t.Helper()
	return Compare{Name: "small", Experiment: mustParse(t, smallRemapping), First: 5}
}

// The results do not depend on the number of workers, nor on the other strategies.
func TestRemappingDoesNotDependOnWorkers(t *testing.T) {
	var texts []string
	for _, workers := range []int{1, 3} {
		c, told := smallVRM(t), 0
		c.Workers, c.Progress = workers, func(done int) { told = done }
		r, err := c.Run(t.Context())
		text, wrong := json.Marshal(r)
		if all := errors.Join(err, wrong); all != nil || told != c.Runs() || c.Runs() != 4*2*7 {
			t.Fatalf("%v, %d of %d runs were told", all, told, c.Runs())
		}
		texts = append(texts, string(text))
	}
	if texts[0] != texts[1] {
		t.Errorf("with one worker %s\nwith three %s", texts[0], texts[1])
	}
	whole, alone := smallVRM(t), smallVRM(t)
	alone.Only = []string{"ours", "end"}
	all, err := whole.Run(t.Context())
	some, wrong := alone.Run(t.Context())
	if err = errors.Join(err, wrong); err != nil || len(some.Strategies) != 6 {
		t.Fatalf("%v: %+v", err, some)
	}
	if len(some.Claims) != 1 {
		t.Errorf("of strategies that were not played nothing is said: %+v", some.Claims)
	}
	for name, of := range some.Strategies {
		if diff := cmp.Diff(all.Strategies[name], of); diff != "" {
			t.Errorf("%s: -beside others +alone:\n%s", name, diff)
		}
	}
	etas := slices.Sorted(maps.Keys(some.Curves["900"]))
	if diff := cmp.Diff([]string{"0.6", "0.8"}, etas); diff != "" {
		t.Errorf("without the first curve there is the next:\n%s", diff)
	}
}

// Curves are the measures of the first line that has several thresholds; each expectation is judged
// by what was measured.
func TestRemappingResults(t *testing.T) {
	c := smallVRM(t)
	r, err := c.Run(t.Context())
	if err != nil || !slices.Equal(r.Cases, []string{"300", "900"}) || len(r.Strategies) != 14 {
		t.Fatalf("%v: %+v", err, r)
	}
	for in, curve := range r.Curves {
		for _, eta := range []string{"0.6", "0.8", "1"} {
			want := r.Strategies["paper-"+eta+"@"+in]
			if diff := cmp.Diff(want, curve[eta]); diff != "" || len(want) != 6 {
				t.Errorf("%s of %s: -strategy +curve:\n%s", eta, in, diff)
			}
		}
	}
	if len(r.Curves) != 2 || len(r.Curves["300"]) != 3 {
		t.Errorf("%+v", r.Curves)
	}
	for name, m := range r.Strategies {
		if m["termination"].Mean <= 0 || m["termination"].Mean > 1 || m["blocking"].Mean <= 0 ||
			m["terminated"].Mean <= 0 || m["completed"].Mean <= 0 {
			t.Errorf("%s: %+v", name, m)
		}
	}
	verdicts := map[string]bool{}
	for _, claim := range r.Claims {
		verdicts[claim.Kind+" "+claim.Ratio+" "+claim.Measure] = claim.Holds
	}
	best := "paper-0.6"
	for _, name := range []string{"paper-0.8", "paper-1"} {
		if r.Strategies[name+"@300"]["saved"].Mean > r.Strategies[best+"@300"]["saved"].Mean {
			best = name
		}
	}
	want := map[string]bool{
		" slot@300/end@300 terminated": true, " slot@900/end@900 terminated": true,
		" end@300/" + best + "@300 saved": true, "less end/slot terminated": true,
		"lowest paper@300 overhead": true, "lowest paper@900 overhead": true,
		"lowest ours@900 overhead": true,
		"more ours/paper overhead": verdicts["more ours/paper overhead"],
	}
	if diff := cmp.Diff(want, verdicts); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, claim := range r.Claims {
		cells := map[string]int{
			"lowest paper": 3, "lowest ours": 2, "less end/slot": 2, "more ours/paper": 4,
		}
		ratio, _, _ := strings.Cut(claim.Ratio, "@")
		if n := cells[claim.Kind+" "+ratio]; claim.Kind != "" && claim.Cells != n {
			t.Errorf("%+v, want %d cells", claim, n)
		}
	}
}

// Figure 10 shows the threshold nearest to .8 in each case, of the first seed.
func TestLengthsOfTheFirstFailure(t *testing.T) {
	c := smallVRM(t)
	r, err := c.Run(t.Context())
	if err != nil || len(r.Lengths) != 2 {
		t.Fatalf("%v: %+v", err, r.Lengths)
	}
	e := c.Experiment.Remapping
	for i, of := range r.Lengths {
		want, err := remapping.Lengths(
			modelOf(e.Requests, e.Cases[i]), remap.Policy{Weight: 2, Share: .8}, 5)
		if err != nil || of.Case != r.Cases[i] || of.Rule != "paper-0.8" ||
			!slices.Equal(of.Slots, want) || len(want) != 200 {
			t.Errorf("%v: %+v, want %v", err, of, want)
		}
	}
	c.Only = []string{"end", "slot"}
	if r, err := c.Run(t.Context()); err != nil || r.Curves != nil || r.Lengths != nil {
		t.Errorf("without thresholds: %v, %+v", err, r)
	}
}

// Each key and word of the format says something of its own.
func TestAllWordsOfRemappingMeanSomething(t *testing.T) {
	policies := map[remap.Policy]string{}
	for _, keys := range []string{
		"", "eta=.5", "zeta=3", "full=all", "killed=yes", "booking=yes", "migrate=yes",
		"remap=slot",
		"remap=all", "remap=until-end", "remap=estimate factor=.5", "remap=estimate factor=2",
		"remap=estimate factor=.5 after=slot", "remap=estimate factor=.5 after=again",
	} {
		e := mustParse(t, "machines name=a nodes=8\nrequests widest=8\nstrategy name=b "+keys+"\n")
		policy := remapPolicy(e.Remapping.Rules[0])
		if other, twice := policies[policy]; twice {
			t.Errorf("%q is as %q", keys, other)
		}
		policies[policy] = keys
	}
	e := mustParse(t, "machines name=a nodes=8\nrequests widest=8\nstrategy name=b\n").Remapping
	ours := remap.Policy{Weight: 2, Share: .775, Surviving: true}
	if got := remapPolicy(e.Rules[0]); got != ours {
		t.Errorf("the default is %+v, want %+v", got, ours)
	}
	if len(scenario.RemapWords())+len(scenario.AfterWords()) != 8 {
		t.Error("a word that is not tested here")
	}
}

// The shipped cases are the paper's model.
func TestVRMIsThePapersModel(t *testing.T) {
	e, err := loadExperiment("vrm")
	if err != nil {
		t.Fatal(err)
	}
	for i, lead := range []float64{300, 1000} {
		got := modelOf(e.Remapping.Requests, e.Remapping.Cases[i])
		if diff := cmp.Diff(remapping.Paper(lead), got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	if e.Seeds < 200 {
		t.Errorf("%d seeds", e.Seeds)
	}
}

// Blocks of seeds of the shipped experiment that have none in common agree as their intervals say.
func TestBlocksOfVRMAgree(t *testing.T) {
	e, err := loadExperiment("vrm")
	if err != nil {
		t.Fatal(err)
	}
	e.Remapping.Requests.Slots = 6000
	const size, blocks = 12, 8
	c := Compare{
		Name: "vrm", Experiment: e, Seeds: size, Only: []string{"paper-0.775", "A-optimal"},
	}
	means, near := agreement(t, c, blocks)
	t.Logf("%d of %d means agree", near, means)
	if part := float64(near) / float64(means); means < 500 || part < .90 || part > .99 {
		t.Errorf("%d of %d means agree: %.3f, where chance leaves .95", near, means, part)
	}
}

// What asks for too much is told before anything is played, with its line.
func TestModelsThatAreTooLarge(t *testing.T) {
	for change, want := range map[string]string{
		"requests.load=100":       "want at most 1048576 requests",
		"machines:900.lead=1e6":   "machines 900: ",
		"requests.slots=1000000":  "",
		"machines:300.down=700":   "less than every",
		"strategy:ours.remap=all": "want none without remap=load",
	} {
		key, err := scenario.ParseSetting(change)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(smallRemapping, "slots=3000", "slots=1000000")
		source, err := Source{Name: "small", Text: text}.With(key, key.Values[0])
		if err == nil {
			c := Compare{Name: "small"}
			c.Experiment, err = source.parse()
			if err == nil {
				err = c.prepare()
			}
		}
		if want == "" && err != nil || want != "" && (!errors.Is(err, ErrUsage) ||
			!strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", change, err, want)
		}
	}
}

// A sweep has all strategies of all cases, and the measures of the experiment.
func TestSweepOfRemapping(t *testing.T) {
	key, err := scenario.ParseSetting("requests.load=.2,2")
	if err != nil {
		t.Fatal(err)
	}
	s := Sweep{
		Source:   Source{Name: "small", Text: smallRemapping},
		Settings: []scenario.Setting{key}, First: 1, Seeds: 2, Only: []string{"ours-0.8", "end"},
	}
	if err = s.Prepare(); err != nil || !slices.Equal(s.Measures(), scenario.RemappingMeasures()) {
		t.Fatalf("%v, %v", err, s.Measures())
	}
	r, err := s.Run(t.Context())
	names := []string{"ours-0.8@300", "end@300", "ours-0.8@900", "end@900"}
	if err != nil || len(r.Points) != 2 || !slices.Equal(r.Points[0].Names, names) {
		t.Fatalf("%v: %+v", err, r)
	}
	low, high := r.Points[0].Strategies["end@300"], r.Points[1].Strategies["end@300"]
	if !(low["blocking"].Mean < high["blocking"].Mean) {
		t.Errorf("blocking %+v with little load, %+v with much", low, high)
	}
}
