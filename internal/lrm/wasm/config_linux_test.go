package wasm

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// The cache keeps what fits, the newest first; of two of one moment the last by name.
func TestWhatTheCacheKeeps(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int64]string{
		600: "a b c/d e", 599: "a c/d e", 500: "a c/d e", 499: "c/d e", 400: "c/d e", 399: "e", 0: "",
	} {
		dir := t.TempDir()
		if err := os.Mkdir(dir+"/c", 0o700); err != nil {
			t.Fatal(err)
		}
		for name, of := range map[string]struct{ bytes, made int64 }{
			"a": {100, 2}, "b": {100, 1}, "c/d": {200, 2}, "e": {200, 3},
		} {
			path, made := filepath.Join(dir, name), time.Unix(of.made, 0)
			if err := os.WriteFile(path, make([]byte, of.bytes), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(path, made, made); err != nil {
				t.Fatal(err)
			}
		}
		if err := pruneCache(dir, limit); err != nil {
			t.Fatal(err)
		}
		var left []string
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
			if !d.IsDir() {
				left = append(left, strings.TrimPrefix(path, dir+"/"))
			}
			return nil
		})
		if got := strings.Join(left, " "); got != want {
			t.Errorf("of at most %d bytes %q are left, want %q", limit, got, want)
		}
	}
}

// The runner gets as many threads as its task has cores, and one more, as far as there are any.
func TestARunnersThreads(t *testing.T) {
	t.Setenv("GOCOVERDIR", "")
	for milli, want := range map[int64]int{
		0: 2, 1: 2, 1000: 2, 1001: 3, 2000: 3, 1 << 40: 1 << 20,
	} {
		env := runnerEnv(grid.Task{Need: grid.Resources{MilliCPUs: milli}})
		want := fmt.Sprint("GOMAXPROCS=", min(want, runtime.NumCPU()+1))
		if !slices.Equal(env, []string{want}) {
			t.Errorf("%d thousandths: %q, want %s", milli, env, want)
		}
	}
	t.Setenv("GOCOVERDIR", "/cover")
	if env := runnerEnv(grid.Task{}); len(env) != 2 || env[1] != "GOCOVERDIR=/cover" {
		t.Errorf("measured: %q", env)
	}
}

// What is wrong with a configuration is named, and its cache is made where it should be.
func TestAConfiguration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good, err := DefaultConfig(dir)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Config{
		Supervisor: []string{self, "__supervise"}, Runner: []string{self, "__run-wasm"},
		CacheDir: dir + "/wasm-cache", RecordPath: dir + "/runs.jsonl",
	}, good); diff != "" {
		t.Error(diff)
	}
	for i, c := range []struct {
		spoil func(*Config)
		want  string
	}{
		{func(*Config) {}, ""},
		{func(c *Config) { c.CacheBytes = 1 }, ""},
		{func(c *Config) { c.Supervisor = nil }, "wasm: supervisor and runner: want commands"},
		{func(c *Config) { c.Runner = nil }, "wasm: supervisor and runner: want commands"},
		{func(c *Config) { c.CacheBytes = -1 }, "wasm: cache bytes: want at least 0"},
		{func(c *Config) { c.CacheDir = "x" }, "wasm: cache dir and record path: want absolute paths"},
		{func(c *Config) { c.RecordPath = "x" }, "wasm: cache dir and record path: want absolute paths"},
	} {
		bad, text := good, ""
		c.spoil(&bad)
		if _, err := New(bad); err != nil {
			text = err.Error()
		}
		if text != c.want {
			t.Errorf("%d: %q, want %q", i, text, c.want)
		}
	}
	if info, err := os.Stat(good.CacheDir); err != nil || info.Mode() != fs.ModeDir|0o700 {
		t.Errorf("the cache is %v, %v", info, err)
	}
}

// A cache is pruned when an adapter is made; without a limit it may take a gibibyte.
func TestTheCacheOfAnAdapter(t *testing.T) {
	t.Parallel()
	good, err := DefaultConfig(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[int64]bool{0: true, 10: true, 9: false} {
		if err = os.MkdirAll(good.CacheDir, 0o700); err != nil {
			t.Fatal(err)
		}
		name := good.CacheDir + "/module"
		if err = os.WriteFile(name, make([]byte, 10), 0o600); err != nil {
			t.Fatal(err)
		}
		good.CacheBytes = limit
		if _, err = New(good); err != nil {
			t.Fatal(err)
		}
		if _, err = os.Stat(name); (err == nil) != want {
			t.Errorf("of a cache of %d bytes: %v", limit, err)
		}
	}
	good.CacheDir = "/dev/null/x"
	if _, err = New(good); err == nil {
		t.Error("a cache below a device")
	}
}

// An adapter says what it can, and starts nothing that it cannot begin.
func TestWhatAnAdapterCan(t *testing.T) {
	t.Parallel()
	good, err := DefaultConfig(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(good)
	if err != nil {
		t.Fatal(err)
	}
	s := a.Probe(t.Context())
	if !slices.Equal(s.Kinds, []grid.WorkKind{grid.KindWasm}) || !s.Freeze || len(s.Walls) != 3 {
		t.Errorf("%+v", s)
	}
	id := grid.AttemptID{Task: grid.TaskID{Job: "mfrggzdfmztwq2lk"}, Token: 1}
	if _, err := a.Start(t.Context(), lrm.Attempt{}); err == nil {
		t.Error("started nothing")
	}
	if _, err := a.Start(t.Context(), lrm.Attempt{
		ID: id, Dir: good.Runner[0], RecordPath: good.RecordPath,
	}); err == nil || !strings.HasPrefix(err.Error(), "prepare sandbox: ") {
		t.Errorf("started in a file: %v", err)
	}
	limits := fmt.Sprint(s.Walls[0].Trial.Limits, s.Walls[1].Trial.Limits, s.Walls[1].Trial.Want)
	if want := fmt.Sprint(
		lrm.Limits{MilliCPUs: 250}, lrm.Limits{MemoryBytes: 16 << 20}, grid.CauseMemory,
	); limits != want {
		t.Errorf("trials have %s, want %s", limits, want)
	}
}
