package view

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Phase says how far a job or a task is.
type Phase string

// The phases, in the order a task usually passes them.
const (
	PhaseWaiting   Phase = "waiting"   // no site has capacity now; it is announced again
	PhaseAnnounced Phase = "announced" // offers are being collected
	PhaseAwarded   Phase = "awarded"   // a site was chosen: it has not accepted yet, or queues it
	PhaseStaging   Phase = "staging"   // the site fetches the inputs
	PhasePreparing Phase = "preparing" // the site compiles the program, once for this site
	PhaseRunning   Phase = "running"   // the program runs
	PhaseFrozen    Phase = "frozen"    // the lease ended; the attempt waits for its submitter
	PhaseSuspended Phase = "suspended" // frozen, because the site's owner needs the machine
	PhaseDone      Phase = "done"      // ended with code 0
	PhaseFailed    Phase = "failed"    // ended with another code, a signal or over a limit
	PhaseCancelled Phase = "cancelled" // withdrawn by its submitter
	PhaseRefused   Phase = "refused"   // no site can ever take it
)

// The phases of a reservation's task that a job's task does not have; before them it
// waits, is announced and awarded like any other.
const (
	PhaseHeld     Phase = "held"     // promised; its time has not come
	PhaseOpen     Phase = "open"     // its time has come: jobs that are bound to it run
	PhaseOver     Phase = "over"     // its time has ended
	PhaseReleased Phase = "released" // given back by its submitter
	PhaseLost     Phase = "lost"     // no site could keep it
)

// Phases lists all phases in their usual order.
func Phases() []Phase {
	return []Phase{
		PhaseWaiting, PhaseAnnounced, PhaseAwarded, PhaseStaging, PhaseHeld, PhasePreparing,
		PhaseRunning, PhaseOpen, PhaseFrozen, PhaseSuspended, PhaseDone, PhaseOver, PhaseFailed,
		PhaseLost, PhaseCancelled, PhaseReleased, PhaseRefused,
	}
}

// OfReservation is the phase of a reservation's task in its own words.
func (p Phase) OfReservation() Phase {
	switch p {
	case PhaseStaging:
		return PhaseHeld
	case PhasePreparing, PhaseRunning, PhaseFrozen, PhaseSuspended:
		return PhaseOpen
	case PhaseDone:
		return PhaseOver
	case PhaseFailed:
		return PhaseLost
	case PhaseCancelled:
		return PhaseReleased
	default:
		return p
	}
}

// Ended reports whether nothing more will happen.
func (p Phase) Ended() bool {
	switch p {
	case PhaseDone, PhaseFailed, PhaseCancelled, PhaseRefused, PhaseOver, PhaseLost, PhaseReleased:
		return true
	default:
		return false
	}
}

// PhaseCounts says how many tasks are in which phase; empty phases are left out.
type PhaseCounts map[Phase]uint32

// Phase sums the tasks' phases up to the job's: while one goes on, the phase
// that is furthest on its way; then refused before failed before cancelled
// before done. A job without tasks waits.
func (c PhaseCounts) Phase() Phase {
	order := []Phase{
		PhaseOpen, PhaseRunning, PhasePreparing, PhaseFrozen, PhaseSuspended, PhaseHeld, PhaseStaging,
		PhaseAwarded, PhaseAnnounced, PhaseWaiting,
		PhaseRefused, PhaseLost, PhaseFailed, PhaseReleased, PhaseCancelled, PhaseOver, PhaseDone,
	}
	for _, phase := range order {
		if c[phase] > 0 {
			return phase
		}
	}
	return PhaseWaiting
}

// JobView is the status of a job in one row.
type JobView struct {
	ID        grid.JobID  `json:"id"`
	Name      string      `json:"name,omitempty"`
	Kind      string      `json:"kind"`             // wasm, command or reservation
	Phase     Phase       `json:"phase"`            // sum of the tasks' phases
	Count     uint32      `json:"count"`            // number of tasks
	Tasks     PhaseCounts `json:"tasks"`            // how many are where
	Submitted Time        `json:"submitted"`        // when the agent took it
	Started   Time        `json:"started,omitzero"` // when the first task began to run
	Ended     Time        `json:"ended,omitzero"`   // when the last task ended
	// once ended: 0, or the code of the lowest failing task
	Code        *int     `json:"code,omitempty"`
	FailedIndex *uint32  `json:"failed_index,omitempty"` // that task
	Moves       uint32   `json:"moves"`                  // attempts that were started again elsewhere
	Offers      uint32   `json:"offers"`                 // answers to the present announcement
	Hint        string   `json:"hint,omitempty"`         // why it waits and what happens next
	Reasons     []string `json:"reasons,omitempty"`      // refused: each kind of refusal in words
	// what became of the times its tasks were promised: the worst of them
	Promise *PromiseView `json:"promise,omitempty"`
	// the jobs that must be done before it starts
	After []Earlier `json:"after,omitempty"`
	// the linked domain that it runs here for; left out: it is this agent's own
	For  grid.DomainID `json:"for_domain,omitempty"`
	Held bool          `json:"held,omitempty"` // it is not placed before it is released
}

// JobQuery asks for a page of own jobs, the one that was submitted last first.
type JobQuery struct {
	Since  time.Time  // submitted then or later; zero: all
	Before grid.JobID // those that follow this one in the list; empty: from the beginning
	Prefix string     // of their IDs; then Since and Before do not count
	Limit  int        // at least 1
}

// Earlier is a job that must be done before another one starts.
type Earlier struct {
	ID    grid.JobID `json:"id"`
	Phase Phase      `json:"phase,omitempty"` // empty: it was done and is forgotten
}

