package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func (a *app) reservationsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "reservations", Short: "List this agent's own reservations, newest first",
		Args: exactly(0, "no argument"),
		Long: `List the own reservations. A reservation is held until its time comes, then open,
and over at its end; released ones were given back, lost ones no site could keep.
STAYS gives the probability that all its sites stay until its end.`,
		Example: "  submit reservations\n  submit reservations -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := a.client.Reservations(cmd.Context())
			if err != nil {
				return err
			}
			return a.show(a.reservationsResult(all, all))
		},
	}
}

func (a *app) reservationsResult(value any, all []view.Reservation) result {
	r := result{value: value}
	for _, v := range all {
		r.names = append(r.names, string(v.ID))
	}
	r.table = func(t *table) {
		t.row("ID", "NAME", "STATE", "SITES", "START", "END", "LENGTH", "STAYS", "HOLDS", "JOBS",
			"|PROJECT")
		for _, v := range all {
			t.row(string(v.ID), v.Name, string(v.Phase), placesText(v.Places), a.local(v.Start),
				a.local(v.End),
				v.End.Sub(v.Start.Time).String(), view.Percent(v.Kept), holdsText(v), jobsText(v.Jobs),
				"|"+v.Project)
		}
	}
	return r
}

// placesText is "ben 2, cleo" for places at two sites.
func placesText(places []view.ReservedPlace) string {
	var names []string
	counts := map[string]int{}
	for _, p := range places {
		name := nameOf(p.SiteName, p.Site)
		if name == "" {
			continue
		}
		if counts[name] == 0 {
			names = append(names, name)
		}
		counts[name]++
	}
	for i, name := range names {
		if counts[name] > 1 {
			names[i] += " " + strconv.Itoa(counts[name])
		}
	}
	return strings.Join(names, ", ")
}

// holdsText is "2 x 1 core, 4.0 GiB" for two equal places.
func holdsText(v view.Reservation) string {
	text := strconv.FormatFloat(float64(v.Need.MilliCPUs)/1000, 'f', -1, 64) + " cores, " +
		grid.FormatBytes(v.Need.MemoryBytes)
	if v.Need.MFLOPS > 0 {
		text += ", " + strconv.FormatFloat(float64(v.Need.MFLOPS)/1000, 'f', -1, 64) + " GFLOPS"
	}
	if v.Need.NetBps > 0 {
		text += ", " + rate(v.Need.NetBps)
	}
	if len(v.Places) > 1 {
		text = strconv.Itoa(len(v.Places)) + " x " + text
	}
	return text
}

func jobsText(jobs []grid.JobID) string {
	const most = 3
	var texts []string
	for _, id := range jobs[:min(len(jobs), most)] {
		texts = append(texts, string(id))
	}
	if len(jobs) > most {
		texts = append(texts, fmt.Sprintf("and %d more", len(jobs)-most))
	}
	return strings.Join(texts, ", ")
}
