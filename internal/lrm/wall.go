package lrm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm/scratch"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Wall tells how a ceiling of attempts is enforced on this machine.
type Wall struct {
	Ceiling string // cores, memory or disk
	How     string // for people
	Trial   *Trial // what shows that it holds; nil = that is not tried
}

// Trial is a program that wants more than it may have.
type Trial struct {
	Args   []string
	Module []byte         // of WASM
	Limits Limits         // what it may have
	Want   grid.ExitCause // how it must end, unless it dies of it; 0 = it must be held to its cores
}

const (
	trialLease = time.Minute
	trialRun   = 1200 * time.Millisecond // of a program that wants a processor
	trialRuns  = 5                       // until it counts as not held
	// of a core that may be used beyond the limit: by supervision, and the burst
	trialShare = .1
	trialJob   = grid.JobID("aaaaaaaaaaaaaaaa")
)

// ErrNoWall means that a program took more than it may have.
var ErrNoWall = errors.New("the ceiling does not hold")

// Try lets a program of an adapter run against a wall and reports whether the
// wall holds, and what was seen. It takes a second or two; dir is a directory for
// it alone, which the caller removes.
func Try(ctx context.Context, a Adapter, kind grid.WorkKind, t Trial, dir string) (string, error) {
	id := grid.AttemptID{Task: grid.TaskID{Job: trialJob}, Token: 1}
	at := Attempt{
		ID: id, Task: grid.Task{ID: id.Task, Kind: kind, Args: t.Args},
		Dir:    filepath.Join(dir, "attempt"),
		Limits: t.Limits, LeaseUntil: BootNow().Add(trialLease),
		RecordPath: filepath.Join(dir, "runs.jsonl"),
	}
	if err := os.Mkdir(at.Dir, 0o700); err != nil {
		return "", fmt.Errorf("try a ceiling: %w", err)
	}
	defer func() { _ = scratch.Unmount(at.WorkDir()) }() // who made dir removes the rest
	if len(t.Module) > 0 {
		at.ModulePath = filepath.Join(dir, "module.wasm")
		if err := os.WriteFile(at.ModulePath, t.Module, 0o600); err != nil {
			return "", fmt.Errorf("try a ceiling: %w", err)
		}
	}
	p, err := a.Start(ctx, at)
	if err != nil {
		return "", fmt.Errorf("try a ceiling: %w", err)
	}
	defer func() {
		_ = p.Stop("the trial is over")
		_, _ = p.Wait(context.WithoutCancel(ctx))
	}()
	if t.Want == 0 {
		return tryCores(ctx, p, at.Limits.OrDefault())
	}
	r, err := p.Wait(ctx)
	switch {
	case err != nil:
		return "", fmt.Errorf("try a ceiling: %w", err)
	case r.Exit.Cause != t.Want && !died(r.Exit):
		return "", fmt.Errorf(
			"%w: a program that wanted more ended with %q %s", ErrNoWall, r.Exit.Cause, r.Exit.Text,
		)
	default:
		return "a program that wanted more was stopped", nil
	}
}

// died reports whether a program could not bear to be refused what it wanted.
func died(e grid.Exit) bool {
	const bySignal = 128 // codes above it, where a shell tells them
	return e.Cause == grid.CauseSignal || e.Cause == grid.CauseExited && e.Code > bySignal
}

// tryCores measures what an endless loop gets.
func tryCores(ctx context.Context, p Process, l Limits) (string, error) {
	meter, ok := p.(Meter)
	if !ok {
		return "", errors.New("the adapter does not tell what a program uses")
	}
	for running := false; !running; {
		select {
		case e, open := <-p.Events():
			if !open {
				return "", errors.New("the trial ended immediately")
			}
			running = e.Kind == Started
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	const milli = 1000
	may := float64(l.MilliCPUs) / milli
	var seen string
	before, known := meter.CPUTime()
	began := time.Now()
	for range trialRuns { // on a busy machine a pause may come late, and makes up for it
		select {
		case <-time.After(trialRun):
		case <-ctx.Done():
			return "", ctx.Err()
		}
		after, still := meter.CPUTime()
		if !known || !still {
			return "", errors.New("this system does not tell what a program uses")
		}
		used := (after - before).Seconds() / time.Since(began).Seconds()
		seen = fmt.Sprintf("an endless loop that may use %.2f of a core used %.2f", may, used)
		if used <= 1.5*may+trialShare {
			return seen, nil
		}
	}
	return "", fmt.Errorf("%w: %s", ErrNoWall, seen)
}
