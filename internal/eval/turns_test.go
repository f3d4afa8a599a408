package eval

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Machines that are made up can be read again, are watched as long as was asked for, and
// are up as much; a calibration takes them.
func TestTurnsAreWritten(t *testing.T) {
	for want, turns := range map[float64]Turns{
		0.8: {
			Up: Law{Name: "weibull", Shape: 0.7, Scale: time.Hour}, Down: Law{Name: "lognormal"},
			Availability: 0.8, Machines: 400, Days: 10, Seed: 1,
		},
		0.75: {
			Up:       Law{Name: "exponential", Scale: 3 * time.Hour},
			Down:     Law{Name: "exponential", Scale: time.Hour},
			Machines: 400, Days: 10, Seed: 1,
		},
	} {
		var text bytes.Buffer
		if err := turns.Write(&text); err != nil {
			t.Fatal(err)
		}
		path := write(t, "events.tab", text.Bytes())
		fit, err := FitEvents{Events: path}.Run()
		if err != nil || fit.Nodes != 400 || math.Abs(fit.Availability-want) > 0.01 {
			t.Errorf("%+v: read back %+v, %v", turns, fit, err)
		}
		nodes, err := readEvents(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, node := range nodes {
			if from, to := node.Spells[0].From, node.Until; from != firstMidnight || to != from+864000 {
				t.Fatalf("%s was watched from %v to %v", node.Name, from, to)
			}
		}
		r, err := Calibrate{Events: path, Seed: 1, Every: 100}.Run(t.Context())
		if err != nil || r.Machines != 4 {
			t.Errorf("calibration: %+v, %v", r, err)
		}
		if !strings.Contains(text.String(), fmt.Sprintf("\n# availability %g\n", want)) {
			t.Errorf("comments: %.300s", text.String())
		}
	}
}

// The comments say what the laws are.
func TestTurnsAreDescribed(t *testing.T) {
	var text bytes.Buffer
	turns := Turns{
		Up:       Law{Name: "lognormal", Shape: 2, Scale: time.Hour},
		Down:     Law{Name: "exponential", Scale: 10 * time.Hour},
		Machines: 2, Days: 1, Seed: 9,
	}
	if err := turns.Write(&text); err != nil {
		t.Fatal(err)
	}
	want := "# 2 machines, 1 days from a Monday on, seed 9, made by gridsim workload availability\n" +
		"# times up lognormal: scale 1 h, shape 2, mean 7.38906 h, median 1 h; " +
		"down exponential: scale 10 h, mean 10 h, median 6.93147 h\n" +
		"# availability 0.424926\nevent_id\t"
	if !strings.HasPrefix(text.String(), want) {
		t.Errorf("text %.400s, want %s", text.String(), want)
	}
}

// Each law has a usual shape, which holds when none is given.
func TestUsualShapes(t *testing.T) {
	for _, name := range Laws() {
		law, err := Law{Name: name, Scale: time.Hour}.ofSeconds("")
		if err != nil || law.Scale != 3600 || (law.Shape == 0) != (name == "exponential") {
			t.Errorf("%s: %+v, %v", name, law, err)
		}
	}
}

func TestTurnsRefuse(t *testing.T) {
	for want, change := range map[string]func(*Turns){
		"--law: invalid law: want one of normal, ":        func(x *Turns) { x.Up.Name = "gamma" },
		"--down-law: invalid law: ":                       func(x *Turns) { x.Down.Name = "" },
		"--scale: invalid law: want a positive number":    func(x *Turns) { x.Up.Scale = 0 },
		"--down-scale: invalid law: want a positive":      func(x *Turns) { x.Down.Scale = -1 },
		"--down-shape: invalid law: want 1e-06 to 10":     func(x *Turns) { x.Down.Shape = -3 },
		"--shape: invalid law: an exponential law has no": func(x *Turns) { x.Up.Shape = 3 },
		"--availability: want more than 0":                func(x *Turns) { x.Availability = 1 },
		"and less than 1, have -0.5":                      func(x *Turns) { x.Availability = -0.5 },
		"less than 1, have NaN":                           func(x *Turns) { x.Availability = math.NaN() },
		"--machines: want at least 1, have 0":             func(x *Turns) { x.Machines = 0 },
		"--days: want 1 to 36525, have 0":                 func(x *Turns) { x.Days = 0 },
		"have 36526":                                      func(x *Turns) { x.Days = 36526 },
		"--scale: these would be some ": func(x *Turns) {
			x.Machines, x.Days = 30_000, 10_000
		},
	} {
		turns := Turns{
			Up: Law{Name: "exponential", Scale: time.Hour}, Down: Law{Name: "normal", Scale: time.Hour},
			Machines: 1, Days: 1,
		}
		change(&turns)
		var out bytes.Buffer
		if err := turns.Write(&out); !errors.Is(err, ErrUsage) ||
			!strings.Contains(err.Error(), want) || out.Len() > 0 {
			t.Errorf("error = %v, want %q; written: %.99q", err, want, out.String())
		}
	}
}

// TestLANLFits compares fits of real machines with those that an independent program made.
func TestLANLFits(t *testing.T) {
	events := filepath.Join(traces(t), "availability", "LANL05-event_trace-shared.tab.gz")
	for _, c := range []struct {
		nodes                           string
		upMean, upShape, upScale, down  float64
		downMu, downSigma, availability float64
		bestUp                          string
	}{
		{"2.", 377, 0.628, 258, 2.28, -0.072, 1.208, 0.994, "weibull"},
		{"8.", 3199, 0.540, 1890, 34.6, 1.539, 2.241, 0.986, "weibull"},
		{"16.", 229, 0.636, 159, 9.34, -0.178, 1.441, 0.961, "weibull"},
		{"18.", 4148, 0.662, 3262, 2.99, 0.095, 1.220, 0.999, "weibull"},
		{"22.", 265, 0.795, 230, 5.96, 0.920, 0.922, 0.978, "lognormal"},
	} {
		r, err := FitEvents{Events: events, Nodes: c.nodes}.Run()
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("system %s %+v", c.nodes, r)
		for name, x := range map[string]struct{ got, want, off float64 }{
			"shape up":     {r.Up.Weibull.Shape, c.upShape, 0.03},
			"scale up":     {r.Up.Weibull.ScaleH / c.upScale, 1, 0.03},
			"mean up":      {r.Up.MeanH / c.upMean, 1, 0.01},
			"mean down":    {r.Down.MeanH / c.down, 1, 0.01},
			"median down":  {math.Log(r.Down.LogNormal.ScaleH), c.downMu, 0.03},
			"shape down":   {r.Down.LogNormal.Shape, c.downSigma, 0.03},
			"availability": {r.Availability, c.availability, 0.001},
		} {
			if math.Abs(x.got-x.want) > x.off {
				t.Errorf("system %s: %s: %v, want %v", c.nodes, name, x.got, x.want)
			}
		}
		if r.Up.Best != c.bestUp || r.Down.Best != "lognormal" {
			t.Errorf("system %s: best %s and %s", c.nodes, r.Up.Best, r.Down.Best)
		}
	}
}

func TestFitRefuses(t *testing.T) {
	path := write(t, "events.tab", []byte(events))
	for want, f := range map[string]FitEvents{
		"--events: name an event_trace": {},
		"no such file":                  {Events: "testdata/absent.tab"},
		`--nodes: of 2 nodes in ` + path + ` no name begins with "x"`: {Events: path, Nodes: "x"},
		path + ": times up: fit a weibull law to 1 durations":         {Events: path, Nodes: "b"},
		path + ": times down: fit a weibull law to 2 durations":       {Events: path, Nodes: "a"},
		"times up: fit a weibull law to 0 durations": {Events: write(t, "down.tab",
			[]byte("0\t0\t1\t3\ta\t0\t0\t100\t8000\n"))},
	} {
		if _, err := f.Run(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error = %v, want %q", err, want)
		}
	}
}
