package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
agent takes most of what an owner decides at once: ceilings, rates, hours, when jobs
make way, price. It says which settings count after a restart.`,
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
	format, all := "table", false
	cmd := &cobra.Command{
		Use: "show [NAME...]", Short: "Show settings, and where each value comes from",
		Long: `Show the settings and where each value comes from: a default, the preset, a line of
the file, a variable or a flag. If the agent runs it is asked; otherwise this is what
a start would read. Without a name it shows what is documented or was chosen.`,
		RunE: func(cmd *cobra.Command, names []string) error {
			c, err := o.configuration(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			rows, err := pick(c.Settings, names, all)
			if err != nil {
				return usageError{err}
			}
			if format == "json" {
				c.Settings = rows
				return json.NewEncoder(cmd.OutOrStdout()).Encode(c)
			}
			if format != "table" {
				return usageError{fmt.Errorf("-o: want table or json, have %q", format)}
			}
			if err := printSettings(cmd.OutOrStdout(), rows, len(names) > 0); err != nil || len(names) > 0 {
				return err
			}
			if hidden := len(c.Settings) - len(rows); hidden > 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "%d more have their defaults: siteagent config show --all\n", hidden)
			}
			printRemarks(cmd.ErrOrStderr(), c)
			return nil
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "show those that few need, too")
	cmd.Flags().StringVarP(&format, "output", "o", format, "table or json")
	return cmd
}

// configuration is what the running agent says, or what a start would read.
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
	fmt.Fprintln(notes, "no agent runs here; this is what a start would read")
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
	var repeated, overruled, inherited []string
	preset := ""
	for _, row := range c.Settings {
		if row.Name == "preset" {
			preset = row.Value
		}
		if row.Repeats {
			repeated = append(repeated, fmt.Sprint(row.Line))
		}
		if row.Preset != "" {
			overruled = append(overruled, fmt.Sprintf("%s (%s)", row.Name, row.Place))
		}
		if row.Inherited {
			inherited = append(inherited, row.Name)
		}
	}
	if len(repeated) > 0 {
		fmt.Fprintf(notes, "lines of %s that only repeat defaults: %s; siteagent config unset --repeated takes them out\n",
			name, ranges(repeated))
	}
	if len(overruled) > 0 {
		fmt.Fprintf(notes, "preset %s is overruled for %s\n", preset, strings.Join(overruled, ", "))
	}
	if len(inherited) > 0 {
		fmt.Fprintf(notes, "the preset gets its way with: siteagent config unset %s\n", strings.Join(inherited, " "))
	}
	if len(c.Restart) > 0 {
		fmt.Fprintf(notes, "after a restart: %s\n", strings.Join(c.Restart, ", "))
	}
	if c.Problem != "" {
		fmt.Fprintf(notes, "the file has a mistake, the settings of %s stay: %s\n", c.Since.Local().Format("15:04"), c.Problem)
	}
}

// ranges writes ascending numbers shortly: "2, 5-9".
func ranges(numbers []string) string {
	var out []string
	first, last := 0, -1
	flush := func() {
		switch {
		case last == first:
			out = append(out, fmt.Sprint(first))
		case last > first:
			out = append(out, fmt.Sprintf("%d-%d", first, last))
		}
	}
	var sorted []int
	for _, text := range numbers {
		var n int
		_, _ = fmt.Sscan(text, &n) // they were numbers
		sorted = append(sorted, n)
	}
	slices.Sort(sorted)
	for _, n := range sorted {
		if n != last+1 {
			flush()
			first = n
		}
		last = n
	}
	flush()
	return strings.Join(out, ", ")
}

func configSet(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "set NAME VALUE | NAME=VALUE...", Short: "Choose settings",
		Long: `Write settings into the configuration, and let the running agent take them. What
would be a mistake is not written. Comments and other lines stay as they are.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			values, err := parseValues(args)
			if err != nil {
				return usageError{err}
			}
			var names []string
			for _, v := range values {
				names = append(names, v.Name)
			}
			return o.rewrite(cmd, names, func(text []byte) ([]byte, error) { return config.Edit(text, values) })
		},
	}
}

// parseValues reads NAME VALUE, or pairs with an equals sign.
func parseValues(args []string) ([]config.Value, error) {
	if len(args) == 2 && !strings.Contains(args[0], "=") {
		args = []string{args[0] + "=" + args[1]}
	}
	if len(args) == 0 {
		return nil, errors.New("config set: want NAME VALUE, or NAME=VALUE for each setting")
	}
	var values []config.Value
	var errs []error
	for _, arg := range args {
		name, text, found := strings.Cut(arg, "=")
		if !found {
			errs = append(errs, fmt.Errorf("config set: want NAME=VALUE, have %q", arg))
			continue
		}
		name = plainName(name)
		err := checkName(name)
		if err == nil {
			err = parseValue(name, text)
		}
		errs = append(errs, err)
		values = append(values, config.Value{Name: name, Text: text})
	}
	return values, errors.Join(errs...)
}

func checkName(name string) error {
	var known []string
	for _, k := range config.AgentKeys(os.LookupEnv) {
		known = append(known, k.Name)
	}
	if slices.Contains(known, name) {
		return nil
	}
	return config.Unknown(name, known)
}

