package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Sources lists where a configuration comes from, weakest first.
type Sources struct {
	File     string                      // YAML file; empty = none
	Required bool                        // the file must exist
	Text     []byte                      // read in place of the file's; nil = read the file
	Env      func(string) (string, bool) // os.LookupEnv or a test's own; nil = no variables
	Flags    map[string]string           // flags that were set, by name without dashes
}

// maxFileBytes bounds a configuration file.
const maxFileBytes = 1 << 20

// LoadAgent reads an agent's configuration and validates it. The error joins
// everything that is wrong.
func LoadAgent(src Sources) (Agent, error) {
	values, err := gather(src, agentSettings())
	c, wrong := settle(src, values)
	return c, errors.Join(err, wrong)
}

// settle puts what was chosen above what the preset says, and that above the
// defaults.
func settle(src Sources, values []value) (Agent, error) {
	c := Default(presetOf(values), lookup(src.Env))
	err := apply(&c, agentSettings(), values)
	if _, chosen := strongest(values, "nat.punch"); !chosen && c.NAT.Relay == relayOff {
		c.NAT.Punch = false // the preset's; without a relay nobody can arrange it
	}
	return c, errors.Join(err, placed(c.Validate(), values))
}

// presetOf is the preset that is in force; one that does not exist is lan, and apply
// reports it.
func presetOf(values []value) string {
	preset := PresetLAN
	for _, v := range values {
		presets := []string{PresetLAN, PresetWAN, PresetTest}
		if v.name == "preset" && slices.Contains(presets, v.text) {
			preset = v.text
		}
	}
	return preset
}

// AgentSocket is the socket of the agent that these sources configure, as far as they
// can be read: what is wrong with other settings must not hide the agent from its
// owner.
func AgentSocket(src Sources) string {
	src.Required = false
	if text, err := os.ReadFile(filepath.Clean(src.File)); err == nil {
		src.Text = salvage(text)
	}
	values, _ := gather(src, agentSettings()) // a file that cannot be read says nothing
	c := Default(presetOf(values), lookup(src.Env))
	_ = apply(&c, agentSettings(), values) // what cannot be read keeps its default
	return c.API.Socket
}

// LoadSubmit reads the command line's configuration and validates it.
func LoadSubmit(src Sources) (Submit, error) {
	values, err := gather(src, submitSettings())
	c := defaultSubmit(lookup(src.Env))
	err = errors.Join(err, apply(&c, submitSettings(), values), placed(c.validate(), values))
	return c, err
}

// AgentKeys lists an agent's settings with their defaults.
func AgentKeys(env func(string) (string, bool)) []Key {
	c, wan := Default(PresetLAN, lookup(env)), Default(PresetWAN, lookup(env))
	keys := keysOf(&c, agentSettings())
	for i, s := range agentSettings() {
		if text := s.get(&wan); text != keys[i].Default && s.Name != "preset" {
			keys[i].WAN = text
		}
	}
	return keys
}

// SubmitKeys lists the command line's settings with their defaults.
func SubmitKeys(env func(string) (string, bool)) []Key {
	c := defaultSubmit(lookup(env))
	return keysOf(&c, submitSettings())
}

func keysOf[C any](c *C, settings []setting[C]) []Key {
	var keys []Key
	for _, s := range settings {
		s.Default = s.get(c)
		keys = append(keys, s.Key)
	}
	return keys
}

func lookup(env func(string) (string, bool)) func(string) (string, bool) {
	if env == nil {
		return func(string) (string, bool) { return "", false }
	}
	return env
}

// Layer is a kind of source, weakest first.
type Layer string

// The layers.
const (
	LayerDefault     Layer = "default"
	LayerPreset      Layer = "preset"
	LayerFile        Layer = "file"
	LayerEnvironment Layer = "environment"
	LayerFlag        Layer = "flag"
)

// value is one setting as some source gives it.
type value struct {
	name, text string
	layer      Layer
	line       int    // in the file
	source     string // for errors: "siteagent.yaml:3"
}

// strongest is the value that is in force.
func strongest(values []value, name string) (value, bool) {
	for _, v := range slices.Backward(values) { // the weakest come first
		if v.name == name {
			return v, true
		}
	}
	return value{}, false
}

