package tes

import (
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// ttl bounds the wait for answers to a task's announcement.
const ttl = time.Second

// job is the task as a job, once its data is stored: the script, and an input for each of the
// task's, in their order. Env, arguments and the streams stand in the script, where nothing is
// replaced in them.
func (w *work) job(script grid.Input, inputs []grid.Input) grid.Job {
	script.Path = scriptPath
	spec := grid.Spec{
		Name: title(w.task), Kind: grid.KindCommand, Args: []string{"/bin/sh", scriptPath},
		Inputs: []grid.Input{script}, Outputs: []grid.Output{leaves(logDir)}, Need: w.amounts.need,
		Runtime: w.amounts.runtime, TimeLimit: w.amounts.limit, Weights: grid.DefaultWeights(),
	}
	for i, in := range inputs {
		in.Path = w.inputs[i]
		if w.isMount(i) {
			in.Path = mountSource(i)
		}
		spec.Inputs = append(spec.Inputs, in)
	}
	seen := map[string]bool{}
	for _, i := range w.mounts {
		spec.Outputs, seen[w.inputs[i]] = append(spec.Outputs, leaves(w.inputs[i])), true
	}
	for i, out := range w.outputs {
		p := out.found(i)
		if !seen[p] {
			spec.Outputs = append(spec.Outputs, leaves(p))
		}
		seen[p] = true
	}
	return grid.Job{Spec: spec, Count: 1, TTL: ttl}
}

// found names the place of the output's files when the task has ended.
func (t target) found(number int) string {
	if t.prefix != "" {
		return matchOf(number)
	}
	return t.path
}

// leaves is an output of a job that is called the same outside.
func leaves(p string) grid.Output {
	return grid.Output{Path: p, To: strings.TrimPrefix(p, "/")}
}
