package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func environ(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "siteagent.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPresetsAreValid(t *testing.T) {
	t.Parallel()
	for _, preset := range []string{PresetLAN, PresetWAN, PresetTest} {
		if err := Default(preset, environ("HOME", "/home/u")).Validate(); err != nil {
			t.Errorf("Default(%s): %v", preset, err)
		}
	}
	env := environ("HOME", "/home/u", "XDG_STATE_HOME", "/s", "XDG_RUNTIME_DIR", "/r")
	if got := Default("lan", env); got.StateDir != "/s/mrs" || got.API.Socket != "/r/mrs.sock" {
		t.Errorf("folders: %s, %s", got.StateDir, got.API.Socket)
	}
}

func TestPrecedence(t *testing.T) {
	t.Parallel()
	src := Sources{
		File: write(t, "preset: wan\nname: file\ndomain: file\nceilings: {memory: 1GiB, cpus: 1.5, "+
			"gflops: 2}\nlisten: [/ip4/127.0.0.1/tcp/1]\nlog: {level: warn}\n"),
		Env: environ(
			"HOME", "/h", "MRS_NAME", "env", "MRS_DOMAIN", "env", "MRS_JOBS_MAX_RUNTIME", "2d",
		),
		Flags: map[string]string{"name": "flag", "ceilings-memory": "2GiB", "kinds": "command,wasm"},
	}
	got, err := LoadAgent(src)
	if err != nil {
		t.Fatal(err)
	}
	want := Default(PresetWAN, src.Env)
	want.Name, want.Domain, want.Listen = "flag", "env", []string{"/ip4/127.0.0.1/tcp/1"}
	want.Ceilings = Ceilings{MilliCPUs: 1500, MemoryBytes: 2 << 30, MFLOPS: 2000}
	want.Kinds = []grid.WorkKind{grid.KindWasm, grid.KindCommand}
	want.Log.Level, want.Jobs.MaxRuntime = "warn", 48*time.Hour
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("LoadAgent (-want +got):\n%s", diff)
	}
}

func TestAllMistakesAtOnce(t *testing.T) {
	t.Parallel()
	_, err := LoadAgent(Sources{
		File: write(t, "naem: x\nceilings:\n  memory: 512\n  memory: 1GiB\nrates: {up: 20Mbps}\n"+
			"zzzzzz: 1\nlease: {length: 1ms, margin: 199ms}\nsandbox: docker\n"),
		Env:   environ("HOME", "/h", "MRS_API_LISTEN", "0.0.0.0:80", "MRS_DATA_KEEP", "5"),
		Flags: map[string]string{"accept": "anyone", "kinds": "command"},
	})
	if err == nil {
		t.Fatal("LoadAgent took it")
	}
	for _, want := range []string{
		"siteagent.yaml:1: naem: no such setting; did you mean name?",
		"siteagent.yaml:3: ceilings.memory: invalid: size \"512\"",
		"siteagent.yaml:4: ceilings.memory: given twice",
		"siteagent.yaml:5: rates.up: invalid: rate \"20Mbps\"",
		"siteagent.yaml:6: zzzzzz: no such setting; remove it",
		"environment, MRS_DATA_KEEP: data.keep: invalid: duration \"5\"",
		"api.listen: want a loopback address",
		"sandbox: want one of auto, bubblewrap, gvisor",
		"kinds: accept: anyone runs WASM only",
		"lease.length: want 100ms to",
		"lease.margin: want 200ms, in which a job is frozen when its lease (lease.length) is over",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not say %q:\n%v", want, err)
		}
	}
}

