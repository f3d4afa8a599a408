package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/localmesh"
	"github.com/mrsmesh/mrsmesh/internal/netlab"
)

// plan is the size of a run.
type plan struct {
	agents, jobs int
	story        time.Duration // in which troubles come and jobs are submitted
	pace         time.Duration // from one trouble to the next, on average
	heal         time.Duration // in which all jobs must have ended afterwards
	seed         uint64
	tags         string // build tags of the agents
}

const (
	exitWrong       = 1 // a promise was broken, or the run could not be finished
	exitUnsupported = 3 // this machine cannot play it
)

func main() {
	// Linux ties the agents' lives to the thread that starts them; this one lives as long
	// as the program.
	runtime.LockOSThread()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, localmesh.NewScreen(os.Stdout, os.Getenv("CHAOS_VERBOSE") != ""))
	stop()
	os.Exit(code)
}

func run(ctx context.Context, out *localmesh.Screen) int {
	p, err := planFrom(os.Getenv)
	if err != nil {
		fmt.Fprintf(os.Stderr, "chaos: %v\n", err)
		return exitWrong
	}
	if why := netlab.Supported(ctx); why != "" {
		fmt.Fprintf(os.Stderr, "chaos: not played: %s\n", why)
		return exitUnsupported
	}
	v, err := play(ctx, out, p)
	if err != nil {
		fmt.Fprintf(os.Stderr, "chaos: seed %d: %v\n", p.seed, err)
		return exitWrong
	}
	v.write(out)
	if !v.clean() {
		return exitWrong
	}
	return 0
}

// planFrom reads the environment.
func planFrom(env func(string) string) (plan, error) {
	p := plan{
		agents: 12, jobs: 2000, story: 27 * time.Minute, pace: 3 * time.Second, heal: 3 * time.Minute,
		seed: rand.Uint64N(1_000_000), //nolint:gosec // G404: no secret
	}
	switch size := env("CHAOS"); size {
	case "", "long":
	case "short":
		p.jobs, p.story, p.pace, p.heal = 200, 100*time.Second, 2*time.Second, 2*time.Minute
	default:
		return p, fmt.Errorf("CHAOS=%q: want short or long", size)
	}
	switch fencing := env("CHAOS_FENCING"); fencing {
	case "", "on":
	case "off":
		p.tags = "unsafe_nofencing"
	default:
		return p, fmt.Errorf("CHAOS_FENCING=%q: want on or off", fencing)
	}
	if text := env("CHAOS_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return p, fmt.Errorf("CHAOS_SEED=%q: want a whole number", text)
		}
		p.seed = seed
	}
	return p, nil
}

// play is one run from an empty directory to the verdict.
func play(ctx context.Context, out *localmesh.Screen, p plan) (v verdict, err error) {
	out.Say("chaos: seed %d, %d agents, %d jobs, %s of trouble", p.seed, p.agents, p.jobs, p.story)
	m, err := newMesh(ctx, p.agents, p.tags)
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, m.close(context.WithoutCancel(ctx))) }()
	if err = m.start(ctx, out); err != nil {
		return v, m.Explain(err)
	}
	out.Say("%d agents see each other", p.agents)
	crowd := newCrowd(m, p)
	submitted := make(chan error, 1) // one result
	submitting, stop := context.WithCancel(ctx)
	defer stop()
	go func() { submitted <- crowd.submitAll(submitting) }()
	s := newStory(m, p)
	if err = s.play(ctx, out); err != nil {
		stop() // a story that broke off says nothing, however it goes on
	}
	if err = errors.Join(err, <-submitted); err != nil {
		return v, m.Explain(err)
	}
	out.Say("all is well again; waiting for the jobs")
	v, err = judge{mesh: m, crowd: crowd, story: s}.sit(ctx, out, p.heal)
	if m.keep = err == nil && !v.clean(); m.keep {
		out.Say("the agents' journals and logs stay in %s", m.place.Dir)
	}
	return v, err
}
