package supervise

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	maxLineBytes = 64 << 20 // of a spec or command
	exitUsage    = 2
)

// Main is the body of the supervisor's process. It returns the exit code.
func Main() int {
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE) // the end of stdin tells
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, maxLineBytes)
	var spec Spec
	if !lines.Scan() {
		if err := lines.Err(); err != nil {
			fmt.Fprintln(os.Stderr, "supervisor: read spec:", err)
			return exitUsage
		}
		return 0 // the agent gave up
	}
	if err := json.Unmarshal(lines.Bytes(), &spec); err != nil || len(spec.Runner) == 0 {
		fmt.Fprintln(os.Stderr, "supervisor: the first line is no spec:", err)
		return exitUsage
	}
	commands := make(chan command)
	go readCommands(lines, commands)
	s := &supervisor{spec: spec, lease: spec.LeaseUntil, meter: newMeter(spec), commands: commands, term: term, out: json.NewEncoder(os.Stdout)}
	s.run()
	return 0
}

// readCommands closes the channel when the agent is gone.
func readCommands(lines *bufio.Scanner, to chan<- command) {
	defer close(to)
	for lines.Scan() {
		var c command
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			fmt.Fprintln(os.Stderr, "supervisor: unknown command:", err)
			continue
		}
		to <- c
	}
}

// run takes the attempt from its record's start to its record's end.
func (s *supervisor) run() {
	recorder, err := lrm.OpenRecorder(s.spec.RecordPath, s.spec.Attempt)
	if err != nil {
		s.tell(message{Exited: &Ending{Report: sandboxFailure(err)}})
		return
	}
	defer recorder.Close()
	s.recorder = recorder
	if lrm.BootNow() >= s.lease {
		s.tell(message{Exited: &Ending{Report: Report{Cause: grid.CauseStopped, Text: "the lease ended before the start"}}})
		return
	}
	// Without the record nothing may run: two attempts could not be told apart.
	if err := recorder.Append(lrm.Record{Event: lrm.RecordStarted, Supervisor: Self()}); err != nil {
		s.tell(message{Exited: &Ending{Report: sandboxFailure(err)}})
		return
	}
	end := s.attempt()
	if err := recorder.Append(lrm.Record{Event: lrm.RecordEnded, Cause: end.Cause.String()}); err != nil {
		fmt.Fprintln(os.Stderr, "supervisor:", err)
	}
	s.tell(message{Exited: &end})
}

func (s *supervisor) attempt() Ending {
	r, err := startRunner(s.spec)
	if err != nil {
		return Ending{Report: sandboxFailure(err)}
	}
	s.runner = r
	s.begin()
	s.tell(message{Event: lrm.Started, At: lrm.BootNow(), PID: r.pid()})
	status := s.watch()
	s.pauseClock()
	return s.judge(status)
}

func sandboxFailure(err error) Report {
	return Report{Cause: grid.CauseSandbox, Text: err.Error()}
}

func (s *supervisor) tell(m message) {
	if err := s.out.Encode(m); err != nil {
		fmt.Fprintln(os.Stderr, "supervisor: tell the agent:", err)
	}
}
