// Command deadline shows promises on machines that nobody controls, in a minute and
// with nothing but Go installed:
//
//	go run ./examples/deadline
//
// It builds siteagent and starts four agents as separate processes. The first only
// submits. Ten jobs with one deadline come to the other three, which can run six of
// them in time: six are promised and met, and four are refused immediately, each with the
// earliest time that could be kept. Then best-effort jobs fill all three sites, one
// core is reserved from ten seconds on, and the job that is bound to it starts in its
// second, while the others come and go.
//
// Read run from top to bottom; jobs.go holds what is submitted and table.go what came
// of it.
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
	keep    bool
	verbose bool
}

const usage = `go run ./examples/deadline [-keep] [-v]

Starts four agents on this machine, gives them more jobs with a deadline than they
can run in time, and makes a reservation among jobs that fill them. All it writes
stands in one temporary directory, which it removes at the end, also after ^C. It
exits with 0 only if what was promised was kept and what could not be promised was
refused immediately.

`

func main() {
	var o options
	localmesh.Play("deadline", func(args []string) (verbose bool, err error) {
		o, err = parseOptions(args)
		return o.verbose, err
	}, func(ctx context.Context, out *localmesh.Screen) error { return run(ctx, o, out) })
}

func parseOptions(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("deadline", flag.ContinueOnError)
	flags.BoolVar(
		&o.keep, "keep", false, "keep the directory with the agents' state and logs, and say where it is",
	)
	flags.BoolVar(&o.verbose, "v", false, "say more: where things are, and what each site answered")
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, errors.New("want no arguments; see -h")
	}
	return o, nil
}

const (
	placePrefix = "mrs-deadline-"
	domain      = "deadline"
)

// gifts are four owners' ceilings: one place each, but for the submitter, which has
// no capacity.
func gifts() []localmesh.Gift {
	return []localmesh.Gift{
		{Name: "anna", Cores: 1, GFLOPS: 1, Memory: 16},
		{Name: "ben", Cores: 1, GFLOPS: 2, Memory: 512},
		{Name: "cleo", Cores: 1, GFLOPS: 2, Memory: 512},
		{Name: "dora", Cores: 1, GFLOPS: 2, Memory: 512},
	}
}

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
	out.Say("building siteagent")
	siteagent, err := place.Build(ctx, "siteagent", "cmd/siteagent", nil)
	if err != nil {
		return err
	}

	m := localmesh.New(place, siteagent, domain, gifts(), nil)
	defer func() { err = errors.Join(err, m.Stop(ctx)) }()
	if err = m.Start(ctx, out); err != nil {
		return m.Explain(err)
	}
	s := &story{api: m.Submitter().API, out: out}
	if err = s.deadlines(ctx); err != nil {
		return m.Explain(err)
	}
	if err = s.reservation(ctx); err != nil {
		return m.Explain(err)
	}
	return s.verdict()
}
