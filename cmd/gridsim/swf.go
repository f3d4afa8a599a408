package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/eval"
)

const swfHelp = `Rerun the log of a real machine under a scheduling policy, and tell how long its
jobs would have waited.

The log is in the Standard Workload Format (18 fields, ';' starts a comment),
packed by gzip or not. Logs of many machines are to be had at the Parallel
Workloads Archive: https://www.cs.huji.ac.il/labs/parallel/workload/

Policies:
  fcfs          strictly in the order of submission
  easy          as fcfs, but a job may overtake if the first in the queue starts
                no later than the estimates of running jobs promise
  conservative  every job has a place from its submission on; another may overtake
                it only into a hole, and all move up when jobs end early

Semantics, for seconds in which more than one thing happens:
  batch         all that ends, then all that arrives, then one look at the queue
  event         a look at the queue after each job that arrives, then after each
                that ends

What a scheduler sees of a record: the processors requested, or else used, at
most the machine's; as estimate the time requested, or else the run time. A run
longer than requested ends at the requested time. What never ran lasts 1 s.

What is printed:
  jobs                  how many
  avg_wait_s            mean seconds from submission to start
  avg_bounded_slowdown  mean of max(1, (wait + run) / max(run, 10 s))
  makespan_s            seconds from the first submission to the last end
  utilization           share of the machine that was busy meanwhile
  jobs_per_s            how many jobs gridsim scheduled in a second, reading and
                        writing not counted`

const swfExamples = `  gridsim swf --log KTH-SP2-1996-2.1-cln.swf.gz --procs 100 --policy easy
  gridsim swf --log log.swf --policy conservative --starts starts.csv -o json`

func swfCommand() *cobra.Command {
	var experiment eval.SWF
	var output form
	var quiet bool
	cmd := &cobra.Command{
		Use: "swf --log FILE", Short: "Rerun the log of a real machine", Long: swfHelp,
		Example: swfExamples, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := output.check(); err != nil {
				return err
			}
			if cmd.Flags().Changed("procs") && experiment.Procs < 1 {
				return usageError("--procs: want at least 1, have %d", experiment.Procs)
			}
			if !quiet {
				experiment.Progress = progress(cmd.ErrOrStderr(), time.Now)
			}
			result, err := experiment.Run(cmd.Context())
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			return output.print(out, result, func() error { return printSWF(out, result) })
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&experiment.Log, "log", "", "log to rerun")
	flags.IntVar(
		&experiment.Procs, "procs", 0,
		"processors of the machine (default: MaxProcs of the log's header)",
	)
	flags.StringVar(&experiment.Policy, "policy", "easy", strings.Join(eval.Policies(), ", "))
	flags.StringVar(
		&experiment.Semantics, "semantics", "batch", strings.Join(eval.AllSemantics(), ", "),
	)
	flags.StringVar(
		&experiment.Starts, "starts", "", "write when each job started to this file: job_id,submit,start",
	)
	output.addTo(flags)
	flags.BoolVarP(&quiet, "quiet", "q", false, "no progress on standard error")
	return cmd
}

// progressEvery bounds the time between two lines of progress.
const progressEvery = 2 * time.Second

// progress tells now and then how far a long experiment is.
func progress(out io.Writer, now func() time.Time) func(done, all int) {
	next := now().Add(progressEvery)
	return func(done, all int) {
		if t := now(); !t.Before(next) {
			next = t.Add(progressEvery)
			fmt.Fprintf(out, "gridsim: %d of %d jobs started (%d %%)\n", done, all, 100*done/all)
		}
	}
}

func printSWF(out io.Writer, r eval.SWFResult) error {
	_, err := fmt.Fprintf(out, `jobs                  %d
avg_wait_s            %.3f
avg_bounded_slowdown  %.3f
makespan_s            %d
utilization           %.4f
jobs_per_s            %.0f
`, r.Jobs, r.AvgWaitS, r.AvgBoundedSlowdown, r.MakespanS, r.Utilization, r.JobsPerS)
	return err
}
