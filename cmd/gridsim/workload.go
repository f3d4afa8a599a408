package main

import (
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/eval"
)

const workloadHelp = `Make up what experiments are fed with: jobs, machines that come and go, speeds
of sites and rates between them; or see which laws fit real machines.

All go to standard output, in the forms in which archives of real machines are.
The same flags give the same bytes; another --seed gives another draw, unrelated
to the first, also if the two seeds are neighbours.`

const workloadExamples = `  gridsim workload lublin --procs 128 --jobs 10000 --estimates > log.swf
  gridsim swf --log log.swf --policy easy

  gridsim workload availability --law weibull --shape .4 --scale 3h > events.tab
  gridsim calibrate --events events.tab`

func workloadCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "workload", Short: "Make up jobs, machines, speeds and rates", Long: workloadHelp,
		Example: workloadExamples,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return usageError("unknown workload %q: want one of %s (gridsim workload --help tells more)",
				args[0], strings.Join(experiments(cmd), ", "))
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		lublinCommand(), availabilityCommand(), fitCommand(), hostsCommand(), linksCommand(),
	)
	return cmd
}

const lublinHelp = `Make up the log of a parallel machine with the model of Lublin and Feitelson
(1999), in the Standard Workload Format, for gridsim swf and every other
simulator that reads it.

A quarter of the jobs is serial, most others have a power of two of processors;
run times go from a second to 45 hours, wide jobs run longer; arrivals follow the
hours of the day: most before and after noon, few at night. The log begins at
midnight.

With --typed there are two kinds of jobs, batch (queue 1) and interactive
(queue 0), each with its own sizes, run times and hours.

--svg DIR draws how many jobs are how wide, how long they run and when they come:
workload.svg. The log is written as well.

With --estimates users say how long their jobs will run, as real users do: after
Tsafrir, Etsion and Feitelson (2005). Nine jobs in ten get one of twenty round
values. Without it the time requested is unknown (-1), and a scheduler is told
the run time itself.`

const lublinExamples = `  gridsim workload lublin --procs 128 --jobs 10000 --seed 1 > log.swf
  gridsim workload lublin --procs 100 --jobs 5000 --typed --estimates \
      --longest-estimate 18h > log.swf`

func lublinCommand() *cobra.Command {
	var log eval.JobLog
	var figures figureFlags
	cmd := &cobra.Command{
		Use: "lublin", Short: "Jobs: a log in the Standard Workload Format", Long: lublinHelp,
		Example: lublinExamples, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("longest-estimate") && !log.Estimates {
				return usageError("--longest-estimate: nobody estimates without --estimates")
			}
			if !figures.Empty() {
				profile, err := log.Profile()
				if err != nil {
					return err
				}
				if err := errors.Join(figures.Open(), figures.Profile(profile)); err != nil {
					return err
				}
			}
			return log.Write(cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&log.Procs, "procs", 128, "processors of the machine")
	flags.IntVar(&log.Jobs, "jobs", 10_000, "jobs")
	flags.BoolVar(&log.Typed, "typed", false, "batch and interactive jobs apart")
	flags.BoolVar(&log.Estimates, "estimates", false, "users estimate run times")
	flags.DurationVar(
		&log.Longest, "longest-estimate", 48*time.Hour,
		"longest estimate, at which longer runs are cut; at least 1h",
	)
	flags.Uint64Var(&log.Seed, "seed", 1, "of all chance")
	figures.addTo(flags)
	return cmd
}

const availabilityHelp = `Make up machines that are up and down in turns, as an event_trace of the
Failure Trace Archive, for gridsim calibrate --events. The durations are drawn from laws:

  law          scale           shape                          usual shape
  normal       mean            standard deviation / mean      .25
               (what is not positive is drawn again; the thesis' law)
  exponential  mean            none: age says nothing
  weibull      scale           below 1: the older, the safer  .5
  lognormal    median          standard deviation of ln       1

--availability A says which share of the time machines are up, and sets the scale
of the times down. The machines have been there before: at the first instant
each is up with that probability, too. The first lines of the file, comments,
say what the laws' means and medians are.`

const availabilityExamples = `  gridsim workload availability --law weibull --shape .4 --scale 3h \
      --machines 20 --days 30
  gridsim workload availability --law normal --scale 50h --availability .9

  Desktops of SETI@home:
  gridsim workload availability --law weibull --shape .393 --scale 2.964h \
      --down-law lognormal --down-shape 2.844 --down-scale 33m24s --machines 1000`

func availabilityCommand() *cobra.Command {
	var turns eval.Turns
	cmd := &cobra.Command{
		Use: "availability", Short: "Machines that come and go: an event_trace",
		Long: availabilityHelp, Example: availabilityExamples, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("availability") {
				if cmd.Flags().Changed("down-scale") {
					return usageError("--availability: it sets --down-scale: give one of them")
				}
				if turns.Availability == 0 {
					return usageError("--availability: want more than 0 and less than 1, have 0")
				}
			}
			return turns.Write(cmd.OutOrStdout())
		},
	}
	laws := strings.Join(eval.Laws(), ", ")
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&turns.Up.Name, "law", "exponential", "of the times up: "+laws)
	flags.DurationVar(&turns.Up.Scale, "scale", 8*time.Hour, "of that law")
	flags.Float64Var(&turns.Up.Shape, "shape", 0, "of that law (default the usual one)")
	flags.StringVar(&turns.Down.Name, "down-law", "exponential", "of the times down: the same")
	flags.DurationVar(&turns.Down.Scale, "down-scale", time.Hour, "of that law")
	flags.Float64Var(&turns.Down.Shape, "down-shape", 0, "of that law (default the usual one)")
	flags.Float64Var(
		&turns.Availability, "availability", 0, "share of time up, instead of --down-scale",
	)
	flags.IntVar(&turns.Machines, "machines", 20, "machines")
	flags.IntVar(&turns.Days, "days", 30, "days that they are watched")
	flags.Uint64Var(&turns.Seed, "seed", 1, "of all chance")
	return cmd
}

