// Command quickstart shows the whole mesh at work on one machine, in a minute and
// with nothing but Go installed:
//
//	go run ./examples/quickstart
//
// It builds siteagent, starts five agents as separate processes, and submits one
// job of many tasks to the first of them: a census of the Go standard library's
// own source. Half-way one agent is killed while it works. At the end it shows
// who ran what, compares the results with a local run of the same code, and asks
// the audit whether anything was lost or done twice.
//
// Read run from top to bottom; job.go, kill.go and report.go hold its steps in this
// order, and internal/localmesh how the agents are started and ended.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"

	"github.com/mrsmesh/mrsmesh/internal/localmesh"
)

const (
	defaultTasks = 48
	fewestTasks  = 10 // fewer may be over before there is something to kill
)

const about = `Starts five agents on this machine, lets them take a census of the Go standard
library, kills one of them half-way, and checks that nothing was lost. It exits with
0 only if every result matches a local run.`

func main() {
	var o options
	localmesh.Play(localmesh.Example{
		Name: "quickstart", About: about, More: "every move of a task", Flags: o.define, Run: o.run,
	})
}

// options are the example's own flags.
type options struct{ tasks int }

// define defines the flags.
func (o *options) define(flags *flag.FlagSet) (check func() error) {
	flags.IntVar(&o.tasks, "tasks", defaultTasks, "`number` of packages to count, one task each")
	return func() error {
		if o.tasks < fewestTasks {
			return fmt.Errorf("-tasks %d: want at least %d", o.tasks, fewestTasks)
		}
		return nil
	}
}

// gifts are five owners' ceilings.
func gifts() []localmesh.Gift {
	return []localmesh.Gift{
		{Name: "anna", Cores: 1, GFLOPS: 4, Memory: 1024},
		{Name: "ben", Cores: 2, GFLOPS: 12, Memory: 2048},
		{Name: "cleo", Cores: 1, GFLOPS: 6, Memory: 1024},
		{Name: "dora", Cores: 2, GFLOPS: 8, Memory: 1536},
		{Name: "emil", Cores: 1, GFLOPS: 5, Memory: 768},
	}
}

const domain = "quickstart"

// run is the whole story.
func (o *options) run(
	ctx context.Context, place *localmesh.Place, out *localmesh.Screen,
) (err error) {
	packages, err := findPackages(ctx, o.tasks)
	if err != nil {
		return err
	}
	out.Say("building siteagent and the census program")
	siteagent, err := place.Build(ctx, "siteagent", "cmd/siteagent", nil)
	if err != nil {
		return err
	}
	census, err := place.BuildModule(ctx, "census.wasm", "examples/quickstart/census")
	if err != nil {
		return err
	}

	m := localmesh.New(place, siteagent, domain, gifts(), nil)
	defer func() { err = errors.Join(err, m.Stop(ctx)) }()
	if err = m.Start(ctx, out); err != nil {
		return m.Explain(err)
	}

	j, err := submitCensus(ctx, m.Submitter().API, census, packages)
	if err != nil {
		return m.Explain(err)
	}
	out.Say("submitted job %s: %d tasks, one for each package", j.id, len(packages))
	tasks, victim, err := j.watch(ctx, m, out)
	if err != nil {
		return m.Explain(err)
	}
	showTable(out, m, tasks, victim)

	result, err := j.compare(ctx, tasks, out)
	if err != nil {
		return m.Explain(err)
	}
	if err = m.Stop(ctx); err != nil { // the audit reads what the agents wrote to the end
		return err
	}
	if result.audit, err = auditAll(m, out); err != nil {
		return err
	}
	result.moved = len(movedFrom(tasks, victim.ID))
	return result.verdict(out)
}
