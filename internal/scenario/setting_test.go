package scenario

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A setting changes the one key that it names, and nothing else.
func TestSettingsApply(t *testing.T) {
	before, err := ParseExperiment(smallExperiment)
	if err != nil {
		t.Fatal(err)
	}
	for text, change := range map[string]func(e *Experiment){
		"jobs.load=.9":              func(e *Experiment) { e.Jobs.Load = .9 },
		"grid.n=8":                  func(e *Experiment) { e.Grid.Sites = 8 },
		"seeds.n=5":                 func(e *Experiment) { e.Seeds = 5 },
		"strategy:MRS.grain=2":      func(e *Experiment) { e.Strategies[0].Grain = 2 },
		"strategy:REP.split=never":  func(*Experiment) {}, // a key that was not written
		"strategy:REP.order=listed": func(e *Experiment) { e.Strategies[1].Random = false },
		"expect.to=2":               func(e *Experiment) { e.Claims[0].To = 2 },
		"jobs:*.load=.9":            func(e *Experiment) { e.Jobs.Load = .9 },
		"strategy:*.grain=2": func(e *Experiment) {
			e.Strategies[0].Grain, e.Strategies[1].Grain = 2, 2
		},
	} {
		s, wrong := ParseSetting(text)
		if wrong != nil {
			t.Fatal(wrong)
		}
		changed, wrong := s.Apply(smallExperiment, s.Values[0])
		if wrong != nil {
			t.Errorf("%s: %v", text, wrong)
			continue
		}
		got, wrong := ParseExperiment(changed)
		want := before
		want.Strategies = append([]Strategy(nil), before.Strategies...)
		want.Claims = append([]Claim(nil), before.Claims...)
		change(&want)
		if diff := cmp.Diff(want, got); diff != "" || wrong != nil {
			t.Errorf("%s: %v -want +got:\n%s", text, wrong, diff)
		}
	}
	s, err := ParseSetting("strategy:a.b.grain=1,2,4")
	if err != nil || s.Name != "a.b" || s.Key != "grain" || len(s.Values) != 3 ||
		s.Path() != "strategy:a.b.grain" {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestMistakesInSettings(t *testing.T) {
	for text, want := range map[string]string{
		"":                 "want LINE.KEY=VALUE",
		"jobs.load":        "want LINE.KEY=VALUE",
		"load=.5":          "want LINE.KEY=VALUE",
		"jobs.load=":       "want LINE.KEY=VALUE",
		"jobs.load=.5, .6": "without spaces",
		"jobs.load=.5,,.6": "values that differ",
		"jobs.load=.5,.5":  "jobs.load: want values that differ",
		"job.load=.5": "no line job: want one of expect grid jobs seeds strategy:MRS " +
			"strategy:REP",
		"gird.n=3":             "did you mean grid?",
		"strategy.grain=2":     "there are 2 such lines: want one of",
		"strategy.grain=3":     "strategy:REP, or strategy:* for all",
		"sites:*.n=3":          "there is no line sites:*",
		"strategy:MSR.grain=2": "did you mean strategy:MRS?",
	} {
		s, err := ParseSetting(text)
		if err == nil {
			_, err = s.Apply(smallExperiment, s.Values[0])
		}
		if err == nil || !errors.Is(err, ErrSyntax) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// Of a log nothing is changed that is not asked for.
func TestExperimentsFromLogs(t *testing.T) {
	const rest = "grid n=2 nodes=8\nstrategy name=a on=queue\n"
	e, err := ParseExperiment("jobs log=a.swf data=1MiB\n" + rest)
	want := JobModel{
		Time: 1, Burst: 1, MemLow: .5, MemHigh: .5, Data: 1 << 20, LogPart: LogPart{Log: "a.swf"},
	}
	if diff := cmp.Diff(want, e.Jobs); diff != "" || err != nil {
		t.Errorf("%v -want +got:\n%s", err, diff)
	}
	e, err = ParseExperiment(
		"jobs log=a.swf from=24h first=9 procs=4 for=2h load=.5 longest=1h estimate=1..2 time=2\n" + rest)
	if j := e.Jobs; err != nil || j.First != 9 || j.From.Hours() != 24 || j.Procs != 4 ||
		j.For.Hours() != 2 || j.Load != .5 || j.Longest.Hours() != 1 || j.EstHigh != 2 || j.Time != 2 {
		t.Errorf("%+v, %v", j, err)
	}
	for line, want := range map[string]string{
		"jobs first=3":            "jobs log: want a file with a log",
		"jobs from=3h":            "add log=FILE",
		"jobs log=a n=3":          "no n and burst beside it; write first=",
		"jobs log=a burst=2":      "no n and burst beside it",
		"jobs log=a first=0":      "first=0: want a whole number from 1",
		"jobs log=a fist=1":       "did you mean first?",
		"jobs log=a from=-1h":     "from=-1h: want a time",
		"jobs log=a procs=9":      "procs of at most the grid's 8",
		"jobs log=a estimate=0.5": "a range a..b from 1 on",
	} {
		if _, err := ParseExperiment(line + "\n" + rest); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

func FuzzSettings(f *testing.F) {
	f.Add("jobs.load=.5", smallExperiment)
	f.Add("strategy.=\v0", "strategy")
	f.Add("strategy:MRS.grain=2,3", "strategy # name=MRS\nstrategy name=MRS grain=1 # one\n")
	f.Fuzz(func(t *testing.T, setting, text string) {
		s, err := ParseSetting(setting)
		if err != nil {
			return
		}
		changed, err := s.Apply(text, s.Values[0])
		if err != nil {
			return
		}
		if again, err := s.Apply(changed, s.Values[0]); err != nil && s.Key != "name" ||
			err == nil && again != changed {
			t.Errorf("%q, then %q: %v", changed, again, err)
		}
	})
}
