package grid

import (
	"strconv"
	"strings"
	"time"
)

// Task is one task, expanded: what a sandbox is told to run.
type Task struct {
	ID        TaskID
	Kind      WorkKind
	Module    CID
	Args      []string
	Env       []EnvVar
	Inputs    []Input  // common and own ones, without the module
	Outputs   []Output // paths inside the sandbox
	Need      Resources
	TimeLimit time.Duration // 0 = the site's own limit
	// Checkpoint says when its state is saved.
	Checkpoint Saving `json:",omitzero"`
	// CopyOf is the task whose copy it is, zero if it is the first or only one. All copies get the
	// same random numbers.
	CopyOf TaskID `json:",omitzero"`
	// Signature is that of its job.
	Signature Signature `json:",omitzero"`
	// OfMany tells that its job has more tasks, as far as the site knows.
	OfMany bool `json:",omitzero"`
}

// Original is the task itself, or the first of its copies.
func (t Task) Original() TaskID {
	if t.CopyOf.Job != "" {
		return t.CopyOf
	}
	return t.ID
}

// Expand makes task index of the job: the template with {{index}}, {{item}} and
// {{job}} replaced. The index must be below job.Count.
func (s Spec) Expand(job JobID, index uint32, item Item) Task {
	values := strings.NewReplacer(
		"{{index}}", strconv.FormatUint(uint64(index), 10), "{{item}}", item.Value,
		"{{job}}", string(job),
	)
	fill := func(text string) string {
		if !strings.Contains(text, "{{") {
			return text // most have none, and what replaces is built with its first use
		}
		return values.Replace(text)
	}
	t := Task{
		ID: TaskID{Job: job, Index: index}, Kind: s.Kind, Module: s.Module.CID,
		Need: s.Need, TimeLimit: s.TimeLimit, Checkpoint: s.Checkpoint, Signature: s.Signature,
	}
	for _, a := range s.Args {
		t.Args = append(t.Args, fill(a))
	}
	for _, e := range s.Env {
		t.Env = append(t.Env, EnvVar{Name: e.Name, Value: fill(e.Value)})
	}
	for _, inputs := range [][]Input{s.Inputs, item.Inputs} {
		for _, in := range inputs {
			in.Path = fill(in.Path)
			t.Inputs = append(t.Inputs, in)
		}
	}
	for _, out := range s.Outputs {
		t.Outputs = append(t.Outputs, Output{Path: fill(out.Path), To: fill(out.To)})
	}
	return t
}

// FreezeGrace is the time after the end of its lease in which a job is frozen, at the latest:
// its supervisor looks at the clock so often, and stops it so fast. It is the shortest time that
// a submitter waits beyond a lease. Nothing else of a site is waited for: a site says that an
// attempt has ended only when nothing of it runs any more, also after its agent was restarted,
// and who hears nothing of it waits for the lease's end.
const FreezeGrace = 200 * time.Millisecond

// ExitCause says why an attempt ended.
type ExitCause uint8

// Why an attempt ended.
const (
	CauseExited ExitCause = iota + 1 // the program ended; Code is its own
	// CauseSignal means that the program died of signal number Code, of its own making.
	CauseSignal
	CauseMemory      // it wanted more memory than it asked for
	CauseDisk        // it wrote more than it asked for
	CauseOutput      // it printed more than a site keeps and was stopped
	CauseTimeLimit   // it ran longer than its limit
	CauseBadWork     // what was to be run cannot be run anywhere: no module, no command
	CauseData        // an input could not be fetched, an output not be stored
	CauseSandbox     // the site could not run it
	CauseSiteRestart // the site's agent died and the attempt with it
	CauseStopped     // fenced, cancelled or stopped by the owner
	CauseNoOutput    // it ended with code 0 and has not written an output that it declares
	exitCauses       = CauseNoOutput
)

// Validate reports a cause that this version does not know.
func (c ExitCause) Validate() error {
	if c < CauseExited || c > exitCauses {
		return invalidf("exit cause %d is unknown", c)
	}
	return nil
}

// Final reports whether the end is the job's own doing, so that another site
// would not help. The other causes are the site's, and the task moves on.
func (c ExitCause) Final() bool { return c <= CauseBadWork || c == CauseNoOutput }

// String is the cause in a few words.
func (c ExitCause) String() string {
	names := [...]string{
		"unknown", "exited", "killed by a signal", "out of memory", "out of disk", "too much output",
		"time limit", "cannot be run", "data failed", "sandbox failed", "site restarted", "stopped",
		"declared output not written",
	}
	if int(c) < len(names) {
		return names[c]
	}
	return names[0]
}

// Produced is an output that was stored.
type Produced struct {
	Path  string // as in Output.Path
	CID   CID
	Bytes int64
	Dir   bool
}

// Exit tells how an attempt ended.
type Exit struct {
	Cause   ExitCause
	Code    int           // exit code, or the signal's number
	Text    string        // what a person should know, at most 1 KiB
	Outputs []Produced    // what it left, outputs that were not written are missing
	Stdout  Produced      // standard output; an empty CID if nothing was printed
	Stderr  Produced      // standard error; an empty CID if nothing was printed
	Wall    time.Duration // from start to end, frozen time left out
}

// Validate reports the first field that is out of its range.
func (e Exit) Validate() error {
	if len(e.Text) > 1<<10 {
		return invalidf("exit text: longer than 1 KiB")
	}
	if e.Wall < 0 || len(e.Outputs) > maxArgs {
		return invalidf("exit: negative time or too many outputs")
	}
	for _, out := range e.Outputs {
		if err := firstError(out.CID.Validate(), validatePath("output", out.Path)); err != nil {
			return err
		}
	}
	return e.Cause.Validate()
}

// CIDs lists all data that the attempt left.
func (e Exit) CIDs() []CID {
	var cids []CID
	for _, out := range e.Outputs {
		cids = append(cids, out.CID)
	}
	for _, out := range []Produced{e.Stdout, e.Stderr} {
		if out.CID != "" {
			cids = append(cids, out.CID)
		}
	}
	return cids
}

// Status is the code a shell would give: the program's own, 128 plus the
// signal's number, or 125 when the end was not the program's doing.
func (e Exit) Status() int {
	switch e.Cause {
	case CauseExited:
		return e.Code
	case CauseSignal:
		return 128 + e.Code
	default:
		return 125
	}
}

// Phase tells how far a task is, as its submitter sees it.
type Phase uint8

// The phases of a task. Waiting to Collecting are on the way; a task in one of
// the others has ended and stays there.
const (
	PhaseWaiting    Phase = iota + 1 // no site could take it yet
	PhaseAnnounced                   // offers are being collected
	PhaseAwarded                     // a site was chosen and has not accepted yet
	PhaseStaging                     // the site fetches the inputs
	PhaseRunning                     // the site runs it
	PhaseFrozen                      // its lease ran out and the site froze it
	PhaseCollecting                  // it ended; its outputs are being fetched
	PhaseDone                        // it ended with code 0 and its outputs are here
	PhaseFailed                      // it ended otherwise by its own doing
	PhaseCancelled                   // its submitter called it off
	PhaseRefused                     // no site can ever take it
)

// Ended reports whether the task will not change any more.
func (p Phase) Ended() bool { return p >= PhaseDone }

// String is the phase in one word.
func (p Phase) String() string {
	names := [...]string{
		"unknown", "waiting", "announced", "awarded", "staging", "running", "frozen", "collecting",
		"done", "failed", "cancelled", "refused",
	}
	if int(p) < len(names) {
		return names[p]
	}
	return names[0]
}
