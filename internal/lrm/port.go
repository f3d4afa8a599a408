package lrm

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Adapter runs attempts on this machine.
type Adapter interface {
	// Probe reports what the adapter can do here, and why not more.
	Probe(ctx context.Context) Support
	// Start begins an attempt. ctx bounds the starting, not the attempt. An
	// error means that nothing runs and nothing was recorded as started.
	Start(ctx context.Context, a Attempt) (Process, error)
	// Recover waits until nothing that an earlier agent started is left, and
	// ends what does not end by itself. The agent calls it once, before Start.
	Recover(ctx context.Context) error
}

// Verifier is implemented by adapters that know more of their future than Probe says:
// one that hands work on to a scheduler of its own asks that.
type Verifier interface {
	// Verify reports why a task could not run from start to end, nil if it could.
	// Nothing is kept or started.
	Verify(ctx context.Context, task grid.Task, start, end time.Time) error
}

// Process is an attempt that was started.
type Process interface {
	Control
	Watch
}

// Control steers a running attempt. All methods may be called at any time, also
// after the end, when they do nothing.
type Control interface {
	// SetLease moves the end of the lease. A frozen attempt runs on when until
	// lies in the future; a running one freezes when until has passed.
	SetLease(until BootTime) error
	// Suspend freezes the attempt immediately, or ends that. A suspended attempt
	// does not run, whatever its lease says, until Suspend(false).
	Suspend(on bool) error
	// Stop kills the attempt now; why is for people and ends up in Exit.Text.
	Stop(why string) error
}

// Watch observes an attempt.
type Watch interface {
	// Events tells what happens to the attempt until it ends, then the channel
	// is closed. A reader that falls behind loses the oldest events.
	Events() <-chan Event
	// Wait returns how the attempt ended, or ctx's error. It may be called more
	// than once.
	Wait(ctx context.Context) (Result, error)
}

// Meter is implemented by processes that know what they use.
type Meter interface {
	// CPUTime is the processor time that the attempt has used, its supervision
	// included. False means unknown, as after the end.
	CPUTime() (time.Duration, bool)
}

// Vacater is implemented by processes whose sandbox can take another attempt, when they have ended.
type Vacater interface {
	// Vacate tells that nobody needs any more what the attempt left in its WorkDir, which may be
	// gone afterwards. It may be called more than once, and it need not be called.
	Vacate()
}

// EventKind says what happened to a running attempt.
type EventKind uint8

// What happens to a running attempt.
const (
	Started   EventKind = iota + 1 // its program is being run
	Frozen                         // the lease ended or it was suspended; it does not run
	Resumed                        // neither holds any more; it runs on
	Preparing                      // the runner makes the program ready, which takes a while
	Prepared                       // that is done, and the program begins
)

// String is the kind in a word.
func (k EventKind) String() string {
	switch k {
	case Started:
		return "started"
	case Frozen:
		return "frozen"
	case Resumed:
		return "resumed"
	case Preparing:
		return "preparing"
	case Prepared:
		return "prepared"
	default:
		return "unknown"
	}
}

// Event is something that happened to a running attempt.
type Event struct {
	Kind EventKind
	At   BootTime // when
}

// Attempt says what to run and under which limits.
type Attempt struct {
	ID   grid.AttemptID
	Task grid.Task
	// Series names what the attempt has in common with others: after one another they may run in
	// the same sandbox, emptied between them. Empty: it has one for itself.
	Series string
	// the attempt's own directory, made by the caller with mode 0700; the adapter writes nowhere else
	Dir        string
	Inputs     []Bind // what is in the sandbox, read-only
	ModulePath string // host path of the module (wasm)
	// sandbox paths that are kept; their parent directories exist before the start
	OutputPaths []string
	Limits      Limits
	// end of the first lease; when it is over before the program runs the attempt ends with
	// CauseStopped
	LeaseUntil BootTime
	// host path of the state that the program goes on from, moved into its sandbox; empty: none
	StatePath  string
	RecordPath string // the run record, appended to; one file for all attempts of an agent
	// what to do when the agent has died and nothing of the attempt is left; nil = nothing
	Farewell *Farewell
}

