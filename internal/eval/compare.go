package eval

import (
	"context"
	"fmt"
	"slices"

	"github.com/mrsmesh/mrsmesh/internal/scenario"
	"github.com/mrsmesh/mrsmesh/pkg/metrics"
	"github.com/mrsmesh/mrsmesh/pkg/sim/baseline"
)

// Compare plays an experiment's strategies with several seeds each, and compares them.
type Compare struct {
	Name       string // of the experiment
	Experiment scenario.Experiment
	Dir        string // in which the experiment's log is, if its name says no more
	First      uint64 // the first seed
	Seeds      int    // how many; 0: as many as the experiment says
	Only       []string
	Workers    int       // that play at the same time; 0: one for each processor
	Progress   func(int) // is told after each run how many have ended, by one worker at a time; or nil
	// Keep is given each run, by several workers at the same time; or nil.
	Keep func(RunRecord) error
	// Offers has the mesh's offers noted, so that Keep finds them.
	Offers bool

	logged []loggedJob // nil: jobs are drawn
}

// CompareResult holds the measures of an experiment.
type CompareResult struct {
	Scenario   string                                 `json:"scenario"`
	First      uint64                                 `json:"first"`
	Seeds      int                                    `json:"seeds"`
	Strategies map[string]map[string]metrics.Interval `json:"strategies"`
	Ratios     map[string]map[string]metrics.Interval `json:"ratios"` // "A/B", by seed
	Claims     []ClaimResult                          `json:"claims,omitempty"`
	Names      []string                               `json:"-"` // of the strategies, as written
	Measures   []string                               `json:"-"` // in the order of their table
	// Cases are those in which all strategies were played; then they are called NAME@CASE above.
	Cases []string `json:"cases,omitempty"`
	// Settings are the cases of an experiment that places jobs: how sites fail. Empty: they do not.
	Settings []string `json:"settings,omitempty"`
	Blocks   *Blocks  `json:"blocks,omitempty"` // see RunBlocks
	// Rules and Differ say more of the strategies in cases, and of the settings.
	Rules  []RuleOf    `json:"-"`
	Differ []SettingOf `json:"-"`
	// Curves has, for each case, the measures of the first strategy that has several thresholds, by
	// threshold: "0.775". Lengths are beside them; see LengthsOf.
	Curves  map[string]map[string]map[string]metrics.Interval `json:"curves,omitempty"`
	Lengths []LengthsOf                                       `json:"-"`
}

// ClaimResult says whether an expectation came true.
type ClaimResult struct {
	Ratio   string  `json:"ratio"`
	Measure string  `json:"measure"`
	Setting string  `json:"setting,omitempty"`
	From    float64 `json:"from"`
	To      float64 `json:"to"`
	Paper   float64 `json:"paper,omitempty"`
	// Kind is "more" or "less" where not the ratio is meant but the part of Cells in which it is
	// above 1, or below. Those in which it is 1 do not count. It is "lowest" where the threshold is
	// meant, of as many as there are Cells, at which the measure is lowest.
	Kind  string `json:"kind,omitempty"`
	Cells int    `json:"cells,omitempty"`
	metrics.Interval
	Holds bool `json:"holds"`
}

// Runs counts the runs that Run plays.
func (c *Compare) Runs() int {
	if c.Experiment.InCases() {
		return c.seeds() * len(c.cells())
	}
	return c.seeds() * len(c.strategies())
}

func (c *Compare) seeds() int {
	if c.Seeds > 0 {
		return c.Seeds
	}
	return c.Experiment.Seeds
}

// strategies are those that are played, in all settings.
func (c *Compare) strategies() []played { return inSettings(c.Chosen(), c.Experiment.Settings) }

// Chosen are the strategies that are played.
func (c *Compare) Chosen() []scenario.Strategy {
	if len(c.Only) == 0 {
		return c.Experiment.Strategies
	}
	var chosen []scenario.Strategy
	for _, s := range c.Experiment.Strategies {
		if slices.Contains(c.Only, s.Name) {
			chosen = append(chosen, s)
		}
	}
	return chosen
}

// Run plays. The measures of a seed and a strategy depend on no other ones, nor on the number
// of workers.
func (c *Compare) Run(ctx context.Context) (CompareResult, error) {
	results, err := runAll(ctx, []*Compare{c}, c.Workers, c.Progress)
	if err != nil {
		return CompareResult{}, err
	}
	return results[0], nil
}

// prepare tells what is asked for wrongly, and reads what the runs need.
func (c *Compare) prepare() error {
	if c.Experiment.InCases() {
		return c.prepareCases()
	}
	for _, name := range c.Only {
		if !slices.ContainsFunc(c.Experiment.Strategies, func(s scenario.Strategy) bool {
			return s.Name == name
		}) {
			return fmt.Errorf("%w: no strategy is called %q", ErrUsage, name)
		}
	}
	var err error
	c.logged, err = readLogged(c.Dir, c.Experiment)
	return err
}

// play plays the run of a number: of a seed, then of a strategy.
func (c *Compare) play(ctx context.Context, number int) (map[string]float64, error) {
	if c.Experiment.InCases() {
		return c.playCell(number)
	}
	strategies := c.strategies()
	s, seed := strategies[number%len(strategies)], c.First+uint64(number/len(strategies))
	if s.By != "" {
		return forecast(c.Experiment, s, seed)
	}
	r, err := c.record(ctx, s, seed)
	if err != nil {
		return nil, fmt.Errorf("%s, seed %d: %w", s.label, seed, err)
	}
	if c.Keep != nil {
		if err := c.Keep(r); err != nil {
			return nil, err
		}
	}
	return measure(r.Grid, r.Jobs, r.ends)
}