const hostsHelp = `Make up how fast sites are: lines site,speed.

The speeds are drawn from a table of real ones (--speeds: lines count,speed,
packed by gzip or not), or from a lognormal law. With --total they are scaled so
that all sites together have that speed. The unit is that of the table or the
median.`

const hostsExamples = `  gridsim workload hosts --sites 16 --median 5 --sigma 1.2 --total 128
  gridsim workload hosts --sites 1000 --speeds host-speed-setiathome.csv.gz`

func hostsCommand() *cobra.Command {
	var hosts eval.Hosts
	cmd := &cobra.Command{
		Use: "hosts", Short: "Speeds of sites", Long: hostsHelp, Example: hostsExamples, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, flag := range []string{"median", "sigma"} {
				if hosts.Speeds != "" && cmd.Flags().Changed(flag) {
					return usageError("--%s: give either a law or a table (--speeds)", flag)
				}
			}
			return hosts.Write(cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&hosts.Sites, "sites", 16, "sites")
	flags.StringVar(&hosts.Speeds, "speeds", "", "table of speeds, instead of a law")
	flags.Float64Var(&hosts.Median, "median", 1, "of the lognormal law")
	flags.Float64Var(&hosts.Sigma, "sigma", 1, "of the lognormal law: standard deviation of ln")
	flags.Float64Var(&hosts.Total, "total", 0, "speed of all sites together (default as drawn)")
	flags.Uint64Var(&hosts.Seed, "seed", 1, "of all chance")
	return cmd
}

const linksHelp = `Make up how fast data travels between sites: lines from,to,rate.

Each ordered pair has a rate of its own from a lognormal law, so that there and
back differ; within a site data is copied at the local rate. The unit is that of
the median, such as MB/s.`

const linksExamples = `  gridsim workload links --sites 16 --median 10 --sigma .7 --local 100`

func linksCommand() *cobra.Command {
	var links eval.Links
	cmd := &cobra.Command{
		Use: "links", Short: "Rates between sites", Long: linksHelp, Example: linksExamples, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return links.Write(cmd.OutOrStdout()) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&links.Sites, "sites", 16, "sites")
	flags.Float64Var(&links.Median, "median", 10, "of the lognormal law")
	flags.Float64Var(&links.Sigma, "sigma", 0.7, "of the lognormal law: standard deviation of ln")
	flags.Float64Var(&links.Local, "local", 100, "rate of a copy within a site")
	flags.Uint64Var(&links.Seed, "seed", 1, "of all chance")
	return cmd
}
