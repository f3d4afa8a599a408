package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/config"
	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func initCommand(o *options) *cobra.Command {
	var f *form
	cmd := &cobra.Command{
		Use: "init", Short: "Make this site's identity and configuration", Args: noArgs,
		Long: `Make this site's identity and configuration, keep what is there already, and
print the site's ID, by which others list it under peers.

The configuration holds the settings that you give here as flags, and the others
as comments: siteagent help settings lists them.`,
		Example: "  siteagent init --name attic --ceilings-cpus 2 --ceilings-memory 4GiB",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.loadFile(false) // it is about to be written
			if err != nil {
				return err
			}
			chosen, err := o.chosen()
			if err != nil {
				return usageError{err}
			}
			made, err := initialise(cmd.ErrOrStderr(), c, o.path(), chosen)
			if err != nil {
				return err
			}
			return f.print(cmd.OutOrStdout(), made, func() error {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), made.Site)
				return err
			})
		},
	}
	f = formFlag(cmd)
	return cmd
}

// madeSite is a site that init or join has made, as programs read it.
type madeSite struct {
	Site   grid.SiteID   `json:"site"`
	Name   string        `json:"name"`
	Domain grid.DomainID `json:"domain"`
	File   string        `json:"file"`  // its configuration
	State  string        `json:"state"` // its directory
	// of join: whether its offers arrive
	Check *view.CheckResult `json:"check,omitempty"`
}

func initialise(
	notes io.Writer, c config.Agent, file string, chosen []config.Value,
) (madeSite, error) {
	var none madeSite
	file, err := filepath.Abs(file)
	if err != nil {
		return none, fmt.Errorf("configuration: %w", err)
	}
	place := siteHere(file)
	made, err := makeState(c, place)
	if err != nil {
		return none, err
	}
	identity, err := p2p.LoadIdentity(filepath.Join(c.StateDir, "identity.key"))
	if err != nil {
		return none, err
	}
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		made.AddFile(file)
		if err := made.Save(c.StateDir); err != nil {
			return none, err
		}
		if err := config.WriteFile(file, config.NewFile(chosen)); err != nil {
			return none, err
		}
		fmt.Fprintf(notes, "wrote %s\n", file)
	} else {
		fmt.Fprintf(notes, "kept %s\n", file)
		for _, v := range unwritten(file, chosen) {
			fmt.Fprintf(notes, "not written into it: %s %s; siteagent config set writes it\n",
				v.Name, v.Text)
		}
	}
	fmt.Fprintf(notes, "state in %s; start the site with: %s\n", c.StateDir, place.Start())
	return madeSite{
		Site: identity.Site(), Name: c.Name, Domain: c.Domain, File: file, State: c.StateDir,
	}, nil
}

// unwritten are the values that the file does not say.
func unwritten(file string, chosen []config.Value) []config.Value {
	_, origins, err := config.Explain(config.Sources{File: file})
	if err != nil {
		return nil
	}
	var missing []config.Value
	for _, v := range chosen {
		for _, o := range origins {
			if o.Name == v.Name && o.Value != v.Text {
				missing = append(missing, v)
			}
		}
	}
	return missing
}