// record plays one strategy with one seed.
func (c *Compare) record(ctx context.Context, s played, seed uint64) (r RunRecord, err error) {
	e, g := c.Experiment, drawGrid(c.Experiment.Grid, seed)
	r = RunRecord{
		Experiment: c.Name, Strategy: s.label, Seed: seed, Grid: g, InSeconds: s.Mesh.Seconds,
	}
	speeds := drawSpeeds(e.Grid, seed)
	power := capacity(e.Grid, g, speeds)
	if c.logged == nil {
		r.Jobs = drawJobs(e.Jobs, e.Grid, power, seed)
	} else {
		r.Jobs = drawLogged(c.logged, e.Jobs, e.Grid, power, seed)
		r.numbers, e.Jobs.Longest = numbersOf(c.logged), timeFor(r.Jobs, power)
	}
	d := drawn{grid: g, speeds: speeds, jobs: r.Jobs}
	if c.Offers {
		d.book = newOfferBook()
	}
	r.ends, r.Holds, err = place(ctx, e, s, d, seed)
	if d.book != nil {
		r.Offers, r.OffersCut = d.book.offers, d.book.cut
	}
	return r, err
}

// place lets a strategy place the jobs, and tells what became of them and who held what.
func place(
	ctx context.Context, e scenario.Experiment, s played, d drawn, seed uint64,
) (ends []ending, holds []Hold, err error) {
	g := d.grid
	if s.setting != nil {
		if d.lives, err = drawLives(*s.setting, len(g.Sites), seed); err != nil {
			return nil, nil, err
		}
	}
	switch {
	case !s.Queue && s.setting == nil:
		return playMesh(ctx, e, s.Strategy, d, seed)
	case !s.Queue:
		return playFailingMesh(ctx, e, s, d, seed)
	}
	if s.setting != nil {
		g.End = s.setting.End
		for _, l := range d.lives {
			g.Outages = append(g.Outages, l.outages())
		}
	}
	runs, err := baseline.Schedule(g, queuePolicy(s, d, seed), d.jobs)
	if err != nil {
		return nil, nil, err
	}
	return queueOutcomes(d.jobs, runs), queueHolds(runs), nil
}

// result compares the measures of all runs, which are in their order.
func (c *Compare) result(all []map[string]float64) CompareResult {
	if c.Experiment.InCases() {
		f := caseResults{compare: c, cells: c.cells(), all: all}
		return f.result()
	}
	strategies := c.strategies()
	r := CompareResult{
		Scenario: c.Name, First: c.First, Seeds: c.seeds(), Measures: scenario.ExperimentMeasures(),
		Strategies: make(map[string]map[string]metrics.Interval),
		Ratios:     make(map[string]map[string]metrics.Interval),
	}
	n := len(strategies)
	of := func(strategy, seed int) map[string]float64 { return all[seed*n+strategy] }
	for _, set := range c.Experiment.Settings {
		r.Settings = append(r.Settings, set.Name)
	}
	r.Differ = settingsOf(c.Experiment.Settings)
	for _, s := range c.Chosen() {
		r.Names = append(r.Names, s.Name)
	}
	for i, s := range strategies {
		r.Strategies[s.label] = c.intervals(func(seed int, measure string) (float64, bool) {
			x, known := of(i, seed)[measure]
			return x, known
		})
		for k, o := range strategies {
			if i != k && s.setting == o.setting {
				r.Ratios[s.ratioTo(o)] = c.ratios(
					func(seed int) (map[string]float64, map[string]float64) { return of(i, seed), of(k, seed) },
				)
			}
		}
	}
	r.Claims = claims(c.Experiment, r)
	return r
}

// ratios compares two strategies by each measure: the ratio is of each seed, or of the means.
func (c *Compare) ratios(
	of func(seed int) (above, below map[string]float64),
) map[string]metrics.Interval {
	all := c.intervals(func(seed int, measure string) (float64, bool) {
		above, below := of(seed)
		x, one := above[measure]
		y, other := below[measure]
		return x / y, one && other && y > 0 && !rare(measure)
	})
	for _, measure := range scenario.AllMeasures() {
		if !rare(measure) {
			continue
		}
		var xs, ys []float64
		for seed := range c.seeds() {
			above, below := of(seed)
			x, one := above[measure]
			y, other := below[measure]
			if one && other {
				xs, ys = append(xs, x), append(ys, y)
			}
		}
		if ratio, known := ratioOfMeans(xs, ys); known {
			all[measure] = ratio
		}
	}
	return all
}

// intervals gives each measure its interval over the seeds that have it.
func (c *Compare) intervals(
	value func(seed int, measure string) (float64, bool),
) map[string]metrics.Interval {
	return c.measured(scenario.AllMeasures(), value)
}

// measured is intervals with measures of one's own.
func (c *Compare) measured(
	measures []string, value func(seed int, measure string) (float64, bool),
) map[string]metrics.Interval {
	intervals := make(map[string]metrics.Interval)
	for _, measure := range measures {
		var values []float64
		for seed := range c.seeds() {
			if x, known := value(seed, measure); known {
				values = append(values, x)
			}
		}
		if len(values) > 0 {
			intervals[measure] = metrics.IntervalOf(values)
		}
	}
	return intervals
}
