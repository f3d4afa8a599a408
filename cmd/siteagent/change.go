package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/mrsmesh/mrsmesh/internal/config"
	"github.com/mrsmesh/mrsmesh/internal/hostinfo"
	"github.com/mrsmesh/mrsmesh/internal/view"
)

// ChangeSettings implements api.Settings.
func (s served) ChangeSettings(
	ctx context.Context, values map[string]string,
) (view.Configuration, error) {
	return s.settings.set(ctx, values)
}

// set writes values into the file, as siteagent config set does, and puts them in force. Where one
// of them cannot be in force now, file and agent stay as they are.
func (s *settings) set(ctx context.Context, values map[string]string) (view.Configuration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if err := s.check(name, values[name]); err != nil {
			return view.Configuration{}, err
		}
	}
	before, missing, err := readFile(s.src.File)
	if err != nil {
		return view.Configuration{}, err
	}
	after, err := s.edited(before, values)
	if err != nil {
		return view.Configuration{}, err
	}
	if err = config.WriteFile(s.src.File, after); err != nil {
		return view.Configuration{}, err
	}
	answer := s.readAgain(ctx)
	if answer.Problem == "" {
		return answer, nil
	}
	if missing {
		err = os.Remove(s.src.File)
	} else {
		err = config.WriteFile(s.src.File, before)
	}
	if err != nil {
		return view.Configuration{}, err
	}
	s.readAgain(ctx)
	return view.Configuration{}, unfit("settings", answer.Problem, asItWas)
}

// asItWas says what to do about a value with a mistake.
const asItWas = "choose another value; the configuration stays as it was"

// unfit says what is wrong with the value of a setting.
func unfit(name, detail, remedy string) *view.Problem {
	return &view.Problem{
		Status: http.StatusUnprocessableEntity, Field: name, Remedy: remedy,
		Detail: strings.TrimPrefix(strings.ReplaceAll(detail, "\n", "; "), name+": "),
	}
}

// readFile gives the text of a configuration, that of a new one where there is none.
func readFile(file string) (text []byte, missing bool, err error) {
	text, err = os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return config.NewFile(nil), true, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read the configuration: %w", err)
	}
	return text, false, nil
}

// check refuses what no value can be given from afar, and texts that are no value.
func (s *settings) check(name, text string) error {
	keys := config.AgentKeys(s.src.Env)
	at := slices.IndexFunc(keys, func(k config.Key) bool { return k.Name == name })
	if at < 0 {
		return unfit(name, checkName(name).Error(), "siteagent config show --all lists them")
	}
	if !keys[at].Live {
		return unfit(name, "it counts after a restart only",
			"siteagent config set writes it; then restart the agent")
	}
	if name == "owner.hook" {
		return unfit(name, "it names a program that runs as you, outside of any sandbox",
			"siteagent config set owner.hook on the machine itself")
	}
	for _, o := range s.origins {
		if o.Name == name && (o.Layer == config.LayerFlag || o.Layer == config.LayerEnvironment) {
			return unfit(name, "the agent was started with "+o.Place+", which is stronger",
				"start it without that")
		}
	}
	if err := keys[at].Parse(text); err != nil {
		return unfit(name, err.Error(), asItWas)
	}
	return nil
}

// edited is the text of the file with the values in it, if that is a configuration for this
// machine.
func (s *settings) edited(before []byte, values map[string]string) ([]byte, error) {
	names := slices.Sorted(maps.Keys(values))
	var list []config.Value
	for _, name := range names {
		list = append(list, config.Value{Name: name, Text: values[name]})
	}
	after, err := config.Edit(before, list)
	if err != nil {
		return nil, unfit(names[0], err.Error(), "correct "+s.src.File+" with an editor")
	}
	src := s.src
	src.Text = after
	c, _, err := config.Explain(src)
	if err != nil {
		for _, name := range names {
			if _, wrong, found := strings.Cut(err.Error(), name+": "); found {
				return nil, unfit(name, wrong, asItWas)
			}
		}
		return nil, unfit(names[0], err.Error(), asItWas)
	}
	return after, fitting(c, names, s.machine)
}

// fitting refuses ceilings that are above what the machine has. In the file they would count as
// all of it; who moves a slider means what it says.
func fitting(c config.Agent, names []string, m hostinfo.Machine) error {
	const milli = 1000
	most := c
	for name, has := range map[string]struct {
		want, have int64
		set        func(int64)
	}{
		"ceilings.cpus": {
			c.Ceilings.MilliCPUs, int64(m.Cores) * milli,
			func(n int64) { most.Ceilings.MilliCPUs = n },
		},
		"ceilings.memory": {
			c.Ceilings.MemoryBytes, m.MemoryBytes, func(n int64) { most.Ceilings.MemoryBytes = n },
		},
		"ceilings.disk": {
			c.Ceilings.DiskBytes, m.DiskBytes, func(n int64) { most.Ceilings.DiskBytes = n },
		},
	} {
		if has.set(has.have); slices.Contains(names, name) && has.have > 0 && has.want > has.have {
			return unfit(name, fmt.Sprintf("%s is beyond this machine, which has %s",
				c.ValueOf(name), most.ValueOf(name)), "choose at most that")
		}
	}
	return nil
}
