package eval

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/metrics"
)

// Blocks compares the means of a block of seeds with those of a second one that has none of its
// seeds. It says whether intervals can be trusted: where draws of neighbouring seeds are related,
// blocks differ by more than their intervals say.
type Blocks struct {
	First uint64 `json:"first"` // seed of the second block
	Means int    `json:"means"` // that vary; a mean is a measure of a strategy
	Close int    `json:"close"` // means of which both blocks are as close as their intervals say
	// Apart lists the others, the farthest first. Chance leaves one in twenty, and as many
	// measures of one strategy go together, some of them at a time.
	Apart []ApartMeans `json:"apart,omitempty"`
}

// ApartMeans is a measure of a strategy whose blocks differ by more than their intervals say.
type ApartMeans struct {
	Strategy string           `json:"strategy"`
	Measure  string           `json:"measure"`
	One      metrics.Interval `json:"one"`
	Other    metrics.Interval `json:"other"`
	Part     float64          `json:"part"` // above 1, see metrics.Interval.Apart
}

// RunBlocks is Run, and compares its means with those of as many seeds behind its last one.
func (c *Compare) RunBlocks(ctx context.Context) (CompareResult, error) {
	if c.seeds() < 2 {
		return CompareResult{}, fmt.Errorf("%w: two blocks: want at least 2 seeds in each, have %d",
			ErrUsage, c.seeds())
	}
	second := *c
	second.First += uint64(c.seeds())
	results, err := runAll(ctx, []*Compare{c, &second}, c.Workers, c.Progress)
	if err != nil {
		return CompareResult{}, err
	}
	blocks := compareBlocks(results[0], results[1])
	results[0].Blocks = &blocks
	return results[0], nil
}

// compareBlocks compares the means of two results of the same strategies.
func compareBlocks(one, other CompareResult) Blocks {
	b := Blocks{First: other.First}
	for strategy, of := range one.Strategies {
		for measure, x := range of {
			y, there := other.Strategies[strategy][measure]
			part, known := x.Apart(y, one.Seeds)
			switch {
			case !there || !known:
				continue
			case part <= 1:
				b.Close++
			default:
				b.Apart = append(b.Apart, ApartMeans{strategy, measure, x, y, part})
			}
			b.Means++
		}
	}
	slices.SortFunc(b.Apart, func(x, y ApartMeans) int {
		return cmp.Or(cmp.Compare(y.Part, x.Part), cmp.Compare(x.Strategy, y.Strategy),
			cmp.Compare(x.Measure, y.Measure))
	})
	return b
}
