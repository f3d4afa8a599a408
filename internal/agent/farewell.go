package agent

import (
	"slices"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// farewell prepares that who may act for an attempt's owner is told of the agent's death, when the
// attempt has been ended. Of a site's own jobs nobody else need be told where none stands by:
// their submitter has died.
func (w *workshop) farewell(id grid.AttemptID, submitter grid.SiteID) *lrm.Farewell {
	if len(w.a.cfg.Herald) == 0 {
		return nil
	}
	note := p2p.DeathNote{Attempt: id}
	for _, site := range w.a.heeding.members(submitter) {
		if addrs := w.a.mesh.Ways(site); site != w.a.mesh.Self() && len(addrs) > 0 {
			note = note.With(site, addrs)
		}
	}
	if note.To == "" {
		return nil
	}
	text, err := note.Encode()
	if err != nil {
		w.a.log.Warn("nobody will be told of an attempt's death",
			"attempt", id.String(), "error", err)
		return nil
	}
	command := append(slices.Clone(w.a.cfg.Herald), w.a.cfg.P2P.KeyFile)
	return &lrm.Farewell{Dir: w.deaths, Text: text, Command: command}
}
