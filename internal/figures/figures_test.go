package figures

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/eval"
	"github.com/mrsmesh/mrsmesh/internal/scenario"
	"github.com/mrsmesh/mrsmesh/pkg/metrics"
)

var update = flag.Bool("update", false, "write the figures in testdata anew")

func compared() eval.CompareResult {
	of := func(mean, ci float64) map[string]metrics.Interval {
		return map[string]metrics.Interval{"wait": {Mean: mean, CI95: ci}, "done": {}}
	}
	return eval.CompareResult{
		Scenario: "made-up <&>", First: 1, Seeds: 30, Names: []string{"A", "B", "C"},
		Strategies: map[string]map[string]metrics.Interval{
			"A": of(2000, 300), "B": of(1500, 0), "C": {},
		},
		Ratios: map[string]map[string]metrics.Interval{"B/A": of(.75, .1), "C/A": {}},
	}
}

func swept() eval.SweepResult {
	r := eval.SweepResult{Scenario: "made-up", Varied: []eval.Varied{
		{Key: "jobs.load", Values: []string{".8", ".5", "1"}},
		{Key: "grid.ways", Values: []string{"turns", "a/b"}},
	}}
	for i, load := range r.Varied[0].Values {
		for k, ways := range r.Varied[1].Values {
			c := compared()
			c.Strategies["B"] = map[string]metrics.Interval{
				"wait": {Mean: float64(500*i + 100*k), CI95: 120},
			}
			r.Points = append(r.Points, eval.SweepPoint{
				Set: map[string]string{"jobs.load": load, "grid.ways": ways}, CompareResult: c,
			})
		}
	}
	return r
}

// recorded is a small run of the queue, whose jobs wait for each other.
func recorded(t *testing.T) eval.RunRecord {
	t.Helper()
	e, err := scenario.ParseExperiment("grid n=3 nodes=12 spread=.8 mem=1GiB rate=80Mbps\n" +
		"jobs procs=4 time=.02 longest=5m load=.9 for=10m mem=.1..0.3 data=1MiB\n" +
		"strategy name=A:B on=queue split=greedy\n")
	if err != nil {
		t.Fatal(err)
	}
	var record eval.RunRecord
	c := eval.Compare{
		Name: "small", Experiment: e, First: 4, Seeds: 1, Workers: 1,
		Keep: func(r eval.RunRecord) error {
			record = r
			return nil
		},
	}
	if _, err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return record
}

func drawAll(t *testing.T, a Album) {
	t.Helper()
	if err := errors.Join(a.Open(), a.Compare(compared(), scenario.ExperimentMeasures()),
		a.Sweep(swept(), []string{"wait", "messages"}), a.Gantt(recorded(t))); err != nil {
		t.Fatal(err)
	}
}

