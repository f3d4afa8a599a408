package install

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// account is a user's home, and what variables say there.
func account(t *testing.T) (home string, s Site) {
	t.Helper()
	home = t.TempDir()
	variables := map[string]string{"HOME": home, "XDG_DATA_DIRS": "relative:" + home + "/share"}
	config := filepath.Join(home, ".config/mrs/siteagent.yaml")
	return home, Site{Config: config, Default: config, Env: func(name string) (string, bool) {
		text, ok := variables[name]
		return text, ok
	}}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestHowASiteIsStarted(t *testing.T) {
	t.Parallel()
	home, s := account(t)
	if s.unit() != "" {
		t.Skipf("the package is installed, and its unit comes before the user's: %s", s.unit())
	}
	if s.Way() != ByHand || s.Start() != "siteagent run" {
		t.Errorf("nothing is installed: way %d, %q", s.Way(), s.Start())
	}
	write(t, filepath.Join(home, "share/systemd/user", unitName), "")
	if s.Way() != User || s.Start() != "systemctl --user enable --now siteagent" {
		t.Errorf("a package brought a unit: way %d, %q", s.Way(), s.Start())
	}
	write(t, s.ownUnit(), "")
	if s.unit() != s.ownUnit() {
		t.Errorf("the user's own unit is weaker than %s", s.unit())
	}
	s.Config = "/somewhere/else.yaml" // which no service reads
	if s.Way() != ByHand || s.Start() != "siteagent --config /somewhere/else.yaml run" {
		t.Errorf("another configuration: way %d, %q", s.Way(), s.Start())
	}
	if err := s.Answers(t.Context()); err == nil || !strings.Contains(err.Error(), s.Default) {
		t.Errorf("a service with another configuration: %v", err)
	}
}

func TestUnits(t *testing.T) {
	t.Parallel()
	example, err := os.ReadFile("../../examples/volunteer/siteagent-user.service")
	if err != nil {
		t.Fatal(err)
	}
	if unitText != string(example) {
		t.Error("siteagent-user.service is not that of examples/volunteer: copy it")
	}
	for program, want := range map[string]string{
		"/usr/local/bin/siteagent":  "/usr/local/bin/siteagent",
		"/home/ada/my tools/site%1": `"/home/ada/my tools/site%%1"`,
		`/opt/$x/a"b\c d`:           `"/opt/$$x/a\"b\\c d"`,
	} {
		text, err := unitFor(program)
		if err != nil || !strings.Contains(string(text), "\nExecStart="+want+" run\n") {
			t.Errorf("%s: %v in\n%s", program, err, text)
		}
		if strings.Contains(string(text), "Copy it") || strings.Contains(string(text), "%h") {
			t.Errorf("%s: the unit speaks of another one:\n%s", program, text)
		}
	}
	for _, program := range []string{"siteagent", "", "/a\nExecStart=/b"} {
		if _, err := unitFor(program); err == nil {
			t.Errorf("%q is started", program)
		}
	}
}
