package scenario

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const smallFailing = "# two cases\n" + `resources name=4h n=8 mtbf=4h spread=1 repair=10m
resources name=old n=8 mtbf=4h shape=.6
tasks     n=100 run=1h..2h load=.4 checkpoint=2m restart=30s deadline=3
strategy  name=auto place=fibr
strategy  name=LFCA save=lfca interval=5m,1h30m omit=0
strategy  name=MFCA save=mfca interval=5m least=3m limit=.5 step=1 place=shape
expect    ratio=auto/LFCA of=waste to=.9 at=old paper=.8
expect    more=MFCA/LFCA of=met from=.5 shortest=5m
seeds     n=2
`

func TestParseFailing(t *testing.T) {
	got, err := ParseExperiment(smallFailing)
	if err != nil {
		t.Fatal(err)
	}
	rule := Rule{
		Save: "learned", Place: "random", Omit: 3, Least: 4 * time.Minute, Limit: .25, Step: .5,
	}
	with := func(change func(*Rule)) Rule {
		r := rule
		change(&r)
		return r
	}
	want := Experiment{Seeds: 2, Failing: &Failing{
		Cases: []FailingCase{
			{
				Name: "4h", Resources: 8, MTBF: 4 * time.Hour, Spread: 1, Shape: 1,
				Repair: 10 * time.Minute,
			},
			{Name: "old", Resources: 8, MTBF: 4 * time.Hour, Shape: .6, Repair: 30 * time.Minute},
		},
		Tasks: TaskModel{
			Count: 100, Shortest: time.Hour, Longest: 2 * time.Hour, Load: .4,
			Checkpoint: 2 * time.Minute,
			Restart:    30 * time.Second, Deadline: 3,
		},
		Rules: []Rule{
			with(func(r *Rule) { r.Name, r.Line, r.Place = "auto", "auto", "fibr" }),
			with(func(r *Rule) {
				r.Name, r.Line, r.Save = "LFCA-5m", "LFCA", "lfca"
				r.Interval, r.Omit = 5*time.Minute, 0
			}),
			with(func(r *Rule) {
				r.Name, r.Line, r.Save = "LFCA-1h30m", "LFCA", "lfca"
				r.Interval, r.Omit = 90*time.Minute, 0
			}),
			with(func(r *Rule) {
				r.Name, r.Line, r.Save, r.Place = "MFCA", "MFCA", "mfca", "shape"
				r.Interval = 5 * time.Minute
				r.Least, r.Limit, r.Step = 3*time.Minute, .5, 1
			}),
		},
		Claims: []RuleClaim{
			{
				Line: 8, Kind: "ratio", Above: "auto", Below: "LFCA", Measure: "waste", Case: "old",
				To:    .9,
				Paper: .8,
			},
			{
				Line: 9, Kind: "more", Above: "MFCA", Below: "LFCA", Measure: "met",
				Shortest: 5 * time.Minute,
				From:     .5, To: 1,
			},
		},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !IsExperiment(smallFailing) {
		t.Error("what has a line resources is an experiment")
	}
}

func TestMistakesAboutFailing(t *testing.T) {
	const resources = "resources name=a n=8 mtbf=4h\n"
	const tasks = "tasks n=10 run=1h..2h checkpoint=2m\n"
	const auto, every = "strategy name=auto\n", "strategy name=p save=every interval=5m,10m\n"
	const one, claim = resources + tasks + "strategy name=", resources + tasks + auto + "expect "
	for text, want := range map[string]string{
		resources + auto:                                  "add tasks n=3000 run=1h..10h load=.5",
		resources + tasks:                                 "add strategy name=auto save=learned",
		resources + resources + tasks + auto:              "that no other line resources has",
		resources + tasks + tasks + auto:                  "line 3: tasks: want one such line",
		"resources name=a@b\n" + tasks + auto:             "a name without / and @",
		"resources n=3\n" + tasks + auto:                  "add name=...",
		"resources name=a mtbf=1s\n" + tasks + auto:       "mtbf=1s: want a time of at least 1m0s",
		"resources name=a shape=99\n" + tasks + auto:      "shape=99: want a number from 0.2 to 10",
		"resources name=a shap=9h\n" + tasks + auto:       "did you mean shape?",
		resources + "grid n=3\n" + tasks + auto:           "one of resources tasks strategy expect",
		resources + "tasks run=2h..1h\n" + auto:           "the shorter one first, such as 1h..10h",
		resources + "tasks run=2h..3h..4h\n" + auto:       "the shorter one first, such as 1h..10h",
		resources + "tasks run=long\n" + auto:             "run=long: want times from 1s to",
		resources + "tasks checkpoint=0s\n" + auto:        "checkpoint=0s: want a time of at",
		resources + "tasks load=3\n" + auto:               "load=3: want a number from 0.001 to 2",
		resources + tasks + auto + auto:                   "that no other strategy has",
		one + "a@b\n":                                     "a name without / and @",
		resources + tasks + every + every:                 "that no other strategy has",
		one + "a save=of\n":                               "save=of: want learned or known or daly",
		one + "a place=x\n":                               "place=x: want random or fibr or rate",
		one + "a save=lfca":                               "add interval=5m,20m,80m",
		one + "a interval=5m":                             "interval=5m: want none with save=",
		one + "a save=every interval=5m,,":                "times from 1s to 366 days",
		one + "a omit=x":                                  "omit=x: want a whole number from 0",
		one + "a save=mfca interval=5m least=2m":          "least=2m0s: want more than a",
		claim + "ratio=auto/b of=waste to=1\n":            "ratio=b: want the name of a strategy",
		claim + "ratio=auto/auto of=waste to=1 at=b\n":    "at=b: want the name of a line",
		claim + "of=waste to=1\n":                         "the names of two strategies, NAME/NAME",
		claim + "more=auto of=waste\n":                    "the names of two strategies, NAME/NAME",
		claim + "ratio=auto/auto of=wait to=1\n":          "of=wait: want one of waste",
		claim + "ratio=auto/auto of=waste\n":              "add to=...",
		claim + "ratio=a/b more=a/b of=waste to=1\n":      "write a line for each",
		claim + "more=auto/auto of=waste at=a\n":          "did you mean",
		claim + "less=auto/auto of=waste from=.5 to=.4\n": "a number above from",
	} {
		_, err := ParseExperiment(text)
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if e, err := ParseExperiment(resources + tasks + auto); err != nil || e.Seeds != 30 {
		t.Errorf("without seeds there are %d: %v", e.Seeds, err)
	}
}
