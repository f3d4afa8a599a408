package main

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/config"
)

// completeWithin bounds the time for which a shell's Tab key waits for the agent.
const completeWithin = 500 * time.Millisecond

// completion lets a shell complete the one word of a verb that the running agent knows. Without an
// agent that answers in time there are none.
func completion(
	o *options, ask func(context.Context, *client.Client) ([]choice, error),
) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) (
		[]cobra.Completion, cobra.ShellCompDirective,
	) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
		defer cancel()
		o.cmd = cmd
		c, err := o.dial()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer c.Close()
		choices, _ := ask(ctx, c) // an agent that does not answer knows nothing
		var found []cobra.Completion
		for _, s := range choices {
			if oneWord(s.word) && strings.HasPrefix(s.word, typed) {
				found = append(found, cobra.CompletionWithDesc(s.word, s.about))
			}
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// choice is a word that may stand on a command line.
type choice struct{ word, about string }

// oneWord reports whether a name, which other people have chosen, means only itself to a shell.
func oneWord(name string) bool {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	return name != "" && name[0] != '-' && strings.Trim(name, plain) == ""
}

// peersToComplete are the other sites, by their names and, where they have none, their IDs. banned:
// those that are banned, or else the others.
func peersToComplete(banned bool) func(context.Context, *client.Client) ([]choice, error) {
	return func(ctx context.Context, c *client.Client) ([]choice, error) {
		members, err := c.Members(ctx)
		var found []choice
		for _, row := range members.Sites {
			if row.Standing == "self" || strings.HasPrefix(row.Standing, "banned") != banned {
				continue
			}
			word, about := row.Name, string(row.Site)
			if word == "" {
				word, about = string(row.Site), standingText(row)
			}
			found = append(found, choice{word, about})
		}
		return found, err
	}
}

// domainsToComplete are the linked domains.
func domainsToComplete(ctx context.Context, c *client.Client) ([]choice, error) {
	rows, err := c.Neighbours(ctx)
	var found []choice
	for _, row := range rows {
		found = append(found, choice{string(row.Name), "a linked domain"})
	}
	return found, err
}

// completeSettings lets a shell complete the names of settings, each followed by what comes after
// it.
func completeSettings(after string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, typed string) (
		[]cobra.Completion, cobra.ShellCompDirective,
	) {
		var found []cobra.Completion
		for _, k := range config.AgentKeys(os.LookupEnv) {
			if strings.HasPrefix(k.Name, typed) && !slices.Contains(args, k.Name) {
				found = append(found, cobra.CompletionWithDesc(k.Name+after, k.Help))
			}
		}
		directive := cobra.ShellCompDirectiveNoFileComp
		if after != "" {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
		return found, directive
	}
}
