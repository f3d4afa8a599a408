package localmesh

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

// Example is a program below examples/ that shows meshes of this machine at work.
type Example struct {
	Name  string // its directory's
	About string // what -h says: what is shown, and when it ends with 0
	More  string // what -v says besides where things are
	// Flags defines its own flags; the function that it returns says what is wrong with them.
	// nil: it has none.
	Flags func(*flag.FlagSet) (check func() error)
	Run   func(ctx context.Context, place *Place, out *Screen) error
}

// options are the command line's of each example.
type options struct{ keep, verbose bool }

// Play runs an example until it ends or is interrupted, and then ends the process: 0
// if all was as it should be, 1 if not, 2 for a wrong command line.
// It must be called from main's goroutine before any other is started.
func Play(e Example) {
	// Linux ties the agents' lives to the thread that starts them; this one lives
	// as long as the program.
	runtime.LockOSThread()
	o, err := e.parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", e.Name, err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(
		context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP,
	)
	out := NewScreen(os.Stdout, o.verbose)
	err = e.show(ctx, o, out)
	out.wipe()
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case err != nil && interrupted && !errors.Is(err, errLeftover):
		fmt.Fprintf(os.Stderr, "%s: interrupted; everything it started is ended\n", e.Name)
		os.Exit(1)
	case err != nil:
		fmt.Fprintf(os.Stderr, "%s: %v\n", e.Name, err)
		os.Exit(1)
	}
}

const cleans = "All it writes stands in one temporary directory, which it removes at the end, " +
	"also\nafter ^C."

// parse reads the command line; flag.ErrHelp if help was asked for, and printed.
func (e Example) parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet(e.Name, flag.ContinueOnError)
	check := func() error { return nil }
	if e.Flags != nil {
		check = e.Flags(flags)
	}
	flags.BoolVar(
		&o.keep, "keep", false,
		"keep the directory with the agents' state and logs, and say where it is",
	)
	flags.BoolVar(&o.verbose, "v", false, "say more: where things are, and "+e.More)
	flags.Usage = func() {
		_, _ = fmt.Fprintf(
			flags.Output(), "go run ./examples/%s [flags]\n\n%s\n\n%s\n\n", e.Name, e.About, cleans,
		)
		flags.PrintDefaults()
	}
	switch err := flags.Parse(args); {
	case err != nil:
		return o, err
	case flags.NArg() > 0:
		return o, fmt.Errorf("%q: want flags alone; see -h", flags.Arg(0))
	}
	return o, check()
}

// show runs the example in a directory of its own.
func (e Example) show(ctx context.Context, o options, out *Screen) (err error) {
	place, err := MakePlace("mrs-" + e.Name + "-")
	if err != nil {
		return err
	}
	if o.keep {
		out.Say("state and logs stay in %s", place.Dir)
	} else {
		out.Detail("working in %s", place.Dir)
		defer func() { err = errors.Join(err, place.Remove()) }()
	}
	return e.Run(ctx, place, out)
}
