package localmesh

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

// Place is the one temporary directory in which everything stands.
type Place struct {
	Dir    string
	prefix string // of its name
}

// errLeftover says that something that was started or written is still there.
var errLeftover = errors.New("clean up")

const longestBase = 60 // a unix socket's path has to stay below 104 bytes

// MakePlace makes a directory whose name begins with the prefix.
func MakePlace(prefix string) (*Place, error) {
	base := os.TempDir()
	if len(base) > longestBase {
		base = "/tmp"
	}
	dir, err := os.MkdirTemp(base, prefix)
	if err != nil {
		return nil, fmt.Errorf("make a temporary directory: %w", err)
	}
	p := &Place{Dir: dir, prefix: prefix}
	for _, sub := range []string{p.goTemp(), p.home(), p.temp()} {
		if err := os.Mkdir(sub, 0o700); err != nil {
			return nil, errors.Join(fmt.Errorf("make a temporary directory: %w", err), p.Remove())
		}
	}
	return p, nil
}

func (p *Place) goTemp() string { return filepath.Join(p.Dir, "go-build") } // of the go command
func (p *Place) home() string   { return filepath.Join(p.Dir, "home") }     // of the agents
func (p *Place) temp() string   { return filepath.Join(p.Dir, "tmp") }      // of the agents

// File is the path of a file in the directory.
func (p *Place) File(name string) string { return filepath.Join(p.Dir, name) }

// environment returns the agents' environment: nothing of the user's settings, so
// that no MRS_ variable and no configuration of a real site reaches them.
func (p *Place) environment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.home(), "TMPDIR=" + p.temp()}
}

// Remove removes the directory, and only one that MakePlace made.
func (p *Place) Remove() error {
	if !filepath.IsAbs(p.Dir) || p.prefix == "" || !strings.HasPrefix(filepath.Base(p.Dir), p.prefix) {
		return fmt.Errorf("%w: %q is not a directory that was made here; remove it yourself",
			errLeftover, p.Dir)
	}
	if err := os.RemoveAll(p.Dir); err != nil {
		return fmt.Errorf("%w: remove the temporary directory: %w", errLeftover, err)
	}
	return nil
}

// Discard deletes what stands at a path in the directory, as the loss of a disk would, and
// nothing anywhere else.
func (p *Place) Discard(path string) error {
	below, err := filepath.Rel(p.Dir, path)
	if err != nil || !filepath.IsLocal(below) || below == "." {
		return fmt.Errorf("%w: %q is not in the directory that was made here", errLeftover, path)
	}
	if err := os.RemoveAll(path); err != nil {
		return fmt.Errorf("%w: %w", errLeftover, err)
	}
	return nil
}

// buildGrace is for the go command to clean up after an interrupt.
const buildGrace = 10 * time.Second

// modulePath is the project's, in front of the packages that Build takes.
const modulePath = "github.com/mrsmesh/mrsmesh"

// Build builds a package of the project into the directory and gives the path of the
// program. env adds variables to the go command's, args stand before the package.
func (p *Place) Build(
	ctx context.Context, name, pkg string, env []string, args ...string,
) (string, error) {
	program := p.File(name)
	args = append(append([]string{"build", "-o", program}, args...), modulePath+"/"+pkg)
	return program, goCommand(ctx, p, env, args...)
}

// BuildModule builds a package as a WASI module, which runs on any machine.
func (p *Place) BuildModule(ctx context.Context, name, pkg string) (string, error) {
	return p.Build(
		ctx, name, pkg, []string{"GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0"}, "-trimpath",
		"-ldflags=-s -w",
	)
}

// goCommand runs the go command in a group of its own and interrupts the whole
// group, compilers included, when the context ends.
func goCommand(ctx context.Context, p *Place, env []string, args ...string) error {
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
