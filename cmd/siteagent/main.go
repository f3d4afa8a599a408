// Command siteagent runs one site of the mesh: it offers what its owner gives,
// runs other people's jobs in sandboxes, and places the jobs that are submitted
// here. See siteagent --help.
//
//	main.go        the program, and its exit codes
//	root.go        the commands and their common flags
//	flags.go       settings as typed flags
//	help.go        siteagent help settings
//	form.go        -o table or json
//	client.go      the running agent asked through its socket
//	init.go        siteagent init
//	run.go         siteagent run: the agent made and run
//	adapters.go    ... an adapter for each kind of work
//	platform.go    ... systems on which a site offers nothing
//	host.go        ... what the machine has
//	reload.go      ... the configuration read again while it runs
//	change.go      ... settings changed from the page
//	config.go      siteagent config
//	config_set.go  ... set and unset
//	join.go        siteagent join
//	await.go       ... waits for a person's decision
//	wishes.go      ... what the owner gives, by flags and answers
//	ask.go         ... questions on a terminal
//	keep.go        ... what it writes
//	reach.go       ... where a new site listens
//	networks.go    ... the networks of this machine
//	service.go     ... the service of the user, and what was made
//	tryout.go      ... whether the new site's offers arrive
//	leave.go       siteagent leave
//	invite.go      siteagent invite
//	invites.go     ... --list, --revoke
//	complete.go    what a shell completes
//	token.go       tokens from standard input and files
//	members.go     siteagent members
//	ban.go         siteagent ban, admit
//	domain.go      siteagent domain: other domains invited, joined, on which terms, left
//	rotate.go      siteagent domain rotate: another key for the domain
//	domains.go     siteagent domains
//	check.go       siteagent check
//	status.go      siteagent status, at a glance
//	status_groups.go ... who stands in for whom: standbys, controllers, gateways
//	status_all.go  ... with --all
//	given.go       siteagent given
//	top.go         siteagent top
//	open.go        siteagent open
//	pause.go       siteagent pause, resume
//	afar.go        status, pause and resume of another site
//	stop.go        siteagent stop
//	adopt.go       siteagent adopt
//	policy.go      siteagent policy
//	audit.go       siteagent audit
//	replay.go      siteagent replay
//	repair.go      siteagent repair
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"syscall"

	"github.com/mrsmesh/mrsmesh/internal/data/intake"
	"github.com/mrsmesh/mrsmesh/internal/lrm/native"
	"github.com/mrsmesh/mrsmesh/internal/lrm/scratch"
	"github.com/mrsmesh/mrsmesh/internal/lrm/supervise"
	"github.com/mrsmesh/mrsmesh/internal/lrm/wasm"
	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/internal/store"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == p2p.ArgTellDeaths {
		os.Exit(p2p.TellDeaths(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == intake.Arg {
		os.Exit(intake.Main(os.Args[2:]))
	}
	if len(os.Args) > 2 && os.Args[1] == native.ArgRun { // it is told what to keep
		os.Exit(native.RunnerMain())
	}
	if len(os.Args) == 3 && os.Args[1] == scratch.Arg {
		os.Exit(scratch.Trial(os.Args[2]))
	}
	if len(os.Args) == 2 { // the agent starts itself again to watch and run jobs
		switch os.Args[1] {
		case supervise.Arg:
			os.Exit(supervise.Main())
		case wasm.ArgRun:
			os.Exit(wasm.RunnerMain())
		case native.ArgRun:
			os.Exit(native.RunnerMain())
		}
	}
	// A reader that has seen enough, as in `siteagent status | head`, is no error.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRoot()
	if err := root.ExecuteContext(ctx); err != nil {
		if !readerGone(err) {
			fmt.Fprintf(os.Stderr, "siteagent: %v\n", plain(err))
		}
		stop()
		os.Exit(exitCode(err))
	}
}

// usageError is a mistake in the command line or the configuration.
type usageError struct{ error }

// Unwrap is the mistake itself.
func (e usageError) Unwrap() error { return e.error }

// exitNoReader is the code of a program that SIGPIPE ended.
const exitNoReader = 141

// exitElsewhere is the code of an agent whose state, or whose site, is on another machine. To
// start it again changes nothing before its owner has decided.
const exitElsewhere = 3

// readerGone reports whether standard output could not be written because nobody reads it.
func readerGone(err error) bool {
	path, is := errors.AsType[*fs.PathError](err)
	return is && path.Path == os.Stdout.Name() && errors.Is(err, syscall.EPIPE)
}

func exitCode(err error) int {
	if readerGone(err) {
		return exitNoReader
	}
	if _, usage := errors.AsType[usageError](err); usage {
		return 2
	}
	if errors.Is(err, store.ErrElsewhere) || errors.Is(err, store.ErrSuperseded) {
		return exitElsewhere
	}
	return 1
}
