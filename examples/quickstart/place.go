package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// place is the one directory in which everything stands.
type place struct {
	dir string
}

// errLeftover says that something of the quickstart is still there.
var errLeftover = errors.New("clean up")

const (
	placePrefix = "mrs-quickstart-"
	longestBase = 60 // a unix socket's path has to stay below 104 bytes
)

func makePlace() (*place, error) {
	base := os.TempDir()
	if len(base) > longestBase {
		base = "/tmp"
	}
	dir, err := os.MkdirTemp(base, placePrefix)
	if err != nil {
		return nil, fmt.Errorf("make a temporary directory: %w", err)
	}
	p := &place{dir: dir}
	for _, sub := range []string{p.goTemp(), p.home(), p.temp()} {
		if err := os.Mkdir(sub, 0o700); err != nil {
			return nil, errors.Join(fmt.Errorf("make a temporary directory: %w", err), p.remove())
		}
	}
	return p, nil
}

func (p *place) goTemp() string          { return filepath.Join(p.dir, "go-build") } // of the go command
func (p *place) home() string            { return filepath.Join(p.dir, "home") }     // of the agents
func (p *place) temp() string            { return filepath.Join(p.dir, "tmp") }      // of the agents
func (p *place) file(name string) string { return filepath.Join(p.dir, name) }

// environment is what the agents see: nothing of the user's settings, so that
// no MRS_ variable and no configuration of a real site reaches them.
func (p *place) environment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.home(), "TMPDIR=" + p.temp()}
}

// remove only removes what makePlace made.
func (p *place) remove() error {
	if !filepath.IsAbs(p.dir) || !strings.HasPrefix(filepath.Base(p.dir), placePrefix) {
		return fmt.Errorf("%w: %q is not a directory of the quickstart; remove it yourself", errLeftover, p.dir)
	}
	if err := os.RemoveAll(p.dir); err != nil {
		return fmt.Errorf("%w: remove the temporary directory: %w", errLeftover, err)
	}
	return nil
}

// programs are what the quickstart builds.
type programs struct {
	siteagent string // for this machine
	census    string // a WASI module, which runs on any
}

const (
	modulePath = "github.com/mrsmesh/mrsmesh"
	buildGrace = 10 * time.Second // for the go command to clean up after an interrupt
)

func build(ctx context.Context, p *place) (programs, error) {
	built := programs{siteagent: p.file("siteagent"), census: p.file("census.wasm")}
	err := goCommand(ctx, p, nil, "build", "-o", built.siteagent, modulePath+"/cmd/siteagent")
	if err == nil {
		wasi := []string{"GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0"}
		err = goCommand(ctx, p, wasi, "build", "-trimpath", "-ldflags=-s -w", "-o", built.census,
			modulePath+"/examples/quickstart/census")
	}
	return built, err
}

// goCommand runs the go command in a group of its own and interrupts the whole
// group, compilers included, when the context ends.
func goCommand(ctx context.Context, p *place, env []string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // G204: our own arguments
	cmd.Env = append(append(os.Environ(), "GOTMPDIR="+p.goTemp()), env...)
	separate(cmd)
	cmd.Cancel = func() error { return interruptGroup(cmd.Process) }
	cmd.WaitDelay = buildGrace
	output, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, output)
	}
	return nil
}
