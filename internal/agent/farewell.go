package agent

import (
	"slices"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// farewell prepares that an attempt's submitter is told of the agent's death, when the
// attempt has been ended. A site's own jobs need nobody to be told: their submitter has died.
func (w *workshop) farewell(id grid.AttemptID, submitter grid.SiteID) *lrm.Farewell {
	if len(w.a.cfg.Herald) == 0 || submitter == w.a.mesh.Self() {
		return nil
	}
	addrs := w.a.mesh.Ways(submitter)
	if len(addrs) == 0 {
		return nil
	}
	text, err := p2p.DeathNote{Attempt: id, To: submitter, Addrs: addrs}.Encode()
	if err != nil {
		w.a.log.Warn("nobody will be told of an attempt's death",
			"attempt", id.String(), "error", err)
		return nil
	}
	command := append(slices.Clone(w.a.cfg.Herald), w.a.cfg.P2P.KeyFile)
	return &lrm.Farewell{Dir: w.deaths, Text: text, Command: command}
}
