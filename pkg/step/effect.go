package step

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// Effect is an action that a machine wants done.
type Effect interface{ effect() }

// Broadcast publishes a message to the domain. It reaches this site's own
// machine, too.
type Broadcast struct {
	Message protocol.Message
}

// Send sends a message to one site, which may be this one. It may be lost.
type Send struct {
	To      grid.SiteID
	Message protocol.Message
	// Key is that of an encrypted job that an Award gives tasks of. The driver encrypts it for To
	// alone and sends it with the award.
	Key grid.JobKey `json:",omitempty"`
}

// SetTimer asks for TimerFired at a time; a time in the past fires immediately.
type SetTimer struct {
	Key TimerKey
	At  time.Time
}

// StopTimer forgets a timer; an unknown key is no error.
type StopTimer struct {
	Key TimerKey
}

// Fact is one row of the table of what must outlive a crash. Kind carries the
// version of Value's format, as in "attempt/1".
type Fact struct {
	Kind  string
	Key   string
	Value []byte // JSON; nil removes the row
}

// Persist writes a fact.
type Persist struct {
	Fact Fact
}

// Stage brings everything a task needs to this site. Answered by Staged.
type Stage struct {
	Attempt grid.AttemptID
	Module  grid.Input   // wasm: the module; its CID is empty otherwise
	Inputs  []grid.Input // what else
	From    grid.SiteID  // the site that surely holds it
	// Saved are checkpoints, the latest first: the first that is whole is laid out for the program.
	Saved []grid.Checkpoint `json:",omitempty"`
	Work  string            `json:",omitempty"` // with Saved: the task's grid.Task.WorkDigest
	// Key is that of an encrypted job, as the award has brought it: for this site alone. All that
	// the attempt leaves here is encrypted with it.
	Key []byte `json:",omitempty"`
}

// StartAttempt runs a staged task in a sandbox under a lease: at LeaseUntil the
// supervisor freezes it unless ExtendLease came. Answered by AttemptStarted or
// AttemptExited.
type StartAttempt struct {
	Attempt    grid.AttemptID
	Task       grid.Task
	LeaseUntil time.Time // on the driver's clock (now)
	// Vouched: the owner runs signed work only. Before anything starts the driver compares what
	// lies there, byte for byte, with what Task.Signature is about.
	Vouched bool `json:",omitempty"`
}

// Verify asks whether the sandbox could keep a plan for an attempt that was promised a
// place: OpenCCS' Machine Manager checks what its Planning Manager made. Nothing is
// started or kept by it. Answered by Verified.
type Verify struct {
	Attempt grid.AttemptID
	Task    grid.Task
	Start   time.Time // of its place in the plan
	End     time.Time
}

// ExtendLease moves the end of an attempt's lease and thaws it when it is
// frozen.
type ExtendLease struct {
	Attempt    grid.AttemptID
	LeaseUntil time.Time
}

// SuspendAttempt immediately freezes an attempt that was started, whatever its lease
// says; nothing but ContinueAttempt lets it run on. Answered by AttemptFrozen,
// unless it is frozen already.
type SuspendAttempt struct {
	Attempt grid.AttemptID
}

// ContinueAttempt ends SuspendAttempt. Answered by AttemptResumed if the lease
// has not ended meanwhile.
type ContinueAttempt struct {
	Attempt grid.AttemptID
}

// StopAttempt ends staging or running immediately. Answered by AttemptExited
// (CauseStopped) if the attempt had not ended by itself.
type StopAttempt struct {
	Attempt grid.AttemptID
}

// Discard removes all that an ended attempt left on this site, its outputs'
// pins included.
type Discard struct {
	Attempt grid.AttemptID
	Outputs []grid.CID
}

// Save takes a checkpoint of a running attempt, as soon as its program has saved a state that was
// not taken before. The program is asked for one if there is none. Answered by Saved.
type Save struct {
	Attempt grid.AttemptID
	Number  uint64 // that it gets
}

// Pull brings a checkpoint to this site, checks it and keeps it. Answered by Pulled.
type Pull struct {
	Attempt    grid.AttemptID
	Checkpoint grid.Checkpoint
	Work       string // the task's grid.Task.WorkDigest
	From       grid.SiteID
	Key        grid.JobKey `json:",omitempty"` // that opens it, of an encrypted job
}

