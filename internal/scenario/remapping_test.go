package scenario

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const smallRemapping = `machines name=300 nodes=8,4 lead=300 every=90 down=30
machines name=far nodes=16
requests slots=1000 load=1.5 run=20..40 widest=8
strategy name=ours
strategy name=paper full=all zeta=3 eta=.60,.775 killed=yes booking=yes
strategy name=half remap=estimate factor=.5 after=again migrate=yes
strategy name=end remap=until-end
expect   ratio=end/paper-0.775 of=termination from=1 to=1.1 at=300 paper=1.05
expect   less=ours/paper of=terminated from=.9
expect   lowest=paper of=termination from=.7 to=.85
seeds    n=4
`

func TestParseRemapping(t *testing.T) {
	got, err := ParseExperiment(smallRemapping)
	if err != nil {
		t.Fatal(err)
	}
	paper := RemapRule{
		Name: "paper-0.6", Line: "paper", Remap: "load", Zeta: 3, Eta: .6, Killed: true,
		Booking: true, After: "nothing",
	}
	other := paper
	other.Name, other.Eta = "paper-0.775", .775
	want := Experiment{Seeds: 4, Remapping: &Remapping{
		Cases: []MachinesCase{
			{Name: "300", Nodes: []int64{8, 4}, Lead: 300, Every: 90, Down: 30},
			{Name: "far", Nodes: []int64{16}, Lead: 300, Every: 1500, Down: 500},
		},
		Requests: RequestModel{Slots: 1000, Load: 1.5, Shortest: 20, Longest: 40, Widest: 8},
		Rules: []RemapRule{
			{
				Name: "ours", Line: "ours", Remap: "load", Zeta: 2, Eta: .775, Surviving: true,
				After: "nothing",
			},
			paper, other,
			{
				Name: "half", Line: "half", Remap: "estimate", Zeta: 2, Surviving: true, Factor: .5,
				After: "again", Migrate: true,
			},
			{
				Name: "end", Line: "end", Remap: "until-end", Zeta: 2, Surviving: true,
				After: "nothing",
			},
		},
		Claims: []RuleClaim{
			{
				Line: 8, Kind: "ratio", Above: "end", Below: "paper-0.775", Measure: "termination",
				Case: "300", From: 1, To: 1.1, Paper: 1.05,
			},
			{
				Line: 9, Kind: "less", Above: "ours", Below: "paper", Measure: "terminated",
				From: .9, To: 1,
			},
			{Line: 10, Kind: "lowest", Above: "paper", Measure: "termination", From: .7, To: .85},
		},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !IsExperiment(smallRemapping) || !got.InCases() {
		t.Error("a text with a line machines is an experiment with cases")
	}
	short := "machines name=a nodes=4\nrequests run=30\nstrategy name=ours\n"
	got, err = ParseExperiment(short)
	requests := RequestModel{Slots: 20_000, Load: 2, Shortest: 30, Longest: 30, Widest: 256}
	if err != nil || got.Seeds != 30 || got.Remapping.Requests != requests {
		t.Errorf("%+v, %v", got.Remapping, err)
	}
}

func TestMistakesAboutRemapping(t *testing.T) {
	const machines, requests = "machines name=a nodes=8\n", "requests widest=8\n"
	const ours = "strategy name=ours\n"
	const one = machines + requests + "strategy name="
	const claim = machines + requests + ours + "expect "
	for text, want := range map[string]string{
		machines + ours:                                    "add requests slots=20000 load=2",
		machines + requests:                                "add strategy name=ours remap=load",
		machines + requests + requests + ours:              "line 3: requests: want one such line",
		machines + machines + requests + ours:              "that no other line machines has",
		"machines name=a/b nodes=8\n" + requests + ours:    "a name without / and @",
		"machines nodes=8\n" + requests + ours:             "add name=...",
		"machines name=a\n" + requests + ours:              "the nodes of each machine, such as",
		"machines name=a nodes=8,0\n" + requests + ours:    "nodes=8,0: want at most 1024 whole",
		"machines name=a nodes=8 down=2000\n" + requests:   "down=2000: want less than every, 1500",
		"machines name=a nodes=8 lead=0\n" + requests:      "lead=0: want a number from 0.001",
		"machines name=a nodes=8 every=0\n" + requests:     "every=0: want a whole number from 1",
		"machines name=a nodes=8 evry=9\n" + requests:      "did you mean every?",
		machines + "tasks n=3\n" + ours:                    "one of machines requests strategy",
		machines + "requests run=9..3\n" + ours:            "the smaller number first",
		machines + "requests run=1h\n" + ours:              "run=1h: want slots from 1 to",
		machines + "requests widest=12\n" + ours:           "widest=12: want a power of two",
		machines + "requests widest=1\n" + ours:            "widest=1: want a power of two",
		machines + "requests load=x\n" + ours:              "load=x: want a number from 0.001",
		machines + "requests slots=0\n" + ours:             "slots=0: want a whole number from 1",
		machines + "requests down=3\n" + ours:              "did you mean",
		machines + requests + ours + ours:                  "that no other strategy has",
		one + "a@b\n":                                      "a name without / and @",
		one + "a eta=.5,.50\n":                             "that no other strategy has",
		one + "a eta=.5,,\n":                               "eta=.5,,: want numbers from 0 to 10",
		one + "a eta=11\n":                                 "eta=11: want numbers from 0 to 10",
		one + "a zeta=-1\n":                                "zeta=-1: want a number from 0 to 1000",
		one + "a remap=none\n":                             "remap=none: want load or slot or all",
		one + "a remap=all eta=.5\n":                       "without remap=load; remove it",
		one + "a remap=all booking=no\n":                   "booking: want none without remap=load",
		one + "a factor=.5\n":                              "factor: want none without",
		one + "a remap=estimate\n":                         "add factor=.5",
		one + "a remap=estimate factor=.5 after=x\n":       "after=x: want nothing or slot",
		claim + "ratio=ours/b of=terminated to=1\n":        "ratio=b: want the name of a strategy",
		claim + "ratio=ours/ours of=blocking to=1 at=b\n":  "the name of a line machines",
		claim + "lowest=b of=termination to=1\n":           "lowest=b: want the name of a strategy",
		claim + "lowest=ours/ours of=termination to=1\n":   "that has several thresholds",
		claim + "lowest=ours of=termination\n":             "add to=...",
		claim + "of=termination to=1\n":                    "ratio=, more=, less= or lowest= with",
		claim + "ratio=ours/ours of=waste to=1\n":          "of=waste: want one of termination",
		claim + "less=ours/ours of=blocking shortest=5m\n": "did you mean",
		"resources name=a n=8 mtbf=4h\n" + machines:        "one of resources tasks strategy",
	} {
		_, err := ParseExperiment(text)
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
