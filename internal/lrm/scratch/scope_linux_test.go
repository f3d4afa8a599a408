package scratch

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// A user's agent goes into a scope where systemd is there for the user, and nowhere else: a service
// would leave its own group.
func TestWhoGoesIntoAScope(t *testing.T) {
	const user = 1000
	dir := t.TempDir()
	run := filepath.Join(dir, "systemd-run")
	if err := os.MkdirAll(filepath.Join(dir, "systemd", "private"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(run, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	const absent = "none"
	for name, c := range map[string]struct {
		user           int
		variable, text string
		want           bool
	}{
		"a terminal":            {user, absent, "", true},
		"another's child":       {user, "SYSTEMD_EXEC_PID", "1", true},
		"root":                  {0, absent, "", false},
		"a service":             {user, "SYSTEMD_EXEC_PID", strconv.Itoa(os.Getpid()), false},
		"a service that tells":  {user, "NOTIFY_SOCKET", "/run/notify", false},
		"no systemd":            {user, "XDG_RUNTIME_DIR", t.TempDir(), false},
		"no runtime directory":  {user, "XDG_RUNTIME_DIR", "", false},
		"systemd-run is absent": {user, "PATH", "/nowhere", false},
	} {
		t.Run(name, func(t *testing.T) {
			for variable, text := range map[string]string{
				"PATH": dir, "XDG_RUNTIME_DIR": dir, "SYSTEMD_EXEC_PID": "", "NOTIFY_SOCKET": "",
			} {
				t.Setenv(variable, text)
			}
			if c.variable != absent {
				t.Setenv(c.variable, c.text)
			}
			line := scope(c.user)
			if (len(line) > 0) != c.want {
				t.Fatalf("%q, want some: %t", line, c.want)
			}
			if c.want && (line[0] != run || !slices.Contains(line, "--property=Delegate=yes")) {
				t.Errorf("%q", line)
			}
		})
	}
}
