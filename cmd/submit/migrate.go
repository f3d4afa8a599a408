package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func (a *app) migrateCommand() *cobra.Command {
	var restart, detach bool
	cmd := &cobra.Command{
		Use: "migrate ID", Short: "Move running tasks to other sites",
		Args: exactly(1, "one job or task"), ValidArgsFunction: a.completeJob(),
		Long: `Move a job's running tasks, or one of them, to other sites. Each goes on there from
a state that its program saves first; it is ended where it is only when that state is
here and another site offers. If either is not so, it stays and goes on. No site is
blamed for it.`,
		Example: "  submit migrate mfrg\n  submit migrate mfrg.2 --restart",
		RunE: func(cmd *cobra.Command, args []string) error {
			id, wanted, err := a.migrated(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			wanted.Restart = restart
			return a.migrate(cmd.Context(), id, wanted, detach)
		},
	}
	cmd.Flags().BoolVar(&restart, "restart", false,
		"move tasks, too, that have saved nothing: they begin anew")
	cmd.Flags().BoolVar(&detach, "detach", false, "do not wait until they have moved")
	return cmd
}

// migrated reads which tasks of which job are to move.
func (a *app) migrated(
	ctx context.Context, text string,
) (id grid.JobID, wanted view.MoveRequest, err error) {
	if !strings.Contains(text, ".") {
		id, err = a.findJob(ctx, text)
		return id, wanted, err
	}
	task, err := a.findTask(ctx, text)
	wanted.Tasks = []uint32{task.Index}
	return task.Job, wanted, err
}

// migrate begins to move tasks and says what becomes of each.
func (a *app) migrate(
	ctx context.Context, id grid.JobID, wanted view.MoveRequest, detach bool,
) error {
	before, err := a.client.AllTasks(ctx, id)
	if err != nil {
		return err
	}
	before = slices.DeleteFunc(before, func(t view.TaskView) bool {
		other := len(wanted.Tasks) > 0 && !slices.Contains(wanted.Tasks, t.Index)
		return other || t.Site == "" || t.Phase.Ended()
	})
	if err := a.client.Migrate(ctx, id, wanted); err != nil {
		return err
	}
	if detach {
		return nil
	}
	stays := 0
	for _, t := range before {
		went, err := a.awaitMove(ctx, t)
		if err != nil {
			return err
		}
		if !went {
			stays++
		}
	}
	if stays > 0 {
		return &codeError{code: exitOther}
	}
	return nil
}

// movePoll is the pause between two looks at a task that moves.
const movePoll = 200 * time.Millisecond

// awaitMove waits until a task has moved, or is known to stay, says so, and reports which.
func (a *app) awaitMove(ctx context.Context, before view.TaskView) (went bool, err error) {
	id, err := grid.ParseTaskID(before.ID)
	if err != nil {
		return false, err
	}
	for looks := 0; ; looks++ {
		t, err := a.oneTask(ctx, id)
		if err != nil {
			return false, err
		}
		if text, went, settled := moveOutcome(before, t, looks); settled {
			a.say("%s", clean(text))
			return went, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(movePoll):
		}
	}
}

// settledLooks are so many looks after which a task that does not move any more has stayed: at the
// first one its move may not be shown yet.
const settledLooks = 5

// moveOutcome says what has become of a task's move, once that is known.
func moveOutcome(before, t view.TaskView, looks int) (text string, went, settled bool) {
	from, to := nameOf(before.SiteName, before.Site), nameOf(t.SiteName, t.Site)
	later, elsewhere := t.Token > before.Token, t.Site != "" && t.Site != before.Site
	stays := t.Move != nil && t.Move.Phase == view.MoveStays
	switch {
	case t.Phase.Ended():
		return t.ID + " has ended on " + to, true, true
	case later && elsewhere:
		return t.ID + " moved from " + from + " to " + to, true, t.Phase != view.PhaseAwarded
	case later:
		text = t.ID + " goes on at " + from + " again: no other site has taken it"
		return text, false, t.Phase == view.PhaseRunning
	case stays:
		return t.ID + " on " + from + " " + t.Move.Line(), false, true
	case t.Site == "": // it has left, and no other site has it yet
		return "", false, false
	default:
		return t.ID + " stays on " + from, false, t.Move == nil && looks >= settledLooks
	}
}
