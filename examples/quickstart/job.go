package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/localmesh"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// job is the census as the mesh runs it.
type job struct {
	id       grid.JobID
	api      *client.Client // of the agent that it was submitted to
	packages []sourcePackage
}

const (
	resultPath = "/out/census.json"
	// a site counts twice and compares: parsing once is over too soon to watch
	countRounds = "2"
	jobLimit    = 4 * time.Minute // for all tasks
	killAfter   = 4               // one agent is killed when a quarter of the tasks are done
)

// submitCensus stores the program and all packages at the agent and submits one
// job with a task for each package.
func submitCensus(
	ctx context.Context, api *client.Client, program string, packages []sourcePackage,
) (*job, error) {
	module, err := os.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("read program: %w", err)
	}
	ref, err := api.PutData(ctx, false, bytes.NewReader(module))
	if err != nil {
		return nil, fmt.Errorf("upload program: %w", err)
	}
	census := grid.Job{
		Spec: grid.Spec{
			Name: "census", Kind: grid.KindWasm, Module: grid.Input{CID: ref.CID, Bytes: ref.Bytes},
			Args:    []string{"-rounds", countRounds, "{{item}}"},
			Outputs: []grid.Output{{Path: resultPath, To: "{{item}}.json"}},
			Need: grid.Resources{
				MilliCPUs: 1000, MemoryBytes: 512 << 20, DiskBytes: 16 << 20, MFLOPS: 2000,
			},
			Runtime: 5 * time.Second, Weights: grid.DefaultWeights(),
		},
		Count: uint32(len(packages)), TTL: 500 * time.Millisecond,
	}
	for _, p := range packages {
		var item grid.Item
		if item, err = upload(ctx, api, p); err != nil {
			return nil, err
		}
		census.Items = append(census.Items, item)
	}
	id, err := api.Submit(ctx, census)
	if err != nil {
		return nil, fmt.Errorf("submit: %w", err)
	}
	return &job{id: id, api: api, packages: packages}, nil
}

func upload(ctx context.Context, api *client.Client, p sourcePackage) (grid.Item, error) {
	archive, err := p.pack()
	if err != nil {
		return grid.Item{}, err
	}
	ref, err := api.PutData(ctx, true, archive)
	if err != nil {
		return grid.Item{}, fmt.Errorf("upload package %s: %w", p.name, err)
	}
	in := grid.Input{Path: "/in", CID: ref.CID, Bytes: ref.Bytes, Dir: true}
	return grid.Item{Value: p.name, Inputs: []grid.Input{in}}, nil
}

// watch shows the job's progress until all tasks have ended, and kills an agent
// on the way.
func (j *job) watch(
	ctx context.Context, m *localmesh.Mesh, out *localmesh.Screen,
) (tasks []view.TaskView, victim *localmesh.Agent, err error) {
	ctx, cancel := context.WithTimeoutCause(
		ctx, jobLimit, fmt.Errorf("the job did not end within %s", jobLimit),
	)
	defer cancel()
	for {
		if tasks, err = j.api.AllTasks(ctx, j.id); err != nil {
			return nil, nil, fmt.Errorf("ask for the tasks: %w", errors.Join(context.Cause(ctx), err))
		}
		out.Progress("%s", progress(tasks))
		if err = m.Lost(victim); err != nil {
			return nil, nil, err
		}
		switch done := phaseCounts(tasks)[view.PhaseDone]; {
		case allEnded(tasks) && victim == nil:
			return nil, nil, errors.New(
				"the job ended before any agent but the submitter's held a started task; nobody was killed",
			)
		case allEnded(tasks):
			return tasks, victim, nil
		case victim == nil && done*killAfter >= len(tasks):
			if victim, err = j.killOne(ctx, m, out, tasks); err != nil {
				return nil, nil, err
			}
		}
		if err = localmesh.Pause(ctx); err != nil {
			return nil, nil, fmt.Errorf("%w; %s", err, progress(tasks))
		}
	}
}

func allEnded(tasks []view.TaskView) bool {
	for _, t := range tasks {
		if !t.Phase.Ended() {
			return false
		}
	}
	return true
}

func phaseCounts(tasks []view.TaskView) map[view.Phase]int {
	phases := make(map[view.Phase]int)
	for _, t := range tasks {
		phases[t.Phase]++
	}
	return phases
}

// progress is one line: "12 of 48 tasks done, 5 running, 31 waiting".
func progress(tasks []view.TaskView) string {
	phases := phaseCounts(tasks)
	parts := []string{fmt.Sprintf("%d of %d tasks done", phases[view.PhaseDone], len(tasks))}
	for _, phase := range view.Phases() {
		if phase != view.PhaseDone && phases[phase] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", phases[phase], phase))
		}
	}
	return strings.Join(parts, ", ")
}
