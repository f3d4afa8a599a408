package supervise

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Spec is the supervisor's order.
type Spec struct {
	Attempt    grid.AttemptID
	Runner     []string // executable and arguments
	Env        []string // the runner's whole environment, NAME=value
	Stdin      []byte   // the runner's standard input, unless Enclosure says it
	Dir        string   // the runner's working directory
	Stdout     string   // file that takes the runner's standard output
	Stderr     string   // file that takes the runner's standard error
	WatchDir   string   // tree whose size is held below Limits.DiskBytes; empty = the runner does that
	Limits     lrm.Limits
	LeaseUntil lrm.BootTime
	RecordPath string
	// file that takes what the supervisor itself has to say; empty = its standard error
	LogPath string
	Reports bool // the runner tells its end by WriteReport; else its exit status counts

	// Idle gives the runner the processor only when no other process wants it; else it
	// gets a small share.
	Idle bool
	// MeterCPU holds the runner to Limits.MilliCPUs by pauses; else the kernel does.
	MeterCPU bool

	// Tree says that the runner is a sandbox whose processes leave its group. All
	// descendants are then frozen, resumed, counted and killed with it. Linux only.
	Tree bool
	// with Tree: cgroup (v2) of the whole tree, frozen as one; empty = by signals, one by one
	FreezeDir string
	Processes int // with Tree: more of them end the attempt; 0 = the kernel enforces that
	// with Tree: hold the sum of its memory below Limits.MemoryBytes; else the kernel does
	WatchMemory bool
	// with Tree: what a sandbox that is a kernel itself takes besides, in bytes; 0 = it is none
	OwnMemory int64

	// Enclosure names the program that the runner is to become, nil if the runner
	// decides that. Where the system lets the supervisor bound a process before its
	// first step, it starts that program directly, which saves a start of the runner;
	// else the runner gets it, as JSON, on its standard input.
	Enclosure *Enclosure

	// Warm is a sandbox to be used again, in the enclosure's place where that can be; nil: none.
	Warm *Warm

	Farewell *lrm.Farewell // nil = nobody is told when the agent has died
}

// isWatched reports whether somebody has to look at what the runner takes.
func (s *Spec) isWatched() bool { return s.WatchDir != "" || s.Processes > 0 || s.WatchMemory }

// Enclosure is a sandbox's program and what it must be bounded by before it begins.
type Enclosure struct {
	Program    string         // the sandbox's executable
	Args       []string       // of it, up to what it runs
	Command    []string       // the further ones: what it runs, and what bounds that inside
	Gate       *Gate          // what the supervisor runs in Command's place; nil = nothing
	Join       []string       // files that take the process ID of a process that joins a group
	Born       string         // the group among them in which a process can begin; empty = none
	StatusPath string         // file behind StatusFD; empty = none
	Filter     []byte         // behind FilterFD; empty = none
	Rlimits    map[int]uint64 // what the kernel holds each process to, by resource
}

// Warm is an enclosure whose command takes one task after the other, each for an attempt of its
// own: it says that it is there, reads a line from TaskFD, runs what that says, ends all that is
// left of it, and tells the exit code by a line to DoneFD.
type Warm struct {
	Key  string // attempts of the same key may follow each other in one
	Task string // the line for this attempt
	// without its filter, which is the one of the spec's own; nil, as that of the spec: the attempt
	// is for the sandbox that waits
	Enclosure *Enclosure
}

// Gate lets the supervisor bound what a sandbox runs by limits that the sandbox's own making
// must not have: the sandbox is made up to its command, tells InfoFD who will become that,
// as JSON with the field child-pid, and waits at GateFD for a byte.
type Gate struct {
	Command []string       // in place of the enclosure's: nothing has to bound it inside
	Rlimits map[int]uint64 // of the process that waits at the gate, by resource
}

// Descriptors of an enclosure's program.
const (
	StatusFD = 3 // takes what the program reports about itself
	FilterFD = 4 // a filter of system calls, to be read
	GateFD   = 5 // gives a byte when the command may begin; never an end
	InfoFD   = 6 // takes who waits for that
	TaskFD   = 7 // gives the tasks of a warm sandbox
	DoneFD   = 8 // takes how they ended
)

// command is a line from the agent. Besides Attempt exactly one field is set.
type command struct {
	// whom it is for: a supervisor that is kept has the next attempt by the time at which
	// what was meant for the last one comes
	Attempt grid.AttemptID `json:"attempt"`

	Spec    *Spec         `json:"spec,omitempty"` // of the next attempt; once the last one has ended
	Lease   *lrm.BootTime `json:"lease,omitempty"`
	Stop    *string       `json:"stop,omitempty"`
	Suspend *bool         `json:"suspend,omitempty"`
}

// message is a line from the supervisor.
type message struct {
	Event  lrm.EventKind `json:"event,omitempty"`
	At     lrm.BootTime  `json:"at,omitempty"`
	PID    int           `json:"pid,omitempty"`    // at Started: the runner, leader of its group
	Exited *Ending       `json:"exited,omitempty"` // the last message of an attempt
	// with Exited: nothing is left of it, and another one may come
	Again bool `json:"again,omitempty"`
	// with Again: its sandbox is still there, for an attempt of the same key alone
	Kept bool `json:"kept,omitempty"`
}

// Report tells how a runner's program ended.
type Report struct {
	Cause grid.ExitCause `json:"cause"`
	Code  int            `json:"code"`
	Text  string         `json:"text"`
}

// Ending tells how an attempt ended, as its supervisor saw it.
type Ending struct {
	Report
	Wall   time.Duration `json:"wall"`             // frozen time left out
	Broken bool          `json:"broken,omitempty"` // the runner ended without the report it owed
	Told   bool          `json:"told,omitempty"`   // Code is that of a warm sandbox's task
}

// note comes from a runner before its report: that it makes the program ready, and that
// it has.
type note struct {
	Preparing *bool `json:"preparing,omitempty"`
}

const (
	reportFD       = 3        // where a runner writes its report
	maxReportBytes = 16 << 10 // of a report
)

// WriteReport tells the supervisor how the program ended. A runner calls it once
// and then exits.
func WriteReport(r Report) error {
	r.Text = lrm.ExitText(r.Text)
	if err := tellSupervisor(r); err != nil {
		return err
	}
	return reportFile().Close()
}

// WritePreparing tells the supervisor that the runner makes the program ready before it
// begins, or that it has. A runner for which that is quick says nothing.
func WritePreparing(on bool) error { return tellSupervisor(note{Preparing: &on}) }

// reportFile is the one file of the descriptor, which ends with the last that refers to it.
//
//nolint:gochecknoglobals // one for the process
var reportFile = sync.OnceValue(func() *os.File { return os.NewFile(reportFD, "report") })

func tellSupervisor(what any) error {
	if err := json.NewEncoder(reportFile()).Encode(what); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}
