package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The files of changes become the next changelog, so each has to be a list.
func TestChangesAreLists(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../changes/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if filepath.Base(file) == "README.md" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
			if !strings.HasPrefix(line, "- ") && (i == 0 || !strings.HasPrefix(line, "  ")) {
				t.Errorf("%s:%d: want a list item or its next line, have %q", file, i+1, line)
			}
		}
	}
}

// A release collects the changes, newest version first, and leaves nothing behind.
func TestChangelogCollects(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("the script wants bash, which is not installed")
	}
	script, err := filepath.Abs("../../tools/changelog.sh")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	release := func(version, date string) (string, error) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), bash, script, version, date)
		cmd.Env = append(os.Environ(), "CHANGELOG_ROOT="+root)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	write("CHANGELOG.md", "# Changelog\n\nNewest first. Nothing was released yet.\n")
	write("changes/README.md", "not a change\n")
	write("changes/b.md", "- second\n")
	write("changes/a.md", "- first\n  of all\n")
	if out, err := release("0.1.0", "2030-01-31"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	write("changes/c.md", "- third\n")
	if out, err := release("0.2.0", "2030-02-28"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := "# Changelog\n\nNewest first.\n\n## 0.2.0 (2030-02-28)\n\n- third\n\n" +
		"## 0.1.0 (2030-01-31)\n\n- first\n  of all\n- second\n"
	if got, _ := os.ReadFile(filepath.Join(root, "CHANGELOG.md")); string(got) != want {
		t.Errorf("the changelog is\n%s\nwant\n%s", got, want)
	}
	if left, _ := filepath.Glob(filepath.Join(root, "changes", "*")); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
	for version, wrong := range map[string]string{
		"0.3.0": "nothing to collect", "0.2.0": "already", "two": "want a version",
	} {
		if out, err := release(version, ""); err == nil || !strings.Contains(out, wrong) {
			t.Errorf("release %s: %v, %q; want an error with %q", version, err, out, wrong)
		}
	}
}
