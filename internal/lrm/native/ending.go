package native

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/scratch"
	"github.com/mrsmesh/mrsmesh/internal/lrm/supervise"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

const (
	signalBase  = 128 // of the code of a command that a signal killed
	lastSignal  = 31
	sigFileSize = 25 // SIGXFSZ: a file would have become too large
)

// ending is all that is known of an attempt's end.
type ending struct {
	attempt lrm.Attempt
	sandbox string
	end     supervise.Ending
	wrong   string // why nothing was run, if so
	starved bool   // the kernel killed for lack of memory
	held    bool   // the kernel bounds its file system
}

// result makes the result of it.
func (e ending) result() lrm.Result {
	report := e.report()
	result := lrm.Result{Stdout: lrm.StreamFile(e.attempt.StdoutPath())}
	if report.Cause != grid.CauseSandbox { // what bubblewrap says names the host's paths
		result.Stderr = lrm.StreamFile(e.attempt.StderrPath())
	}
	result.Exit, result.Outputs = lrm.EndWith(e.attempt, grid.Exit{
		Cause: report.Cause, Code: report.Code, Text: report.Text, Wall: e.end.Wall,
	})
	return result
}

func (e ending) report() supervise.Report {
	own := e.end.Cause == grid.CauseExited || e.end.Cause == grid.CauseSignal
	if !own {
		return e.end.Report
	}
	if e.wrong != "" {
		return supervise.Report{Cause: grid.CauseBadWork, Text: e.wrong}
	}
	k, kept := e.kept()
	if kept && k.Over {
		return supervise.Report{Cause: grid.CauseOutput, Text: "printed more than " +
			grid.FormatBytes(e.attempt.Limits.OrDefault().OutputBytes) + " to one stream"}
	}
	r := e.judge(k)
	if k.Note != "" {
		r.Text = lrm.ExitText(strings.TrimPrefix(r.Text+"; "+k.Note, "; "))
	}
	return r
}

// judge finds what was to blame, for all that a keeper tells, if there was one.
func (e ending) judge(k keptEnding) supervise.Report {
	code, told := e.exitCode()
	switch {
	case told && code == 0:
		return supervise.Report{Cause: grid.CauseExited}
	case told:
		return e.blame(code)
	case e.starved:
		return e.outOfMemory("")
	case k.Ran: // nobody is to blame, and the state before is good: it moves
		return supervise.Report{Cause: grid.CauseStopped, Text: "not to go on here: " + k.Failed}
	default:
		return supervise.Report{
			Cause: grid.CauseSandbox, Text: "the sandbox could not be made or was killed: " + e.firstWords(),
		}
	}
}

// exitCode is the command's exit code, if the sandbox reported one.
func (e ending) exitCode() (int, bool) {
	if e.end.Told {
		return e.end.Code, true
	}
	if e.sandbox == GVisor {
		return e.gvisorCode()
	}
	text, err := os.ReadFile(statusPath(e.attempt))
	if err != nil {
		return 0, false
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		var line struct {
			ExitCode *int `json:"exit-code"`
		}
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.ExitCode != nil {
			return *line.ExitCode, true
		}
	}
	return 0, false
}

// blame finds the limit behind a command's failure: commands that were refused
// memory or disk end in ways of their own.
func (e ending) blame(code int) supervise.Report {
	signal := code - signalBase
	text := ""
	if signal > 0 && signal <= lastSignal {
		text = "killed by signal " + fmt.Sprint(signal) + " (" + syscall.Signal(signal).String() + ")"
	}
	own := fmt.Sprintf("; it ended with code %d", code)
	switch {
	case e.starved || e.says("out of memory", "annot allocate memory", "MemoryError", "bad_alloc"):
		return e.outOfMemory(own)
	case signal == sigFileSize || e.filled() || e.says("ile too large", "ile size limit exceeded"):
		limit := e.attempt.Limits.OrDefault().DiskBytes
		return supervise.Report{
			Cause: grid.CauseDisk, Code: code,
			Text: "wanted more than its " + grid.FormatBytes(limit) + " of disk" + own,
		}
	default:
		return supervise.Report{Cause: grid.CauseExited, Code: code, Text: text}
	}
}

// filled reports whether the command has filled its file system, or had done when it failed.
func (e ending) filled() bool {
	return e.held && (scratch.IsFull(e.attempt.WorkDir()) || e.says("o space left on device"))
}

func (e ending) outOfMemory(own string) supervise.Report {
	limit := e.attempt.Limits.OrDefault().MemoryBytes
	return supervise.Report{
		Cause: grid.CauseMemory,
		Text:  "wanted more than its " + grid.FormatBytes(limit) + " of memory" + own,
	}
}

// says reports whether the command's standard error, which a limit bounds, holds
// some of the words. Who lies there harms only the own job.
func (e ending) says(words ...string) bool {
	text, err := os.ReadFile(e.attempt.StderrPath())
	if err != nil {
		return false
	}
	for _, w := range words {
		if bytes.Contains(text, []byte(w)) {
			return true
		}
	}
	return false
}

// firstWords is the beginning of what bubblewrap said, up to the host's paths.
func (e ending) firstWords() string {
	if k, kept := e.kept(); kept && k.Failed != "" {
		return k.Failed
	}
	text, err := os.ReadFile(e.attempt.StderrPath())
	if err != nil || len(text) == 0 {
		return e.end.Text
	}
	line, _, _ := strings.Cut(string(text), "\n")
	line, _, _ = strings.Cut(line, "/")
	return strings.TrimSpace(line)
}
