package view

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// counterfactual says what a job would have to ask less of for this site to
// fit, "2.0 GiB less memory", or "" where the reason has no amount.
func counterfactual(r grid.Refusal) string {
	less := r.Want - r.Have
	if less <= 0 {
		return ""
	}
	switch r.Reason {
	case grid.ReasonCPUs:
		return fmt.Sprintf("%.1f fewer cores", float64(less)/1000)
	case grid.ReasonMemory:
		return grid.FormatBytes(less) + " less memory"
	case grid.ReasonDisk:
		return grid.FormatBytes(less) + " less disk"
	case grid.ReasonBandwidth:
		return grid.FormatRate(less) + " less bandwidth"
	case grid.ReasonComputation:
		return fmt.Sprintf("%.1f GFLOPS less", float64(less)/1000)
	default:
		return ""
	}
}

// Counterfactuals sums the refusals up, the change that wins most sites first:
// "2.0 GiB less memory: 5 more sites". A change by some amount also wins the
// sites that wanted a smaller one of the same resource.
func Counterfactuals(refusals []grid.Refusal) []string {
	type change struct {
		refusal grid.Refusal
		sites   int
	}
	var changes []change
	for _, r := range refusals {
		if counterfactual(r) == "" {
			continue
		}
		sites := 0
		for _, other := range refusals {
			if other.Reason == r.Reason && other.Want-other.Have > 0 && other.Want-other.Have <= r.Want-r.Have {
				sites++
			}
		}
		changes = append(changes, change{refusal: r, sites: sites})
	}
	slices.SortStableFunc(changes, func(a, b change) int {
		return cmp.Or(cmp.Compare(b.sites, a.sites), cmp.Compare(a.refusal.Reason, b.refusal.Reason),
			cmp.Compare(a.refusal.Want-a.refusal.Have, b.refusal.Want-b.refusal.Have))
	})
	out := []string{}
	for _, c := range changes {
		noun := "sites"
		if c.sites == 1 {
			noun = "site"
		}
		out = append(out, fmt.Sprintf("%s: %d more %s", counterfactual(c.refusal), c.sites, noun))
	}
	return slices.Compact(out)
}