// Bind puts a file or directory of the host into the sandbox, read-only.
type Bind struct {
	SandboxPath string // absolute and clean
	HostPath    string // absolute
	Dir         bool   // a directory rather than a file
}

// Limits bound an attempt. A field that is zero takes the value of DefaultLimits,
// except WallTime, where zero means no limit.
type Limits struct {
	MilliCPUs   int64         // thousandths of a core, of the program on average
	MemoryBytes int64         // of the program
	DiskBytes   int64         // of everything it writes
	OutputBytes int64         // of stdout and of stderr, each
	WallTime    time.Duration // from start to end, frozen time left out
}

// defaultLimits are those of an attempt that asks for nothing: one core, 1 GiB of
// memory, 256 MiB of disk, 16 MiB of each output stream.
func defaultLimits() Limits {
	return Limits{MilliCPUs: 1000, MemoryBytes: 1 << 30, DiskBytes: 256 << 20, OutputBytes: 16 << 20}
}

// OrDefault is l with the defaults in place of zeros.
func (l Limits) OrDefault() Limits {
	d := defaultLimits()
	if l.MilliCPUs == 0 {
		l.MilliCPUs = d.MilliCPUs
	}
	if l.MemoryBytes == 0 {
		l.MemoryBytes = d.MemoryBytes
	}
	if l.DiskBytes == 0 {
		l.DiskBytes = d.DiskBytes
	}
	if l.OutputBytes == 0 {
		l.OutputBytes = d.OutputBytes
	}
	return l
}

// ErrAttempt is the cause of an error of Validate.
var ErrAttempt = errors.New("bad attempt")

// Validate reports the first thing that makes an attempt impossible to start.
func (a Attempt) Validate() error {
	if err := a.ID.Validate(); err != nil {
		return errors.Join(ErrAttempt, err)
	}
	if !filepath.IsAbs(a.Dir) || !filepath.IsAbs(a.RecordPath) {
		return errors.Join(ErrAttempt, errors.New("dir and record path: want absolute paths"))
	}
	for _, b := range a.Inputs {
		if len(b.SandboxPath) < 2 || b.SandboxPath[0] != '/' || !filepath.IsAbs(b.HostPath) {
			return errors.Join(ErrAttempt, errors.New("input "+b.SandboxPath+": want absolute paths"))
		}
	}
	l := a.Limits
	if l.MilliCPUs < 0 || l.MemoryBytes < 0 || l.DiskBytes < 0 || l.OutputBytes < 0 || l.WallTime < 0 {
		return errors.Join(ErrAttempt, errors.New("limits: want at least 0"))
	}
	return nil
}

// WorkDir is the host directory of what the attempt writes: the sandbox's root.
func (a Attempt) WorkDir() string { return filepath.Join(a.Dir, workName) }

// workName is the name of what an attempt writes below its directory.
const workName = "work"

// StdoutPath is the host file of the attempt's standard output.
func (a Attempt) StdoutPath() string { return filepath.Join(a.Dir, "stdout") }

// StderrPath is the host file of the attempt's standard error.
func (a Attempt) StderrPath() string { return filepath.Join(a.Dir, "stderr") }

// Support says what an adapter can do on this machine.
type Support struct {
	Kinds  []grid.WorkKind // what it runs; empty when it cannot run at all
	Freeze bool            // whether the end of a lease freezes
	Notes  []string        // for the owner: why not more, and the remedy
	Walls  []Wall          // how each ceiling of an attempt is enforced
	Saves  bool            // whether commands can be saved whole, without their help
	// InMemory tells that what commands write is held in memory, and counts as such.
	InMemory bool
}

// Result says how an attempt ended and where its outputs are. Exit has no CIDs
// and no files; the caller stores the files and fills them in.
type Result struct {
	Exit    grid.Exit
	Outputs []File // those that were written, in the attempt's order
	Stdout  File   // HostPath is empty if nothing was printed
	Stderr  File   // HostPath is empty if nothing was printed
	// CPU is the processor time that it used, its supervision included; 0: unknown.
	CPU time.Duration
}

// File is something an attempt left.
type File struct {
	SandboxPath string // as in Attempt.OutputPaths; empty for the streams
	HostPath    string // where it stands
	Bytes       int64  // its size; of a directory, the sum of its files
	Dir         bool   // a directory rather than a file
}
