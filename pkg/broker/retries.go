package broker

import (
	"fmt"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// runsAgain reports whether a task that has failed by its own doing is to run again. What can
// run nowhere is not tried again.
func (j *job) runsAgain(t *task, exit grid.Exit) bool {
	return exit.Status() != 0 && exit.Cause != grid.CauseBadWork && t.reruns < j.spec.Retries
}

// inWords says how an attempt has ended that counts no more.
func inWords(exit grid.Exit) string {
	switch exit.Cause {
	case grid.CauseExited:
		return fmt.Sprintf("%s with code %d", exit.Cause, exit.Code)
	case grid.CauseSignal:
		return fmt.Sprintf("%s, number %d", exit.Cause, exit.Code)
	default:
		return exit.Cause.String() + ": " + exit.Text
	}
}

// stopping says why what is left of a job is to be stopped: as many of its tasks have failed as
// it allows; "" if they have not.
func (j *job) stopping() string {
	if limit := j.spec.MaxFailures; limit == 0 || j.failed < limit || j.open == 0 {
		return ""
	}
	return fmt.Sprintf("stopped: %d of its job's tasks have failed", j.failed)
}

// exitAll writes an end into all tasks that have not ended.
func (r *roster) exitAll(cause grid.ExitCause, text string) {
	for i := range r.tasks {
		if t := &r.tasks[i]; !t.phase.Ended() {
			t.exit = &grid.Exit{Cause: cause, Text: text}
		}
	}
}
