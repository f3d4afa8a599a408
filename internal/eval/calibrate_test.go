package eval

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/avail"
)

// worst is the largest error allowed in a bin.
const worst = 0.05

// A year of office machines, from their first minute on: what they say of themselves is
// true in every tenth of probability, and better than what else could be said.
func TestDesktopsKnowThemselves(t *testing.T) {
	if testing.Short() {
		t.Skip("years of twenty machines take seconds")
	}
	c := Calibrate{Model: "desktop", Machines: 20, Days: 365, Learning: 28, Seed: 1}
	r, err := c.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantCalibrated(t, r)
	if f := r.First; f == nil || f.Brier >= f.BrierPriorOnly || f.Brier >= f.BrierPaper ||
		f.Brier >= f.BrierConstant {
		t.Errorf("the first four weeks: %+v", f)
	}
	if r.Machines != 20 || r.Queries < 50_000 {
		t.Errorf("%d machines, %d predictions", r.Machines, r.Queries)
	}
}

func wantCalibrated(t *testing.T, r CalibrateResult) {
	t.Helper()
	for i, b := range r.Bins {
		t.Logf("bin %d: %d predictions, predicted %.3f, actual %.3f", i, b.Queries, b.Predicted, b.Actual)
		if math.Abs(b.Predicted-b.Actual) > worst {
			t.Errorf("bin %d: predicted %.3f, actual %.3f: more than %v off",
				i, b.Predicted, b.Actual, worst)
		}
	}
	wantBetter(t, r)
}

func wantBetter(t *testing.T, r CalibrateResult) {
	t.Helper()
	t.Logf("%d predictions, Brier %.4f; prior %.4f, constant %.4f, by length %.4f, paper %.4f",
		r.Queries, r.Brier,
		r.BrierPriorOnly, r.BrierConstant, r.BrierByLength, r.BrierPaper)
	for name, other := range map[string]float64{
		"the prior": r.BrierPriorOnly, "a constant": r.BrierConstant,
		"a constant for each length": r.BrierByLength, "the paper": r.BrierPaper,
	} {
		if r.Brier >= other {
			t.Errorf("Brier score %.4f, of %s %.4f", r.Brier, name, other)
		}
	}
}

// TestLANL replays the failures of real machines, which are not ours to give away.
func TestLANL(t *testing.T) {
	path := filepath.Join(traces(t), "availability", "LANL05-event_trace-shared.tab.gz")
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no events of real machines: %v", err)
	}
	if testing.Short() {
		t.Skip("nine years of a thousand machines take a minute")
	}
	r, err := Calibrate{Events: path, Seed: 1, Every: 8}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantBetter(t, r)
}

const events = `# a comment
event_id	component_id	node_id	platform_id	node_name	event_type	` +
	`event_start_time	event_stop_time	event_end_reason
0	0	1	3	a	0	0	100	8000
1	0	1	3	a	1	100	200	1
2	0	1	3	a	1	200	300	1
3	0	2	3	b	1	50	90	1
4	0	1	3	a	0	300	400	8000
5	0	1	3	a	1	400	500	1
6	0	2	3	b	0	90	91	8000
`

const noEvents = "not an event_trace of the Failure Trace Archive: "

func TestEventsAreRead(t *testing.T) {
	for _, content := range [][]byte{[]byte(events), zip(t, events)} {
		records, err := readRecords(write(t, "events.tab", content))
		if err != nil {
			t.Fatal(err)
		}
		want := []record{
			{ups: []stretch{{100, 300, avail.EndCrash}, {400, 500, avail.EndOpen}}, closes: 500},
			{ups: []stretch{{50, 90, avail.EndCrash}}, closes: 91},
		}
		if diff := cmp.Diff(want, records, cmp.AllowUnexported(record{}, stretch{})); diff != "" {
			t.Errorf("records (-want +got):\n%s", diff)
		}
	}
	for text, want := range map[string]string{
		"":                                    "no time up",
		"1\t2\n":                              "line 1: " + noEvents + "want 9 columns",
		strings.Replace(events, "50", "x", 1): "line 6: ",
		strings.Replace(events, "\t90\t1", "\t10\t1", 1): "line 6: " + noEvents + "an event from 50",
	} {
		_, err := readRecords(write(t, "events.tab", []byte(text)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error = %v, want %q in it", err, want)
		}
	}
	if _, err := readRecords("testdata/absent.tab"); err == nil ||
		!strings.Contains(err.Error(), "testdata/absent.tab") {
		t.Errorf("error = %v", err)
	}
}

func TestCalibrateDrawsAndRepeats(t *testing.T) {
	svg := filepath.Join(t.TempDir(), "diagram.svg")
	c := Calibrate{Model: "desktop", Machines: 1, Days: 20, Seed: 3, SVG: svg}
	a, err := c.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	picture := readFile(t, svg)
	b, err := c.Run(t.Context())
	if diff := cmp.Diff(a, b); diff != "" || err != nil || picture != readFile(t, svg) {
		t.Errorf("the same experiment again, %v:\n%s", err, diff)
	}
	if !strings.HasPrefix(picture, "<svg ") || !strings.Contains(picture, "<circle") ||
		!strings.HasSuffix(picture, "</svg>\n") {
		t.Errorf("picture = %.200s", picture)
	}
}

func TestCalibrateRefuses(t *testing.T) {
	for name, c := range map[string]Calibrate{
		"both": {Model: "desktop", Events: "x", Machines: 1, Days: 1},
		"none": {}, "model": {Model: "laptop", Machines: 1, Days: 1},
		"machines": {Model: "desktop", Days: 1}, "days": {Model: "desktop", Machines: 1},
	} {
		if _, err := c.Run(t.Context()); !errors.Is(err, ErrUsage) {
			t.Errorf("%s: error = %v", name, err)
		}
	}
}
