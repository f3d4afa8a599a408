package eval

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/mrsmesh/mrsmesh/internal/scenario"
	"github.com/mrsmesh/mrsmesh/pkg/metrics"
	"github.com/mrsmesh/mrsmesh/pkg/remap"
	"github.com/mrsmesh/mrsmesh/pkg/sim/remapping"
)

// remappingCells lists the cells of an experiment about reservations on machines that fail.
func remappingCells(e *scenario.Remapping) []cell {
	var cells []cell
	for _, in := range e.Cases {
		model := modelOf(e.Requests, in)
		for _, r := range e.Rules {
			share := r.Eta
			if r.Remap != "load" {
				share = noShare
			}
			cells = append(cells, cell{
				rule: RuleOf{Name: r.Name, Line: r.Line, Share: share}, in: in.Name,
				play: func(seed uint64) (map[string]float64, error) {
					return playRemapping(model, r, seed)
				},
			})
		}
	}
	return cells
}

// checkModels says what the lines of an experiment ask for too much of.
func checkModels(e *scenario.Remapping) error {
	for _, in := range e.Cases {
		if err := modelOf(e.Requests, in).Validate(); err != nil {
			return fmt.Errorf("%w: machines %s: %w", ErrUsage, in.Name, err)
		}
	}
	return nil
}

func modelOf(r scenario.RequestModel, in scenario.MachinesCase) remapping.Model {
	return remapping.Model{
		Nodes: in.Nodes, Slots: r.Slots, Load: r.Load, Lead: in.Lead, Shortest: r.Shortest,
		Longest: r.Longest, Widest: int64(bits.Len64(uint64(r.Widest)) - 1), Every: in.Every,
		Down: in.Down,
	}
}

// playRemapping plays one strategy in one case with one seed.
func playRemapping(
	m remapping.Model, r scenario.RemapRule, seed uint64,
) (map[string]float64, error) {
	o, err := remapping.Play(m, remapPolicy(r), seed)
	if err != nil {
		return nil, err
	}
	return map[string]float64{
		"termination": o.Termination(), "blocking": o.Blocking(),
		"terminated": float64(o.Terminated()), "saved": float64(o.Saved),
		"overhead": float64(o.Overhead), "completed": float64(o.Completed),
	}, nil
}

func remapPolicy(r scenario.RemapRule) remap.Policy {
	rules := map[string]remap.Rule{
		"load": remap.LoadBased, "slot": remap.One, "all": remap.All,
		"until-end": remap.Optimal, "estimate": remap.Estimate,
	}
	afters := map[string]remap.After{
		"nothing": remap.Nothing, "slot": remap.Slot, "again": remap.Again,
	}
	return remap.Policy{
		Rule: rules[r.Remap], Weight: r.Zeta, Share: r.Eta, Surviving: r.Surviving, Ended: r.Killed,
		Booking: r.Booking, Factor: r.Factor, After: afters[r.After], Migrate: r.Migrate,
	}
}

// curves are the measures of the first line that has several thresholds, by case and threshold.
func (f *caseResults) curves(r *CompareResult) map[string]map[string]map[string]metrics.Interval {
	rules := f.firstCurve()
	if len(rules) == 0 {
		return nil
	}
	curves := make(map[string]map[string]map[string]metrics.Interval)
	for _, in := range r.Cases {
		curves[in] = make(map[string]map[string]metrics.Interval)
		for _, rule := range rules {
			curves[in][scenario.ThresholdName(rule.Share)] = r.Strategies[inCase(rule.Name, in)]
		}
	}
	return curves
}

// firstCurve are the strategies of the first line of which several have a threshold.
func (f *caseResults) firstCurve() []RuleOf {
	rules := f.rulesOf()
	for _, first := range rules {
		var line []RuleOf
		for _, rule := range rules {
			if rule.Line == first.Line && rule.Share >= 0 {
				line = append(line, rule)
			}
		}
		if len(line) > 1 {
			return line
		}
	}
	return nil
}

// LengthsOf says how many slots ahead reservations leave the failed machine in each slot of the
// first failure of the first seed: VRM, figure 10.
type LengthsOf struct {
	Case, Rule string
	Slots      []int64
}

// shown is the threshold of which figure 10 shows the intervals.
const shown = .8

// lengths are those of the rule of the first curve that is nearest to figure 10's.
func (f *caseResults) lengths(r *CompareResult) []LengthsOf {
	best := RuleOf{Share: math.Inf(1)}
	for _, rule := range f.firstCurve() {
		if math.Abs(rule.Share-shown) < math.Abs(best.Share-shown) {
			best = rule
		}
	}
	var all []LengthsOf
	e := f.compare.Experiment.Remapping
	for _, in := range e.Cases {
		for _, rule := range e.Rules {
			if rule.Name != best.Name {
				continue
			}
			slots, err := remapping.Lengths(modelOf(e.Requests, in), remapPolicy(rule), r.First)
			if err == nil { // it was played before
				all = append(all, LengthsOf{Case: in.Name, Rule: rule.Name, Slots: slots})
			}
		}
	}
	return all
}

// lowestClaims judges at which threshold of a line the mean is lowest, in each case that the claim
// is about.
func (f *caseResults) lowestClaims(r *CompareResult, claim scenario.RuleClaim) []ClaimResult {
	var results []ClaimResult
	for _, in := range r.Cases {
		if claim.Case != "" && claim.Case != in {
			continue
		}
		best, least, thresholds := 0.0, math.Inf(1), 0
		for _, c := range f.cells {
			if c.in != in || c.rule.Line != claim.Above || c.rule.Share < 0 {
				continue
			}
			thresholds++
			if mean := r.Strategies[c.name()][claim.Measure].Mean; mean < least {
				best, least = c.rule.Share, mean
			}
		}
		if thresholds < 2 {
			continue
		}
		results = append(results, ClaimResult{
			Ratio: inCase(claim.Above, in), Measure: claim.Measure, From: claim.From, To: claim.To,
			Paper: claim.Paper, Kind: claim.Kind, Cells: thresholds,
			Interval: metrics.Interval{Mean: best}, Holds: claim.From <= best && best <= claim.To,
		})
	}
	return results
}
