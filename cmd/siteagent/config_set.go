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

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/config"
	"github.com/mrsmesh/mrsmesh/internal/view"
)

func configSet(o *options) *cobra.Command {
	var f *form
	cmd := &cobra.Command{
		Use: "set NAME VALUE | NAME=VALUE...", Short: "Choose settings",
		ValidArgsFunction: completeSettings("="),
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
			return o.rewrite(cmd, f, names, func(text []byte) ([]byte, error) {
				return config.Edit(text, values)
			})
		},
	}
	f = formFlag(cmd)
	return cmd
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
	var f *form
	cmd := &cobra.Command{
		Use: "unset NAME...", Short: "Take choices back, so that preset and default count again",
		ValidArgsFunction: completeSettings(""),
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
				src := config.Sources{File: o.path(), Required: true, Env: os.LookupEnv}
				_, origins, err := config.Explain(src)
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
			return o.rewrite(cmd, f, names, func(text []byte) ([]byte, error) {
				return config.Remove(text, names)
			})
		},
	}
	f = formFlag(cmd)
	cmd.Flags().BoolVar(&repeated, "repeated", false, "take out lines that only repeat a default")
	return cmd
}

// rewrite changes the file, if what comes out is a configuration, and tells the agent.
func (o *options) rewrite(
	cmd *cobra.Command, f *form, names []string, change func([]byte) ([]byte, error),
) error {
	notes, file := cmd.ErrOrStderr(), o.path()
	agent, err := connect(o.sources()) // by the socket that it has now
	if err != nil {
		return err
	}
	defer agent.Close()
	before, _, err := readFile(file)
	if err != nil {
		return err
	}
	after, err := change(before)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	_, origins, err := config.Explain(config.Sources{File: file, Text: after, Env: os.LookupEnv})
	if err != nil {
		return usageError{fmt.Errorf("%s stays as it was: %w", file, err)}
	}
	if err = config.WriteFile(file, after); err != nil {
		return err
	}
	fmt.Fprintf(notes, "wrote %s\n", file)
	if slices.Contains(names, "preset") {
		printRemarks(notes, view.Configuration{File: file, Settings: overrulings(origins)})
	}
	answer, err := tellAgent(cmd.Context(), notes, agent, file, names)
	if err != nil {
		return err
	}
	return f.print(cmd.OutOrStdout(), answer, nil)
}

// overrulings are the settings in which something is stronger than the preset, and the
// preset.
func overrulings(origins []config.Origin) []view.Setting {
	return slices.DeleteFunc(settingViews(origins), func(s view.Setting) bool {
		return s.Preset == "" && s.Name != "preset"
	})
}

// tellAgent lets the running agent read its configuration again, and says of each
// setting from when on it counts. The answer has these settings alone.
func tellAgent(
	ctx context.Context, notes io.Writer, agent *client.Client, file string, names []string,
) (answer view.Configuration, err error) {
	answer, err = agent.Reload(ctx)
	if errors.Is(err, client.ErrUnreachable) {
		fmt.Fprintln(notes, "no agent runs here; it counts from the next start on")
		return view.Configuration{File: file}, nil
	}
	if err != nil {
		return answer, err
	}
	if answer.Problem != "" {
		return answer, fmt.Errorf("the running agent keeps its settings: %s", answer.Problem)
	}
	if path, wrong := filepath.Abs(file); wrong == nil && path != answer.File {
		fmt.Fprintf(notes, "the running agent reads %s, not this file\n", answer.File)
	}
	now, err := agent.Configuration(ctx)
	if err != nil {
		return answer, err
	}
	for _, row := range now.Settings {
		if slices.Contains(names, row.Name) {
			fmt.Fprintf(notes, "%s: %s\n", row.Name, whenText(row, answer))
			answer.Settings = append(answer.Settings, row)
		}
	}
	return answer, nil
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
	var f *form
	cmd := &cobra.Command{
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
				return usageError{
					fmt.Errorf("the settings of %s stay: %s", clock(answer.Since), answer.Problem),
				}
			}
			notes := cmd.ErrOrStderr()
			fmt.Fprintf(notes, "read %s\n", answer.File)
			printList(notes, "in force now", answer.Changed)
			printList(notes, "after a restart", answer.Restart)
			return f.print(cmd.OutOrStdout(), answer, nil)
		},
	}
	f = formFlag(cmd)
	return cmd
}

func printList(notes io.Writer, what string, names []string) {
	if len(names) > 0 {
		fmt.Fprintf(notes, "%s: %s\n", what, strings.Join(names, ", "))
	}
}
