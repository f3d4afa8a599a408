package broker

import (
	"errors"
	"fmt"
)

// Check implements step.Machine.
func (m *Machine) Check() error {
	named := 0
	for _, id := range m.jobs.ids() {
		if err := m.jobs.verify(m.jobs.all[id]); err != nil {
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
	if len(m.looks.queue)+len(m.looks.found) > 0 || m.looks.under {
		return errors.New("looks are left over from a Step")
	}
	return nil
}

func (l *jobs) verify(j *job) error {
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
