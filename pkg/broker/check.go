package broker

import (
	"errors"
	"fmt"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Check implements step.Machine.
func (m *Machine) Check() error {
	for _, id := range m.jobs.ids() {
		if err := m.jobs.check(m.jobs.all[id]); err != nil {
			return fmt.Errorf("job %s: %w", id, err)
		}
	}
	if len(m.looks.queue)+len(m.looks.found) > 0 || m.looks.under {
		return errors.New("looks are left over from a Step")
	}
	return nil
}

func (l *jobs) check(j *job) error {
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
	if j.open > 0 && l.isBlocked(j) && (j.round() != nil || len(j.waiting) < len(j.tasks)) {
		return errors.New("is placed before those that it comes after are done")
	}
	return nil
}

// checkRivals verifies that rivals are apart, in order and without a lease.
func (t *task) checkRivals(index int) error {
	if !t.queued() {
		return nil
	}
	if t.phase != grid.PhaseAwarded && t.phase != grid.PhaseStaging || !t.leaseEnd.IsZero() {
		return fmt.Errorf("task %d is %s, or has a lease, and %d sites queue it", index, t.phase, len(t.rivals))
	}
	for i, r := range t.rivals {
		if r.token > t.top || r.site == "" || r.meets(t.rivals[:i]) {
			return fmt.Errorf("task %d: rival %d is out of order: %+v", index, i, t.rivals)
		}
	}
	if t.token != t.rivals[0].token || t.site != t.rivals[0].site {
		return fmt.Errorf("task %d: %d at %s stands for its rivals %+v", index, t.token, t.site, t.rivals)
	}
	return nil
}
