package config

import (
	"errors"
	"fmt"
)

// Origin is a setting with its value and where that comes from.
type Origin struct {
	Key

	Value string // in force, in the units that people write
	Layer Layer  // what it comes from
	Place string // that, for people: "preset wan", "file, line 3", "flag --name"
	Line  int    // where it stands in the file, in force or not; 0 = it does not

	// Repeats says that the line in the file is the default that the setting would
	// have without it.
	Repeats bool
	// Preset is the choice of the preset, where something stronger says otherwise;
	// empty: it chooses nothing, or it is in force.
	Preset string
	// Inherited says that preset wan is overruled by a line of the file that is no more
	// than the default of lan, as versions that wrote every setting left it.
	Inherited bool
}

// Explain reads an agent's configuration as LoadAgent does, and says of each setting
// where its value comes from.
func Explain(src Sources) (Agent, []Origin, error) {
	values, err := gather(src, agentSettings())
	c, wrong := settle(src, values)
	env, preset := lookup(src.Env), presetOf(values)
	lan, base := Default(PresetLAN, env), Default(preset, env)
	base.Preset = PresetLAN // a preset is chosen, it is not what another preset says
	var origins []Origin
	for _, s := range agentSettings() {
		o := Origin{Key: s.Key, Value: s.get(&c), Layer: LayerDefault, Place: string(LayerDefault)}
		o.Default = s.get(&base)
		reached := o.Default != s.get(&lan)
		if reached {
			o.Layer, o.Place = LayerPreset, "preset "+preset
		}
		for _, v := range values {
			if v.name == s.Name {
				text := normal(s, c, v.text)
				o.take(v, text, reached)
				o.Inherited = preset == PresetWAN && o.Preset != "" && o.Layer == LayerFile &&
					text == s.get(&lan)
			}
		}
		origins = append(origins, o)
	}
	return c, origins, errors.Join(err, wrong)
}

// take lets a stronger value overrule what the origin says so far. text is the value
// in the way that we write it.
func (o *Origin) take(v value, text string, reached bool) {
	o.Layer = v.layer
	switch v.layer {
	case LayerEnvironment:
		o.Place = "environment " + o.Env
	case LayerFlag:
		o.Place = "flag --" + o.Flag
	default:
		o.Place, o.Line = fmt.Sprintf("file, line %d", v.line), v.line
		o.Repeats = text == o.Default
	}
	if o.Preset = ""; reached && text != o.Default {
		o.Preset = o.Default
	}
}

// normal is a value as we write it; one that cannot be read stays as it is.
func normal(s setting[Agent], c Agent, text string) string {
	if s.set(&c, text) != nil {
		return text
	}
	return s.get(&c)
}

// ValueOf is a setting's value in the units that people write; empty for a name that
// no setting has.
func (c Agent) ValueOf(name string) string {
	for _, s := range agentSettings() {
		if s.Name == name {
			return s.get(&c)
		}
	}
	return ""
}

// Changes lists the settings in which two configurations differ.
func Changes(before, after Agent) []Key {
	var changed []Key
	for _, s := range agentSettings() {
		if s.get(&before) != s.get(&after) {
			changed = append(changed, s.Key)
		}
	}
	return changed
}

// Merge is the configuration that a running agent has after a change: the settings
// that it takes immediately are those of after, the others stay as before.
func Merge(before, after Agent) Agent {
	for _, s := range agentSettings() {
		if !s.Live {
			continue
		}
		if err := s.set(&before, s.get(&after)); err != nil {
			panic(fmt.Sprintf("%s cannot be read back: %v", s.Name, err))
		}
	}
	return before
}
