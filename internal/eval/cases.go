package eval

import (
	"fmt"
	"slices"

	"github.com/mrsmesh/mrsmesh/internal/scenario"
	"github.com/mrsmesh/mrsmesh/pkg/metrics"
)

// cell is a strategy in a case.
type cell struct {
	rule RuleOf
	in   string // the case
	play func(seed uint64) (map[string]float64, error)
}

// name is unique in the experiment.
func (c cell) name() string { return inCase(c.rule.Name, c.in) }

// inCase names the results of a strategy in a case.
func inCase(strategy, in string) string { return strategy + "@" + in }

// cells lists what is played with each seed: case by case, each with its strategies.
func (c *Compare) cells() []cell {
	all := c.allCells()
	if len(c.Only) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(one cell) bool {
		return !slices.Contains(c.Only, one.rule.Name) && !slices.Contains(c.Only, one.rule.Line)
	})
}

func (c *Compare) allCells() []cell {
	if c.Experiment.Failing != nil {
		return failingCells(c.Experiment.Failing)
	}
	return remappingCells(c.Experiment.Remapping)
}

// prepareCases tells what is asked for wrongly.
func (c *Compare) prepareCases() error {
	for _, name := range c.Only {
		if !slices.ContainsFunc(c.allCells(), func(one cell) bool {
			return one.rule.Line == name || one.rule.Name == name
		}) {
			return fmt.Errorf("%w: no strategy is called %q", ErrUsage, name)
		}
	}
	if c.Experiment.Remapping != nil {
		return checkModels(c.Experiment.Remapping)
	}
	return nil
}

// playCell plays the run of a number: of a seed, then of a cell.
func (c *Compare) playCell(number int) (map[string]float64, error) {
	cells := c.cells()
	one, seed := cells[number%len(cells)], c.First+uint64(number/len(cells))
	measures, err := one.play(seed)
	if err != nil {
		return nil, fmt.Errorf("%s, seed %d: %w", one.name(), seed, err)
	}
	return measures, nil
}

// measuresInCases are those of an experiment with cases, and what is expected of them.
func (c *Compare) measuresInCases() ([]string, []scenario.RuleClaim) {
	if f := c.Experiment.Failing; f != nil {
		return scenario.FailingMeasures(), f.Claims
	}
	return scenario.RemappingMeasures(), c.Experiment.Remapping.Claims
}

// caseResults puts together what was measured.
type caseResults struct {
	compare *Compare
	cells   []cell
	all     []map[string]float64
}

func (f *caseResults) result() CompareResult {
	c := f.compare
	measures, claims := c.measuresInCases()
	r := CompareResult{
		Scenario: c.Name, First: c.First, Seeds: c.seeds(), Measures: measures,
		Strategies: make(map[string]map[string]metrics.Interval),
		Ratios:     make(map[string]map[string]metrics.Interval), Rules: f.rulesOf(),
	}
	for i, one := range f.cells {
		if !slices.Contains(r.Cases, one.in) {
			r.Cases = append(r.Cases, one.in)
		}
		if one.in == r.Cases[0] {
			r.Names = append(r.Names, one.rule.Name)
		}
		r.Strategies[one.name()] = c.measured(measures, func(seed int, of string) (float64, bool) {
			return f.of(seed, i, of), true
		})
	}
	// Of all pairs there would be thousands: each beside the first one, and what is expected.
	for i, one := range f.cells {
		first := slices.IndexFunc(f.cells, func(o cell) bool { return o.in == one.in })
		if i != first {
			f.ratio(&r, i, first)
		}
	}
	for _, claim := range claims {
		switch claim.Kind {
		case "ratio":
			r.Claims = append(r.Claims, f.ratioClaims(&r, claim)...)
		case "lowest":
			r.Claims = append(r.Claims, f.lowestClaims(&r, claim)...)
		default:
			r.Claims = append(r.Claims, f.cellClaim(&r, claim)...)
		}
	}
	if c.Experiment.Remapping != nil {
		r.Curves, r.Lengths = f.curves(&r), f.lengths(&r)
	}
	return r
}

func (f *caseResults) of(seed, cell int, measure string) float64 {
	return f.all[seed*len(f.cells)+cell][measure]
}

// ratio adds the ratio of two cells, by seed, and returns its name.
func (f *caseResults) ratio(r *CompareResult, above, below int) string {
	name := f.cells[above].name() + "/" + f.cells[below].name()
	r.Ratios[name] = f.compare.measured(r.Measures, func(seed int, measure string) (float64, bool) {
		x, y := f.of(seed, above, measure), f.of(seed, below, measure)
		return x / y, y > 0
	})
	return name
}

// best is the cell of a strategy, or of the best of its intervals, in a case; false if it was
// not played.
func (f *caseResults) best(r *CompareResult, name, in, measure string) (int, bool) {
	best, least := -1, 0.0
	for i, c := range f.cells {
		if c.in != in || c.rule.Name != name && c.rule.Line != name {
			continue
		}
		bad := r.Strategies[c.name()][measure].Mean
		if slices.Contains(moreIsBetter(), measure) {
			bad = -bad
		}
		if best < 0 || bad < least {
			best, least = i, bad
		}
	}
	return best, best >= 0
}

// moreIsBetter lists the measures in cases of which the highest is the best.
func moreIsBetter() []string { return []string{"met", "saved", "completed"} }

// ratioClaims judges the ratio of two strategies in each case that it is about.
func (f *caseResults) ratioClaims(r *CompareResult, claim scenario.RuleClaim) []ClaimResult {
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
// each with the same interval or threshold in the same case. Cells in which both are equal, as
// where all deadlines are met, do not count.
func (f *caseResults) cellClaim(r *CompareResult, claim scenario.RuleClaim) []ClaimResult {
	all, right := 0, 0
	for _, a := range f.cells {
		if a.rule.Line != claim.Above || a.rule.Interval < claim.Shortest {
			continue
		}
		for _, b := range f.cells {
			if b.rule.Line != claim.Below || b.rule.point() != a.rule.point() || a.in != b.in {
				continue
			}
			x := r.Strategies[a.name()][claim.Measure].Mean
			y := r.Strategies[b.name()][claim.Measure].Mean
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
		Ratio: claim.Above + "/" + claim.Below, Measure: claim.Measure,
		From: claim.From, To: claim.To, Paper: claim.Paper, Kind: claim.Kind, Cells: all,
		Interval: metrics.Interval{Mean: part},
		Holds:    claim.From <= part && part <= claim.To,
	}}
}
