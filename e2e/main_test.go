//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// built holds what all tests share.
type built struct {
	dir       string // of everything, short, because of the sockets in it
	siteagent string
	submit    string
	guest     string // the WebAssembly module
	cache     string // compiled modules of an agent that has run the guest
}

var bin built

func TestMain(m *testing.M) {
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	if dir, entered := enterMounting(); entered {
		bin = builtIn(dir)
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "mrs")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	bin = builtIn(dir)
	if err := bin.build(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func builtIn(dir string) built {
	return built{
		dir: dir, siteagent: filepath.Join(dir, "siteagent"), submit: filepath.Join(dir, "submit"),
		guest: filepath.Join(dir, "guest.wasm"), cache: filepath.Join(dir, "cache"),
	}
}

func (b built) build() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	run := func(env []string, args ...string) error {
		cmd := exec.CommandContext(ctx, "go", append([]string{"build"}, args...)...)
		cmd.Env = append(os.Environ(), env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go build %v: %w: %s", args, err, out)
		}
		return nil
	}
	return errors.Join(
		run(nil, "-o", b.dir+"/", "../cmd/siteagent", "../cmd/submit"),
		run(
			[]string{"GOOS=wasip1", "GOARCH=wasm"}, "-trimpath", "-ldflags=-s -w", "-o", b.guest,
			"./testdata/guest",
		),
	)
}

// copyTree copies files and directories.
func copyTree(from, to string) error {
	return os.CopyFS(to, os.DirFS(from))
}

// eventually waits until the condition holds.
func eventually(t testing.TB, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); <-tick.C {
		if holds() {
			return
		}
	}
	t.Fatalf("not within %s: %s", limit, what)
}

// writeFile writes a file of a test.
func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return string(text)
}
