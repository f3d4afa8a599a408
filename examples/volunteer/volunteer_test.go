package volunteer_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// unit is a file of systemd or of the desktop: values by section and key.
type unit map[string]map[string][]string

func readUnit(t *testing.T, name string) unit {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	u, section := unit{}, ""
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if head, is := strings.CutPrefix(line, "["); is && strings.HasSuffix(head, "]") {
			section = strings.TrimSuffix(head, "]")
			if u[section] != nil {
				t.Errorf("%s:%d: section %s comes twice", name, i+1, section)
			}
			u[section] = map[string][]string{}
			continue
		}
		key, value, found := strings.Cut(line, "=")
		if !found || section == "" || strings.ContainsAny(key, " \t") {
			t.Errorf("%s:%d: %q is no setting of a section", name, i+1, line)
			continue
		}
		u[section][key] = append(u[section][key], value)
	}
	return u
}

func units() []string { return []string{"siteagent.service", "siteagent-user.service"} }

// The settings that yield to the owner are set, and what would break sandboxes is not.
func TestUnits(t *testing.T) {
	for _, name := range units() {
		u := readUnit(t, name)
		service := u["Service"]
		for key, want := range map[string]string{
			"Delegate": "yes", "IOSchedulingClass": "idle", "NoNewPrivileges": "yes", "KillMode": "process",
			"Type": "notify", "NotifyAccess": "main", "RestartPreventExitStatus": "3",
		} {
			if got := service[key]; !slices.Equal(got, []string{want}) {
				t.Errorf("%s: %s is %q, want %q", name, key, got, want)
			}
		}
		for _, key := range []string{
			"ExecStart", "ExecReload", "Nice", "MemoryMax", "TasksMax", "Restart", "WatchdogSec",
			"TimeoutStartSec",
		} {
			if len(service[key]) != 1 {
				t.Errorf("%s: %s is %q, want one value", name, key, service[key])
			}
		}
		for _, key := range []string{
			"RestrictNamespaces", "ProtectKernelTunables", "ProtectKernelLogs", "ProtectProc", "ProcSubset",
			"ProtectHostname",
			"ProtectControlGroups", "MemoryDenyWriteExecute", "SystemCallFilter", "RestrictRealtime",
			"PrivateUsers", "PrivateNetwork",
		} {
			if len(service[key]) != 0 {
				t.Errorf("%s: %s breaks sandboxes or the network", name, key)
			}
		}
		if len(u["Install"]["WantedBy"]) != 1 || len(u["Unit"]["Description"]) != 1 {
			t.Errorf("%s: it has no description, or cannot be enabled", name)
		}
	}
	for _, name := range []string{"mrs-pause.desktop", "mrs-resume.desktop"} {
		entry := readUnit(t, name)["Desktop Entry"]
		if entry == nil || len(entry["Exec"]) != 1 ||
			!strings.HasPrefix(entry["Exec"][0], "siteagent ") || len(entry["Name"]) != 1 {
			t.Errorf("%s: entry %q", name, entry)
		}
	}
}

// systemd itself reads the units, where it is installed. Programs and users that
// this machine lacks are put into a copy.
func TestSystemdReadsTheUnits(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	for _, name := range units() {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		copied := strings.NewReplacer(
			"/usr/local/bin/siteagent", "/bin/true", "%h/.local/bin/siteagent", "/bin/true", "User=mrs",
			"User=daemon", "Group=mrs", "Group=daemon",
		).Replace(string(text))
		path := filepath.Join(t.TempDir(), "siteagent.service")
		if err = os.WriteFile(path, []byte(copied), 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{"verify", "--man=no", "--recursive-errors=no"}
		if strings.Contains(name, "user") {
			args = append(args, "--user")
		}
		cmd := exec.Command(analyze, append(args, path)...)
		cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir())
		out, err := cmd.CombinedOutput()
		if err != nil || strings.Contains(string(out), "siteagent.service:") {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}

// commands are the command lines of the walk-through's blocks of shell.
func commands(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	inside := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "```sh":
			inside = true
		case strings.HasPrefix(line, "```"):
			inside = false
		case inside && line != "":
			all = append(all, line)
		}
	}
	return all
}

// words of a command without what says as whom it is run.
func words(line string) []string {
	all := strings.Fields(line)
	if all[0] == "sudo" {
		all = all[1:]
		if all[0] == "-u" {
			all = all[2:]
		}
	}
	return all
}

// The walk-through uses programs that every such machine has, and files that are
// here.
func TestWalkThrough(t *testing.T) {
	known := []string{
		"go", "mkdir", "install", "cp", "rm", "systemctl", "loginctl", "useradd", "userdel", "siteagent",
		"submit",
	}
	lines := commands(t)
	if len(lines) < 20 {
		t.Fatalf("%d commands were found", len(lines))
	}
	for _, line := range lines {
		all := words(line)
		if !slices.Contains(known, all[0]) {
			t.Errorf("%q: not a program that is known to be there", line)
		}
		for _, word := range all[1:] {
			name, here := strings.CutPrefix(word, "examples/volunteer/")
			if _, err := os.Stat(name); here && err != nil {
				t.Errorf("%q: %v", line, err)
			}
		}
	}
}
