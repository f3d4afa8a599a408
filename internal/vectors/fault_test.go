package vectors

import (
	"fmt"
	"math"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/fault"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

type fibrIn struct {
	Events    [][2]string // site, "ok" or "timeout"
	Resources []grid.SiteID
	Exclude   []grid.SiteID
	Floor     *int64
	Distance  map[grid.SiteID]number
}

// fibr keeps a ledger of the events of known sites and chooses one of them.
func fibr(in fibrIn) (outputs, error) {
	l, err := in.ledger()
	if err != nil {
		return nil, err
	}
	indices := map[grid.SiteID]int64{}
	var candidates []fault.Candidate
	for _, site := range in.Resources {
		d := in.Distance[site]
		candidates = append(candidates, fault.Candidate{Site: site, Distance: d.or(math.Inf(1))})
		indices[site] = l.Index(site)
	}
	var choice *grid.SiteID
	if site, found := l.Least(fault.OrderPaper, candidates, in.Exclude); found {
		choice = &site
	}
	return outputs{"index": indices, "choice": choice}, nil
}

func (in fibrIn) ledger() (fault.Ledger, error) {
	l := fault.Unbounded()
	if in.Floor != nil {
		l = fault.Ledger{}
		if *in.Floor != 0 {
			return l, fmt.Errorf("floor %d: the only one that there is is 0", *in.Floor)
		}
	}
	for _, e := range in.Events {
		site := grid.SiteID(e[0])
		if !slices.Contains(in.Resources, site) {
			continue
		}
		switch e[1] {
		case "timeout":
			l.Missed(site, 1)
		case "ok":
			l.Succeeded(site)
		default:
			return l, fmt.Errorf("no such event: %q", e[1])
		}
	}
	return l, nil
}
