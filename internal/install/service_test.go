//go:build unix

package install

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// manager puts a program in the place of systemctl, which does what script says.
func manager(t *testing.T, script string) (home string, s Site) {
	t.Helper()
	home, s = account(t)
	file := filepath.Join(home, "bin/systemctl")
	write(t, file, "#!/bin/sh\necho \"$*\" >>'"+home+"/called'\n"+script+"\n")
	if err := os.Chmod(file, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(file)+string(os.PathListSeparator)+os.Getenv("PATH"))
	return home, s
}

func TestServiceManagersThatAnswer(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"echo running", ""},
		{"echo degraded; exit 1", ""},
		{"echo offline; exit 1", "exit status 1"},
		{"echo gone", `it says "gone"`},
		{"echo 'Failed to connect to bus: No medium found' >&2; exit 1", "No medium found"},
		{"yes | head -c 1000000 >&2; exit 1", "is-system-running: y"},
	} {
		_, s := manager(t, c.script)
		err := s.Answers(t.Context())
		if c.want == "" && err != nil || c.want != "" && err == nil {
			t.Errorf("%q: %v", c.script, err)
		}
		if err != nil && (!strings.Contains(err.Error(), c.want) || len(err.Error()) > 200) {
			t.Errorf("%q: %v, want %q in a sentence", c.script, err, c.want)
		}
	}
	_, s := account(t)
	t.Setenv("PATH", t.TempDir())
	if err := s.Answers(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "systemctl is not installed") {
		t.Errorf("without systemctl: %v", err)
	}
}

// TestAServiceManagerThatHangs is one whose user ends the wait.
func TestAServiceManagerThatHangs(t *testing.T) {
	home, s := manager(t, "sleep 600 & wait")
	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan error, 1)
	go func() { answered <- s.Answers(ctx) }()
	for {
		if _, err := os.Stat(filepath.Join(home, "called")); err == nil {
			break
		}
		select {
		case err := <-answered:
			t.Fatalf("it answered: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	cancel()
	if err := <-answered; err == nil {
		t.Error("it answers")
	}
}

func TestAServiceIsMadeAndRemoved(t *testing.T) {
	home, s := manager(t, "")
	if s.unit() != "" {
		t.Skipf("the package is installed, and its unit comes before the user's: %s", s.unit())
	}
	var r Record
	if err := s.Enable(t.Context(), "/opt/siteagent", &r); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(s.ownUnit())
	if err != nil || !strings.Contains(string(text), "ExecStart=/opt/siteagent run\n") ||
		!r.Service || !r.Made(s.ownUnit()) {
		t.Errorf("%+v, %v:\n%s", r, err, text)
	}
	if err = s.Disable(t.Context(), &r); err != nil {
		t.Fatal(err)
	}
	_, err = os.Stat(s.ownUnit())
	if !errors.Is(err, fs.ErrNotExist) || r.Service || len(r.Files) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
	called, err := os.ReadFile(filepath.Join(home, "called"))
	want := "--user daemon-reload\n--user enable --now siteagent.service\n" +
		"--user disable --now siteagent.service\n--user daemon-reload\n"
	if string(called) != want || err != nil {
		t.Errorf("asked %q, %v, want %q", called, err, want)
	}
}

// TestAnotherUnitStays is a unit that was there before, and a service that its user enabled.
func TestAnotherUnitStays(t *testing.T) {
	home, s := manager(t, `[ "$2" = is-enabled ] && echo enabled; exit 0`)
	write(t, s.ownUnit(), "of a person")
	var r Record
	if err := s.Enable(t.Context(), "/opt/siteagent", &r); err != nil {
		t.Fatal(err)
	}
	r.Service = false // the person has enabled it
	if err := s.Disable(t.Context(), &r); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(s.ownUnit()); string(text) != "of a person" {
		t.Errorf("%q, %v", text, err)
	}
	called, _ := os.ReadFile(filepath.Join(home, "called"))
	if !strings.HasSuffix(string(called), "is-enabled siteagent.service\n"+
		"--user disable --now siteagent.service\n") {
		t.Errorf("asked %q", called)
	}
}

func TestAServiceThatDoesNotStart(t *testing.T) {
	_, s := manager(t, `[ "$2" = daemon-reload ] || { echo 'Job failed.' >&2; exit 1; }`)
	var r Record
	err := s.Enable(t.Context(), "/opt/siteagent", &r)
	const want = "start the service: systemctl --user enable: Job"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}
	if err = s.Disable(t.Context(), &r); err == nil || !r.Service {
		t.Errorf("it is still enabled, and %+v, %v", r, err)
	}
}
