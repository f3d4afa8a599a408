package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	argKeep      = "keep"   // after ArgRun: the runner keeps a command under gVisor
	keeperMemory = 48 << 20 // bytes that the keeper and runsc's own commands take
	// keptRootless lets runsc restore as an ordinary user, which it refuses when its
	// command line says so.
	keptRootless = "dev.gvisor.flag.rootless"
)

// keepOrder tells a keeper what to do, as a file out of the command's reach.
type keepOrder struct {
	Runsc  string
	Flags  []string
	Tells  bool   // as in gvisor
	Dir    string // the attempt's
	Work   string // the sandbox's root
	Disk   int64  // bytes of all that the command writes, its state among it
	Output int64  // bytes of each stream
}

// keptEnding tells of a command's end, as its keeper saw it.
type keptEnding struct {
	Code   int
	Over   bool   // a stream became too large
	Failed string // why nothing ran, or not to its end
	Ran    bool   // with Failed: it ran, and was to go on after it was saved
	Note   string // what became of its states besides, for people
}

const keepName = "keep.json" // of a keeper's order

func keptPath(dir string) string { return filepath.Join(dir, "kept.json") }

// keeps reports whether the attempt's command is saved without its help.
func (s sandbox) keeps() bool {
	return s.host.sandbox == GVisor && s.host.gvisor.saves && s.attempt.Task.Checkpoint.Whole &&
		lrm.CanSave(s.attempt.Task)
}

// writeKeepOrder tells the keeper.
func (s sandbox) writeKeepOrder() error {
	limits := s.attempt.Limits.OrDefault()
	text, err := json.Marshal(keepOrder{
		Runsc: s.host.gvisor.runsc, Flags: s.host.gvisor.flags,
		Tells: s.host.gvisor.tells, Dir: s.attempt.Dir,
		Work: s.attempt.WorkDir(), Disk: limits.DiskBytes, Output: limits.OutputBytes,
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.attempt.Dir, keepName), text, 0o600)
}

// keepArguments are those of unshare: the keeper, in namespaces that end with it. It finds its
// order in the attempt's directory, where it works.
func (g gvisor) keepArguments() []string {
	args := append(namespaceArguments(), g.runner...)
	return append(args, argKeep)
}

// trySaving saves a command and lets it go on, as attempts do, and says why it cannot.
func (g gvisor) trySaving(ctx context.Context, system []systemPath) error {
	dir, err := os.MkdirTemp("", "mrs-sandbox-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	box := g.trialBox(dir, system)
	err = errors.Join(box.prepare(), box.writeBundle(), box.writeKeepOrder(),
		box.attempt.StateDir().Ask(true))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, trialLimit)
	defer cancel()
	//nolint:gosec // arguments of our own
	cmd := exec.CommandContext(ctx, g.unshare, g.keepArguments()...)
	cmd.Env, cmd.Dir = []string{}, dir
	var said strings.Builder
	cmd.Stderr = &said
	if err = cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	err = awaitState(box.attempt, ended)
	cancel()
	<-ended
	if errors.Is(err, errTrialEnded) {
		k, _ := ending{attempt: box.attempt}.kept()
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(k.Failed+" "+said.String()))
	}
	return err
}

// trialBox encloses a command that only waits, to be saved.
func (g gvisor) trialBox(dir string, system []systemPath) sandbox {
	g.saves = true
	return sandbox{
		host: host{sandbox: GVisor, gvisor: g, system: system}, processes: defaultProcesses,
		attempt: lrm.Attempt{Dir: dir, Task: grid.Task{
			Kind: grid.KindCommand, Args: []string{"/bin/sh", "-c", "while :; do sleep 1; done"},
			Checkpoint: grid.Saving{Whole: true},
		}},
	}
}

var errTrialEnded = errors.New("the trial ended")

// awaitState waits until an attempt's state is there, it says why there is none, or it ends.
func awaitState(a lrm.Attempt, ended <-chan struct{}) error {
	states := a.StateDir()
	look := time.NewTicker(keepLook)
	defer look.Stop()
	for {
		select {
		case <-ended:
			return errTrialEnded
		case <-look.C:
		}
		if states.Look() != nil {
			return nil
		}
		if why := states.Problem(); why != "" {
			return errors.New(why)
		}
	}
}

// kept has what the keeper told of the command's end; false: there was none, or it told nothing.
func (e ending) kept() (k keptEnding, told bool) {
	text, err := os.ReadFile(keptPath(e.attempt.Dir))
	return k, err == nil && json.Unmarshal(text, &k) == nil
}

const keepLook = 50 * time.Millisecond // how often a keeper looks whether a state is wanted
