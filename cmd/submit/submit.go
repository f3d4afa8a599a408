package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/jobfile"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// following says what to do once a job was submitted.
type following struct {
	wait              bool
	noWait            bool // a job that no site has capacity for now is withdrawn: code 4
	cancelOnInterrupt bool
	printLogs         bool // of a single task, when it has ended
	folder            string
}

func (f *following) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.noWait, "no-wait", false,
		"give up with code 4 when no site has capacity now")
	cmd.Flags().BoolVar(&f.cancelOnInterrupt, "cancel-on-interrupt", false,
		"an interrupt cancels the job instead of detaching")
}

// submit uploads, submits and follows as asked.
func (a *app) submit(ctx context.Context, plan *jobfile.Plan, f following) error {
	id, count, err := a.hand(ctx, plan)
	if err != nil {
		return err
	}
	if !f.wait {
		return a.leave(ctx, id, f)
	}
	if a.parsable {
		if err := a.show(result{names: []string{string(id)}}); err != nil {
			return err
		}
	} else {
		a.say("job %s submitted: %d %s", id, count, plural(count, "task"))
	}
	return a.finish(ctx, id, f)
}

// leave watches a job that is not waited for until it is placed or refused, and names it:
// with --parsable a refused one, too, so that a script can ask why.
func (a *app) leave(ctx context.Context, id grid.JobID, f following) error {
	placed := a.awaitFirstRound
	if f.noWait {
		placed = a.awaitPlacement
	}
	err := placed(ctx, id, f)
	if err == nil {
		return a.showSubmitted(ctx, id)
	}
	if a.parsable {
		if shown := a.show(result{names: []string{string(id)}}); shown != nil {
			return shown
		}
	}
	return err
}

// hand uploads and submits, to an agent of the right domain. It also tells of how many
// tasks the job is.
func (a *app) hand(ctx context.Context, plan *jobfile.Plan) (grid.JobID, uint32, error) {
	if err := a.checkDomain(ctx); err != nil {
		return "", 0, err
	}
	job, err := a.upload(ctx, plan)
	if err != nil {
		return "", 0, err
	}
	id, err := a.client.Submit(ctx, job)
	return id, job.Count, err
}

// planOfDocument reads a job file that was made of flags.
func (a *app) planOfDocument(doc map[string]any) (*jobfile.Plan, error) {
	data, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("read flags: %w", err)
	}
	plan, err := jobfile.Load(data, ".", jobfile.Options{
		Now: a.now(), Runtime: a.config.Runtime, AllowOutside: true, // the user has typed them
	})
	if all, ok := errors.AsType[jobfile.Errors](err); ok {
		for _, one := range all {
			one.Line = 0 // there is no file to look into
		}
	}
	return plan, err
}

func (a *app) showSubmitted(ctx context.Context, id grid.JobID) error {
	r := result{value: map[string]string{"id": string(id)}, names: []string{string(id)}}
	if !a.parsable && (a.config.Output == "json" || a.config.Output == "yaml") {
		detail, err := a.client.Job(ctx, id)
		if err != nil {
			return err
		}
		r.value = detail.Status
	}
	r.table = func(t *table) { t.row(string(id)) }
	if err := a.show(r); err != nil {
		return err
	}
	if !a.parsable {
		a.say("`submit wait %s` waits for it, `submit why %s` shows who offered.", id, id)
	}
	return nil
}