// The same results give the same bytes, those in testdata. Figures replace their like.
func TestFiguresAreThoseInTestdata(t *testing.T) {
	dir := t.TempDir()
	a := Album{SVG: filepath.Join(dir, "deep", "svg"), PNG: filepath.Join(dir, "png")}
	drawAll(t, a)
	first := filesIn(t, dir)
	drawAll(t, a)
	again := filesIn(t, dir)
	var names []string
	for name, drawn := range first {
		if again[name] != drawn {
			t.Errorf("%s differs when it is drawn again", name)
		}
		names = append(names, name)
		if strings.HasSuffix(name, ".png") {
			continue
		}
		golden := filepath.Join("testdata", filepath.Base(name))
		if *update {
			if err := os.WriteFile(golden, []byte(drawn), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil || string(want) != drawn {
			t.Errorf("%s is not as in testdata (%v): look at it, and run with -update", name, err)
		}
	}
	slices.Sort(names)
	var want []string
	for _, form := range []string{"deep/svg/%s.svg", "png/%s.png"} {
		for _, name := range []string{
			"done", "done-ratio", "gantt-A_B", "wait", "wait-grid.ways-a_b", "wait-grid.ways-turns",
			"wait-ratio", "wait-ratio-grid.ways-a_b", "wait-ratio-grid.ways-turns",
		} {
			want = append(want, fmt.Sprintf(form, name))
		}
	}
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("drawn %q, want %q", names, want)
	}
}

func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Others can read them: XML in which names are quoted, pictures with every pixel, text with units.
func TestFiguresCanBeRead(t *testing.T) {
	dir := t.TempDir()
	drawAll(t, Album{SVG: dir, PNG: dir})
	for name, text := range filesIn(t, dir) {
		if strings.HasSuffix(name, ".png") {
			picture, err := png.Decode(strings.NewReader(text))
			if err != nil || picture.Bounds().Dx() < 600 || picture.Bounds().Dy() < 400 {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		decoder := xml.NewDecoder(strings.NewReader(text))
		var err error
		for err == nil {
			_, err = decoder.Token()
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", name, err)
		}
		wants := []string{"Liberation Sans,Arial", ">made-up"}
		switch {
		case strings.HasPrefix(name, "gantt"):
			wants = []string{">small, A:B, seed 4", ">s2  ", ">time (min)"}
		case strings.HasPrefix(name, "wait-ratio"):
			wants = append(wants, "AWT: mean wait, beside A<")
		case strings.HasPrefix(name, "wait"):
			wants = append(wants, "AWT: mean wait (s)<", "30 seeds, 95 % intervals")
		}
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s has no %q", name, want)
			}
		}
	}
}

// What is not ours stays.
func TestForeignFilesStay(t *testing.T) {
	dir := t.TempDir()
	const photo = "<svg>a drawing of my own</svg>"
	path := filepath.Join(dir, "wait.svg")
	if err := os.WriteFile(path, []byte(photo), 0o600); err != nil {
		t.Fatal(err)
	}
	err := Album{SVG: dir}.Compare(compared(), []string{"wait"})
	if !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != photo {
		t.Errorf("%s, %v", text, err)
	}
	if err := (Album{PNG: path}).Open(); err == nil ||
		!strings.Contains(err.Error(), "directory for figures") {
		t.Error(err)
	}
	if err := (Album{}).Compare(compared(), []string{"wait"}); err != nil {
		t.Error(err)
	}
}

// Marks are round numbers, and cover the axis.
func TestTicks(t *testing.T) {
	for want, c := range map[string][2]float64{
		"0 1 2 3 4 5 6 7":        {0, 7},
		"0 2 4 6":                {0, 7.1},
		"0 500 1000 1500 2000":   {0, 2300},
		"-0.2 0 0.2 0.4 0.6 0.8": {-.21, .9},
		"0.995 1 1.005":          {.994, 1.009},
		"3":                      {3, 3},
	} {
		var labels []string
		for _, tick := range (ticker{7}).Ticks(c[0], c[1]) {
			labels = append(labels, tick.Label)
		}
		if got := strings.Join(labels, " "); got != want {
			t.Errorf("%v: %q, want %q", c, got, want)
		}
	}
}

// Of very many sites those are drawn that matter, in their order.
func TestGanttOfManySites(t *testing.T) {
	r := recorded(t)
	for len(r.Grid.Sites) < 5000 {
		r.Grid.Sites = append(r.Grid.Sites, r.Grid.Sites[0])
	}
	last := r.Holds[0]
	last.Site = 4999
	r.Holds = append(r.Holds, last)
	sites := busiest(r)
	if len(sites) != mostRows || sites[len(sites)-1] != 4999 || !slices.IsSorted(sites) {
		t.Errorf("%v", sites)
	}
	dir := t.TempDir()
	if err := (Album{SVG: dir}).Gantt(r); err != nil {
		t.Fatal(err)
	}
	drawn := filesIn(t, dir)["gantt-A_B.svg"]
	if !strings.Contains(drawn, "(the 100 busiest of 5000 sites)") ||
		!strings.Contains(drawn, ">s4999  ") {
		t.Errorf("%.3000s", drawn)
	}
}

func TestUnits(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"s": time.Minute, "min": time.Hour, "h": 36 * time.Hour, "days": 900 * time.Hour,
	} {
		if _, got := unitFor(d); got != want {
			t.Errorf("%v in %s, want %s", d, got, want)
		}
	}
	if _, err := signed(bytes.Repeat([]byte{0}, 9)); err == nil {
		t.Error("nine bytes are no PNG")
	}
}
