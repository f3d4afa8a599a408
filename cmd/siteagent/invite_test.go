package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

// What does not fit together is said before anything is done.
func TestOrdersToInviteThatDoNotFit(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const one = "--revoke: want the ID or the name of one invitation, as siteagent invite --list " +
		"shows it, or --all"
	const everything = "--list shows all invitations; it takes no argument and no --all"
	there := "--out: " + file + " is there already; remove it, or name another file"
	for args, want := range map[string]string{
		"--revoke":                one,
		"--revoke --all twin":     one,
		"--revoke one two":        one,
		"--revoke \x00":           one,
		"--all":                   "--all is for --revoke",
		"--list --revoke":         "--list and --revoke: want one of the two",
		"--list twin":             everything,
		"--list --all":            everything,
		"--revoke --all --uses 3": "--uses is for new invitations, not for --list or --revoke",
		"--list --name lab":       "--name is for new invitations, not for --list or --revoke",
		"--list --for 2h":         "--for is for new invitations, not for --list or --revoke",
		"--list --listen lan":     "--listen is for new invitations, not for --list or --revoke",
		"--list --out x":          "--out is for new invitations, not for --list or --revoke",
		"twin":                    "invite takes no argument, have twin",
		"--uses 0":                "--uses must be 1 to 1024, not 0",
		"--out \x00":              "--out: want the name of a file",
		"--out " + file:           there,
	} {
		cmd := inviteCommand(&options{})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		words := strings.Fields(args)
		for i := range words {
			words[i] = strings.Trim(words[i], "\x00") // an empty argument
		}
		cmd.SetArgs(words)
		err := cmd.ExecuteContext(t.Context())
		if !errors.As(err, new(usageError)) || err.Error() != want {
			t.Errorf("invite %s: %v, want %s", args, err, want)
		}
	}
}

// The table of invitations names who came; a name that its site chose is not obeyed by a terminal.
func TestTableOfInvitations(t *testing.T) {
	t.Parallel()
	by := []view.InvitedSite{
		{Site: "12D3KooWa", Name: "attic\x1b[2J"}, {Site: "12D3KooWb", Name: "\n"},
	}
	var out strings.Builder
	if err := printInvites(&out, []view.InviteRow{
		{ID: "3f9c01ab", Name: "lab 3", State: "open", Left: 3, Uses: 5, By: by},
		{ID: "aa000001", State: "used", Uses: 1, By: make([]view.InvitedSite, maxInvited+2)},
	}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if !strings.HasSuffix(lines[1], "3 of 5  attic?[2J, 12D3KooWb") ||
		!strings.HasPrefix(lines[2], "aa000001  -      used up  ") ||
		!strings.HasSuffix(lines[2], " and 2 more") {
		t.Errorf("the table is\n%s", out.String())
	}
	if err := printInvites(io.Discard, nil); err != nil {
		t.Error(err)
	}
}
