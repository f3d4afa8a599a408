package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestEveryVerbAnswersPrograms: what has an answer can give it as JSON, and a mistake in the word
// is told before anything is done.
func TestEveryVerbAnswersPrograms(t *testing.T) {
	t.Parallel()
	without := []string{"siteagent run", "siteagent settings", "siteagent man"} // logs and texts
	var verbs func(cmd *cobra.Command) []*cobra.Command
	verbs = func(cmd *cobra.Command) (all []*cobra.Command) {
		if !cmd.HasSubCommands() && cmd.Name() != "help" {
			return []*cobra.Command{cmd}
		}
		for _, sub := range cmd.Commands() {
			all = append(all, verbs(sub)...)
		}
		return all
	}
	found := verbs(newRoot())
	if len(found) < 30 {
		t.Fatalf("%d verbs", len(found))
	}
	for _, cmd := range found {
		path := cmd.CommandPath()
		if slices.Contains(without, path) || strings.HasPrefix(path, "siteagent completion") {
			continue
		}
		flag := cmd.Flags().Lookup("output")
		if flag == nil || flag.Shorthand != "o" {
			t.Errorf("%s has no -o", path)
			continue
		}
		const want = `want table or json, have "yaml"`
		if err := flag.Value.Set("yaml"); err == nil || err.Error() != want {
			t.Errorf("%s -o yaml: %v, want %s", path, err, want)
		}
		if err := flag.Value.Set("json"); err != nil || flag.Value.String() != "json" {
			t.Errorf("%s -o json: %v, and it is %s", path, err, flag.Value)
		}
	}
}
