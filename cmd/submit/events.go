package main

import (
	"fmt"
	"math"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/view"
)

func (a *app) eventsCommand() *cobra.Command {
	var after uint64
	var count int
	cmd := &cobra.Command{
		Use: "events", Short: "Print what happens, a line each, until interrupted",
		Args: exactly(0, "no argument"),
		Long: `Print the events the agent still keeps and then what happens, until interrupted.
With -o json each line is one JSON document; --after takes the id of the last
event seen.`,
		Example: "  submit events\n  submit events -o json | jq .kind",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if count <= 0 {
				count = math.MaxInt
			}
			err := a.client.Events(cmd.Context(), after, patience, func(e view.Event) error {
				if err := a.printEvent(e); err != nil {
					return err
				}
				if count--; count == 0 {
					return client.ErrStop
				}
				return nil
			})
			if cmd.Context().Err() != nil {
				err = nil // an interrupt is the usual end
			}
			return err
		},
	}
	cmd.Flags().Uint64Var(&after, "after", 0, "id of the last event seen")
	cmd.Flags().IntVarP(&count, "count", "n", 0, "end after so many events")
	return cmd
}

func (a *app) printEvent(e view.Event) error {
	switch a.config.Output {
	case "json", "yaml":
		return a.ndjson(e)
	case "name":
		_, err := fmt.Fprintln(a.out, e.ID)
		return wrapOutput(err)
	}
	subject := e.Task
	if subject == "" {
		subject = string(e.Job)
	}
	line := fmt.Sprintf("%s  %-5s  %s", moment(e.Time), clean(e.Kind), clean(subject))
	if e.Site != "" {
		line += "  on " + clean(string(e.Site))
	}
	if e.Distance != nil {
		line += "  distance " + number(e.Distance)
	}
	if e.Token > 1 {
		line += "  attempt " + strconv.FormatUint(uint64(e.Token), 10)
	}
	if e.Text != "" {
		line += "  " + clean(e.Text)
	}
	_, err := fmt.Fprintln(a.out, line)
	return wrapOutput(err)
}
