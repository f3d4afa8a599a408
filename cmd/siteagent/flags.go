package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/mrsmesh/mrsmesh/internal/config"
)

// settingFlag is a setting given as a flag. It is parsed right away, so that mistakes on the
// command line are reported before anything happens, and kept as it was written.
type settingFlag struct {
	key  config.Key
	text string
}

// Set implements pflag.Value.
func (f *settingFlag) Set(text string) error {
	if err := f.key.Parse(text); err != nil {
		return err
	}
	f.text = text
	return nil
}

// String implements pflag.Value.
func (f *settingFlag) String() string { return f.text }

// Type implements pflag.Value.
func (f *settingFlag) Type() string { return f.key.Type }

// addSettings lets every setting be given as a flag. The help of a verb shows its own
// flags; siteagent help settings lists these.
func addSettings(flags *pflag.FlagSet) {
	for _, key := range config.AgentKeys(os.LookupEnv) {
		flag := flags.VarPF(&settingFlag{key: key}, key.Flag, "", key.Help)
		flag.Hidden = true
		if key.Type == "true|false" {
			flag.NoOptDefVal = "true"
		}
	}
}

// sources are where the configuration comes from; the file need not be there.
func (o *options) sources() config.Sources {
	set := make(map[string]string)
	for _, key := range config.AgentKeys(os.LookupEnv) {
		if o.cmd.LocalNonPersistentFlags().Lookup(key.Flag) != nil {
			continue // the command's own flag of that name is no setting
		}
		if flag := o.cmd.Flag(key.Flag); flag != nil && flag.Changed {
			set[key.Flag] = flag.Value.String()
		}
	}
	if o.socket != "" {
		set["api-socket"] = o.socket
		if path, err := filepath.Abs(o.socket); err == nil && o.socket != "off" {
			set["api-socket"] = path
		}
	}
	return config.Sources{File: o.path(), Env: os.LookupEnv, Flags: set}
}

// readable are the sources of a command that reads the configuration: a file that was
// named must be there.
func (o *options) readable() config.Sources {
	src := o.sources()
	src.Required = o.file != ""
	return src
}

// path is the configuration file, be it there or not.
func (o *options) path() string {
	if o.file != "" {
		return o.file
	}
	return config.AgentFile(os.LookupEnv)
}

// chosen are the settings that this command was told, by flags and variables.
func (o *options) chosen() ([]config.Value, error) {
	_, origins, err := config.Explain(o.sources())
	var values []config.Value
	for _, origin := range origins {
		if origin.Layer == config.LayerFlag || origin.Layer == config.LayerEnvironment {
			values = append(values, config.Value{Name: origin.Name, Text: origin.Value})
		}
	}
	return values, err
}