// NotStarted is the job whose end keeps this one from ever starting, false if there is
// none.
func (v JobView) NotStarted() (Earlier, bool) {
	if !v.Started.IsZero() || v.Phase != PhaseRefused && v.Phase != PhaseCancelled {
		return Earlier{}, false
	}
	for _, e := range v.After {
		if e.Phase.Ended() && e.Phase != PhaseDone && e.Phase != PhaseOver {
			return e, true
		}
	}
	return Earlier{}, false
}

// JobDetail is one job in full: what was asked for and how it stands. The tasks
// are asked for by pages.
type JobDetail struct {
	Spec   JobSpec `json:"spec"`
	Status JobView `json:"status"`
}

// TaskView is the status of one task.
type TaskView struct {
	ID       string      `json:"id"`    // JOB.INDEX
	Index    uint32      `json:"index"` // 0-based
	Item     string      `json:"item,omitempty"`
	Phase    Phase       `json:"phase"`
	Site     grid.SiteID `json:"site,omitempty"`      // where it is, or ended
	SiteName string      `json:"site_name,omitempty"` // that site's name for people
	// the linked domain that it is at: its site is that domain as a whole; left out: this one
	Domain   grid.DomainID `json:"domain,omitempty"`
	Distance *float64      `json:"distance,omitempty"` // of that site at the award
	Token    grid.Token    `json:"token,omitempty"`    // number of the present attempt
	Started  Time          `json:"started,omitzero"`
	Ended    Time          `json:"ended,omitzero"`
	// when its site has promised to start it, while it waits there
	Planned Time `json:"planned_start,omitzero"`
	// probability that the site stays for it: 1 - z of the accepted offer
	Kept *float64 `json:"kept,omitempty"`
	// what became of the time that it was promised
	Promise  *PromiseView  `json:"promise,omitempty"`
	Progress *Progress     `json:"progress,omitempty"` // of staging
	Saved    *SavedView    `json:"saved,omitempty"`    // from which another site would go on
	Move     *MoveView     `json:"move,omitempty"`     // to another site, on purpose
	Code     *int          `json:"code,omitempty"`     // once ended
	Cause    string        `json:"cause,omitempty"`    // how it ended, in words
	Text     string        `json:"text,omitempty"`     // what a person should know
	Outputs  []OutputView  `json:"outputs,omitempty"`
	Printed  *Printed      `json:"printed,omitempty"`  // once ended
	Attempts []AttemptView `json:"attempts,omitempty"` // oldest first
	// of a task that may run in several copies; all else is about the one that counts
	Copies []CopyView `json:"copies,omitempty"`
}

// Printed has the size of what a task has printed, as it is stored: that of an encrypted job takes
// more than its text.
type Printed struct {
	StdoutBytes int64 `json:"stdout_bytes"`
	StderrBytes int64 `json:"stderr_bytes"`
}

// Progress says how far something with a known total is.
type Progress struct {
	DoneBytes  int64 `json:"done_bytes"`
	TotalBytes int64 `json:"total_bytes"`
}

// SavedView is the last checkpoint of a task that counts: it is held by the submitter, too.
type SavedView struct {
	At            Time        `json:"at"`     // since when it counts
	Number        uint64      `json:"number"` // of the task's checkpoints, from 1
	Site          grid.SiteID `json:"site"`   // that has taken it
	SiteName      string      `json:"site_name,omitempty"`
	Bytes         int64       `json:"bytes"`
	WorkedSeconds float64     `json:"worked_seconds"`    // run time that is in it
	Percent       int         `json:"percent,omitempty"` // of the work, if the program says so
}

// Upload says what is uploaded: a file's bytes, or with Tar a directory as a tar stream.
type Upload struct {
	Tar        bool
	Executable bool // a file with its x bit
}

// OutputView is something a task left.
type OutputView struct {
	Path string `json:"path"` // inside the sandbox
	// where the submitter wants it, {{item}} and {{index}} replaced
	To    string   `json:"to,omitempty"`
	CID   grid.CID `json:"cid"`
	Bytes int64    `json:"bytes"`
	Dir   bool     `json:"dir"`
	// it is stored encrypted, and opened for who names the task
	Encrypted bool `json:"encrypted,omitempty"`
}

// AttemptView is one attempt to run a task.
type AttemptView struct {
	Token    grid.Token  `json:"token"` // from 1
	Site     grid.SiteID `json:"site"`
	SiteName string      `json:"site_name,omitempty"`
	// the linked domain that it was at; left out: this one
	Domain   grid.DomainID `json:"domain,omitempty"`
	X        float64       `json:"x"`
	Y        float64       `json:"y"`
	Z        float64       `json:"z"`
	Distance float64       `json:"distance"`
	Awarded  Time          `json:"awarded,omitzero"`
	Started  Time          `json:"started,omitzero"`
	Ended    Time          `json:"ended,omitzero"`
	Code     *int          `json:"code,omitempty"`
	// how it ended: "exited", "lease over", "site restarted", ...
	Cause string `json:"cause,omitempty"`
	Text  string `json:"text,omitempty"`
}

// LogQuery says which log to read.
type LogQuery struct {
	Stream string // stdout or stderr
	Offset int64  // first byte wanted, from the beginning of the stream
	Follow bool   // go on until the task has ended
}

// DataRef names stored data.
type DataRef struct {
	CID   grid.CID `json:"cid"`
	Bytes int64    `json:"bytes"` // size of the content; of a directory, the sum of its files
	Dir   bool     `json:"dir"`

	Executable bool `json:"executable,omitempty"` // a file with the x bit
}
