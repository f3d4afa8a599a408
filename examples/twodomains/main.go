// Command twodomains shows two domains that help each other, on one machine and with nothing but Go
// installed:
//
//	go run ./examples/twodomains
//
// It starts two domains of four agents each, links them as two administrators would, and fills the
// first one with more work than it has places for: what finds none runs in the other domain. At the
// end it shows what each domain has given and taken by receipt, asks the audit whether anything was
// lost or done twice, and reads everything that the first domain has kept and shown for names that
// belong to the inside of the other.
//
// Read run from top to bottom; story.go holds its steps in this order, leaks.go what is looked for at
// the end.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"

	"github.com/mrsmesh/mrsmesh/internal/config"
	"github.com/mrsmesh/mrsmesh/internal/localmesh"
)

// options are the command line's.
type options struct{ keep, verbose bool }

const usage = `go run ./examples/twodomains [-keep] [-v]

Starts two domains of four agents on this machine, links them, fills the first, and checks that the
rest ran in the other one, once each, and that neither saw the inside of the other. All it writes
stands in one temporary directory, which it removes at the end, also after ^C.

`

func main() {
	var o options
	localmesh.Play("twodomains", func(args []string) (verbose bool, err error) {
		o, err = parseOptions(args)
		return o.verbose, err
	}, func(ctx context.Context, out *localmesh.Screen) error { return run(ctx, o, out) })
}

func parseOptions(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("twodomains", flag.ContinueOnError)
	flags.BoolVar(
		&o.keep, "keep", false, "keep the directory with the agents' state and logs, and say where it is",
	)
	flags.BoolVar(&o.verbose, "v", false, "show more")
	flags.Usage = func() {
		_, _ = fmt.Fprint(flags.Output(), usage)
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

// gifts are the ceilings of a domain's owners. The first submits, has the domain's key, and runs
// nothing.
func gifts(names [4]string) []localmesh.Gift {
	all := []localmesh.Gift{{Name: names[0], Cores: 1, GFLOPS: 1, Memory: 16}}
	for _, name := range names[1:] {
		all = append(all, localmesh.Gift{Name: name, Cores: 1, GFLOPS: 4, Memory: 256})
	}
	return all
}

// run is the whole story.
func run(ctx context.Context, o options, out *localmesh.Screen) (err error) {
	place, err := localmesh.MakePlace("mrs-twodomains-")
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
	tune := func(c *config.Agent) {}
	s := &story{out: out, place: place}
	s.lab = localmesh.New(place, siteagent, "lab", gifts([4]string{"anna", "ben", "cleo", "dora"}), tune)
	s.campus = localmesh.New(
		place, siteagent, "campus", gifts([4]string{"emil", "finn", "gina", "hugo"}), tune,
	)
	stop := func() error { return errors.Join(s.lab.Stop(ctx), s.campus.Stop(ctx)) }
	defer func() { err = errors.Join(err, stop()) }()
	if err = s.tell(ctx); err != nil {
		return s.campus.Explain(s.lab.Explain(err))
	}
	if err = stop(); err != nil { // the audit reads what the agents wrote to the end
		return err
	}
	return s.verdict()
}
