package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/play"
)

const replayHelp = `Show what real agents did, from the journals in their state directories, as
gridsim play shows it of a scenario: a line of time for each site, the decisions,
and the messages; and with --html as a page to step through.

Nothing in the directories is changed, and the agents may be running. A copy that
has only the folder journal of a state directory is enough.

Times count from the first thing that any journal holds, each on its own agent's
clock: between machines whose clocks differ, things seem to come too early or too
late by as much. Messages are told when they arrived; those that were lost are
not known. Decisions are derived again, by the machines of this build: where those
of the build that wrote a journal decided otherwise, decisions are left out from
there on, and standard error says so. To check a journal against its own build,
use siteagent replay.`

const replayExamples = `  gridsim replay ~/.local/state/mrs
  gridsim replay anna ben cleo --html yesterday.html`

func replayCommand() *cobra.Command {
	var shown views
	cmd := &cobra.Command{
		Use: "replay STATE...", Short: "Show what real agents did, from their journals",
		Long: replayHelp, Example: replayExamples,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError("want the state directories of one agent or more")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, dirs []string) error {
			record, notes, err := play.ReadJournals(dirs, agent.NewMachine)
			if err != nil {
				return err
			}
			for _, note := range notes {
				fmt.Fprintf(cmd.ErrOrStderr(), "gridsim: %s\n", note)
			}
			if err = shown.write(record, "journals of "+strings.Join(dirs, ", ")); err != nil {
				return err
			}
			_, err = io.WriteString(cmd.OutOrStdout(), record.Text(shown.all))
			return err
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	shown.addTo(flags)
	return cmd
}
