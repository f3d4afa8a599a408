package native_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/lrm/native"
)

func TestBadConfig(t *testing.T) {
	good, err := native.DefaultConfig(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(c *native.Config){
		"no supervisor": func(c *native.Config) { c.Supervisor = nil },
		"no runner":     func(c *native.Config) { c.Runner = nil },
		"processes":     func(c *native.Config) { c.Processes = -1 },
		"record":        func(c *native.Config) { c.RecordPath = "runs" },
	} {
		bad := good
		spoil(&bad)
		if _, err := native.New(t.Context(), bad); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestNoBubblewrap(t *testing.T) {
	config, err := native.DefaultConfig(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	config.Sandbox = native.Bubblewrap
	broken := filepath.Join(t.TempDir(), "bwrap")
	if err := os.WriteFile(
		broken, []byte("#!/bin/sh\necho no permissions >&2\nexit 1\n"), 0o700,
	); err != nil {
		t.Fatal(err)
	}
	for bwrap, want := range map[string]string{
		"/nowhere/bwrap": "install the package bubblewrap", broken: "no permissions",
	} {
		config.Bwrap, config.Runsc = bwrap, "/nowhere/runsc"
		a, err := native.New(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		s := a.Probe(t.Context())
		if len(s.Kinds) != 0 || s.Freeze || len(s.Notes) != 1 || !strings.Contains(s.Notes[0], want) {
			t.Errorf("support = %+v, want none because of %q", s, want)
		}
		if _, err := a.Start(t.Context(), attempt(t, "true")); !errors.Is(err, native.ErrNoSandbox) {
			t.Errorf("Start = %v", err)
		}
		if err := a.Recover(t.Context()); err != nil {
			t.Errorf("Recover = %v", err)
		}
	}
}

// TestNoEtc wants an owner to be told why there are no commands where what they all see cannot be
// laid out.
func TestNoEtc(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "etc"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	way, _ := here(t)
	a, err := newAdapter(t.Context(), filepath.Join(dir, "runs.jsonl"), way)
	if err != nil {
		t.Fatal(err)
	}
	s := a.Probe(t.Context())
	if len(s.Kinds) != 0 || len(s.Notes) != 1 ||
		!strings.HasPrefix(s.Notes[0], "no commands: lay out /etc of commands: ") {
		t.Errorf("support = %+v", s)
	}
	if _, err := a.Start(t.Context(), attempt(t, "true")); !errors.Is(err, native.ErrNoSandbox) {
		t.Errorf("start: %v", err)
	}
}

// TestChoiceOfSandbox wants the owner's choice to be kept, and gVisor to stand in for
// a bubblewrap that is missing only where the choice is left to the adapter.
func TestChoiceOfSandbox(t *testing.T) {
	need(t, gvisorAlone)
	for _, tt := range []struct {
		sandbox, bwrap, runsc string
		works                 bool
		note                  string
	}{
		{native.Auto, "/nowhere/bwrap", "", true, "bubblewrap does not work here"},
		{native.Bubblewrap, "/nowhere/bwrap", "", false, "install the package bubblewrap"},
		{native.GVisor, "", "/nowhere/runsc", false, "gVisor was asked for: runsc is missing"},
		{native.GVisor, "/nowhere/bwrap", "", true, ""},
		{native.Auto, "/nowhere/bwrap", "/nowhere/runsc", false, "install the package bubblewrap"},
	} {
		config, err := native.DefaultConfig(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		config.Sandbox, config.Bwrap, config.Runsc = tt.sandbox, tt.bwrap, tt.runsc
		a, err := native.New(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		s := a.Probe(t.Context())
		if works := len(s.Kinds) == 1; works != tt.works ||
			!strings.Contains(strings.Join(s.Notes, "; "), tt.note) {
			t.Errorf("%+v: support = %+v", tt, s)
		}
	}
}
