package sim

import (
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// begun lists the attempts that have a supervisor; with running false only those that do
// not run.
func (h *host) begun(running bool) []grid.AttemptID {
	return slices.DeleteFunc(sortedAttempts(h.attempts), func(id grid.AttemptID) bool {
		a := h.attempts[id]
		return !a.begun || a.running && !running
	})
}

// certify brings a dead site's certificate for a job that is gone to its submitter, unless
// that is out of reach by then. Whether the site has started again does not matter: the
// certificate names the attempt.
func (h *host) certify(id grid.AttemptID) {
	w := h.world
	to, known := w.hosts[w.submitters[id.Task.Job]]
	if !known || to.spec.ID == h.spec.ID {
		return
	}
	to.after(w.cfg.Network.Detect+w.cfg.Network.Latency, func() {
		if to.hears(h) && h.hears(to) && !h.silent {
			to.step(roleBroker, step.AttemptsDied{Site: h.spec.ID, Attempts: []grid.AttemptID{id}})
		}
	})
}
