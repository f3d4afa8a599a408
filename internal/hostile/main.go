// Command hostile attacks this project with all that it says it holds against. The attacks are
// the rows of the tables in docs/threats.md and docs/protocol.md; each names the tests that try
// it, on real agents, sandboxes and sockets wherever the row speaks of one. The last line counts:
//
//	hostile: 92 attacks, 92 held, 0 broke through
//
// An attack that a machine does not let one try, because it has no sandbox, is neither: it is
// listed, and counted as not tried.
//
//	go run ./internal/hostile                 all attacks
//	go run ./internal/hostile -short          jobs and local users against this machine
//	go run ./internal/hostile -only sandbox   rows and tests with that word
//	go run ./internal/hostile -as nobody      as an ordinary user; root alone can say so
//	go run ./internal/hostile -as nobody -delegate
//	                                          as one with control groups of its own
//	go run ./internal/hostile -without gate   with a wall removed: the attack must break through
//	go run ./internal/hostile -without all    each wall of testdata/walls.txt removed in turn
//
// An agent bounds commands by control groups where it may make them: as root, or as a user with
// Delegate=yes, be it a service or a scope of systemd --user. Without, it watches them. So there
// are three runs: as root, -as nobody, and -as nobody -delegate.
//
// With -without it fails where an attack is held all the same: then its test watches nothing.
//
//	main.go      the command line, the count
//	attacks.go   the rows of the documents
//	find.go      in which packages the tests are
//	trial.go     test programs: made, run, what they say
//	account*.go  run as another user
//	delegate.go  ... in control groups of that user's
//	trees.go     where such groups can be made, version 1 and 2
//	walls.go     walls removed
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// options are what the command line asks for.
type options struct {
	short         bool
	only, without string
	user          string
	delegate      bool
}

// linger bounds the wait for the standard output of a program that has ended, which processes
// that it left behind may hold open.
const linger = 20 * time.Second

var (
	errBroke = errors.New("an attack broke through")
	errHeld  = errors.New("a wall was removed, and its attack was held all the same")
)

func main() {
	var o options
	flag.BoolVar(&o.short, "short", false, "only jobs and local users against this machine")
	flag.StringVar(&o.only, "only", "", "only attacks whose row or tests have this in them")
	flag.StringVar(&o.without, "without", "", "remove this wall, or all in turn")
	flag.StringVar(&o.user, "as", "", "run the tests as this user; for root alone")
	flag.BoolVar(&o.delegate, "delegate", false, "with control groups of that user's own")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, out io.Writer) error {
	if _, err := os.Stat("go.mod"); err != nil {
		return errors.New("run it where go.mod is")
	}
	attacks, err := readAttacks(documents()...)
	if err != nil {
		return err
	}
	known, err := findTests(".")
	if err != nil {
		return err
	}
	account, err := accountOf(o.user)
	if err != nil {
		return err
	}
	if o.delegate {
		if err = canDelegate(account); err != nil {
			return err
		}
	}
	if account != nil {
		remove, failed := account.makeCaches()
		if failed != nil {
			return failed
		}
		defer remove()
	}
	l := lab{
		known: known, account: account, delegate: o.delegate, linger: linger, out: out,
	}
	if o.without != "" {
		return l.withoutWalls(ctx, o.without)
	}
	attacks = slices.DeleteFunc(attacks, func(a attack) bool { return !o.wants(a) })
	if len(attacks) == 0 {
		return fmt.Errorf("no attack has %q in it", o.only)
	}
	tally, err := l.try(ctx, attacks, nil)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, tally)
	if tally.broke > 0 {
		return errBroke
	}
	return nil
}

// wants reports whether an attack is among those that are asked for.
func (o options) wants(a attack) bool {
	if o.short && !slices.Contains(shortSections(), a.section) {
		return false
	}
	return strings.Contains(a.text+" "+a.section+" "+strings.Join(a.tests, " "), o.only)
}

// count says of how many attacks what came of them.
type count struct{ held, broke, untried int }

func (c count) String() string {
	text := fmt.Sprintf("hostile: %d attacks, %d held, %d broke through",
		c.held+c.broke+c.untried, c.held, c.broke)
	if c.untried > 0 {
		text += fmt.Sprintf(", %d not tried on this machine", c.untried)
	}
	return text
}
