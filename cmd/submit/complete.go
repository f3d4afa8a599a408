package main

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

const (
	// completeWithin bounds the time for which a shell's Tab key waits for the agent.
	completeWithin = 500 * time.Millisecond
	// mostCompleted bounds the jobs, newest first, among which a shell chooses.
	mostCompleted = 200
)

// completeJob lets a shell complete the one job that a verb takes.
func (a *app) completeJob() cobra.CompletionFunc { return a.completing(1, false) }

// completeJobs lets a shell complete the jobs that a verb takes.
func (a *app) completeJobs() cobra.CompletionFunc { return a.completing(math.MaxInt, false) }

// completeOpenJobs is completeJobs for a verb that does nothing to jobs that have ended.
func (a *app) completeOpenJobs() cobra.CompletionFunc { return a.completing(math.MaxInt, true) }

// completing lets a shell complete at most so many jobs by their IDs and names, all of them or
// those that are open. Without an agent that answers in time there are none.
func (a *app) completing(most int, open bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) (
		[]cobra.Completion, cobra.ShellCompDirective,
	) {
		if len(args) >= most || a.configure(cmd.Flags()) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
		defer cancel()
		jobs, _ := a.client.Jobs(ctx, view.JobQuery{Limit: mostCompleted}) // none without an agent
		jobs = slices.DeleteFunc(jobs, func(v view.JobView) bool { return open && v.Phase.Ended() })
		return jobsLike(jobs, args, typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// jobsLike are the IDs and names that begin as typed and are not named yet.
func jobsLike(jobs []view.JobView, named []string, typed string) []cobra.Completion {
	var found []cobra.Completion
	seen := slices.Clone(named)
	add := func(word, about string) {
		if strings.HasPrefix(word, typed) && !slices.Contains(seen, word) {
			seen = append(seen, word)
			found = append(found, cobra.CompletionWithDesc(word, about))
		}
	}
	for _, job := range jobs {
		if oneWord(job.Name) {
			add(job.Name, string(job.Phase)+", "+string(job.ID))
		}
		add(string(job.ID), string(job.Phase)+" "+clean(job.Name))
	}
	return found
}

// oneWord reports whether a name means only itself to a shell.
func oneWord(name string) bool {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	return name != "" && name[0] != '-' && strings.Trim(name, plain) == ""
}
