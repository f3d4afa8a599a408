package figures

import (
	"fmt"
	"image/color"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
)

// colours tell strategies apart, also for those who do not see red and green: those of M. Okabe
// and K. Ito, "Color Universal Design", 2008, without the yellow that is too light for lines.
func colours() []color.NRGBA {
	return []color.NRGBA{
		{0x00, 0x72, 0xb2, 0xff},
		{0xd5, 0x5e, 0x00, 0xff},
		{0x00, 0x9e, 0x73, 0xff},
		{0xcc, 0x79, 0xa7, 0xff},
		{0xe6, 0x9f, 0x00, 0xff},
		{0x56, 0xb4, 0xe9, 0xff},
		{0x4d, 0x4d, 0x4d, 0xff},
		{0x8c, 0x6b, 0x2f, 0xff},
	}
}

func colourOf(i int) color.NRGBA { return colours()[i%len(colours())] }

// sizes of letters.
const (
	titleSize = vg.Length(12)
	labelSize = vg.Length(11)
	tickSize  = vg.Length(10)
)

func sans(size vg.Length) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
}

// newPlot is an empty plot in the style of all figures.
func newPlot(title string) *plot.Plot {
	p := plot.New()
	p.Title.Text = title
	p.Title.TextStyle.Font = sans(titleSize)
	p.Title.Padding = vg.Points(6)
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle.Font = sans(labelSize)
		axis.Label.Padding = vg.Points(4)
		axis.Tick.Label.Font = sans(tickSize)
		axis.Tick.Marker = ticker{7}
	}
	p.Legend.TextStyle.Font = sans(tickSize)
	return p
}

// ticker marks an axis at round numbers, so many of them or a few less.
type ticker struct{ most int }

// Ticks are multiples of 1, 2 or 5 times a power of ten.
func (t ticker) Ticks(low, high float64) []plot.Tick {
	if !(high > low) {
		return []plot.Tick{{Value: low, Label: strconv.FormatFloat(low, 'g', 6, 64)}}
	}
	power := math.Pow(10, math.Floor(math.Log10((high-low)/float64(t.most))))
	step := power
	for _, factor := range []float64{1, 2, 5, 10} {
		if step = factor * power; (high-low)/step <= float64(t.most) {
			break
		}
	}
	var ticks []plot.Tick
	for n := math.Ceil(low/step - 1e-9); n*step <= high+step*1e-9; n++ {
		value := n*step + 0 // no -0
		ticks = append(ticks, plot.Tick{Value: value, Label: strconv.FormatFloat(value, 'g', 6, 64)})
	}
	return ticks
}

// measureLabel is a measure with its letters in the thesis, and its unit.
func measureLabel(measure string) string {
	label, known := map[string]string{
		"wait":         "AWT: mean wait (s)",
		"makespan":     "QCT: first submission to last end (s)",
		"utilization":  "AGU: part of all nodes that was held",
		"done":         "JPR: jobs done (1/s)",
		"failed":       "JFR: jobs failed (1/s)",
		"rejected":     "JRR: jobs rejected (1/s)",
		"completion":   "mean completion (s)",
		"completion50": "median completion (s)",
		"completion95": "95th percentile of completion (s)",
		"slowdown":     "mean bounded slowdown",
		"messages":     "messages for each job",
		"failures":     "runs that sites failed (1/s)",
		"decision":     "median time to the first award (s)",
		"replies":      "offers and refusals for each job",
		"within2":      "part of forecasts within two sites",
		"off":          "sites by which forecasts are off",
		"bias":         "sites by which forecasts are too high",
		"waste":        "mean time that was no work (s)",
		"met":          "part of jobs that met their deadlines",
		"checkpoints":  "mean number of checkpoints",
		"termination":  "termination ratio",
		"blocking":     "request blocking ratio",
		"terminated":   "jobs that failures cost",
		"saved":        "jobs moved that a failure would have cost",
		"overhead":     "jobs moved that start after the failure",
		"completed":    "jobs done",
	}[measure]
	if !known {
		return measure
	}
	return label
}

// ratioLabel is a ratio of a measure; it has no unit.
func ratioLabel(measure, beside string) string {
	name, _, _ := strings.Cut(measureLabel(measure), " (")
	return name + ", beside " + beside
}

// seedsLabel says what the error bars are of.
func seedsLabel(first uint64, seeds int) string {
	if seeds == 1 {
		return fmt.Sprintf("seed %d", first)
	}
	return fmt.Sprintf("%d seeds, 95 %% intervals", seeds)
}
