package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/mrsmesh/mrsmesh/examples/failover/sieve/primes"
	"github.com/mrsmesh/mrsmesh/internal/localmesh"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// story lets happen what happens to the job and to the machines.
type story struct {
	mesh   *localmesh.Mesh
	place  *localmesh.Place
	out    *localmesh.Screen
	owner  *localmesh.Agent // the submitter
	job    grid.JobID
	result result
}

const (
	below      = 600_000_000 // the primes below are counted: a second or two of one core
	rest       = "50ms"      // the program's after each of 287 segments
	resultPath = "/out/primes.json"
	beganPath  = "/out/began"
	keyFile    = "identity.key"

	killFrom   = 20 // percent: the agent that runs the job is killed when so much is saved
	joinLimit  = 30 * time.Second
	actLimit   = 30 * time.Second
	backLimit  = 60 * time.Second
	jobLimit   = 4 * time.Minute
	saveEvery  = time.Second
	memoryNeed = 256 << 20
)

// tell lets it happen.
func (s *story) tell(ctx context.Context, module string) error {
	if err := s.awaitStandbys(ctx); err != nil {
		return err
	}
	if err := s.submit(ctx, module); err != nil {
		return err
	}
	local, stop := countHere(ctx)
	defer stop()
	for _, part := range []func(context.Context) error{
		s.killExecuting, s.killSubmitter, s.awaitEnd, s.comeBack, s.fetch,
	} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	s.out.Progress("counting the same primes here, to compare")
	select {
	case want := <-local:
		s.result.matches = bytes.Equal(want, s.result.text)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// countHere counts the same primes in this process, while the mesh does.
func countHere(ctx context.Context) (counted <-chan []byte, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	text := make(chan []byte, 1) // one result
	done := make(chan struct{})
	go func() {
		defer close(done)
		sieve, err := primes.New(below)
		if err != nil {
			panic(err) // the number is a constant
		}
		for !sieve.Done() && ctx.Err() == nil {
			sieve.Step()
		}
		text <- sieve.JSON()
	}()
	return text, func() { cancel(); <-done }
}

// group returns the submitter's group as an agent sees it; zero: it has no part in it.
func (s *story) group(ctx context.Context, at *localmesh.Agent) view.Group {
	if !at.Running() {
		return view.Group{}
	}
	status, err := at.API.Status(ctx)
	if err != nil {
		return view.Group{} // it is asked again
	}
	for _, g := range status.Standbys {
		if g.Owner == s.owner.ID {
			return g
		}
	}
	return view.Group{}
}

// whole reports whether the submitter acts for itself and both standbys are with it.
func (s *story) whole(ctx context.Context) (bool, error) {
	g := s.group(ctx, s.owner)
	away := slices.ContainsFunc(g.Members, func(m view.GroupMember) bool { return m.Away })
	return g.Here && len(g.Members) == standbys+1 && !g.Changing && !away, nil
}

func (s *story) awaitStandbys(ctx context.Context) error {
	s.out.Progress("%s asks for standbys", s.owner.Name)
	err := localmesh.Await(ctx, joinLimit, s.owner.Name+" to have two standbys", s.whole)
	if err != nil {
		return err
	}
	s.out.Say("7 agents see each other; ben and cleo stand by for %s", s.owner.Name)
	return nil
}

func (s *story) submit(ctx context.Context, program string) error {
	module, err := os.ReadFile(program)
	if err != nil {
		return fmt.Errorf("read program: %w", err)
	}
	ref, err := s.owner.API.PutData(ctx, false, bytes.NewReader(module))
	if err != nil {
		return fmt.Errorf("upload program: %w", err)
	}
	job := grid.Job{
		Spec: grid.Spec{
			Name: "sieve", Kind: grid.KindWasm, Module: grid.Input{CID: ref.CID, Bytes: ref.Bytes},
			Args: []string{strconv.Itoa(below), rest},
			Outputs: []grid.Output{
				{Path: resultPath, To: "primes.json"}, {Path: beganPath, To: "began"},
			},
			Need: grid.Resources{
				MilliCPUs: 1000, MemoryBytes: memoryNeed, DiskBytes: 16 << 20, MFLOPS: 2000,
			},
			Runtime: 30 * time.Second, Weights: grid.DefaultWeights(),
			Checkpoint: grid.Saving{Every: saveEvery},
		},
		Count: 1, TTL: 500 * time.Millisecond,
	}
	if s.job, err = s.owner.API.Submit(ctx, job); err != nil {
		return fmt.Errorf("submit: %w", err)
	}
	s.out.Say("submitted job %s: the primes below %d, saved every second", s.job, below)
	return nil
}

// task is the job's one task, as the submitter's agent sees it.
func (s *story) task(ctx context.Context) (view.TaskView, error) {
	tasks, err := s.owner.API.AllTasks(ctx, s.job)
	if err != nil || len(tasks) != 1 {
		return view.TaskView{}, fmt.Errorf("ask for the task: %d of them, %w", len(tasks), err)
	}
	if t := tasks[0]; t.Phase.Ended() && t.Phase != view.PhaseDone {
		return t, fmt.Errorf("the task is %s: %s %s", t.Phase, t.Cause, t.Text)
	}
	return tasks[0], nil
}

// awaitSaved waits until the job runs with a checkpoint that the condition takes.
func (s *story) awaitSaved(
	ctx context.Context, what string, take func(view.TaskView) bool,
) (t view.TaskView, err error) {
	err = localmesh.Await(ctx, jobLimit, what, func(ctx context.Context) (bool, error) {
		now, wrong := s.task(ctx)
		if wrong != nil {
			return false, wrong
		}
		t = now
		if t.Phase == view.PhaseDone {
			return false, errors.New("the job ended before there was anything to lose")
		}
		if t.Saved != nil {
			s.out.Progress("%s on %s, saved %d %%", t.Phase, t.SiteName, t.Saved.Percent)
		}
		return t.Phase == view.PhaseRunning && t.Saved != nil && take(t), nil
	})
	return t, err
}

// killExecuting kills the agent that runs the job, and waits until the job has gone on elsewhere
// and saved its state there.
func (s *story) killExecuting(ctx context.Context) error {
	t, err := s.awaitSaved(ctx, "the job to save its state", func(t view.TaskView) bool {
		return t.Saved.Percent >= killFrom
	})
	if err != nil {
		return err
	}
	victim := s.agent(t.Site)
	if victim == nil || victim == s.owner {
		return fmt.Errorf("the job runs on %s, which is no machine to be killed", t.SiteName)
	}
	began := time.Now()
	if err = s.kill(victim); err != nil {
		return err
	}
	s.out.Say("killed %s (SIGKILL), which ran the job; saved: %d %%", victim.Name, t.Saved.Percent)
	next, err := s.awaitSaved(ctx, "the job to go on elsewhere", func(next view.TaskView) bool {
		return next.Site != victim.ID && next.Saved.Site == next.Site
	})
	if err != nil {
		return err
	}
	s.out.Say("%s has gone on with it and saved %d %%, %s after the kill",
		next.SiteName, next.Saved.Percent, time.Since(began).Round(100*time.Millisecond))
	return nil
}

func (s *story) agent(id grid.SiteID) *localmesh.Agent {
	for _, a := range s.mesh.Agents {
		if a.ID == id {
			return a
		}
	}
	return nil
}

func (s *story) kill(a *localmesh.Agent) error {
	if err := a.Process.Kill(); err != nil {
		return fmt.Errorf("kill %s: %w", a.Name, err)
	}
	<-a.Exited
	s.result.lost++
	return nil
}

// killSubmitter kills the submitter's agent and deletes its state, but for a copy of its key that
// its owner has elsewhere, and waits until a standby acts.
func (s *story) killSubmitter(ctx context.Context) error {
	if err := s.copyKey(s.owner.Config.StateDir, s.place.Dir); err != nil {
		return err
	}
	began := time.Now()
	if err := s.kill(s.owner); err != nil {
		return err
	}
	if err := s.place.Discard(s.owner.Config.StateDir); err != nil {
		return err
	}
	s.out.Say("killed %s (SIGKILL), which has submitted the job, and deleted its state",
		s.owner.Name)
	acting := ""
	err := localmesh.Await(ctx, actLimit, "a standby to act",
		func(ctx context.Context) (bool, error) {
			for _, a := range s.mesh.Agents {
				if a != s.owner && s.group(ctx, a).Here {
					acting = a.Name
				}
			}
			return acting != "", nil
		})
	if err != nil {
		return err
	}
	s.out.Say("%s acts for %s, %s after the kill", acting, s.owner.Name,
		time.Since(began).Round(100*time.Millisecond))
	return nil
}

func (s *story) copyKey(from, to string) error {
	key, err := os.ReadFile(filepath.Join(from, keyFile))
	if err == nil {
		err = os.WriteFile( //nolint:gosec // G703: both are below a directory made here
			filepath.Join(to, keyFile), key, 0o600,
		)
	}
	if err != nil {
		return fmt.Errorf("copy the key: %w", err)
	}
	return nil
}

// awaitEnd waits until the job has ended, while its submitter is away.
func (s *story) awaitEnd(ctx context.Context) error {
	return localmesh.Await(ctx, jobLimit, "the job to end",
		func(ctx context.Context) (bool, error) {
			s.out.Progress("the job runs on without %s", s.owner.Name)
			for _, a := range s.mesh.Agents {
				if g := s.group(ctx, a); a != s.owner && g.Here && g.Jobs > 0 && g.Open == 0 {
					s.out.Say("the job has ended, and %s has its result", a.Name)
					return true, nil
				}
			}
			return false, nil
		})
}

// comeBack starts the submitter's agent on a new state directory with nothing but the key in it.
func (s *story) comeBack(ctx context.Context) error {
	s.owner.Config.StateDir = s.place.File(s.owner.Name + "-new")
	if err := os.Mkdir(s.owner.Config.StateDir, 0o700); err != nil {
		return fmt.Errorf("make a new state directory: %w", err)
	}
	if err := s.copyKey(s.place.Dir, s.owner.Config.StateDir); err != nil {
		return err
	}
	status, err := s.mesh.Agents[1].API.Status(ctx)
	if err != nil {
		return fmt.Errorf("ask for an address: %w", err)
	}
	s.owner.Config.Bootstrap = status.Addresses
	if err = s.mesh.Launch(ctx, s.owner); err != nil {
		return err
	}
	if err = s.owner.AwaitReady(ctx); err != nil {
		return err
	}
	s.out.Progress("%s is back with its key", s.owner.Name)
	err = localmesh.Await(ctx, backLimit, s.owner.Name+" to have its jobs again", s.whole)
	if err != nil {
		return err
	}
	s.out.Say("%s is back on a new disk, with its key file alone, and acts for itself",
		s.owner.Name)
	return nil
}
