package backend

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// checkSites bounds the sites that a check asks.
const checkSites = 3

// Check asks the sites that are dialled first, then others, whether this site's
// offers arrive. That they do not is a result and no error.
func (b *Backend) Check(ctx context.Context) (view.CheckResult, error) {
	peers := b.mesh.Peers()
	slices.SortStableFunc(peers, func(x, y p2p.Peer) int {
		return order(b.dialledFirst(x.Site)) - order(b.dialledFirst(y.Site))
	})
	result := view.CheckResult{
		Reason: "no other site is connected",
		Remedy: "see that the site behind the address under bootstrap runs, " +
			"and that it lists or has invited this one",
	}
	for _, p := range peers[:min(len(peers), checkSites)] {
		v, err := b.agent.AskCheck(ctx, p.Site)
		switch {
		case errors.Is(err, agent.ErrNoAnswer):
			result = view.CheckResult{
				Site: p.Site, Name: p.Facts.Name, Reason: p.Facts.Name + " does not answer",
				Remedy: "it may be busy, or of an older version; try again",
			}
		case err != nil:
			return result, err
		default:
			return checkResult(p, v), nil
		}
	}
	return result, nil
}

// dialledFirst reports whether the site stands under bootstrap.
func (b *Backend) dialledFirst(site grid.SiteID) bool {
	end := "/p2p/" + string(site)
	return slices.ContainsFunc(b.cfg.P2P.Bootstrap, func(addr string) bool {
		return strings.HasSuffix(addr, end)
	})
}

func checkResult(p p2p.Peer, v protocol.Checked) view.CheckResult {
	r := view.CheckResult{
		Arrive: v.Arrived, Site: p.Site, Name: p.Facts.Name, Distance: v.Distance,
		Seconds: v.Took.Seconds(), Reason: v.Text,
	}
	if !r.Arrive {
		r.Remedy = "siteagent status says what this site gives and whether it is paused"
	}
	return r
}
