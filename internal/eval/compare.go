package eval

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/mrsmesh/mrsmesh/internal/scenario"
	"github.com/mrsmesh/mrsmesh/pkg/metrics"
	"github.com/mrsmesh/mrsmesh/pkg/sim/baseline"
)

// Compare plays an experiment's strategies with several seeds each, and compares them.
type Compare struct {
	Name       string // of the experiment
	Experiment scenario.Experiment
	First      uint64 // the first seed
	Seeds      int    // how many; 0: as many as the experiment says
	Only       []string
	Workers    int       // that play at the same time; 0: one for each processor
	Progress   func(int) // is told after each run how many have ended, by one worker at a time; or nil
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
}

// ClaimResult says whether an expectation came true.
type ClaimResult struct {
	Ratio   string  `json:"ratio"`
	Measure string  `json:"measure"`
	From    float64 `json:"from"`
	To      float64 `json:"to"`
	Paper   float64 `json:"paper,omitempty"`
	// Kind is "more" or "less" where not the ratio is meant but the part of Cells in which it is
	// above 1, or below. Those in which it is 1 do not count.
	Kind  string `json:"kind,omitempty"`
	Cells int    `json:"cells,omitempty"`
	metrics.Interval
	Holds bool `json:"holds"`
}

// Runs counts the runs that Run plays.
func (c *Compare) Runs() int {
	if c.Experiment.Failing != nil {
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

func (c *Compare) strategies() []scenario.Strategy {
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
	if c.Experiment.Failing != nil {
		return c.runFailing(ctx)
	}
	for _, name := range c.Only {
		if !slices.ContainsFunc(c.Experiment.Strategies, func(s scenario.Strategy) bool {
			return s.Name == name
		}) {
			return CompareResult{}, fmt.Errorf("%w: no strategy is called %q", ErrUsage, name)
		}
	}
	strategies := c.strategies()
	all := make([]map[string]float64, len(strategies)*c.seeds()) // of a seed, then of a strategy
	err := c.share(ctx, len(all), func(ctx context.Context, i int) (err error) {
		seed := c.First + uint64(i/len(strategies))
		all[i], err = play(ctx, c.Experiment, strategies[i%len(strategies)], seed)
		return err
	})
	if err != nil {
		return CompareResult{}, err
	}
	return c.result(strategies, all), nil
}

// share has the workers do so many pieces of work. The first error ends all.
func (c *Compare) share(
	ctx context.Context, pieces int, do func(context.Context, int) error,
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var workers sync.WaitGroup
	var mu sync.Mutex
	done := 0 // guarded by mu
	for range max(1, min(c.workers(), pieces)) {
		workers.Go(func() {
			for i := range next {
				if err := do(ctx, i); err != nil {
					cancel(err)
					continue
				}
				mu.Lock()
				if done++; c.Progress != nil {
					c.Progress(done)
				}
				mu.Unlock()
			}
		})
	}
	for i := 0; i < pieces && ctx.Err() == nil; i++ {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	workers.Wait()
	return context.Cause(ctx)
}

func (c *Compare) workers() int {
	if c.Workers > 0 {
		return c.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// play plays one strategy with one seed.
func play(
	ctx context.Context, e scenario.Experiment, s scenario.Strategy, seed uint64,
) (map[string]float64, error) {
	g := drawGrid(e.Grid, seed)
	speeds := drawSpeeds(e.Grid, seed)
	jobs := drawJobs(e.Jobs, e.Grid, capacity(e.Grid, g, speeds), seed)
	var ends []ending
	if s.Queue {
		runs, err := baseline.Schedule(g, baseline.Policy{
			Copies: s.Copies, Split: s.Split, FirstFit: s.First, Random: s.Random, Seed: seed,
		}, jobs)
		if err != nil {
			return nil, fmt.Errorf("%s, seed %d: %w", s.Name, seed, err)
		}
		ends = queueOutcomes(jobs, runs)
	} else {
		var err error
		if ends, err = playMesh(ctx, e, s, drawn{g, speeds, jobs}, seed); err != nil {
			return nil, fmt.Errorf("%s, seed %d: %w", s.Name, seed, err)
		}
	}
	return measure(g, jobs, ends)
}

func (c *Compare) result(strategies []scenario.Strategy, all []map[string]float64) CompareResult {
	r := CompareResult{
		Scenario: c.Name, First: c.First, Seeds: c.seeds(), Measures: scenario.ExperimentMeasures(),
		Strategies: make(map[string]map[string]metrics.Interval),
		Ratios:     make(map[string]map[string]metrics.Interval),
	}
	n := len(strategies)
	of := func(strategy, seed int) map[string]float64 { return all[seed*n+strategy] }
	for i, s := range strategies {
		r.Names = append(r.Names, s.Name)
		r.Strategies[s.Name] = c.intervals(func(seed int, measure string) (float64, bool) {
			x, known := of(i, seed)[measure]
			return x, known
		})
		for k, o := range strategies {
			if i == k {
				continue
			}
			r.Ratios[s.Name+"/"+o.Name] = c.intervals(func(seed int, measure string) (float64, bool) {
				x, one := of(i, seed)[measure]
				y, other := of(k, seed)[measure]
				return x / y, one && other && y > 0
			})
		}
	}
	for _, claim := range c.Experiment.Claims {
		name := claim.Strategy + "/" + claim.Beside
		x, played := r.Ratios[name][claim.Measure]
		if !played {
			continue
		}
		r.Claims = append(r.Claims, ClaimResult{
			Ratio: name, Measure: claim.Measure, From: claim.From, To: claim.To, Paper: claim.Paper,
			Interval: x, Holds: claim.From <= x.Mean && x.Mean <= claim.To,
		})
	}
	return r
}

// intervals gives each measure its interval over the seeds that have it.
func (c *Compare) intervals(
	value func(seed int, measure string) (float64, bool),
) map[string]metrics.Interval {
	return c.measured(scenario.ExperimentMeasures(), value)
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
