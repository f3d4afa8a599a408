package eval

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/avail"
)

// Calibrate is an experiment: machines that are watched learn their own availability as
// a site does, from their first minute on, and are asked again and again how likely they
// are to stay available for so long. Then what came of it is counted.
type Calibrate struct {
	Model    string // see CalibrationModels; empty: Events is read
	Events   string // an event_trace of the Failure Trace Archive
	Machines int    // made-up machines, at least 1
	Days     int    // that each is watched and asked, at least 1
	Learning int    // days that each is watched before; predictions of them are counted apart
	Every    int    // of the events' machines only each such one, in the order of their names; 0 = all
	Seed     uint64
	SVG      string // file to draw the reliability diagram to, replaced if it exists; empty = none
}

// CalibrationModels are the names for Calibrate.Model.
func CalibrationModels() []string { return []string{"desktop"} }

// reliabilityBins is the number of parts into which the diagram divides probability.
const reliabilityBins = 10

// ReliabilityBin compares predictions of about the same probability with their outcome.
type ReliabilityBin struct {
	Queries   int     `json:"queries"`
	Predicted float64 `json:"predicted"` // their mean
	Actual    float64 `json:"actual"`    // the share that stayed available
}

// CalibrateResult is the outcome of a calibration. Brier scores are mean squared errors:
// 0 is clairvoyant.
type CalibrateResult struct {
	Machines int              `json:"machines"`
	Queries  int              `json:"queries"`
	Bins     []ReliabilityBin `json:"bins"`
	// WorstBin is the largest distance of a bin's actual share from the predicted one.
	WorstBin float64          `json:"worst_bin"`
	First    *CalibrateResult `json:"first,omitempty"` // the same of the days of learning
	Brier    float64          `json:"brier"`
	// What else could have been said: always the share of all queries that stayed (which
	// nobody knows beforehand), the same for each length of time, what the Gamma prior
	// says with the age alone, and the thesis' equation (9) with the machine's own rate.
	BrierConstant  float64 `json:"brier_constant"`
	BrierByLength  float64 `json:"brier_by_length"`
	BrierPriorOnly float64 `json:"brier_prior"`
	BrierPaper     float64 `json:"brier_paper"`
}

// Run does the experiment, until the context ends.
func (c Calibrate) Run(ctx context.Context) (CalibrateResult, error) {
	records, manner, err := c.records()
	if err != nil {
		return CalibrateResult{}, err
	}
	tally, first := newTally(len(manner.lengths)), newTally(len(manner.lengths))
	for i, r := range records {
		if err := ctx.Err(); err != nil {
			return CalibrateResult{}, fmt.Errorf("calibrate: stopped after %d of %d machines: %w",
				i, len(records), err)
		}
		w := watch{
			record: r, manner: manner, rng: source(c.Seed, uint64(i)+1<<32), tally: tally, first: first,
		}
		w.known = r.ups[0].from + float64(c.Learning)*(24*time.Hour).Seconds()
		if err := w.run(); err != nil {
			return CalibrateResult{}, fmt.Errorf("calibrate: machine %d: %w", i, err)
		}
	}
	result := tally.result()
	result.Machines = len(records)
	if first.all.n > 0 {
		learning := first.result()
		learning.Machines, result.First = len(records), &learning
	}
	if c.SVG != "" {
		err := os.WriteFile(c.SVG, reliabilitySVG(result), 0o644) //nolint:gosec // anyone may read it
		if err != nil {
			return result, fmt.Errorf("write diagram: %w", err)
		}
	}
	return result, nil
}

// source is the chance of one machine, the same for the same experiment.
func source(seed, machine uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, machine)) //nolint:gosec // an experiment, to be repeated
}

// manner is a way to ask the machines.
type manner struct {
	pause   float64   // seconds between questions, on average
	relearn float64   // seconds that a machine goes on with what it has learned while nothing ends
	lengths []float64 // seconds that are asked about, in turn
}

func (c Calibrate) records() ([]record, manner, error) {
	const hour = 3600.0
	switch {
	case c.Events != "" && c.Model != "":
		return nil, manner{}, fmt.Errorf("%w: --events: give either a model or a file of events",
			ErrUsage)
	case c.Events != "":
		records, err := readRecords(c.Events)
		records = everyOf(records, c.Every)
		return records, manner{
			pause: 336 * hour, relearn: 28 * 24 * hour,
			lengths: []float64{8 * hour, 24 * hour, 72 * hour, 168 * hour, 336 * hour},
		}, err
	case c.Model != "desktop":
		return nil, manner{}, fmt.Errorf("%w: --model: want desktop, have %q", ErrUsage, c.Model)
	case c.Machines < 1 || c.Days < 1 || c.Learning < 0:
		return nil, manner{}, fmt.Errorf("%w: --machines, --days: want at least 1, have %d and %d",
			ErrUsage, c.Machines, c.Days)
	}
	records := make([]record, 0, c.Machines)
	for i := range c.Machines {
		records = append(records, desktop(source(c.Seed, uint64(i)), c.Days+c.Learning))
	}
	return records, manner{
		pause: hour / 2, relearn: 24 * hour,
		lengths: []float64{hour / 4, hour, 2 * hour, 4 * hour, 8 * hour},
	}, nil
}

func everyOf(records []record, n int) []record {
	var some []record
	for i := 0; i < len(records); i += max(n, 1) {
		some = append(some, records[i])
	}
	return some
}

