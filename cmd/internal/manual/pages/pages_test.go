package pages

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// tree is a program with a command, a topic of help, and what is hidden.
func tree() *cobra.Command {
	nothing := func(*cobra.Command, []string) {}
	root := &cobra.Command{
		Use: "prog", Short: "A program", Run: nothing, SilenceUsage: true, SilenceErrors: true,
		Long: "A program with *signs* and MRS_*, <like this>.\n\nFirst steps:\n" +
			"  prog one    the first\n  prog two    the *second*\n\nThe end.",
	}
	root.AddCommand(
		&cobra.Command{Use: "one FILE", Short: "The first", Run: nothing},
		&cobra.Command{Use: "topic", Short: "A topic", Long: "About a topic."},
		&cobra.Command{Use: "secret", Hidden: true, Run: nothing},
		Command(),
	)
	return root
}

func pages(t *testing.T, epoch string) map[string]string {
	t.Helper()
	t.Setenv("SOURCE_DATE_EPOCH", epoch)
	dir := t.TempDir()
	root := tree()
	root.SetArgs([]string{"man", dir})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[f.Name()] = string(text)
	}
	return all
}

// Each command and topic has a page, hidden ones have none, and the time is the one that is given.
func TestPages(t *testing.T) {
	all := pages(t, "1750000000")
	for _, name := range []string{"prog.1", "prog-one.1", "prog-topic.1"} {
		if !strings.Contains(all[name], `"Jun 2025"`) {
			t.Errorf("%s: not of June 2025: %q", name, all[name])
		}
	}
	for _, name := range []string{"prog-secret.1", "prog-man.1"} {
		if _, there := all[name]; there {
			t.Errorf("%s: a hidden command has a page", name)
		}
	}
	page := all["prog.1"]
	for _, want := range []string{
		"signs", "MRS_", "like this", "\n  prog one    the first\n", "prog two    the *second*\n",
	} {
		if !strings.Contains(strings.NewReplacer(`\-`, "-", `\_`, "_").Replace(page), want) {
			t.Errorf("the page has no %q:\n%s", want, page)
		}
	}
	if bytes.Contains([]byte(page), []byte(`\fIsigns`)) {
		t.Error("a sign of the text became a mark")
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		epoch string
		args  []string
		want  string
	}{
		{"", []string{"man"}, "1 arg"},
		{"today", []string{"man", t.TempDir()}, "SOURCE_DATE_EPOCH"},
		{"1", []string{"man", filepath.Join(t.TempDir(), "none")}, "none"},
	} {
		t.Setenv("SOURCE_DATE_EPOCH", c.epoch)
		root := tree()
		root.SetArgs(c.args)
		if err := root.Execute(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want an error with %q", c.args, err, c.want)
		}
	}
}

func TestMarkdown(t *testing.T) {
	got := strings.Split(markdown("a_b\n  c_d\n  e\nf"), "\n")
	want := []string{`a\_b`, "", "      c_d", "      e", "", "f"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
