package main

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/localmesh"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	openAtATime = 8               // jobs
	stuckAfter  = 2 * time.Minute // without the end of a job
	patience    = time.Minute     // with an agent that does not answer
)

// crowd submits jobs to one agent and counts their ends.
type crowd struct {
	api   *client.Client
	job   grid.Job
	slots chan struct{} // one for each job that is open
	end   context.CancelFunc
	heard chan struct{} // closed when nobody reads events any more
	lost  error         // why; read after heard is closed

	mu  sync.Mutex
	sum counts // guarded by mu
}

// counts say what became of the jobs.
type counts struct {
	refused int // submissions that the agent did not take
	ended   int
	done    int // of these
}

func newCrowd(ctx context.Context, api *client.Client) (*crowd, error) {
	module := localmesh.Program{}.Module()
	ref, err := api.PutData(ctx, false, bytes.NewReader(module))
	if err != nil {
		return nil, fmt.Errorf("store the module: %w", err)
	}
	c := &crowd{
		api: api, slots: make(chan struct{}, openAtATime), heard: make(chan struct{}),
		job: grid.Job{
			Spec: grid.Spec{
				Name: "soak", Kind: grid.KindWasm, Runtime: time.Second, Weights: grid.DefaultWeights(),
				Module: grid.Input{Path: "/module.wasm", CID: ref.CID, Bytes: ref.Bytes},
				Need: grid.Resources{
					MilliCPUs: 100, MemoryBytes: 16 << 20, DiskBytes: 1 << 20, MFLOPS: 100,
				},
			},
			Count: 1, TTL: time.Second,
		},
	}
	listen, end := context.WithCancel(ctx)
	c.end = end
	ready := make(chan struct{})
	go func() {
		defer close(c.heard)
		c.lost = api.Events(listen, view.FromNow, patience, func(e view.Event) error {
			if e.Kind == "now" {
				close(ready)
			}
			c.note(e)
			return nil
		})
	}()
	select {
	case <-ready:
		return c, nil
	case <-c.heard:
		end()
		return nil, fmt.Errorf("listen to the agent: %w", c.lost)
	}
}

// close ends the reading of events.
func (c *crowd) close() {
	c.end()
	<-c.heard
}

// note takes an event.
func (c *crowd) note(e view.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch e.Kind {
	case "task_done":
		c.sum.done++
	case "job_ended":
		c.sum.ended++
		<-c.slots
	}
}

func (c *crowd) tally() counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sum
}

// run submits n jobs, a few open at a time, and waits until all have ended.
func (c *crowd) run(ctx context.Context, n int, progress func(int)) (time.Duration, error) {
	began := time.Now()
	for i := range n {
		if err := c.occupy(ctx); err != nil {
			return 0, err
		}
		progress(i)
		if _, err := c.api.Submit(ctx, c.job); err != nil {
			<-c.slots
			if ctx.Err() != nil {
				return 0, ctx.Err()
			}
			c.mu.Lock()
			c.sum.refused++
			c.mu.Unlock()
		}
	}
	for range cap(c.slots) { // all are free when the last job has ended
		if err := c.occupy(ctx); err != nil {
			return 0, err
		}
	}
	took := time.Since(began)
	for range cap(c.slots) {
		<-c.slots
	}
	return took, nil
}

// occupy waits for a job to end if too many are open.
func (c *crowd) occupy(ctx context.Context) error {
	late := time.NewTimer(stuckAfter)
	defer late.Stop()
	select {
	case c.slots <- struct{}{}:
		return nil
	case <-late.C:
		sum := c.tally()
		return fmt.Errorf("no job has ended for %s: %d have, %d are refused",
			stuckAfter, sum.ended, sum.refused)
	case <-ctx.Done():
		return ctx.Err()
	}
}