// LetGo keeps data no longer for an attempt, or, if the token is 0, for its job's submission.
type LetGo struct {
	Attempt grid.AttemptID
	CIDs    []grid.CID
}

// Collect brings the outputs of an ended attempt to this site and keeps them.
// Answered by Collected.
type Collect struct {
	Attempt   grid.AttemptID
	Outputs   []grid.CID
	From      grid.SiteID
	MostBytes int64       // of all outputs together; what is more is not fetched
	Key       grid.JobKey `json:",omitempty"` // that has to open them, of an encrypted job
}

// Archive gives ended jobs to the history on disk, under their IDs: giving one again changes
// nothing. Answered by Archived when it holds them all, durably; until then the machine does.
type Archive struct {
	Jobs []ArchivedJob
}

// ArchivedJob is an ended job as the history keeps it.
type ArchivedJob struct {
	Job       grid.JobID
	Submitted time.Time
	Ended     time.Time
	Outputs   []grid.CID // what its tasks have left, logs included
	Key       string     // as in Submit
	Record    []byte     // all that is known of it, for its machine to read
}

// Hold keeps data of a submission on this site, or, with Release, no longer.
type Hold struct {
	Job     grid.JobID
	CIDs    []grid.CID
	Release bool
}

// Level says how much a Report matters to a person.
type Level uint8

// The levels.
const (
	LevelDebug Level = iota // for tracing decisions
	LevelInfo               // a job's or the site's life
	LevelWarn               // something was refused or lost
)

// Report tells the outside what happened: it is counted by Event, logged at
// Level and shown to users. It never changes what a machine does.
type Report struct {
	Event   string // stable snake_case name, "offer_made"
	Level   Level
	Attempt grid.AttemptID // job, task and token as far as they apply
	Site    grid.SiteID    // the other site, if any
	Reason  grid.Reason
	Value   float64 // a distance, a count, seconds; the event says which
	Text    string  // for people
}

// Reply answers Submit, Probe, CancelJob, HoldJob, MoveTasks or ForgetJob.
type Reply struct {
	Command uint64
	Job     grid.JobID // the job's ID
	Err     error      // nil, or why nothing was done
}

func (Broadcast) effect()       {}
func (Send) effect()            {}
func (SetTimer) effect()        {}
func (StopTimer) effect()       {}
func (Persist) effect()         {}
func (Stage) effect()           {}
func (StartAttempt) effect()    {}
func (ExtendLease) effect()     {}
func (Verify) effect()          {}
func (SuspendAttempt) effect()  {}
func (ContinueAttempt) effect() {}
func (StopAttempt) effect()     {}
func (Discard) effect()         {}
func (Save) effect()            {}
func (Pull) effect()            {}
func (LetGo) effect()           {}
func (Collect) effect()         {}
func (Archive) effect()         {}
func (Hold) effect()            {}
func (Report) effect()          {}
func (Reply) effect()           {}

// Problems that a Reply can carry.
var (
	ErrNoSuchJob  = problem("no such job")
	ErrNotEnded   = problem("the job has not ended; cancel it first")
	ErrEnded      = problem("the job has ended; there is nothing to hold")
	ErrBegun      = problem("the job has begun at a site; cancel it, or let it end")
	ErrKept       = problem("a reservation is not held back; give it back with submit release")
	ErrAwaited    = problem("another job waits for it; cancel that one first")
	ErrKeyUsed    = problem("the key named another request before; send a new key with a new job")
	ErrTooManyJob = problem("too many jobs are open; wait until some have ended, or cancel some")
	ErrNoTask     = problem("no such task of the job")
	ErrNotRunning = problem("no site has the task; there is nothing to move")
	ErrTogether   = problem("its parts run together and cannot be moved one by one")
	ErrCopied     = problem("its tasks run in several copies, which are not moved one by one")
	ErrPromised   = problem("it was promised a time, and stays with the site that promised it")
	ErrNoSpace    = problem("this machine's disk is full; free some space, then submit again")
)

type problem string

// Error is the problem in words.
func (p problem) Error() string { return string(p) }
