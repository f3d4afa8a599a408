package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/config"
	"github.com/mrsmesh/mrsmesh/internal/localmesh"
)

const (
	defaultJobs = 100_000
	batch       = 1000 // jobs between two looks
)

func main() {
	// Linux ties the agents' lives to the thread that starts them; this one lives as long
	// as the program.
	runtime.LockOSThread()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, localmesh.NewScreen(os.Stdout, false))
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "soak: %v\n", err)
		os.Exit(1)
	}
}

// jobsWanted reads how many jobs are to be run: whole batches, two at least.
func jobsWanted(env string) (int, error) {
	if env == "" {
		return defaultJobs, nil
	}
	n, err := strconv.Atoi(env)
	if err != nil || n < 2*batch || n%batch != 0 {
		return 0, fmt.Errorf("SOAK_JOBS=%q: want a multiple of %d, at least %d", env, batch, 2*batch)
	}
	return n, nil
}

func run(ctx context.Context, out *localmesh.Screen) (err error) {
	jobs, err := jobsWanted(os.Getenv("SOAK_JOBS"))
	if err != nil {
		return err
	}
	place, err := localmesh.MakePlace("mrs-soak-")
	if err != nil {
		return err
	}
	if os.Getenv("SOAK_KEEP") != "" {
		out.Say("state and logs stay in %s", place.Dir)
	} else {
		defer func() { err = errors.Join(err, place.Remove()) }()
	}
	s := &soak{out: out}
	siteagent, err := place.Build(ctx, "siteagent", "cmd/siteagent", nil, "-ldflags=-s -w")
	if err != nil {
		return err
	}
	if s.submit, err = place.Build(ctx, "submit", "cmd/submit", nil, "-ldflags=-s -w"); err != nil {
		return err
	}
	s.mesh = localmesh.New(place, siteagent, "soak", gifts(), tune)
	defer func() { err = errors.Join(err, s.mesh.Stop(ctx)) }()
	if err = s.mesh.Start(ctx, out); err != nil {
		return s.mesh.Explain(err)
	}
	if err = s.play(ctx, jobs); err != nil {
		return s.mesh.Explain(err)
	}
	return s.judge(jobs)
}

// gifts are five owners' ceilings, with capacity for more jobs than are open at a time: the
// sites do not know that they share one machine.
func gifts() []localmesh.Gift {
	var all []localmesh.Gift
	for _, name := range []string{"anna", "ben", "cleo", "dora", "emil"} {
		all = append(all, localmesh.Gift{Name: name, Cores: 8, GFLOPS: 32, Memory: 4096})
	}
	return all
}

func tune(c *config.Agent) { c.API.Debug = true }

// soak is one run.
type soak struct {
	out    *localmesh.Screen
	mesh   *localmesh.Mesh
	submit string // the program
	looks  []look
	count  counts
	held   int           // jobs that the list has at the end
	again  time.Duration // the start at the end
}

// play runs the jobs, with looks in between.
func (s *soak) play(ctx context.Context, jobs int) error {
	c, err := newCrowd(ctx, s.mesh.Submitter().API)
	if err != nil {
		return err
	}
	defer c.close()
	var took time.Duration
	s.out.Say("%d small jobs, %d open at a time", jobs, openAtATime)
	for done := 0; done < jobs; done += batch {
		took, err = c.run(ctx, batch, func(n int) { s.out.Progress("%d of %d jobs", done+n, jobs) })
		if err != nil {
			return fmt.Errorf("after %d jobs: %w", done, err)
		}
		var l look
		if l, err = s.look(ctx); err != nil {
			return err
		}
		l.rate = batch / took.Seconds()
		s.looks = append(s.looks, l)
		s.out.Say("%d of %d jobs: %s", done+batch, jobs, l)
	}
	s.count = c.tally()
	if s.held, err = s.countHeld(ctx); err != nil {
		return err
	}
	s.again, err = s.restart(ctx)
	return err
}

// restart ends the submitter's agent and takes the time until the next one answers.
func (s *soak) restart(ctx context.Context) (time.Duration, error) {
	a := s.mesh.Submitter()
	if err := a.Process.Signal(os.Interrupt); err != nil {
		return 0, fmt.Errorf("end the submitter's agent: %w", err)
	}
	select {
	case <-a.Exited:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	began := time.Now()
	if err := s.mesh.Launch(ctx, a); err != nil {
		return 0, err
	}
	for {
		if _, err := a.API.Status(ctx); err == nil {
			return time.Since(began), nil
		}
		if !a.Running() || time.Since(began) > time.Minute {
			return 0, errors.New("the submitter's agent does not start again")
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}
