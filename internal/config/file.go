package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mrsmesh/mrsmesh/internal/durable"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const fileHead = "" +
	"# The configuration of this site. It holds what was chosen. " +
	`A line like "#name: value" is a default,
# which a preset or a newer version may change. To choose: siteagent config set NAME VALUE, or take
# the # away and say siteagent config reload. To take it back: siteagent config unset NAME.
# Flags and variables MRS_* are stronger than this file; siteagent config show: what is in force.
`

const fileTail = `
# Few need the other settings, which stand under the word advanced, each two spaces to the right;
# siteagent help settings lists all of them.
`

// NewFile is the text of a configuration file in which only these values are chosen.
// Every other documented setting is there as a comment, with its default and what it
// does. The values are those of settings that exist; each can be read.
func NewFile(chosen []Value) []byte {
	var b strings.Builder
	b.WriteString(fileHead)
	topic := ""
	for _, k := range AgentKeys(os.LookupEnv) {
		if !k.Documented {
			continue
		}
		if k.Topic != topic {
			topic = k.Topic
			fmt.Fprintf(&b, "\n## %s\n", topic)
		}
		line := "#" + k.Name + ": " + quoted(k.Default)
		if i := slices.IndexFunc(chosen, func(v Value) bool { return v.Name == k.Name }); i >= 0 {
			line = k.Name + ": " + quoted(chosen[i].Text)
		}
		fmt.Fprintf(&b, "# %s\n%s\n", explanation(k.Name), line)
	}
	b.WriteString(fileTail)
	writeAdvanced(&b, chosen)
	return []byte(b.String())
}

func writeAdvanced(b *strings.Builder, values []Value) {
	head := advanced + ":\n"
	for _, v := range values {
		if !isDocumented(v.Name) {
			fmt.Fprintf(b, "%s  %s: %s\n", head, v.Name, quoted(v.Text))
			head = ""
		}
	}
}

// maxWord is the longest value that fits behind an explanation.
const maxWord = 20

// explanation says in a line what a setting does, and what preset wan makes of it.
func explanation(name string) string {
	keys := AgentKeys(nil)
	i := slices.IndexFunc(keys, func(k Key) bool { return k.Name == name })
	if i < 0 {
		return ""
	}
	var more []string
	if k := keys[i]; strings.Contains(k.Type, "|") && !strings.HasPrefix(k.Type, "true") {
		more = append(more, strings.ReplaceAll(k.Type, "|", ", "))
	}
	if wan := keys[i].WAN; len(wan) > maxWord {
		more = append(more, "preset wan has another")
	} else if wan != "" {
		more = append(more, "preset wan: "+wan)
	}
	if len(more) == 0 {
		return keys[i].Help
	}
	return keys[i].Help + " (" + strings.Join(more, "; ") + ")"
}

// defaultOf returns a setting's default, as it is written.
func defaultOf(name string) string {
	for _, k := range AgentKeys(os.LookupEnv) {
		if k.Name == name {
			return k.Default
		}
	}
	return ""
}

// File is the whole configuration as a file in which every setting is chosen, for
// programs that start agents. For people there is NewFile.
func (c Agent) File() []byte {
	var b strings.Builder
	var values []Value
	for _, s := range agentSettings() {
		v := Value{Name: s.Name, Text: s.get(&c)}
		if values = append(values, v); s.Documented {
			fmt.Fprintf(&b, "%s: %s\n", v.Name, quoted(v.Text))
		}
	}
	writeAdvanced(&b, values)
	return []byte(b.String())
}

// WriteFile puts a configuration file, or what a link leads to, in place in one step.
// Who may read it stays as it was; a new file is its owner's alone, and its directory
// is made.
func WriteFile(file string, text []byte) error {
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write the configuration: %w", err)
	}
	before, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		err = os.MkdirAll(filepath.Dir(file), 0o700)
	}
	if err == nil {
		err = durable.Replace(file, text)
	}
	if err == nil && before != nil {
		err = errors.Join(os.Chmod(file, before.Mode().Perm()), keepOwner(file, before))
	}
	if err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	return nil
}

// Members lists who may take part: the listed peers, and the sites of the
// bootstrap addresses.
func (c Agent) Members() []grid.SiteID {
	members := append([]grid.SiteID{}, c.Peers...)
	for _, addr := range c.Bootstrap {
		if _, id, found := strings.Cut(addr, "/p2p/"); found {
			members = append(members, grid.SiteID(id))
		}
	}
	return members
}
