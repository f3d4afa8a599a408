package eval

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/avail"
	"github.com/mrsmesh/mrsmesh/pkg/workload"
)

var update = flag.Bool("update", false, "write the results of the experiments anew")

// wantResult holds a result against the file that has it, numbers to nine digits: processors
// may round the last ones in other ways.
func wantResult(t *testing.T, name string, result any) {
	t.Helper()
	text, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, append(text, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var want, got any
	if err := errors.Join(json.Unmarshal([]byte(readFile(t, path)), &want),
		json.Unmarshal(text, &got)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-9, 1e-12)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// What calibrations of made-up machines and of events come to stays what it was, in full, and so
// do the machines.
func TestResultsOfCalibrations(t *testing.T) {
	law := func(scale time.Duration) Law { return Law{Name: "weibull", Shape: 0.7, Scale: scale} }
	var text bytes.Buffer
	turns := Turns{
		Up: law(400 * time.Hour), Down: law(20 * time.Hour), Machines: 5, Days: 900, Seed: 4,
	}
	if err := turns.Write(&text); err != nil {
		t.Fatal(err)
	}
	path := write(t, "events.tab", text.Bytes())
	results := map[string]CalibrateResult{}
	for name, c := range map[string]Calibrate{
		"desktops":       {Model: "desktop", Machines: 2, Days: 15, Learning: 10, Seed: 3},
		"without a past": {Model: "desktop", Machines: 1, Days: 10, Seed: 4},
		"events":         {Events: path, Every: 2, Seed: 5},
	} {
		r, err := c.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if (r.First != nil) != (c.Learning > 0) {
			t.Errorf("%s: the first days: %+v", name, r.First)
		}
		results[name] = r
	}
	wantResult(t, "calibrations.json", results)
	machines := map[string][][4]float64{}
	for seed := range uint64(3) {
		r := desktop(source(seed, 7), 16)
		name := fmt.Sprintf("%d, until %.0f", seed, r.closes)
		for _, up := range r.ups {
			week := up.from - firstMidnight
			machines[name] = append(machines[name], [4]float64{
				week, up.to - up.from, up.to - firstMidnight, float64(up.end),
			})
		}
	}
	wantResult(t, "machines.json", machines)
}

// What is written with a seed stays what it was.
func TestWhatIsWritten(t *testing.T) {
	speeds := write(t, "speeds.csv", []byte("3,7\n1,9\n"))
	turns := Turns{
		Up: Law{Name: "exponential", Scale: 30 * time.Hour}, Down: Law{Name: "lognormal"},
		Availability: 0.9, Machines: 2, Days: 3, Seed: 2,
	}
	shaped := turns
	shaped.Up, shaped.Availability = Law{Name: "normal", Scale: 30 * time.Hour, Shape: 0.5}, 0
	shaped.Down.Scale = 2 * time.Hour
	texts := map[string]string{}
	for name, writer := range map[string]interface{ Write(out io.Writer) error }{
		"hosts":             Hosts{Sites: 3, Median: 5, Sigma: 1.2, Seed: 1},
		"hosts, total of 1": Hosts{Sites: 3, Median: 5, Sigma: 1.2, Total: 1, Seed: 1},
		"hosts of a table":  Hosts{Sites: 4, Speeds: speeds, Seed: 2},
		"links":             Links{Sites: 2, Median: 10, Sigma: 0.7, Local: 100, Seed: 1},
		"jobs":              JobLog{Procs: 16, Jobs: 4, Seed: 1},
		"typed jobs":        JobLog{Procs: 16, Jobs: 4, Seed: 1, Typed: true},
		"jobs estimated":    JobLog{Procs: 16, Jobs: 4, Estimates: true, Longest: 18 * time.Hour},
		"turns":             turns,
		"shaped turns":      shaped,
	} {
		var b bytes.Buffer
		if err := writer.Write(&b); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		texts[name] = b.String()
	}
	wantResult(t, "written.json", texts)
}

// A picture has a dot for each bin that was asked about, as large as its share of the questions.
func TestTheDiagram(t *testing.T) {
	r := CalibrateResult{
		Machines: 3, Queries: 8, Brier: 0.125, BrierConstant: 0.25, BrierPaper: 0.5,
		Bins: []ReliabilityBin{
			{Queries: 2, Predicted: 0.05, Actual: 0}, {}, {Queries: 6, Predicted: 0.9, Actual: 1},
		},
	}
	wantResult(t, "diagram.json", strings.Split(string(reliabilitySVG(r)), "\n"))
	none := string(reliabilitySVG(CalibrateResult{Bins: make([]ReliabilityBin, 2)}))
	if strings.Contains(none, "<circle") || strings.Contains(none, "NaN") {
		t.Errorf("of no questions: %s", none)
	}
	one := string(reliabilitySVG(CalibrateResult{Bins: []ReliabilityBin{{Queries: 1}}}))
	if strings.Count(one, "<circle") != 1 {
		t.Errorf("of one question: %s", one)
	}
}

// Answers are counted as somebody would who has them all in a list.
func TestTallies(t *testing.T) {
	const lengths = 3
	rapid.Check(t, func(r *rapid.T) {
		chance := rapid.Float64Range(0, 1)
		var answers []answer
		got := newTally(lengths)
		for range rapid.IntRange(0, 40).Draw(r, "answers") {
			a := answer{
				length: rapid.IntRange(0, lengths-1).Draw(r, "length"), model: chance.Draw(r, "model"),
				prior: chance.Draw(r, "prior"), paper: chance.Draw(r, "paper"),
				stayed: rapid.Bool().Draw(r, "stayed"),
			}
			answers = append(answers, a)
			got.add(a)
		}
		diff := cmp.Diff(inAList(answers, lengths), got.result(), cmpopts.EquateApprox(1e-9, 1e-12))
		if diff != "" {
			r.Fatalf("result (-want +got):\n%s", diff)
		}
	})
}

func outcome(a answer) float64 {
	if a.stayed {
		return 1
	}
	return 0
}

// inAList is the slow way to a tally's result.
func inAList(answers []answer, lengths int) CalibrateResult {
	mean := func(of []answer, f func(answer) float64) (m float64) {
		for _, a := range of {
			m += f(a) / float64(len(of))
		}
		return m
	}
	square := func(of []answer, say func(answer) float64) float64 {
		return mean(of, func(a answer) float64 { return math.Pow(say(a)-outcome(a), 2) })
	}
	share := func(of []answer) func(answer) float64 {
		m := mean(of, outcome)
		return func(answer) float64 { return m }
	}
	pick := func(keep func(answer) bool) (some []answer) {
		for _, a := range answers {
			if keep(a) {
				some = append(some, a)
			}
		}
		return some
	}
	model := func(a answer) float64 { return a.model }
	r := CalibrateResult{
		Queries: len(answers), Brier: square(answers, model),
		BrierConstant:  square(answers, share(answers)),
		BrierPriorOnly: square(answers, func(a answer) float64 { return a.prior }),
		BrierPaper:     square(answers, func(a answer) float64 { return a.paper }),
	}
	for i := range lengths {
		some := pick(func(a answer) bool { return a.length == i })
		r.BrierByLength += square(some, share(some)) * float64(len(some)) / float64(max(len(answers), 1))
	}
	for i := range reliabilityBins {
		some := pick(func(a answer) bool {
			return a.model*reliabilityBins >= float64(i) && (a.model*reliabilityBins < float64(i+1) ||
				i == reliabilityBins-1)
		})
		bin := ReliabilityBin{len(some), mean(some, model), mean(some, outcome)}
		r.Bins = append(r.Bins, bin)
		r.WorstBin = max(r.WorstBin, math.Abs(bin.Predicted-bin.Actual))
	}
	return r
}

// Each mistake of who asks has its words.
func TestWhatCalibrationsRefuse(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	good := Calibrate{Model: "desktop", Machines: 1, Days: 1}
	at := write(t, "events.tab", []byte(events))
	const few = "usage: --machines, --days: want at least 1, have %d and %d"
	for name, c := range map[string]struct {
		change func(*Calibrate)
		want   string
	}{
		"both": {
			func(c *Calibrate) { c.Events = at },
			"usage: --events: give either a model or a file of events",
		},
		"neither": {
			func(c *Calibrate) { c.Model = "" },
			`usage: --model: want desktop, have ""`,
		},
		"no machine": {func(c *Calibrate) { c.Machines = 0 }, fmt.Sprintf(few, 0, 1)},
		"no day":     {func(c *Calibrate) { c.Days = 0 }, fmt.Sprintf(few, 1, 0)},
		"less":       {func(c *Calibrate) { c.Learning = -1 }, fmt.Sprintf(few, 1, 1)},
	} {
		change := good
		c.change(&change)
		r, err := change.Run(t.Context())
		if fmt.Sprint(err) != c.want || !cmp.Equal(r, CalibrateResult{}) {
			t.Errorf("%s: %+v, %v, want %s", name, r, err, c.want)
		}
	}
	want := "calibrate: stopped after 0 of 1 machines: context canceled"
	if r, err := good.Run(ended); fmt.Sprint(err) != want || !cmp.Equal(r, CalibrateResult{}) {
		t.Errorf("ended: %+v, %v", r, err)
	}
	good.SVG = filepath.Join(t.TempDir(), "none", "x.svg")
	r, err := good.Run(t.Context())
	if !errors.Is(err, os.ErrNotExist) || !strings.HasPrefix(err.Error(), "write diagram: ") ||
		r.Machines != 1 {
		t.Errorf("a picture in no folder: %+v, %v", r, err)
	}
	all := []record{{closes: 0}, {closes: 1}, {closes: 2}, {closes: 3}}
	for n, want := range map[int]string{-1: "0123", 0: "0123", 1: "0123", 2: "02", 3: "03", 4: "0"} {
		got := ""
		for _, r := range everyOf(all, n) {
			got += fmt.Sprint(r.closes)
		}
		if got != want {
			t.Errorf("every %d of four: %s, want %s", n, got, want)
		}
	}
}

// A machine that is up to its record's end is not known to have failed; one that never was up
// has no record.
func TestRecordsOfNodes(t *testing.T) {
	up := func(from, to float64) workload.Spell { return workload.Spell{From: from, To: to, Up: true} }
	got := recordsOf([]workload.Node{
		{Until: 9, Spells: []workload.Spell{up(1, 3), {From: 3, To: 5}, up(5, 9)}},
		{Until: 9, Spells: []workload.Spell{{From: 1, To: 9}}},
		{Until: 9.5, Spells: []workload.Spell{up(1, 9)}},
		{Until: 8, Spells: []workload.Spell{up(1, 9)}},
	})
	want := []record{
		{closes: 9, ups: []stretch{{1, 3, avail.EndCrash}, {5, 9, avail.EndOpen}}},
		{closes: 9.5, ups: []stretch{{1, 9, avail.EndCrash}}},
		{closes: 8, ups: []stretch{{1, 9, avail.EndOpen}}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(record{}, stretch{})); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

// What reruns and fits come to stays what it was, in full.
func TestResultsOfRerunsAndFits(t *testing.T) {
	results := map[string]any{}
	for _, policy := range Policies() {
		for _, semantics := range AllSemantics() {
			for _, procs := range []int{0, 11} {
				began := time.Now()
				r, err := SWF{
					Log: micro, Policy: policy, Semantics: semantics, Procs: procs,
				}.Run(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if least := float64(r.Jobs) / time.Since(began).Seconds(); r.JobsPerS < least {
					t.Errorf("%s: %v jobs/s, at least %v", policy, r.JobsPerS, least)
				}
				r.JobsPerS = 0
				results[fmt.Sprintf("%s, %s, %d", policy, semantics, procs)] = r
			}
		}
	}
	var text bytes.Buffer
	law := func(name string, scale time.Duration) Law { return Law{Name: name, Scale: scale} }
	turns := Turns{
		Up: law("weibull", 90*time.Hour), Down: law("lognormal", 3*time.Hour), Machines: 3, Days: 60,
	}
	if err := turns.Write(&text); err != nil {
		t.Fatal(err)
	}
	path := write(t, "events.tab", text.Bytes())
	for _, nodes := range []string{"", "m000001"} {
		r, err := FitEvents{Events: path, Nodes: nodes}.Run()
		if err != nil {
			t.Fatal(err)
		}
		results["fit of "+nodes] = r
	}
	wantResult(t, "reruns.json", results)
}

// A long rerun tells every 4096 instants how far it is, if somebody asks.
func TestProgress(t *testing.T) {
	const jobs = 9000
	var log strings.Builder
	for i := range jobs {
		fmt.Fprintf(&log, "%d %d -1 1 1 -1 -1 1 1 -1 1 1 -1 -1 -1 -1 -1 -1\n", i, i)
	}
	s := SWF{
		Log: write(t, "long.swf", []byte(log.String())), Procs: 1, Policy: "fcfs", Semantics: "batch",
	}
	quiet, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var told []int
	s.Progress = func(started, _ int) { told = append(told, started) }
	loud, err := s.Run(t.Context())
	quiet.JobsPerS, loud.JobsPerS = 0, 0
	if err != nil || quiet != loud || quiet.Jobs != jobs || quiet.MakespanS != jobs {
		t.Errorf("%+v and %+v, %v", quiet, loud, err)
	}
	if !slices.Equal(told, []int{lookEvery, 2 * lookEvery}) {
		t.Errorf("told of %v", told)
	}
}

// As much as may be asked for is looked at further, and the shortest files are read.
func TestTheMost(t *testing.T) {
	law := Law{Name: "exponential", Scale: time.Second}
	for want, err := range map[string]error{
		"no such file":  Hosts{Sites: mostHosts, Speeds: "testdata/absent.csv"}.Write(io.Discard),
		"usage: --loca": Links{Sites: mostLinkedSites}.Write(io.Discard),
		"usage: --scal": Turns{Up: law, Down: law, Machines: 1, Days: mostDays}.Write(io.Discard),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the most is refused by %v, want %s", err, want)
		}
	}
	for name, c := range map[string]struct{ text, want string }{
		"one byte":  {"\x1f", "line 1: "},
		"two bytes": {"\x1f\x8b", "unpack: "},
		"longest":   {";" + strings.Repeat("x", maxLine-2) + "\n", "no jobs in 1 lines: want"},
		"too long":  {";" + strings.Repeat("x", maxLine) + "\n", "line 1: longer than 1048576 bytes"},
	} {
		path := write(t, "log", []byte(c.text))
		_, err := readLog(path)
		if err == nil || !strings.HasPrefix(err.Error(), "read log "+path+": "+c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	for name, want := range map[string]float64{
		"normal": 0.25, "weibull": 0.5, "lognormal": 1, "exponential": 0,
	} {
		if law, err := (Law{Name: name, Scale: time.Second}).ofSeconds(""); err != nil ||
			(law != workload.Law{Name: name, Scale: 1, Shape: want}) {
			t.Errorf("%s: %+v, %v", name, law, err)
		}
	}
}
