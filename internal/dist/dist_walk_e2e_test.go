//go:build e2e

package main

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// serviceManager takes the place of systemctl --user for a user of the installed package: systemd
// does not look for units and programs in the folder, and need not be the init of this machine. It
// starts and stops what the package's unit names. ROOT, and HOME of the user, are in its
// environment.
const serviceManager = `#!/bin/sh
shift
unit=$ROOT/usr/lib/systemd/user/siteagent.service
wants=$HOME/.config/systemd/user/default.target.wants
case "$1 $2" in
"is-system-running ") echo running ;;
"enable --now")
	mkdir -p "$wants" && ln -s "$unit" "$wants/siteagent.service"
	start=$(sed -n "s|^ExecStart=/|$ROOT/|p" "$unit")
	timeout 240 $start >/dev/null 2>&1 &
	echo $! >"$ROOT/service.pid"
	until "$ROOT/usr/bin/siteagent" status >/dev/null 2>&1; do
		kill -0 "$(cat "$ROOT/service.pid")" || exit 1
		sleep 0.1
	done
	;;
"disable --now")
	kill "$(cat "$ROOT/service.pid")" 2>/dev/null
	rm "$ROOT/service.pid" "$wants/siteagent.service" && rmdir "$wants"
	;;
esac
`

// checkWalk goes from an empty account to a shared machine with the installed programs, and back,
// without an editor: join with its service, status, leave. The account is afterwards as before.
func checkWalk(t *testing.T, r root) {
	t.Log("a stand-in for systemctl --user starts what the unit names: systemd itself is not asked")
	bin := t.TempDir()
	manager := filepath.Join(bin, "systemctl")
	if err := os.WriteFile(manager, []byte(serviceManager), 0o700); err != nil {
		t.Fatal(err)
	}
	runs := func(home, name string, args ...string) *exec.Cmd {
		cmd := r.program(t, home, name, args...)
		cmd.Env = append(cmd.Env, "ROOT="+r.dir, "XDG_DATA_DIRS="+filepath.Join(r.dir, "usr/lib"),
			"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
		return cmd
	}
	must := func(home, name string, args ...string) (out, notes string) {
		t.Helper()
		cmd := runs(home, name, args...)
		var said, noted bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &noted
		if err := cmd.Run(); err != nil {
			t.Fatalf("%s %q: %v: %s%s", name, args, err, said.String(), noted.String())
		}
		return said.String(), noted.String()
	}
	friend, mine := shortHome(t), shortHome(t)
	_, notes := must(friend, "siteagent", "init", "--name", "friend")
	if !strings.Contains(notes, "start the site with: systemctl --user enable --now siteagent\n") {
		t.Errorf("init does not say how the package's site is started: %s", notes)
	}
	host := runs(friend, "siteagent", "run")
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Process.Kill(); _ = host.Wait() })
	token := ""
	for limit := time.Now().Add(time.Minute); token == ""; time.Sleep(100 * time.Millisecond) {
		out, err := runs(friend, "siteagent", "invite").Output()
		if token = strings.TrimSpace(string(out)); err != nil && time.Now().After(limit) {
			t.Fatalf("the site that invites does not answer: %v", err)
		}
	}
	before := filesBelow(t, mine)
	out, _ := must(mine, "siteagent", "join", "--name", "mine", "--give", "50%", "--service", token)
	if !strings.HasPrefix(out, "my offers arrive: yes") {
		t.Errorf("joined, and it says %s", out)
	}
	out, _ = must(mine, "siteagent", "status")
	if !strings.Contains(out, "mine, in domain home with 1") {
		t.Errorf("the service shares nothing: %s", out)
	}
	_, notes = must(mine, "siteagent", "leave", "--purge")
	if !strings.Contains(notes, "sudo apt purge mrs") {
		t.Errorf("it does not say how the programs go: %s", notes)
	}
	if after := filesBelow(t, mine); !slices.Equal(before, after) {
		t.Errorf("left, and there is %q, before there was %q", after, before)
	}
}

// shortHome is an empty home whose name is short enough for a socket's.
func shortHome(t *testing.T) string {
	t.Helper()
	home, err := os.MkdirTemp("", "mrs") //nolint:usetesting // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	return home
}

// filesBelow are the paths in a folder.
func filesBelow(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		all = append(all, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
