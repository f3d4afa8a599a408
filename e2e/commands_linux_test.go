//go:build e2e

package e2e_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// withCommands are the settings of a site whose owner allows commands.
const withCommands = twoCores + "kinds: wasm,command\n"

func TestCommands(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bwrap"); err != nil {
		t.Skip("bubblewrap is not installed")
	}
	m := newMesh(t, submitOnly, twoCores, withCommands)
	status, err := m.sites[2].client.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(status.Kinds, " "), "command") {
		t.Skipf("commands do not work here: %+v", status.Notices)
	}
	m.submit(t, "run", "--", "sh", "-c", "exit 7").want(t, 7, "failed with code 7")
	m.submit(t, "run", "--", "no-such-command").want(t, 127)
	m.submit(t, "run", "--", "sh", "-c", "kill -9 $$").want(t, 137)

	writeFile(t, filepath.Join(m.work, "in.txt"), "content")
	a := m.submit(
		t, "run", "-i", "in.txt:/in/x", "--out", "/out/y:sub/y.txt", "--", "sh", "-c",
		"cat /in/x; tr a-z A-Z </in/x >/out/y",
	)
	a.want(t, 0)
	if a.out != "content" {
		t.Errorf("stdout = %q", a.out)
	}
	if got := readFile(t, filepath.Join(m.work, "sub", "y.txt")); got != "CONTENT" {
		t.Errorf("output = %q", got)
	}
	m.audit(t)
}

func TestCommandsNotAllowed(t *testing.T) {
	t.Parallel()
	m := newMesh(t, submitOnly, twoCores)
	m.submit(t, "run", "--", "sh", "-c", "exit 7").want(
		t, 4, "no site can run this", "does not run this kind of work",
	)
}
