package vectors

import (
	"math"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/fault"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/papers/fibr"
)

type fibrIn struct {
	Events    [][2]string // site, "ok" or "timeout"
	Resources []grid.SiteID
	Exclude   []grid.SiteID
	Floor     integer
	Distance  map[grid.SiteID]number
}

// faultIndex keeps a ledger of the events of known sites and chooses one of them.
func faultIndex(in fibrIn) (outputs, error) {
	l, err := in.ledger()
	if err != nil {
		return nil, err
	}
	for _, d := range in.Distance {
		if !(d.or(0) >= 0) { // a ledger takes it for infinite; the vectors do not
			return nil, errInput
		}
	}
	indices := map[grid.SiteID]int64{}
	var candidates []fault.Candidate
	for _, site := range in.Resources {
		d := in.Distance[site]
		candidates = append(candidates, fault.Candidate{Site: site, Distance: d.or(math.Inf(1))})
		indices[site] = l.Index(site)
	}
	var choice *grid.SiteID
	if site, found := l.Least(candidates, in.Exclude); found {
		choice = &site
	}
	return outputs{"index": indices, "choice": choice}, nil
}

func (in fibrIn) ledger() (fibr.Ledger, error) {
	l := fibr.New(math.MinInt64)
	if in.Floor.known {
		l = fibr.New(in.Floor.value)
	}
	for _, e := range in.Events {
		count, err := word(map[string]func(grid.SiteID){
			"timeout": l.Missed,
			"ok":      l.Succeeded,
		}, e[1])
		if err != nil {
			return l, err
		}
		if site := grid.SiteID(e[0]); slices.Contains(in.Resources, site) {
			count(site)
		}
	}
	return l, nil
}
