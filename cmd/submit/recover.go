package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func (a *app) recoverCommand() *cobra.Command {
	var without []string
	cmd := &cobra.Command{
		Use: "recover --without SITE [--without SITE]", Args: exactly(0, "no arguments"),
		Short: "Go on with your jobs when their standbys are lost for good",
		Long: `Go on with your jobs when both agents that stand by for them are lost for good.

Of the three agents that keep your jobs two must be there, so that never two of them
act at the same time. If one is away nothing is to be done: another one is asked to
stand by. If both standbys are away nothing is started or renewed, and running jobs
are frozen when their leases end; if one of them comes back, all goes on by itself.

Where they never come back, this command makes your agent act alone, with all that it
knew when it last acted. Name each of the two: it is your word that they are gone,
and nobody can check it. If they are alive somewhere and act for you, tasks may run
twice.`,
		Example: "  submit recover --without attic --without cellar",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(without) == 0 {
				return usage("name each standby that is lost by --without SITE; " +
					"siteagent status shows them")
			}
			sites, err := a.standbysNamed(cmd.Context(), without)
			if err != nil {
				return err
			}
			if err := a.client.Recover(cmd.Context(), sites); err != nil {
				return err
			}
			a.say("your agent goes on alone; other sites are asked to stand by as they come")
			return nil
		},
	}
	cmd.Flags().StringArrayVar(&without, "without", nil,
		"name or ID of a standby that is lost for good")
	return cmd
}

// standbysNamed finds the sites of the own group by name or ID.
func (a *app) standbysNamed(ctx context.Context, names []string) ([]grid.SiteID, error) {
	status, err := a.client.Status(ctx)
	if err != nil {
		return nil, err
	}
	var members []view.GroupMember
	for _, g := range status.Standbys {
		if g.Owner == status.Site {
			members = g.Members
		}
	}
	var sites []grid.SiteID
	for _, name := range names {
		i := slices.IndexFunc(members, func(m view.GroupMember) bool {
			return m.Site != status.Site && (m.Name == name || string(m.Site) == name)
		})
		if i < 0 {
			return nil, fmt.Errorf("%w: %s does not stand by for your jobs; those that do: %s",
				view.ErrNotFound, name, memberNames(members, status.Site))
		}
		sites = append(sites, members[i].Site)
	}
	return sites, nil
}

func memberNames(members []view.GroupMember, self grid.SiteID) string {
	var names []string
	for _, m := range members {
		switch {
		case m.Site == self:
		case m.Name != "":
			names = append(names, m.Name)
		default:
			names = append(names, string(m.Site))
		}
	}
	if len(names) == 0 {
		return "nobody"
	}
	return strings.Join(names, ", ")
}
