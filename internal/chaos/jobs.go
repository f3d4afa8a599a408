package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/localmesh"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// crowd are the people who submit. One goroutine submits; the judge reads when it has ended.
type crowd struct {
	mesh     *mesh
	plan     plan
	r        *rand.Rand
	mu       sync.Mutex
	accepted []accepted     // guarded by mu
	refused  map[string]int // guarded by mu; what agents said to submissions that they did not take
}

// accepted is a job that an agent took.
type accepted struct {
	id     grid.JobID
	by     *site
	family string
	job    grid.Job
}

// mayFail reports whether it may end otherwise than done: it has a time that could not be
// kept, or the job that it comes after was not done.
func (a accepted) mayFail() bool {
	return a.job.Spec.Kind == grid.KindReservation || a.job.Spec.Window.Promised() ||
		a.job.Spec.Reservation != "" || len(a.job.After) > 0
}

func newCrowd(m *mesh, p plan) *crowd {
	return &crowd{
		mesh: m, plan: p, r: rand.New(rand.NewPCG(p.seed, 2)), //nolint:gosec // the same story again
		refused: make(map[string]int),
	}
}

const (
	resultPath = "/out/result"
	resultText = "what chaos wants to find again\n"
)

// submitAll submits all jobs, spread over the story.
func (c *crowd) submitAll(ctx context.Context) error {
	begin, last := time.Now(), make(map[*site]accepted)
	for i := range c.plan.jobs {
		at := c.plan.story * time.Duration(i) / time.Duration(c.plan.jobs)
		if err := waitUntil(ctx, begin.Add(at)); err != nil {
			return err
		}
		first, family := c.r.IntN(submitters), families()[c.r.IntN(len(families()))]
		for i := range submitters { // a user whose agent does not take it tries the next
			by := c.mesh.sites[(first+i)%submitters]
			job, run := c.draw(family, last[by])
			if a, took := c.submit(ctx, by, family, job, run); took {
				last[by] = a
				break
			}
		}
	}
	return nil
}

// families are the kinds of jobs.
func families() []string {
	return []string{
		"plain", "array", "unattended", "fixed start", "deadline", "reservation", "split", "flood",
		"after", "saving", "copies",
	}
}

// draw makes a job of a family; earlier is the last one that its agent took.
func (c *crowd) draw(family string, earlier accepted) (grid.Job, time.Duration) {
	run := time.Duration(3+c.r.IntN(30)) * localmesh.SleepTick
	soon := time.Now().Add(5*time.Second + time.Duration(c.r.Int64N(int64(10*time.Second))))
	job := grid.Job{
		Spec: grid.Spec{
			Name: family, Kind: grid.KindWasm, Outputs: []grid.Output{{Path: resultPath, To: "result"}},
			Need: grid.Resources{
				MilliCPUs: 1000, MemoryBytes: 64 << 20, DiskBytes: 1 << 20, MFLOPS: 1000,
			},
			Runtime: run + time.Second, Weights: grid.DefaultWeights(),
		},
		Count: 1, TTL: 300 * time.Millisecond,
	}
	switch family {
	case "array":
		job.Count = 2 + c.r.Uint32N(5)
	case "unattended":
		job.Spec.Unattended = grid.UnattendedFinish
	case "fixed start":
		job.Spec.Window.At = soon
	case "deadline":
		job.Spec.Window.Deadline = soon.Add(2 * run)
	case "reservation":
		job.Spec.Kind, job.Spec.Outputs, job.Spec.Window.At = grid.KindReservation, nil, soon
		job.Spec.Runtime = 3 * time.Second
	case "split":
		modes := []grid.Split{grid.SplitIfNeeded, grid.SplitGreedy, grid.SplitNever}
		job.Count, job.Split = 2, modes[c.r.IntN(len(modes))] // any machine takes two
	case "flood":
		job.Spec.Map, job.Flood = grid.MapSeconds, true
	case "saving":
		job.Spec.Checkpoint.Every = grid.MinSaving
	case "copies":
		job.Redundancy = grid.Redundancy{Replicas: 2, Agreement: 2}
	case "after":
		if earlier.id != "" {
			job.After = []grid.JobID{earlier.id}
		}
	}
	if earlier.job.Spec.Kind == grid.KindReservation && family == "plain" {
		job.Spec.Reservation = earlier.id
	}
	return job, run
}

// submitLimit bounds the time in which a user tries to hand a job over.
const submitLimit = 3 * time.Second

// submit hands a job over. An agent that is dead, stopped or full takes none.
func (c *crowd) submit(
	ctx context.Context, by *site, family string, job grid.Job, run time.Duration,
) (accepted, bool) {
	ctx, cancel := context.WithTimeout(ctx, submitLimit)
	defer cancel()
	if job.Spec.Kind == grid.KindWasm {
		program := localmesh.Program{Sleep: run, File: resultPath, Text: resultText}
		program.Steps = family == "saving"
		ref, err := by.API.PutData(ctx, false, bytes.NewReader(program.Module()))
		if err != nil {
			c.refuse(err)
			return accepted{}, false
		}
		job.Spec.Module = grid.Input{Path: "/module.wasm", CID: ref.CID, Bytes: ref.Bytes}
	}
	id, err := by.API.Submit(ctx, job)
	if err != nil {
		c.refuse(err)
		return accepted{}, false
	}
	a := accepted{id: id, by: by, family: family, job: job}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.accepted = append(c.accepted, a)
	return a, true
}

func (c *crowd) refuse(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	why := err.Error()
	if errors.Is(err, context.DeadlineExceeded) {
		why = "no answer within " + submitLimit.String()
	}
	if errors.Is(err, client.ErrUnreachable) {
		why = "the agent does not answer"
	}
	c.refused[why]++
}

// all are the accepted jobs.
func (c *crowd) all() []accepted {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.accepted)
}

// String names a job for people.
func (a accepted) String() string {
	return fmt.Sprintf("%s job %s of %s", a.family, a.id, a.by.Name)
}
