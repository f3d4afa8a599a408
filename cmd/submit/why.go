package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func (a *app) whyCommand() *cobra.Command {
	svg := ""
	cmd := &cobra.Command{
		Use:   "why ID",
		Short: "Show why a job or task is placed as it is: each site's answer and distance",
		Long: `Show why a job or one of its tasks is placed as it is: each site's answer, nearest
first. Where linked domains were asked, since this one had no place for all of it, a line for each
domain says how near its best offer is, or why it has none: the own domain is always asked first.`,
		Example: "  submit why mfrg\n  submit why mfrg.7\n  submit why mfrg -o wide",
		Args:    exactly(1, "one job or task"), ValidArgsFunction: a.completeJob(),
		RunE: func(cmd *cobra.Command, args []string) error {
			subject, one, err := a.findSubject(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			lines, err := a.why(cmd.Context(), subject, one)
			if err != nil {
				return err
			}
			offers, err := a.client.Offers(cmd.Context(), subject.Job)
			if err != nil {
				return err
			}
			for _, line := range append(lines, offers.Domains...) {
				a.say("%s", clean(line))
			}
			if len(offers.Rows) == 0 && len(lines) > 0 && a.config.Output == "table" && !a.parsable {
				return nil // no site was asked, and why was said
			}
			if err := a.showOffers(offers); err != nil {
				return err
			}
			return writeMap(svg, offers)
		},
	}
	cmd.Flags().StringVar(&svg, "svg", "", "draw the virtual map into this file")
	return cmd
}

// why says in sentences why a job or one of its tasks is placed as it is.
func (a *app) why(ctx context.Context, subject grid.TaskID, one bool) ([]string, error) {
	detail, err := a.client.Job(ctx, subject.Job)
	if err != nil {
		return nil, err
	}
	if one {
		task, wrong := a.oneTask(ctx, subject)
		if wrong != nil {
			return nil, wrong
		}
		lines := a.whyTask(detail.Status, task)
		if _, ok := detail.Status.NotStarted(); ok {
			lines = a.whyJob(detail.Status, nil)
		}
		return lines, nil
	}
	tasks, err := a.client.AllTasks(ctx, subject.Job)
	if err != nil {
		return nil, err
	}
	return a.whyJob(detail.Status, tasks), nil
}