// gather collects what all sources say, weakest first, with every mistake.
func gather[C any](src Sources, settings []setting[C]) ([]value, error) {
	values, err := fromFile(src)
	errs := []error{err, twice(values)}
	names := make([]string, 0, len(settings))
	for _, s := range settings {
		names = append(names, s.Name)
		if text, ok := lookup(src.Env)(s.Env); ok {
			values = append(values, value{
				name: s.Name, text: text, layer: LayerEnvironment, source: "environment, " + s.Env,
			})
		}
	}
	for _, s := range settings {
		if text, ok := src.Flags[s.Flag]; ok {
			values = append(values, value{
				name: s.Name, text: text, layer: LayerFlag, source: "flag --" + s.Flag,
			})
		}
	}
	kept := values[:0]
	for _, v := range values {
		if slices.Contains(names, v.name) {
			kept = append(kept, v)
			continue
		}
		errs = append(errs, fmt.Errorf("%s: %w", v.source, Unknown(v.name, names)))
	}
	return kept, errors.Join(errs...)
}

// twice reports settings that a file gives in two places, such as at the top and under
// advanced:.
func twice(values []value) error {
	var errs []error
	lines := make(map[string]int)
	for _, v := range values {
		if first, known := lines[v.name]; known {
			err := fmt.Errorf("%s: %s: given twice; remove this or line %d", v.source, v.name, first)
			errs = append(errs, err)
			continue
		}
		lines[v.name] = v.line
	}
	return errors.Join(errs...)
}

// Unknown is the error about a setting that does not exist, with the nearest one that
// does.
func Unknown(name string, known []string) error {
	near := grid.NearestWord(name, known)
	if near == "" { // "cpus" is "ceilings.cpus"
		last := func(s string) string { return s[strings.LastIndexByte(s, '.')+1:] }
		i := slices.IndexFunc(known, func(k string) bool { return last(k) == last(name) })
		if i >= 0 {
			near = known[i]
		}
	}
	const few = 10
	switch {
	case near != "":
		return fmt.Errorf("%s: no such setting; did you mean %s?", name, near)
	case len(known) > few:
		return fmt.Errorf("%s: no such setting; remove it (siteagent help settings lists all)", name)
	default:
		return fmt.Errorf("%s: no such setting; remove it (known: %s)", name, strings.Join(known, ", "))
	}
}

func apply[C any](c *C, settings []setting[C], values []value) error {
	var errs []error
	for _, v := range values {
		for _, s := range settings {
			if s.Name != v.name {
				continue
			}
			if err := s.set(c, v.text); err != nil {
				errs = append(errs, fmt.Errorf("%s: %s: %w", v.source, v.name, err))
			}
		}
	}
	return errors.Join(errs...)
}

// placed says of each mistake that validation found where the value stands.
func placed(err error, values []value) error {
	if err == nil {
		return nil
	}
	if several, ok := err.(interface{ Unwrap() []error }); ok { // joined, not wrapped
		var errs []error
		for _, one := range several.Unwrap() {
			errs = append(errs, placed(one, values))
		}
		return errors.Join(errs...)
	}
	name, _, _ := strings.Cut(err.Error(), ":")
	name, _, _ = strings.Cut(name, "[")
	for _, v := range slices.Backward(values) {
		if v.name == name || strings.HasPrefix(v.name, name+".") {
			return fmt.Errorf("%s: %w", v.source, err)
		}
	}
	return err
}

func fromFile(src Sources) ([]value, error) {
	if src.Text != nil {
		return fromYAML(filepath.Base(src.File), src.Text)
	}
	if src.File == "" {
		return nil, nil
	}
	info, err := os.Stat(src.File)
	if errors.Is(err, fs.ErrNotExist) && !src.Required {
		return nil, nil
	}
	if err == nil && info.Size() > maxFileBytes {
		err = fmt.Errorf("larger than %s", grid.FormatBytes(maxFileBytes))
	}
	if err != nil {
		return nil, fmt.Errorf("read configuration %s: %w", src.File, err)
	}
	data, err := os.ReadFile(filepath.Clean(src.File))
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return fromYAML(filepath.Base(src.File), data)
}
