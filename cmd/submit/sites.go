package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func (a *app) sitesCommand() *cobra.Command {
	return &cobra.Command{
		Use: "sites", Short: "List the sites the agent knows",
		Args: exactly(0, "no argument"),
		Long: `List the sites the agent has seen within a week, those that are away included.
RISK 1H gives the probability that the site leaves within an hour, from what this agent
has seen of its coming and going. FAULTS counts how often it has failed this agent's
tasks, less its successes, and after a + what other submitters say. SKEW tells how far its
clock is ahead of this one's.
Below the table: how many sites are to be expected an hour from now.`,
		Example: "  submit sites\n  submit sites -o wide",
		RunE: func(cmd *cobra.Command, _ []string) error {
			sites, err := a.client.Sites(cmd.Context())
			if err != nil {
				return err
			}
			r := result{value: sites}
			for _, s := range sites {
				r.names = append(r.names, string(s.ID))
			}
			r.table = func(t *table) {
				t.row("NAME", "DOMAIN", "STATE", "CORES", "MEMORY", "GFLOPS", "RUNS", "FAULTS", "RISK 1H",
					"SKEW", "SEEN", "DOWN", "UP", "|SINCE", "|WENT", "|RTT", "|FAILED", "|ID",
					"|ADDRESSES")
				for _, s := range sites {
					siteRow(t, s)
				}
			}
			if err := a.show(r); err != nil {
				return err
			}
			return a.sayForecast(cmd)
		},
	}
}

// sayForecast tells how many sites are to be expected.
func (a *app) sayForecast(cmd *cobra.Command) error {
	s, err := a.client.Status(cmd.Context())
	if err != nil {
		return err
	}
	if f := s.Forecast; f != nil {
		past := ""
		if f.Checked > 0 {
			past = fmt.Sprintf("; %d earlier forecasts were off by %+.1f on average", f.Checked, f.ErrorTerm)
		}
		a.say("Forecast for %.0f h from now: %d or more of %d sites up, with 95 %% certainty%s",
			f.Hours, f.Low, f.Sites, past)
	}
	return nil
}

func siteRow(t *table, s view.SiteRow) {
	state, cores, memory := "away", "", ""
	switch {
	case s.Self:
		state = "this site"
	case s.Connected:
		state = "connected"
	case s.Trouble != "":
		state = s.Trouble
	}
	if s.Total != nil {
		cores = strconv.FormatFloat(float64(s.Total.MilliCPUs)/1000, 'f', -1, 64)
		memory = grid.FormatBytes(s.Total.MemoryBytes)
	}
	if s.Left != nil && s.Total != nil && *s.Left != *s.Total {
		cores = strconv.FormatFloat(float64(s.Left.MilliCPUs)/1000, 'f', -1, 64) + " of " + cores
		memory = grid.FormatBytes(s.Left.MemoryBytes) + " of " + memory
	}
	speed := ""
	if s.Total != nil && s.Total.MFLOPS > 0 {
		speed = strconv.FormatFloat(float64(s.Total.MFLOPS)/1000, 'f', 1, 64)
		if s.Left != nil && s.Left.MFLOPS != s.Total.MFLOPS {
			speed = strconv.FormatFloat(float64(s.Left.MFLOPS)/1000, 'f', 1, 64) + " of " + speed
		}
	}
	roundTrip := ""
	if s.RoundTripMS != nil {
		roundTrip = strconv.FormatFloat(*s.RoundTripMS, 'f', 1, 64) + "ms"
	}
	faults, failed := strconv.Itoa(s.FaultIndex), ""
	if f := s.Fault; f != nil {
		failed = f.Text(time.Now())
		if f.Shared > 0 {
			faults += fmt.Sprintf(" +%.1f", f.Shared)
		}
	}
	t.row(nameOf(s.Name, s.ID), string(s.Domain), state, cores, memory, speed,
		strings.Join(s.Kinds, ","),
		faults, view.Percent(s.ZHour), skew(s.SkewSeconds),
		moment(s.LastSeen), rate(s.DownBps), rate(s.UpBps),
		"|"+moment(s.Since), "|"+strconv.FormatUint(s.Ends, 10), "|"+roundTrip,
		"|"+failed, "|"+string(s.ID),
		"|"+strings.Join(s.Addresses, " "))
}
