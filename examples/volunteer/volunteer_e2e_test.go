//go:build e2e

package volunteer_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestCommandsExist asks the programs about every command of the walk-through and
// of the desktop's buttons, its flags included.
func TestCommandsExist(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", dir+"/", "../../cmd/siteagent", "../../cmd/submit").CombinedOutput(); err != nil {
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
		out, err := exec.Command(filepath.Join(dir, all[0]), append(slices.Clone(all[1:]), "--help")...).CombinedOutput()
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
		case strings.HasPrefix(all[i], "--") && !strings.Contains(all[i], "=") && i+1 < len(all) && !strings.HasPrefix(all[i+1], "-"):
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

// TestTheTableNamesSettings compares the settings of the walk-through with those that the
// program explains.
func TestTheTableNamesSettings(t *testing.T) {
	cmd := exec.Command("go", "run", "../../cmd/siteagent", "help", "settings")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			continue
		}
		group := ""
		for _, match := range regexp.MustCompile("`([a-z]*[.]?[a-z]+)`").FindAllStringSubmatch(cells[1], -1) {
			name := match[1]
			if strings.HasPrefix(name, ".") { // `ceilings.cpus`, `.memory`
				name = group + name
			}
			group, _, _ = strings.Cut(name, ".")
			named++
			if !strings.Contains(string(out), " "+name+" ") {
				t.Errorf("there is no setting %s", name)
			}
		}
	}
	if named < 14 {
		t.Errorf("the table names %d settings", named)
	}
}
