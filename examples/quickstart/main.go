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

// options are the command line's.
type options struct {
	tasks   int
	keep    bool
	verbose bool
}

const (
	defaultTasks = 48
	fewestTasks  = 10 // fewer may be over before there is something to kill
)

const usage = `go run ./examples/quickstart [-tasks N] [-keep] [-v]

Starts five agents on this machine, lets them take a census of the Go standard
library, kills one of them half-way, and checks that nothing was lost. All it
writes stands in one temporary directory, which it removes at the end, also
after ^C. It exits with 0 only if every result matches a local run.

`

func main() {
	var o options
	localmesh.Play("quickstart", func(args []string) (verbose bool, err error) {
		o, err = parseOptions(args)
		return o.verbose, err
	}, func(ctx context.Context, out *localmesh.Screen) error { return run(ctx, o, out) })
}

func parseOptions(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.IntVar(&o.tasks, "tasks", defaultTasks, "`number` of packages to count, one task each")
	flags.BoolVar(
		&o.keep, "keep", false, "keep the directory with the agents' state and logs, and say where it is",
	)
	flags.BoolVar(&o.verbose, "v", false, "say more: where things are, and every move of a task")
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 || o.tasks < fewestTasks {
		return o, fmt.Errorf("want -tasks of at least %d and no other arguments; see -h", fewestTasks)
	}
	return o, nil
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

const (
	placePrefix = "mrs-quickstart-"
	domain      = "quickstart"
)

// run is the whole story.
func run(ctx context.Context, o options, out *localmesh.Screen) (err error) {
	place, err := localmesh.MakePlace(placePrefix)
	if err != nil {
		return err
	}
	if o.keep {
		out.Say("state and logs stay in %s", place.Dir)
	} else {
		out.Detail("working in %s", place.Dir)
		defer func() { err = errors.Join(err, place.Remove()) }()
	}

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
