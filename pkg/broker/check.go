package broker

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Check implements step.Machine.
func (m *Machine) Check() error {
	named := 0
	for _, id := range m.jobs.ids() {
		if err := m.verify(m.jobs, m.jobs.all[id]); err != nil {
			return fmt.Errorf("job %s: %w", id, err)
		}
		if key := m.jobs.all[id].key; key != "" {
			if named++; m.jobs.byKey[key] != id {
				return fmt.Errorf("job %s: its request's key names another job", id)
			}
		}
	}
	if named != len(m.jobs.byKey) {
		return fmt.Errorf("%d keys of requests for %d jobs that have one", len(m.jobs.byKey), named)
	}
	if order := m.peers.order; order != nil && !slices.Equal(order, members(m.peers)) {
		return errors.New("the order of the members is an old one")
	}
	if n := len(m.peers.connected()); n != m.peers.there {
		return fmt.Errorf("%d members are there, counted as %d", n, m.peers.there)
	}
	if len(m.looks.queue)+len(m.looks.found) > 0 || m.looks.under {
		return errors.New("looks are left over from a Step")
	}
	return nil
}

func (r *run) verify(l *jobs, j *job) error {
	if err := j.checkRoster(); err != nil {
		return err
	}
	if j.stage != nil {
		if err := j.stage.check(j); err != nil {
			return err
		}
	}
	if j.traits.whole {
		if err := j.checkParts(); err != nil {
			return err
		}
	}
	if j.held && j.open > 0 && j.stage != nil {
		return errors.New("is held, and sites are asked nevertheless")
	}
	if j.open > 0 && l.isBehind(j) && (j.round() != nil || j.any(r.hasAwarded)) {
		return errors.New("is placed before those that it comes after are done")
	}
	return nil
}

// hasAwarded reports whether a task has an attempt that this run has awarded. Another one may know
// that what the job comes after is done, where this run's state is an older one.
func (r *run) hasAwarded(t *task) bool {
	return !t.isWaiting() && t.token >= grid.TokenOf(max(r.incarnation, 1)-1, 0)
}

// members lists the sites that are no neighbouring domains, ascending.
func members(p *peers) []grid.SiteID {
	return slices.DeleteFunc(sortedSites(p.all), func(id grid.SiteID) bool {
		return p.domainOf(id) != ""
	})
}
