package supervise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// farewellTime limits a farewell's command. One that runs tells of all attempts whose files
// it finds, so that those behind it rarely need one of their own.
const farewellTime = 5 * time.Second

// passed reports whether nothing of the attempt is left.
func (s *supervisor) passed() bool {
	if s.runner == nil {
		return true // it never began
	}
	return awaitGroupGone(s.runner.pid(), drainTimeout) && (!s.spec.Tree || childless())
}

// sayFarewell has the attempt's submitter told that its agent has died and that nothing of
// the attempt is left. Where that is not certain it says nothing.
func (s *supervisor) sayFarewell() {
	f := s.spec.Farewell
	if f == nil || s.commands != nil || !s.passed() {
		return
	}
	if err := farewell(*f, s.spec.Attempt); err != nil {
		fmt.Fprintln(os.Stderr, "supervisor: tell that the attempt is gone:", err)
	}
}

// farewell leaves the attempt's file and runs the command, unless another supervisor's
// command has told it meanwhile.
func farewell(f lrm.Farewell, attempt grid.AttemptID) error {
	name := filepath.Join(f.Dir, strings.ReplaceAll(attempt.String(), "#", "-"))
	// A name that begins with a dot is not yet one of the files.
	whole := filepath.Join(f.Dir, "."+filepath.Base(name))
	if err := os.WriteFile(whole, f.Text, 0o600); err != nil {
		return err
	}
	if err := os.Rename(whole, name); err != nil {
		return err
	}
	unlock, err := lockFile(filepath.Join(f.Dir, ".lock"))
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stat(name); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), farewellTime)
	defer cancel()
	//nolint:gosec // the agent's own binary
	cmd := exec.CommandContext(ctx, f.Command[0], append(slices.Clone(f.Command[1:]), f.Dir)...)
	cmd.Stderr, cmd.Dir, cmd.Env = os.Stderr, nowhere, baseEnv(1)
	return cmd.Run()
}
