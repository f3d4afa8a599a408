package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/config"
	"github.com/mrsmesh/mrsmesh/internal/hostinfo"
	"github.com/mrsmesh/mrsmesh/internal/view"
)

// fileOf is a configuration by hand.
const fileOf = `# by hand
preset: test
ceilings: {cpus: 1, memory: 1GiB}
owner.hours: sat 10:00-20:00 # the weekend
`

// running are the settings of an agent on a machine of 4 cores and 8 GiB, whose file has a text,
// and the file. refuse lets the agent take no settings.
func running(t *testing.T, text string, refuse *error) (*settings, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "siteagent.yaml")
	if text != "" {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := func(name string) (string, bool) {
		vars := map[string]string{"HOME": t.TempDir(), "MRS_PRICE": "0.5"}
		value, found := vars[name]
		return value, found
	}
	s, err := readSettings(config.Sources{
		File: file, Env: env, Flags: map[string]string{"jobs-max-runtime": "2h"},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.log = slog.New(slog.DiscardHandler)
	s.machine = hostinfo.Machine{Cores: 4, MemoryBytes: 8 << 30, DiskBytes: 100 << 30}
	s.change = func(context.Context, config.Agent) error { return *refuse }
	return s, file
}

func readText(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestSettingsChangeInTheFileAndInTheAgent sets some: other lines and comments stay.
func TestSettingsChangeInTheFileAndInTheAgent(t *testing.T) {
	t.Parallel()
	s, file := running(t, fileOf, new(error))
	got, err := served{settings: s}.ChangeSettings(t.Context(), map[string]string{
		"ceilings.cpus": "4", "owner.hours": "mon-fri 18:00-08:00", "owner.patience": "5m",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"ceilings.cpus", "owner.hours", "owner.patience"}
	if diff := cmp.Diff(want, got.Changed); diff != "" || got.File != file || got.Problem != "" {
		t.Errorf("changed (-want +got):\n%s%+v", diff, got)
	}
	wantText := strings.NewReplacer(
		"cpus: 1,", "cpus: 4,", "sat 10:00-20:00", `"mon-fri 18:00-08:00"`,
	).Replace(fileOf) + "advanced:\n  owner.patience: 5m\n"
	if diff := cmp.Diff(wantText, readText(t, file)); diff != "" {
		t.Errorf("the file (-want +got):\n%s", diff)
	}
	if s.now.ValueOf("owner.patience") != "5m" || s.now.ValueOf("ceilings.cpus") != "4" {
		t.Errorf("in force: %s and %s, want 5m and 4",
			s.now.ValueOf("owner.patience"), s.now.ValueOf("ceilings.cpus"))
	}
}

// TestTheFirstSettingMakesTheFile changes one where there is no file yet.
func TestTheFirstSettingMakesTheFile(t *testing.T) {
	t.Parallel()
	refuse := errors.New("no place")
	s, file := running(t, "", &refuse)
	if _, err := s.set(t.Context(), map[string]string{"owner.battery": "true"}); err == nil {
		t.Error("a setting that the agent cannot take was taken")
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file with it stays: %v", err)
	}
	refuse = nil
	if _, err := s.set(t.Context(), map[string]string{"owner.battery": "true"}); err != nil {
		t.Fatal(err)
	}
	if text := readText(t, file); !strings.Contains(text, "\nowner.battery: true\n") {
		t.Errorf("the file: %s", text)
	}
}

// TestSettingsThatAreRefused tries each kind: the problem names the setting and what to do, and
// neither the file nor the agent changes.
func TestSettingsThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values                map[string]string
		field, detail, remedy string
	}{
		{
			map[string]string{"owner.patiense": "5m"},
			"owner.patiense",
			"no such setting; did you mean owner.patience?",
			"siteagent config show --all lists them",
		},
		{
			map[string]string{"owner.patience": "5"},
			"owner.patience",
			`invalid: duration "5": want a number with a unit`, asItWas,
		},
		{
			map[string]string{"owner.patience": "1ms"},
			"owner.patience",
			"want 1s to ", asItWas,
		},
		{
			map[string]string{"owner.input": "true", "owner.patience": "1ms"},
			"owner.patience",
			"want 1s to ", asItWas,
		},
		{
			map[string]string{"name": "attic"},
			"name", "it counts after a restart only",
			"siteagent config set writes it; then restart the agent",
		},
		{
			map[string]string{"owner.input": "true", "name": "attic"},
			"name",
			"it counts after a restart only",
			"siteagent config set writes it; then restart the agent",
		},
		{
			map[string]string{"owner.hook": "/bin/rm,-rf,/"},
			"owner.hook",
			"it names a program that runs as you, outside of any sandbox",
			"siteagent config set owner.hook on the machine itself",
		},
		{
			map[string]string{"price": "1"},
			"price",
			"the agent was started with environment MRS_PRICE, which is stronger",
			"start it without that",
		},
		{
			map[string]string{"jobs.max-runtime": "1h"},
			"jobs.max-runtime",
			"the agent was started with flag --jobs-max-runtime, which is stronger",
			"start it without that",
		},
		{
			map[string]string{"ceilings.cpus": "4.5"},
			"ceilings.cpus",
			"4.5 is beyond this machine, which has 4", "choose at most that",
		},
		{
			map[string]string{"ceilings.memory": "9GiB"},
			"ceilings.memory",
			"9GiB is beyond this machine, which has 8GiB", "choose at most that",
		},
		{
			map[string]string{"ceilings.disk": "1TiB"},
			"ceilings.disk",
			"1TiB is beyond this machine, which has 100GiB", "choose at most that",
		},
	} {
		s, file := running(t, fileOf, new(error))
		_, err := s.set(t.Context(), c.values)
		problem, is := errors.AsType[*view.Problem](err)
		if !is || problem.Status != 422 || problem.Field != c.field || problem.Remedy != c.remedy ||
			!strings.Contains(problem.Detail, c.detail) {
			t.Errorf("%v: %+v, want %s: %s (%s)", c.values, err, c.field, c.detail, c.remedy)
		}
		if text := readText(t, file); text != fileOf {
			t.Errorf("%v: the file changed: %s", c.values, text)
		}
		if got := s.now.ValueOf("owner.input") + s.shown.Problem; got != "false" {
			t.Errorf("%v: the agent changed: %s", c.values, got)
		}
	}
}

// TestAFileThatCannotBeChangedStays has a mistake of the owner's in it, and an agent that cannot
// take a value.
func TestAFileThatCannotBeChangedStays(t *testing.T) {
	t.Parallel()
	refuse := errors.New("no place")
	s, file := running(t, fileOf, &refuse)
	_, err := s.set(t.Context(), map[string]string{"owner.patience": "5m"})
	problem, is := errors.AsType[*view.Problem](err)
	if !is || problem.Status != 422 || problem.Detail != "no place" {
		t.Errorf("an agent that cannot take it: %v", err)
	}
	if text := readText(t, file); text != fileOf {
		t.Errorf("the file changed: %s", text)
	}
	refuse = nil
	const mistake = "name: [a, b\n"
	if err = os.WriteFile(file, []byte(mistake), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = s.set(t.Context(), map[string]string{"owner.patience": "5m"})
	problem, is = errors.AsType[*view.Problem](err)
	if !is || problem.Status != 422 || !strings.HasSuffix(problem.Remedy, "with an editor") {
		t.Errorf("a file with a mistake: %v", err)
	}
	if text := readText(t, file); text != mistake {
		t.Errorf("the file changed: %s", text)
	}
}
