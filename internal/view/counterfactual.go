package view

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// counterfactual says what a job may ask for at most for this site to fit, "at most 2.0
// GiB of memory", or "" where the reason has no amount or nothing is left to ask for.
func counterfactual(r grid.Refusal) string {
	if r.Want <= r.Have || r.Have <= 0 {
		return ""
	}
	switch r.Reason {
	case grid.ReasonCPUs:
		return "at most " + grid.FormatThousandths(r.Have) + " cores"
	case grid.ReasonMemory:
		return "at most " + bytesWithin(r.Have) + " of memory"
	case grid.ReasonDisk:
		return "at most " + bytesWithin(r.Have) + " of disk"
	case grid.ReasonBandwidth:
		return "at most " + grid.FormatRate(r.Have) + " of bandwidth"
	case grid.ReasonComputation:
		return "at most " + grid.FormatThousandths(r.Have) + " GFLOPS"
	default:
		return ""
	}
}

// bytesWithin is a size in tenths of its unit that is never more than n.
func bytesWithin(n int64) string {
	unit := int64(1)
	for n/unit >= 1024 && unit < 1<<50 {
		unit <<= 10
	}
	tenths := n / unit * 10
	tenths += n % unit * 10 / unit
	return grid.FormatBytes(tenths/10*unit + (tenths%10*unit+9)/10)
}

// Counterfactuals sums the refusals up, the change that wins most sites first:
// "at most 2.0 GiB of memory: 5 more sites". A change by some amount also wins the
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
			if other.Reason == r.Reason && other.Want-other.Have > 0 &&
				other.Want-other.Have <= r.Want-r.Have {
				sites++
			}
		}
		changes = append(changes, change{refusal: r, sites: sites})
	}
	slices.SortStableFunc(changes, func(a, b change) int {
		return cmp.Or(cmp.Compare(b.sites, a.sites), cmp.Compare(a.refusal.Reason, b.refusal.Reason),
			cmp.Compare(a.refusal.Have, b.refusal.Have)) // so that no change is listed twice
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