func TestBrokenFiles(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no yaml": "a: [", "scalar": "hello", "alias": "name: &a x\ndomain: *a\n",
		"nested list": "listen: [[a]]",
	} {
		if _, err := LoadAgent(Sources{File: write(t, text), Env: environ("HOME", "/h")}); err == nil {
			t.Errorf("%s: LoadAgent took it", name)
		}
	}
	if _, err := LoadAgent(Sources{
		File: "/no/such/file", Required: true, Env: environ("HOME", "/h"),
	}); err == nil {
		t.Error("a required file that is missing is no error")
	}
	if _, err := LoadAgent(Sources{File: "/no/such/file", Env: environ("HOME", "/h")}); err != nil {
		t.Errorf("an optional file that is missing: %v", err)
	}
}

func TestSecretsAreHidden(t *testing.T) {
	t.Parallel()
	c, err := LoadSubmit(Sources{Env: environ("HOME", "/h", "MRS_TOKEN", "hush", "MRS_ADDR", "http://127.0.0.1:1")})
	if err != nil || c.Token != "hush" {
		t.Fatalf("LoadSubmit = %v, %v", c, err)
	}
	for _, text := range []string{fmt.Sprint(c), fmt.Sprintf("%+v %#v", c, c.Token)} {
		if strings.Contains(text, "hush") {
			t.Errorf("the token shows in %q", text)
		}
	}
}

func TestKeysRoundTrip(t *testing.T) {
	t.Parallel()
	env := environ("HOME", "/h")
	flags := map[string]string{}
	for _, key := range AgentKeys(env) {
		flags[key.Flag] = key.Default
	}
	got, err := LoadAgent(Sources{Env: env, Flags: flags})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Default(PresetLAN, env), got); diff != "" {
		t.Errorf("defaults written as flags (-want +got):\n%s", diff)
	}
}

func FuzzFile(f *testing.F) {
	f.Add("name: a\nceilings: {memory: 1GiB}\n")
	f.Add("a: &x [1]\nb: *x\n")
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "f.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := LoadAgent(Sources{File: path, Env: environ("HOME", "/h")})
		if err == nil && c.Validate() != nil {
			t.Errorf("an invalid configuration was taken: %v", c.Validate())
		}
	})
}

func TestPlanningKeys(t *testing.T) {
	t.Parallel()
	got, err := LoadAgent(Sources{
		File: write(t, "planning: {policy: edf, backfill: easy, horizon: 6h, promised: 80, submitter: "+
			"25%, ahead: 7d, overestimate: 0.25}\n"),
		Env:   environ("HOME", "/h", "MRS_PLANNING_FAIRSHARE", "true", "MRS_PLANNING_LONGEST", "2h"),
		Flags: map[string]string{"planning-project": "50"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := planning{
		Policy: "edf", Backfill: "easy", Horizon: 6 * time.Hour, Promised: 80, Strangers: 10,
		Submitter: 25, Project: 50,
		Ahead: 7 * 24 * time.Hour, Longest: 2 * time.Hour, Fairshare: true, Overestimate: 0.25,
	}
	if diff := cmp.Diff(want, got.Planning); diff != "" {
		t.Errorf("Planning (-want +got):\n%s", diff)
	}
	_, err = LoadAgent(Sources{
		File: write(t, "planning: {policy: best, backfill: all, horizon: 1s, promised: 0, strangers: "+
			"101, submitter: -1, project: x, ahead: 400d, longest: 0s, overestimate: 0.95}\n"),
		Env: environ("HOME", "/h"),
	})
	if err == nil {
		t.Fatal("LoadAgent took it")
	}
	for _, want := range []string{
		"planning.policy: want one of fcfs, sjf, ljf, edf, lst, have \"best\"",
		"planning.backfill: want one of conservative, easy, none",
		"planning.horizon: want 1m0s to", "planning.promised: want 1 to 100 percent, have 0",
		"planning.strangers: want 0 to 100 percent, have 101",
		"planning.submitter: want a whole number", "planning.project: want a whole number",
		"planning.ahead: want", "planning.longest: want",
		"planning.overestimate: want 0 to 0.9, have 0.95",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not say %q:\n%v", want, err)
		}
	}
}
