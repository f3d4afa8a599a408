package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mrsmesh/mrsmesh/internal/config"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// keep writes the identity, the members, and into the configuration where the domain
// is and whom to believe, and reads that again as a start would.
func (j *joining) keep(a admission) error {
	if err := j.saveIdentity(); err != nil {
		return err
	}
	if !j.token.Open() {
		if err := j.believe(j.config.StateDir, a.told); err != nil {
			return err
		}
	}
	text, err := j.configText()
	if err == nil {
		text, err = j.domainInto(text, j.domainValues(a.answer))
	}
	if err == nil {
		err = config.WriteFile(j.file, text)
	}
	if err != nil {
		return fmt.Errorf("write the domain into %s: %w", j.file, err)
	}
	if j.fresh {
		fmt.Fprintf(j.notes, "wrote %s\n", j.file)
	}
	name := j.config.Name
	j.config, err = j.o.load()
	j.config.Name = name
	return err
}

// configText is the file that is there, or a new one with what was chosen.
func (j *joining) configText() ([]byte, error) {
	if !j.fresh {
		return os.ReadFile(j.file)
	}
	chosen, err := j.o.chosen()
	return config.NewFile(slices.Concat(chosen, j.wishes.values, j.reach.values)), err
}

// domainInto writes the domain into a configuration, and before that into the record what is there
// in its place, so that leaving puts it back.
func (j *joining) domainInto(text []byte, values []config.Value) ([]byte, error) {
	said, err := config.Says(text)
	if err != nil {
		return nil, err
	}
	for _, v := range values {
		before, there := said[v.Name]
		j.made.Remember(v.Name, before, there)
	}
	if j.fresh {
		j.made.NoteMissing(filepath.Dir(j.file))
		j.made.AddFile(j.file)
	}
	if err = j.made.Save(j.config.StateDir); err != nil {
		return nil, err
	}
	return config.Edit(text, values)
}

// domainValues are the settings by which the site belongs to the domain.
func (j *joining) domainValues(answer protocol.JoinAnswer) []config.Value {
	var bootstrap []string
	var peers []grid.SiteID
	if j.config.Domain == j.token.Domain { // what was listed for another domain is of no use here
		bootstrap, peers = j.config.Bootstrap, j.config.Peers
	}
	values := []config.Value{
		{Name: "domain", Text: string(j.token.Domain)},
		{
			Name: "bootstrap",
			Text: joined(slices.Concat(bootstrap, j.token.Dial(), j.dialable(answer.Addrs))),
		},
	}
	if !j.token.Open() {
		peers = append(slices.Clip(peers), answer.Listed...)
		values = append(values, config.Value{Name: "domain-key", Text: string(j.token.Key)})
	}
	return append(values, config.Value{Name: "peers", Text: joined(peers)})
}

// dialable leaves out of the inviter's addresses what is not its own.
func (j *joining) dialable(addrs []string) []string {
	end := "/p2p/" + string(j.token.Inviter)
	return slices.DeleteFunc(slices.Clone(addrs), func(a string) bool {
		return !strings.HasPrefix(a, "/") || !strings.HasSuffix(a, end) || strings.Contains(a, ",")
	})
}

// joined is a list as a setting, each entry once.
func joined[T ~string](list []T) string {
	var once []string
	for _, entry := range list {
		if !slices.Contains(once, string(entry)) {
			once = append(once, string(entry))
		}
	}
	return strings.Join(once, ",")
}

// tryConfig reads the configuration that is about to be written, as a start would: what is wrong
// with it is to be known before the token is used.
func (j *joining) tryConfig() error {
	src := j.sources()
	var err error
	if src.Text, err = j.configText(); err == nil {
		_, err = config.LoadAgent(src)
	}
	if err != nil {
		return usageError{err}
	}
	return nil
}
