package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/config"
	"github.com/mrsmesh/mrsmesh/internal/view"
)

func configCommand(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use: "config", Short: "Show and change the settings, while the site runs", Args: noArgs,
		Long: `Show the settings and where their values come from, and change them. A running
agent applies most of what an owner decides right away: ceilings, rates, hours, when
jobs yield, price. It says which settings count after a restart.`,
		Example: `  siteagent config show
  siteagent config set ceilings.memory 4GiB
  siteagent config set preset=wan nat.relay=serve
  siteagent config unset owner.hours`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(configShow(o), configSet(o), configUnset(o), configReload(o))
	return cmd
}

func configShow(o *options) *cobra.Command {
	all, f := false, (*form)(nil)
	cmd := &cobra.Command{
		Use: "show [NAME...]", Short: "Show settings, and where each value comes from",
		ValidArgsFunction: completeSettings(""),
		Long: `Show the settings and where each value comes from: a default, the preset, a line of
the file, a variable or a flag. If the agent runs it is asked; otherwise these are the
values a start would read. Without a name it shows what is documented or was chosen.`,
		RunE: func(cmd *cobra.Command, names []string) error {
			c, err := o.configuration(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			rows, err := pick(c.Settings, names, all)
			if err != nil {
				return usageError{err}
			}
			hidden := len(c.Settings) - len(rows)
			c.Settings = rows
			return f.print(cmd.OutOrStdout(), c, func() error {
				err := printSettings(cmd.OutOrStdout(), rows, len(names) > 0)
				if err != nil || len(names) > 0 {
					return err
				}
				notes := cmd.ErrOrStderr()
				if hidden > 0 {
					fmt.Fprintf(notes, "%d more have their defaults: siteagent config show --all\n",
						hidden)
				}
				printRemarks(notes, c)
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "show those that few need, too")
	f = formFlag(cmd)
	return cmd
}

// configuration asks the running agent for its settings, or reads what a start would.
func (o *options) configuration(ctx context.Context, notes io.Writer) (view.Configuration, error) {
	c, err := o.dial()
	if err != nil {
		return view.Configuration{}, err
	}
	defer c.Close()
	answer, err := c.Configuration(ctx)
	if err == nil || !errors.Is(err, client.ErrUnreachable) {
		return answer, err
	}
	_, origins, err := config.Explain(o.readable())
	if err != nil {
		return view.Configuration{}, usageError{err}
	}
	fmt.Fprintln(notes, "no agent runs here; a start would read these settings")
	return view.Configuration{File: o.path(), Settings: settingViews(origins)}, nil
}

// pick takes the settings that were asked for.
func pick(all []view.Setting, names []string, everything bool) ([]view.Setting, error) {
	var rows []view.Setting
	var known []string
	for _, row := range all {
		known = append(known, row.Name)
		if len(names) == 0 && (everything || row.Documented || row.From != string(config.LayerDefault)) {
			rows = append(rows, row)
		}
	}
	for _, name := range names {
		i := slices.Index(known, plainName(name))
		if i < 0 {
			return nil, config.Unknown(name, known)
		}
		rows = append(rows, all[i])
	}
	return rows, nil
}

// plainName is the name of a setting that may be written as it stands in the file.
func plainName(name string) string { return strings.TrimPrefix(name, "advanced.") }

func printSettings(out io.Writer, rows []view.Setting, explain bool) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tVALUE\tFROM")
	for _, row := range rows {
		value, from := row.Value, row.Place
		if value == "" {
			value = "-"
		}
		if row.Running != "" {
			from += ", after a restart; now " + row.Running
		}
		if row.Preset != "" {
			from += "; the preset says " + row.Preset
		} else if row.Repeats {
			from += ", repeats the default"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", row.Name, value, from)
	}
	if err := w.Flush(); err != nil || !explain {
		return err
	}
	for _, key := range config.AgentKeys(os.LookupEnv) {
		for _, row := range rows {
			if row.Name == key.Name {
				fmt.Fprintf(out, "\n%s", settingText(key))
			}
		}
	}
	return nil
}

// printRemarks says what of the file is of no use, or in the way.
func printRemarks(notes io.Writer, c view.Configuration) {
	name := filepath.Base(c.File)
	var repeated []int
	var overruled, inherited []string
	preset := ""
	for _, row := range c.Settings {
		if row.Name == "preset" {
			preset = row.Value
		}
		if row.Repeats {
			repeated = append(repeated, row.Line)
		}
		if row.Preset != "" {
			overruled = append(overruled, fmt.Sprintf("%s (%s)", row.Name, row.Place))
		}
		if row.Inherited {
			inherited = append(inherited, row.Name)
		}
	}
	if len(repeated) > 0 {
		fmt.Fprintf(notes, "lines of %s that only repeat defaults: %s; "+
			"siteagent config unset --repeated takes them out\n", name, ranges(repeated))
	}
	if len(overruled) > 0 {
		fmt.Fprintf(notes, "preset %s is overruled for %s\n", preset, strings.Join(overruled, ", "))
	}
	if len(inherited) > 0 {
		fmt.Fprintf(notes, "the preset gets its way with: siteagent config unset %s\n",
			strings.Join(inherited, " "))
	}
	if len(c.Restart) > 0 {
		fmt.Fprintf(notes, "after a restart: %s\n", strings.Join(c.Restart, ", "))
	}
	if c.Problem != "" {
		fmt.Fprintf(notes, "the file has a mistake, the settings of %s stay: %s\n",
			clock(c.Since), c.Problem)
	}
}

// ranges writes numbers shortly: "2, 5-9".
func ranges(numbers []int) string {
	var out []string
	slices.Sort(numbers)
	for i := 0; i < len(numbers); i++ {
		first := numbers[i]
		for i+1 < len(numbers) && numbers[i+1] == numbers[i]+1 {
			i++
		}
		text := fmt.Sprint(first)
		if numbers[i] > first {
			text += fmt.Sprintf("-%d", numbers[i])
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}
