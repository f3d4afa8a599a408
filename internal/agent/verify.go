package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// verifyTimeout bounds the question whether a sandbox could keep a plan.
const verifyTimeout = 5 * time.Second

// verify answers whether this machine could do what the plan says, before that is
// promised: the sandbox is tried as it is now, because what it had at the agent's
// start may be gone.
func (w *workshop) verify(e step.Verify) {
	w.a.spawn(func() {
		answer := step.Verified{Attempt: e.Attempt}
		if err := w.couldRun(e); err != nil {
			answer.Problem = err.Error()
		}
		w.a.site.tell(answer)
	})
}

func (w *workshop) couldRun(e step.Verify) error {
	adapter, ok := w.a.adapters[e.Task.Kind]
	if !ok {
		return fmt.Errorf("this site does not run %s", e.Task.Kind)
	}
	limit := w.wallTime(e.Task)
	if planned := e.End.Sub(e.Start); limit > 0 && planned > limit {
		return fmt.Errorf("the plan gives it %s, and it would be stopped after %s", planned, limit)
	}
	ctx, cancel := context.WithTimeout(w.a.ctx, verifyTimeout)
	defer cancel()
	if v, can := adapter.(lrm.Verifier); can {
		return v.Verify(ctx, e.Task, e.Start, e.End)
	}
	if support := adapter.Probe(ctx); !slices.Contains(support.Kinds, e.Task.Kind) {
		return fmt.Errorf("the sandbox cannot run %s at this moment: %s",
			e.Task.Kind, strings.Join(support.Notes, "; "))
	}
	return nil
}