// watch follows one machine through its record.
type watch struct {
	record record
	manner manner
	rng    *rand.Rand
	tally  *tally
	first  *tally  // of the days of learning
	known  float64 // when they end

	history avail.History // of what has ended
	ends    []float64     // of its spans
	model   avail.Model
	learned float64 // when
}

func (w *watch) run() error {
	asked := 0
	last := math.Inf(-1) // end of the stretch before
	for _, up := range w.record.ups {
		if up.from > last && !math.IsInf(last, -1) {
			w.history.Downs = append(w.history.Downs, up.from-last)
		}
		last = up.to
		w.learned = math.Inf(-1)
		pause := func() float64 { return w.rng.ExpFloat64() * w.manner.pause }
		for at := up.from + pause(); at < up.to; at += pause() {
			length := asked % len(w.manner.lengths)
			asked++
			if err := w.ask(up, at, length); err != nil {
				return err
			}
		}
		w.history.Spans = append(w.history.Spans, spanOf(up, up.to, up.end))
		w.ends = append(w.ends, up.to)
	}
	return nil
}

func spanOf(up stretch, until float64, end avail.Ending) avail.Span {
	return avail.Span{
		Week: avail.WeekSecond(time.Unix(int64(up.from), 0), 0), Seconds: until - up.from, End: end,
	}
}

// ask lets the machine predict, from nothing but its past, and counts what came of it,
// unless watching ended before that was known.
func (w *watch) ask(up stretch, at float64, length int) error {
	tau := w.manner.lengths[length]
	if up.end == avail.EndOpen && at+tau > up.to {
		return nil
	}
	if at-w.learned > w.manner.relearn {
		seen := w.history
		seen.Spans = append(slices.Clone(seen.Spans), spanOf(up, at, avail.EndOpen))
		for i := range w.history.Spans {
			seen.Spans[i].Ago = at - w.ends[i]
		}
		var err error
		if w.model, err = avail.Fit(seen, avail.DefaultPriors(), nil, 0); err != nil {
			return err
		}
		w.learned = at
	}
	age := at - up.from
	p, err := w.model.Survival(avail.Query{
		Week: avail.WeekSecond(time.Unix(int64(at), 0), 0), Up: age, Free: age, For: tau,
	})
	if err != nil {
		return err
	}
	paper, err := w.paper(age, tau)
	if err != nil {
		return err
	}
	prior := avail.DefaultPrior().Up(time.Duration(age)*time.Second, time.Duration(tau)*time.Second)
	counted := w.tally
	if at < w.known {
		counted = w.first
	}
	counted.add(answer{length: length, model: p, prior: prior, paper: paper, stayed: at+tau <= up.to})
	return nil
}

// paper is the thesis' equation (9), with steps of a minute and the rate at which the
// machine has failed so far, or once a day as long as it has not.
func (w *watch) paper(age, tau float64) (float64, error) {
	const step = 60
	belief, seconds := avail.DefaultPrior(), 0.0
	for _, s := range w.history.Spans {
		seconds += s.Seconds
	}
	if n := len(w.history.Spans); n > 0 {
		belief = avail.Prior{Failures: float64(n), Exposure: seconds}
	}
	p, _, err := avail.NodeUp(belief.Rate()*step, 0, int64(age/step), int64(tau/step))
	return p, err
}

// answer is one prediction with what came of it.
type answer struct {
	length              int
	model, prior, paper float64
	stayed              bool
}

// tally adds up answers.
type tally struct {
	bins                []sums
	lengths             []sums
	all                 sums
	model, prior, paper float64 // squared errors
}

type sums struct {
	n                 int
	predicted, stayed float64
}

func (s *sums) add(p, outcome float64) {
	s.n++
	s.predicted += p
	s.stayed += outcome
}

// spread is the sum of squared errors of the mean outcome.
func (s *sums) spread() float64 {
	if s.n == 0 {
		return 0
	}
	return s.stayed * (1 - s.stayed/float64(s.n))
}

func newTally(lengths int) *tally {
	return &tally{bins: make([]sums, reliabilityBins), lengths: make([]sums, lengths)}
}

func (t *tally) add(a answer) {
	outcome := 0.0
	if a.stayed {
		outcome = 1
	}
	t.bins[min(int(a.model*reliabilityBins), reliabilityBins-1)].add(a.model, outcome)
	t.lengths[a.length].add(a.model, outcome)
	t.all.add(a.model, outcome)
	t.model += (a.model - outcome) * (a.model - outcome)
	t.prior += (a.prior - outcome) * (a.prior - outcome)
	t.paper += (a.paper - outcome) * (a.paper - outcome)
}

func (t *tally) result() CalibrateResult {
	n := max(float64(t.all.n), 1)
	r := CalibrateResult{
		Queries: t.all.n, Brier: t.model / n, BrierConstant: t.all.spread() / n,
		BrierPriorOnly: t.prior / n, BrierPaper: t.paper / n,
	}
	for i := range t.lengths {
		r.BrierByLength += t.lengths[i].spread() / n
	}
	for _, b := range t.bins {
		bin := ReliabilityBin{Queries: b.n}
		if b.n > 0 {
			bin.Predicted, bin.Actual = b.predicted/float64(b.n), b.stayed/float64(b.n)
			r.WorstBin = max(r.WorstBin, math.Abs(bin.Predicted-bin.Actual))
		}
		r.Bins = append(r.Bins, bin)
	}
	return r
}
