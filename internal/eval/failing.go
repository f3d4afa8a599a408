package eval

import (
	"fmt"
	"slices"

	"github.com/mrsmesh/mrsmesh/internal/scenario"
	"github.com/mrsmesh/mrsmesh/pkg/metrics"
	"github.com/mrsmesh/mrsmesh/pkg/sim/failing"
)

// cell is a strategy in a case.
type cell struct {
	rule scenario.Rule
	in   scenario.FailingCase
}

// name is unique in the experiment.
func (c cell) name() string { return c.rule.Name + "@" + c.in.Name }

// cells lists what is played with each seed: case by case, each with its strategies.
func (c *Compare) cells() []cell {
	var cells []cell
	for _, in := range c.Experiment.Failing.Cases {
		for _, r := range c.Experiment.Failing.Rules {
			if len(c.Only) == 0 || slices.Contains(c.Only, r.Name) || slices.Contains(c.Only, r.Line) {
				cells = append(cells, cell{rule: r, in: in})
			}
		}
	}
	return cells
}

// prepareFailing tells what is asked for wrongly.
func (c *Compare) prepareFailing() error {
	for _, name := range c.Only {
		if !slices.ContainsFunc(c.Experiment.Failing.Rules, func(r scenario.Rule) bool {
			return r.Name == name || r.Line == name
		}) {
			return fmt.Errorf("%w: no strategy is called %q", ErrUsage, name)
		}
	}
	return nil
}

// playCell plays the run of a number: of a seed, then of a cell.
func (c *Compare) playCell(number int) (map[string]float64, error) {
	cells := c.cells()
	seed := c.First + uint64(number/len(cells))
	return playFailing(c.Experiment.Failing.Tasks, cells[number%len(cells)], seed)
}

// playFailing plays one strategy in one case with one seed.
func playFailing(t scenario.TaskModel, c cell, seed uint64) (map[string]float64, error) {
	endings, err := failing.Play(
		failing.Resources{
			Count: c.in.Resources, MTBF: c.in.MTBF.Seconds(), Spread: c.in.Spread, Shape: c.in.Shape,
			Repair: c.in.Repair.Seconds(),
		},
		failing.Jobs{
			Count: t.Count, Shortest: t.Shortest.Seconds(), Longest: t.Longest.Seconds(), Load: t.Load,
			Cost: t.Checkpoint.Seconds(), Restart: t.Restart.Seconds(), Deadline: t.Deadline,
		}, policyOf(c.rule), seed,
	)
	if err != nil {
		return nil, fmt.Errorf("%s, seed %d: %w", c.name(), seed, err)
	}
	s := failing.Summarise(endings, t.Deadline)
	return map[string]float64{
		"waste": s.Waste, "met": s.Met, "completion": s.Completion, "checkpoints": s.Checkpoints,
		"failures": s.Failures,
	}, nil
}

func policyOf(r scenario.Rule) failing.Policy {
	saves := map[string]failing.Save{
		"learned": failing.SaveLearned, "known": failing.SaveKnown, "daly": failing.SaveDaly,
		"every": failing.SaveEvery, "lfca": failing.SaveLFCA, "mfca": failing.SaveMFCA,
	}
	places := map[string]failing.Place{
		"random": failing.PlaceRandom, "fibr": failing.PlaceFIBR, "rate": failing.PlaceRate,
		"age": failing.PlaceAge, "shape": failing.PlaceShape, "risk": failing.PlaceRisk,
	}
	return failing.Policy{
		Save: saves[r.Save], Interval: r.Interval.Seconds(), Omit: r.Omit, Least: r.Least.Seconds(),
		Limit: r.Limit, Step: r.Step, Place: places[r.Place],
	}
}

// failingResults puts together what was measured.
type failingResults struct {
	compare *Compare
	cells   []cell
	all     []map[string]float64
}