func parseValue(name, text string) error {
	for _, k := range config.AgentKeys(os.LookupEnv) {
		if k.Name != name {
			continue
		}
		if err := k.Parse(text); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func configUnset(o *options) *cobra.Command {
	repeated := false
	cmd := &cobra.Command{
		Use: "unset NAME...", Short: "Take choices back, so that preset and default count again",
		Long: `Take settings out of the configuration, so that the preset and the default count
again, and let the running agent know. --repeated takes out every line that says no
more than a default, as versions that wrote all settings left them.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var names []string
			for _, name := range args {
				name = plainName(name)
				if err := checkName(name); err != nil {
					return usageError{err}
				}
				names = append(names, name)
			}
			if repeated {
				_, origins, err := config.Explain(config.Sources{File: o.path(), Required: true, Env: os.LookupEnv})
				if err != nil {
					return usageError{err}
				}
				for _, origin := range origins {
					if origin.Repeats || origin.Inherited {
						names = append(names, origin.Name)
					}
				}
			}
			if len(names) == 0 && !repeated {
				return usageError{errors.New("config unset: want the names of settings, or --repeated")}
			}
			return o.rewrite(cmd, names, func(text []byte) ([]byte, error) { return config.Remove(text, names) })
		},
	}
	cmd.Flags().BoolVar(&repeated, "repeated", false, "take out every line that only repeats a default")
	return cmd
}

// rewrite changes the file, if what comes out is a configuration, and tells the agent.
func (o *options) rewrite(cmd *cobra.Command, names []string, change func([]byte) ([]byte, error)) error {
	notes, file := cmd.ErrOrStderr(), o.path()
	agent, err := connect(o.sources()) // by the socket that it has now
	if err != nil {
		return err
	}
	defer agent.Close()
	before, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		before, err = config.NewFile(nil), nil
	}
	if err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	after, err := change(before)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	_, origins, err := config.Explain(config.Sources{File: file, Text: after, Env: os.LookupEnv})
	if err != nil {
		return usageError{fmt.Errorf("%s stays as it was: %w", file, err)}
	}
	if err := config.WriteFile(file, after); err != nil {
		return err
	}
	fmt.Fprintf(notes, "wrote %s\n", file)
	if slices.Contains(names, "preset") {
		printRemarks(notes, view.Configuration{File: file, Settings: overrulings(origins)})
	}
	return tellAgent(cmd.Context(), notes, agent, file, names)
}

// overrulings are the settings in which something is stronger than the preset, and the
// preset.
func overrulings(origins []config.Origin) []view.Setting {
	return slices.DeleteFunc(settingViews(origins), func(s view.Setting) bool {
		return s.Preset == "" && s.Name != "preset"
	})
}

// tellAgent lets the running agent read its configuration again, and says of each
// setting from when on it counts.
func tellAgent(ctx context.Context, notes io.Writer, agent *client.Client, file string, names []string) error {
	answer, err := agent.Reload(ctx)
	if errors.Is(err, client.ErrUnreachable) {
		fmt.Fprintln(notes, "no agent runs here; it counts from the next start on")
		return nil
	}
	if err != nil {
		return err
	}
	if answer.Problem != "" {
		return fmt.Errorf("the running agent keeps its settings: %s", answer.Problem)
	}
	if path, wrong := filepath.Abs(file); wrong == nil && path != answer.File {
		fmt.Fprintf(notes, "the running agent reads %s, not this file\n", answer.File)
	}
	now, err := agent.Configuration(ctx)
	if err != nil {
		return err
	}
	for _, row := range now.Settings {
		if !slices.Contains(names, row.Name) {
			continue
		}
		fmt.Fprintf(notes, "%s: %s\n", row.Name, whenText(row, answer))
	}
	return nil
}

// whenText says from when on a setting has its value.
func whenText(row view.Setting, answer view.Configuration) string {
	value := row.Value
	if value == "" {
		value = "nothing"
	}
	switch {
	case slices.Contains(answer.Restart, row.Name):
		return fmt.Sprintf("%s, after a restart", value)
	case row.From == string(config.LayerFlag) || row.From == string(config.LayerEnvironment):
		return fmt.Sprintf("stays %s: the agent was started with %s, which is stronger", value, row.Place)
	case slices.Contains(answer.Changed, row.Name):
		return value + ", in force now"
	default:
		return value + ", as before"
	}
}

func configReload(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "reload", Short: "Let the running agent read its configuration again", Args: noArgs,
		Long: `Let the running agent read its configuration again, as SIGHUP does. With a mistake
in the file the old settings stay.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			agent, err := o.dial()
			if err != nil {
				return err
			}
			defer agent.Close()
			answer, err := agent.Reload(cmd.Context())
			if err != nil {
				return err
			}
			if answer.Problem != "" {
				return usageError{fmt.Errorf("the settings of %s stay: %s", answer.Since.Local().Format("15:04"), answer.Problem)}
			}
			notes := cmd.ErrOrStderr()
			fmt.Fprintf(notes, "read %s\n", answer.File)
			printList(notes, "in force now", answer.Changed)
			printList(notes, "after a restart", answer.Restart)
			return nil
		},
	}
}

func printList(notes io.Writer, what string, names []string) {
	if len(names) > 0 {
		fmt.Fprintf(notes, "%s: %s\n", what, strings.Join(names, ", "))
	}
}
