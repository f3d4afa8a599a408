package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// outcome says how the tests took a mutant.
type outcome uint8

const (
	killed    outcome = iota + 1 // a test failed, or did not end
	survived                     // all tests passed
	stillborn                    // it does not compile
)

// laboratory tries mutants in a directory of its own.
type laboratory struct {
	dir  string // absolute
	root string // of the module
}

// try runs the tests of packages on a mutant.
func (l laboratory) try(
	ctx context.Context, m mutant, limit time.Duration, packages ...string,
) (outcome, error) {
	path, err := filepath.Abs(m.file)
	if err != nil {
		return 0, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	changed := filepath.Join(l.dir, "mutant.go")
	overlay := filepath.Join(l.dir, "overlay.json")
	plan, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		return 0, err
	}
	for name, content := range map[string][]byte{changed: m.apply(text), overlay: plan} {
		if err = os.WriteFile(name, content, 0o600); err != nil {
			return 0, err
		}
	}
	build := append([]string{"build", "-overlay=" + overlay, "-o", os.DevNull}, filepath.Dir(path))
	out, err := l.goCommand(ctx, build...)
	if err != nil {
		return stillborn, nonExit(err, out)
	}
	args := append([]string{
		"test", "-overlay=" + overlay, "-count=1", "-vet=off", "-failfast",
		"-timeout=" + limit.String(),
	}, packages...)
	if out, err = l.goCommand(ctx, args...); err != nil {
		return killed, nonExit(err, out)
	}
	return survived, ctx.Err()
}

func (l laboratory) goCommand(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // G204: our own arguments
	cmd.Dir = l.root
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if ctx.Err() != nil {
		return out.Bytes(), ctx.Err()
	}
	return out.Bytes(), err
}

// nonExit lets through errors other than a command's own bad end.
func nonExit(err error, out []byte) error {
	if _, ended := err.(*exec.ExitError); ended { //nolint:errorlint // Run wraps nothing
		return nil
	}
	return fmt.Errorf("%w\n%s", err, out)
}
