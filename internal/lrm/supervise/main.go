package supervise

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

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
	keepFiles()
	commands := make(chan command)
	go readCommands(commands)
	var kept *warm
	defer func() { kept.end() }()
	own := ownIdentity()
	for {
		select {
		case <-term:
			return 0
		case <-kept.died():
			return 0 // what it is kept for
		case c, ok := <-commands:
			if !ok {
				return 0 // the agent gave up, or has no more for it
			}
			if c.Spec == nil {
				continue // it came too late for the attempt before
			}
			if c.Spec.Attempt != c.Attempt {
				fmt.Fprintln(os.Stderr, "supervisor: a spec of another attempt than it is sent for")
				return exitUsage
			}
			if len(c.Spec.Runner) == 0 {
				fmt.Fprintln(os.Stderr, "supervisor: the spec names no runner")
				return exitUsage
			}
			if kept != nil && !kept.fits(*c.Spec) {
				kept.end()
				kept = nil
			}
			var again bool
			if again, kept = superviseOne(*c.Spec, own, kept, commands, term); !again {
				return 0
			}
		}
	}
}

// superviseOne takes an attempt from its start to its end, in the sandbox that was kept for it if
// there is one. It reports whether this process may do so again, and keeps the sandbox if it can.
func superviseOne(
	spec Spec, own lrm.Identity, kept *warm, commands <-chan command, term <-chan os.Signal,
) (again bool, next *warm) {
	s := &supervisor{
		spec: spec, own: own, lease: spec.LeaseUntil, warm: kept,
		commands: commands, term: term, out: json.NewEncoder(os.Stdout),
	}
	settled := settle(spec.LogPath)
	end := s.run()
	if s.commands == nil {
		s.closeRecord() // before others hear of the end
	}
	s.sayFarewell()
	again = settled && !s.told && s.commands != nil
	if !again || s.verdict != nil || s.frozen || !s.heldTill.IsZero() {
		s.warm.destroy() // it may be frozen, or half dead
		s.warm = nil
	}
	again = again && (s.warm != nil || childless()) &&
		logTo(os.DevNull) && os.Chdir(nowhere) == nil
	s.tell(message{Exited: &end, Again: again, Kept: again && s.warm != nil})
	s.closeRecord()
	return again, s.warm
}

// nowhere is a supervisor's working directory between two attempts, so that it keeps no
// attempt's directory from being removed.
const nowhere = string(filepath.Separator)

// settle moves this process's working directory and log to those of its attempt,
// where a search for what an attempt left finds it.
func settle(logPath string) bool {
	return logPath != "" && os.Chdir(filepath.Dir(logPath)) == nil && logTo(logPath)
}

// readCommands closes the channel when the agent is gone.
func readCommands(to chan<- command) {
	defer close(to)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, maxLineBytes)
	for lines.Scan() {
		var c command
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			fmt.Fprintln(os.Stderr, "supervisor: unknown command:", err)
			continue
		}
		to <- c
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(os.Stderr, "supervisor: read commands:", err)
	}
}

// run takes the attempt from its record's start to its record's end.
func (s *supervisor) run() Ending {
	recorder, err := lrm.OpenRecorder(s.spec.RecordPath, s.spec.Attempt)
	if err != nil {
		return Ending{Report: sandboxFailure(err)}
	}
	s.recorder = recorder
	if lrm.BootNow() >= s.lease {
		return Ending{Report: Report{Cause: grid.CauseStopped, Text: "the lease ended before the start"}}
	}
	// Without the record nothing may run: two attempts could not be told apart.
	if s.onDisk, err = recorder.AppendSoon(lrm.Record{
		Event: lrm.RecordStarted, Supervisor: s.own,
	}); err != nil {
		return Ending{Report: sandboxFailure(err)}
	}
	end := s.attempt()
	// The agent hears of the end while that goes to the disk: should the machine die within that
	// moment, the record says no more than that the attempt may have run until then.
	if s.onDisk, err = recorder.AppendSoon(lrm.Record{
		Event: lrm.RecordEnded, Cause: end.Cause.String(),
	}); err != nil {
		fmt.Fprintln(os.Stderr, "supervisor:", err)
	}
	return end
}

// closeRecord closes the record when what was written last is on disk.
func (s *supervisor) closeRecord() {
	if s.recorder == nil {
		return
	}
	if s.onDisk != nil {
		if err := s.onDisk(); err != nil {
			fmt.Fprintln(os.Stderr, "supervisor:", err)
		}
	}
	s.recorder.Close()
	s.recorder, s.onDisk = nil, nil
}

func (s *supervisor) attempt() Ending {
	r, err := startRunner(s.spec, s.warm, s.onDisk)
	if err != nil {
		return Ending{Report: sandboxFailure(err)}
	}
	if s.meter = beganAt(time.Now(), s.spec); s.warm != nil && r.warm == s.warm {
		s.meter = s.warm.meter
	}
	s.runner, s.warm = r, nil
	s.begin()
	s.tell(message{Event: lrm.Started, At: lrm.BootNow(), PID: r.pid()})
	status := s.watch()
	s.pauseClock()
	if status.kept {
		s.warm = r.warm
		s.warm.meter = s.meter
	}
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
