package eval

import (
	"github.com/mrsmesh/mrsmesh/internal/scenario"
	"github.com/mrsmesh/mrsmesh/pkg/sim/failing"
)

// failingCells lists the cells of an experiment about resources that fail.
func failingCells(f *scenario.Failing) []cell {
	var cells []cell
	for _, in := range f.Cases {
		for _, r := range f.Rules {
			cells = append(cells, cell{
				rule: RuleOf{Name: r.Name, Line: r.Line, Interval: r.Interval, Share: noShare},
				in:   in.Name,
				play: func(seed uint64) (map[string]float64, error) {
					return playFailing(f.Tasks, r, in, seed)
				},
			})
		}
	}
	return cells
}

// playFailing plays one strategy in one case with one seed.
func playFailing(
	t scenario.TaskModel, r scenario.Rule, in scenario.FailingCase, seed uint64,
) (map[string]float64, error) {
	endings, err := failing.Play(
		failing.Resources{
			Count: in.Resources, MTBF: in.MTBF.Seconds(), Spread: in.Spread, Shape: in.Shape,
			Repair: in.Repair.Seconds(),
		},
		failing.Jobs{
			Count: t.Count, Shortest: t.Shortest.Seconds(), Longest: t.Longest.Seconds(), Load: t.Load,
			Cost: t.Checkpoint.Seconds(), Restart: t.Restart.Seconds(), Deadline: t.Deadline,
		}, policyOf(r), seed,
	)
	if err != nil {
		return nil, err
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