func (f *failingResults) result() CompareResult {
	c := f.compare
	r := CompareResult{
		Scenario: c.Name, First: c.First, Seeds: c.seeds(), Measures: scenario.FailingMeasures(),
		Strategies: make(map[string]map[string]metrics.Interval),
		Ratios:     make(map[string]map[string]metrics.Interval), Rules: f.rulesOf(),
	}
	for _, in := range c.Experiment.Failing.Cases {
		r.Cases = append(r.Cases, in.Name)
	}
	for i, one := range f.cells {
		if one.in.Name == r.Cases[0] {
			r.Names = append(r.Names, one.rule.Name)
		}
		r.Strategies[one.name()] = c.measured(r.Measures, func(seed int, measure string) (float64, bool) {
			return f.of(seed, i, measure), true
		})
	}
	// Of all pairs there would be thousands: each beside the first one, and what is expected.
	for i, one := range f.cells {
		first := slices.IndexFunc(f.cells, func(o cell) bool { return o.in.Name == one.in.Name })
		if i != first {
			f.ratio(&r, i, first)
		}
	}
	for _, claim := range c.Experiment.Failing.Claims {
		if claim.Kind == "ratio" {
			r.Claims = append(r.Claims, f.ratioClaims(&r, claim)...)
		} else {
			r.Claims = append(r.Claims, f.cellClaim(&r, claim)...)
		}
	}
	return r
}

func (f *failingResults) of(seed, cell int, measure string) float64 {
	return f.all[seed*len(f.cells)+cell][measure]
}

// ratio adds the ratio of two cells, by seed, and returns its name.
func (f *failingResults) ratio(r *CompareResult, above, below int) string {
	name := f.cells[above].name() + "/" + f.cells[below].name()
	r.Ratios[name] = f.compare.measured(r.Measures, func(seed int, measure string) (float64, bool) {
		x, y := f.of(seed, above, measure), f.of(seed, below, measure)
		return x / y, y > 0
	})
	return name
}

// best is the cell of a strategy, or of the best of its intervals, in a case; false if it was
// not played.
func (f *failingResults) best(r *CompareResult, name, in, measure string) (int, bool) {
	best, least := -1, 0.0
	for i, c := range f.cells {
		if c.in.Name != in || c.rule.Name != name && c.rule.Line != name {
			continue
		}
		bad := r.Strategies[c.name()][measure].Mean
		if measure == "met" {
			bad = -bad
		}
		if best < 0 || bad < least {
			best, least = i, bad
		}
	}
	return best, best >= 0
}

// ratioClaims judges the ratio of two strategies in each case that it is about.
func (f *failingResults) ratioClaims(r *CompareResult, claim scenario.RuleClaim) []ClaimResult {
	var results []ClaimResult
	for _, in := range r.Cases {
		above, one := f.best(r, claim.Above, in, claim.Measure)
		below, other := f.best(r, claim.Below, in, claim.Measure)
		if claim.Case != "" && claim.Case != in || !one || !other {
			continue
		}
		name := f.ratio(r, above, below)
		x, known := r.Ratios[name][claim.Measure]
		if !known {
			continue
		}
		results = append(results, ClaimResult{
			Ratio: name, Measure: claim.Measure, From: claim.From, To: claim.To, Paper: claim.Paper,
			Interval: x, Holds: claim.From <= x.Mean && x.Mean <= claim.To,
		})
	}
	return results
}

// cellClaim judges in which part of the cells the mean of one strategy is above that of another,
// each with the same interval in the same case. Cells in which both are equal, as where all
// deadlines are met, do not count.
func (f *failingResults) cellClaim(r *CompareResult, claim scenario.RuleClaim) []ClaimResult {
	all, right := 0, 0
	for _, a := range f.cells {
		if a.rule.Line != claim.Above || a.rule.Interval < claim.Shortest {
			continue
		}
		for _, b := range f.cells {
			if b.rule.Line != claim.Below || b.rule.Interval != a.rule.Interval || a.in != b.in {
				continue
			}
			x, y := r.Strategies[a.name()][claim.Measure].Mean, r.Strategies[b.name()][claim.Measure].Mean
			if x == y {
				continue
			}
			all++
			if claim.Kind == "more" && x > y || claim.Kind == "less" && x < y {
				right++
			}
		}
	}
	if all == 0 {
		return nil
	}
	part := float64(right) / float64(all)
	return []ClaimResult{{
		Ratio: claim.Above + "/" + claim.Below, Measure: claim.Measure, From: claim.From, To: claim.To,
		Paper: claim.Paper, Kind: claim.Kind, Cells: all, Interval: metrics.Interval{Mean: part},
		Holds: claim.From <= part && part <= claim.To,
	}}
}
