package eval

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/scenario"
)

const sweptOne = "grid n=3 nodes=12 spread=.8 mem=1GiB rate=80Mbps\n" +
	"jobs procs=4 time=.02 longest=5m load=.9 for=10m mem=.1..0.3 data=1MiB estimate=1..2\n" +
	"strategy name=BACKFILL on=queue\nstrategy name=REP on=queue copies=2 order=random\nseeds n=2\n"

func sweepOf(t *testing.T, settings ...string) *Sweep {
	t.Helper()
	s := &Sweep{Source: Source{Name: "swept", Text: sweptOne}, First: 3}
	for _, text := range settings {
		key, err := scenario.ParseSetting(text)
		if err != nil {
			t.Fatal(err)
		}
		s.Settings = append(s.Settings, key)
	}
	return s
}

// Each point of a sweep is the same as a run of its own, for any number of workers.
func TestSweepIsSeveralRuns(t *testing.T) {
	var texts []string
	for _, workers := range []int{1, 3} {
		s := sweepOf(t, "jobs.load=.5,.9", "jobs.time=.03", "strategy:REP.order=listed,random")
		s.Workers = workers
		if err := s.Prepare(); err != nil || s.Runs() != 16 {
			t.Fatalf("%v: %d runs", err, s.Runs())
		}
		r, err := s.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
		if len(r.Points) != 4 || len(r.Varied) != 2 || r.Points[1].Set["jobs.load"] != ".5" ||
			r.Points[1].Set["strategy:REP.order"] != "random" || len(r.Points[1].Set) != 2 {
			t.Fatalf("%+v", r.Points)
		}
		alone := with(t, s.Source, "jobs.time=.03", "jobs.load=.9", "strategy:REP.order=listed")
		c, err := alone.Compare()
		if err != nil {
			t.Fatal(err)
		}
		c.First = 3
		want, err := c.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		one, _ := json.Marshal(want)
		other, _ := json.Marshal(r.Points[2].CompareResult)
		if string(one) != string(other) {
			t.Errorf("alone %s\nin the sweep %s", one, other)
		}
	}
	if texts[0] != texts[1] {
		t.Errorf("with one worker %s\nwith three %s", texts[0], texts[1])
	}
}

func TestMistakesInSweeps(t *testing.T) {
	many := "jobs.load=1"
	for i := range 40 {
		many += ",1." + strings.Repeat("0", i)
	}
	for want, settings := range map[string][]string{
		"want a key with several values":       {"jobs.load=.5"},
		"3 keys have several values":           {"jobs.load=.5,.6", "grid.n=2,3", "jobs.time=1,2"},
		"--set jobs.load: given twice":         {"jobs.load=.5,.6", "jobs.load=.7"},
		"--set jobs.lod=.5: line 2: jobs lod:": {"jobs.lod=.5,.6"},
		"did you mean strategy:REP?":           {"strategy:RAP.copies=1,2"},
		"combinations: want at most 1000":      {many, strings.Replace(many, "load", "time", 1)},
		"copies=90000000: want a whole number": {"strategy:REP.copies=1,90000000"},
	} {
		err := sweepOf(t, settings...).Prepare()
		if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", settings, err, want)
		}
	}
}
