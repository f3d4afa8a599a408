//go:build e2e

package volunteer_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestCommandsExist asks the programs about every command of the walk-through and
// of the desktop's buttons, its flags included.
func TestCommandsExist(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command(
		"go", "build", "-o", dir+"/", "../../cmd/siteagent", "../../cmd/submit",
	).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	lines := commands(t)
	for _, name := range []string{"mrs-pause.desktop", "mrs-resume.desktop"} {
		lines = append(lines, readUnit(t, name)["Desktop Entry"]["Exec"]...)
	}
	for _, name := range units() {
		start := readUnit(t, name)["Service"]["ExecStart"][0]
		lines = append(lines, "siteagent "+strings.Join(strings.Fields(start)[1:], " "))
	}
	asked := 0
	for _, line := range lines {
		all := words(line)
		if all[0] != "siteagent" && all[0] != "submit" {
			continue
		}
		asked++
		out, err := exec.Command(
			filepath.Join(dir, all[0]), append(slices.Clone(all[1:]), "--help")...,
		).CombinedOutput()
		if err != nil {
			t.Errorf("%q: %v: %s", line, err, out)
			continue
		}
		usage := strings.Join(strings.Fields(string(out)[strings.Index(string(out), "Usage:"):]), " ")
		if verb := verbOf(all); verb != "" && !strings.Contains(usage, all[0]+" "+verb) {
			t.Errorf("%q: there is no command %s: %s", line, verb, out)
		}
	}
	if asked < 8 {
		t.Errorf("%d commands of this project were found", asked)
	}
}

// verbOf is the first word that is neither a flag nor a flag's value.
func verbOf(all []string) string {
	for i := 1; i < len(all); i++ {
		switch {
		case strings.HasPrefix(all[i], "--") && !strings.Contains(all[i], "=") && i+1 < len(all) &&
			!strings.HasPrefix(all[i+1], "-"):
			if all[i] != "--now" {
				i++
			}
		case strings.HasPrefix(all[i], "-"):
		default:
			return all[i]
		}
	}
	return ""
}

// TestTheTableNamesSettings compares the settings of the walk-through with those that
// the program knows, and what it chooses with what the file of init then holds.
func TestTheTableNamesSettings(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "siteagent.yaml")
	siteagent := func(args ...string) string {
		cmd := exec.Command("go", append([]string{"run", "../../cmd/siteagent"}, args...)...)
		cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+dir)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("siteagent %v: %v", args, err)
		}
		return string(out)
	}
	settings := siteagent("help", "settings")
	named := namesInTable(t)
	if len(named) < 12 {
		t.Errorf("the table names %v", named)
	}
	for _, name := range named {
		if !strings.Contains(settings, " "+name+" ") {
			t.Errorf("there is no setting %s", name)
		}
	}
	siteagent("--config", file, "init", "--ceilings-cpus", "2", "--ceilings-memory", "4GiB")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"\nceilings.cpus: 2\n", "\nceilings.memory: 4GiB\n", "\n#preset: lan\n", "\n#owner.hours: \"\"\n",
	} {
		if !strings.Contains(string(text), line) {
			t.Errorf("the file has no line %q", line)
		}
	}
}

// namesInTable are the settings in the first column of the walk-through's table.
func namesInTable(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(text)) {
		cell, found := strings.CutPrefix(line, "| `")
		if !found {
			continue
		}
		cell, _, _ = strings.Cut(cell, " | ")
		for name := range strings.SplitSeq(cell, ", ") {
			names = append(names, strings.Trim(name, "`"))
		}
	}
	return names
}
