package step

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/avail"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// Input is an event that happens to a machine.
type Input interface{ input() }

// Boot is the first input of every run.
type Boot struct {
	Incarnation uint64 // number of this start, from 1, never used twice
	// Nonce was drawn for this run alone: two runs of one incarnation, of a copied state, have
	// different ones. 0: none was.
	Nonce uint64 `json:",omitempty"`
	// Restored: the facts may be older than what this site has promised since, because they
	// come from a backup or were moved here.
	Restored bool `json:",omitempty"`
	// Line names the runs of this agent that followed one another on one machine, this one
	// included: the agent of each had ended before the next began. 0: not known.
	Line  uint64 `json:",omitempty"`
	Clock Clock  `json:",omitzero"`
}

// Clock is a clock that counts suspend, too, is never set, and outlives the agent. The wall
// clock is none.
type Clock struct {
	// Of names what is counted from, the present boot of the machine: two runs that read the
	// same clock can compare their readings. Empty: there is no such clock, or it has no name.
	Of   string    `json:",omitempty"`
	Zero time.Time // when it read 0, by this run's now
}

// MessageReceived brings a validated message. From was authenticated by the
// channel (a stream's peer, a gossip envelope's signer).
type MessageReceived struct {
	From    grid.SiteID
	Message protocol.Message
	// To is the neighbouring domain in whose name this site, its gateway, is to answer; empty: the
	// message is for this site itself.
	To grid.SiteID `json:",omitempty"`
}

// TimerFired says that the time of a timer has come.
type TimerFired struct {
	Key TimerKey
}

// PeerSeen says that a peer was admitted, or said something new of itself.
type PeerSeen struct {
	Site       grid.SiteID
	Name       string
	Capability grid.Capability
	Skew       time.Duration // the peer's clock minus ours
	RoundTrip  time.Duration // of a message and its answer; 0 = not measured
	// Line is the line of runs, as in Boot, that the peer's run belongs to; 0 = it does not say.
	Line uint64 `json:",omitempty"`
	// Owner names who owns the site, as it says itself; empty: it is its owner's only one.
	Owner string `json:",omitempty"`
	// Domain is the name of the neighbouring domain that the site stands for; empty: it is a member
	// of this one. Neighbours are asked after the members, or together with them if Beside is set.
	Domain grid.DomainID `json:",omitempty"`
	Beside bool          `json:",omitempty"`
}

// PeerGone says that a peer's connection was lost.
type PeerGone struct {
	Site grid.SiteID
	// Refusing: its host refuses connections where the agent listened, or another start of the
	// agent answers. So it seems to have died; but a router, or another machine that got the
	// address, refuses in the same way, so that this proves nothing and ends no lease.
	Refusing bool
}

// AttemptsDied brings a site's death certificate: signed by it in advance, and sent by the
// supervisors once its agent had died and nothing of the attempts was left. It says so of
// these attempts and of nothing else, whenever it comes.
type AttemptsDied struct {
	Site     grid.SiteID
	Attempts []grid.AttemptID
}

// BandwidthMeasured brings the rates of a link between this site and a peer, both
// of them; what was measured before and is 0 now has become too old.
type BandwidthMeasured struct {
	Peer    grid.SiteID
	DownBps int64 // towards this site, bit/s; 0 = not measured
	UpBps   int64 // away from this site, bit/s; 0 = not measured
}

// ClockStepped says that the wall clock was set; now is not affected.
type ClockStepped struct {
	By time.Duration
}

// AttemptStarted answers StartAttempt: the sandbox runs. It comes again when the sandbox
// has to prepare the program first, and when it has done so.
type AttemptStarted struct {
	Attempt   grid.AttemptID
	Preparing bool `json:",omitempty"` // the program is compiled for this site and has not begun
}

// AttemptFrozen says that the supervisor froze the attempt: the lease ran out,
// or SuspendAttempt came.
type AttemptFrozen struct {
	Attempt grid.AttemptID
}

// AttemptResumed says that a frozen attempt runs again after ExtendLease or
// ContinueAttempt.
type AttemptResumed struct {
	Attempt grid.AttemptID
}

// AttemptExited says that the attempt ended and its outputs are stored locally.
// It answers StopAttempt, too, and StartAttempt when nothing could be started.
type AttemptExited struct {
	Attempt grid.AttemptID
	Exit    grid.Exit
}

// StageProgress says how far Stage has come.
type StageProgress struct {
	Attempt grid.AttemptID
	Done    int64 // bytes here
	Total   int64 // bytes in all
}

// Staged answers Stage.
type Staged struct {
	Attempt grid.AttemptID
	Bytes   int64         // bytes that were moved
	Took    time.Duration // how long that took
	Problem string        // empty: all inputs are here
	// Local: the problem is this site's own, such as a full disk. Others may have them.
	Local bool `json:",omitempty"`
	// Saved is the number of the checkpoint that was laid out; 0: the program begins anew.
	Saved uint64 `json:",omitempty"`
	// Refused are the checkpoints that could not be, each with the reason.
	Refused []RefusedCheckpoint
}

// RefusedCheckpoint is a checkpoint that is not what it is said to be.
type RefusedCheckpoint struct {
	Number uint64
	Reason grid.Reason
}

// CanSave says that an attempt's program has saved its state, for the first time in this attempt:
// it knows how to.
type CanSave struct {
	Attempt grid.AttemptID
}

// Saved answers Save.
type Saved struct {
	Attempt    grid.AttemptID
	Checkpoint grid.Checkpoint // Worked is above 0 only if it is known
	Age        time.Duration   // since the program saved it
	Took       time.Duration   // to store it
	Problem    string          // empty: it is stored here
}

// Pulled answers Pull.
type Pulled struct {
	Attempt grid.AttemptID
	Number  uint64
	CID     grid.CID
	Reason  grid.Reason `json:",omitempty"` // why it does not count; ReasonNone: see Problem
	Problem string      `json:",omitempty"` // why it is not here; it may be tried again
}

// Verified answers Verify.
type Verified struct {
	Attempt grid.AttemptID
	Problem string // empty: the sandbox could keep the plan
}

// PlanningChanged changes in what order those that wait in the plan move up.
type PlanningChanged struct {
	Policy   string // as grid.ParsePolicy reads it
	Backfill string // as grid.ParseBackfill reads it
}

// TermsChanged brings what the owner decided anew about the work that the site takes.
// What is promised already stays promised.
type TermsChanged struct {
	MaxRuntime time.Duration // longest estimate and running time; 0 = no limit
	Patience   time.Duration // attempts that the owner froze move elsewhere after so long
	// MoveAfter is the same for attempts that can go on elsewhere from a checkpoint, if another
	// site offers; 0: the machine's default.
	MoveAfter time.Duration `json:",omitempty"`
	Ahead     time.Duration // promises to others begin at most so far ahead; 0 = no limit
	Longest   time.Duration // others reserve for at most so long; 0 = no limit
	Priced    bool          // the owner names a price
	Price     float64       // of an hour of a core, in the owners' own unit, 0 to 1e9
	// Signers are those whose work the site runs; none: nothing has to be signed.
	Signers []grid.Signer `json:",omitzero"`
}

// Collected answers Collect.
type Collected struct {
	Attempt grid.AttemptID
	Problem string // empty: all outputs are here
	// Local: the problem is this site's own, such as a full disk. The outputs are where they were.
	Local bool `json:",omitempty"`
	// Forged: what came is not what the task's site may leave, so that asking again is of no use.
	Forged bool `json:",omitempty"`
}

// ShareChanged says what part of the ceilings the owner gives now: by the hours of the week, or
// because somebody uses the machine. Running attempts that take more are suspended until it is more
// again.
type ShareChanged struct {
	Percent int64     // of the cores, 1 to 100; 100 = all
	Until   time.Time // when that changes next; zero: not known
	Memory  int64     `json:",omitempty"` // percent of the memory, 1 to 100; 0 = all
	InUse   bool      `json:",omitempty"` // it is less than the hours give: somebody is there
}

// SpaceChanged says whether this site's disk takes more data. A run begins with space. While it
// takes none, the site offers and starts nothing and running attempts are suspended, as while
// the owner is busy, and results wait at other sites.
type SpaceChanged struct {
	Full bool
}

// HeldChanged says which data this site holds or holds no more, whole.
type HeldChanged struct {
	Added   []grid.CID
	Removed []grid.CID
}

// CapacityChanged brings new ceilings of the owner, or new measurements.
type CapacityChanged struct {
	Capability grid.Capability
	// Left is the part of it that other programs leave now: never more than it, and the same
	// in everything that is no amount. nil = everything.
	Left *grid.Capability `json:",omitempty"`
}

// AvailabilityLearned brings what the site has learned of its own availability. Until
// the first one it goes by a prior and the time since Boot.
type AvailabilityLearned struct {
	Model avail.Model
	Up    time.Time // since when the site is up
	Free  time.Time // since when it is available, not before Up
}

// Pause makes a site offer nothing more; running attempts go on.
type Pause struct {
	Until time.Time // zero: until Resume
	// Leave: attempts that can go on elsewhere move there after a checkpoint. The others go on
	// until they end, or until StopAt.
	Leave  bool      `json:",omitempty"`
	StopAt time.Time `json:",omitzero"` // zero: none is stopped
	// By is the site that orders it from afar; empty: the owner here. A pause of the owner's stays
	// one.
	By grid.SiteID `json:",omitempty"`
}

// Resume ends a Pause and calls off a Drain that has not ended. From afar it ends only a Pause
// from afar.
type Resume struct {
	By grid.SiteID `json:",omitempty"` // as Pause.By
}

// Drain makes a site offer nothing more and stop for good.
type Drain struct {
	Now bool // stop running attempts, too, so that they move elsewhere
}

// OwnerBusy says that the owner needs the machine: nothing is offered, and running
// attempts are suspended until OwnerAway.
type OwnerBusy struct {
	Reason grid.Reason // ReasonOwnerBusy or ReasonOwnerHours
	Text   string      // what was seen, for people
}

// OwnerAway ends OwnerBusy.
type OwnerAway struct{}

// OwnerReturns says when the hours end in which the owner shares the machine. A driver says so
// when they begin, when they change, and after the wall clock was set.
type OwnerReturns struct {
	At time.Time // by the machine's clock; zero: not known, or never
}

// BansChanged names all sites that are banned here now, ascending. A driver says
// so at the start of every run, because it is no fact of a machine.
type BansChanged struct {
	Banned []grid.SiteID
}

// Submit hands a job to the submitter's machine.
type Submit struct {
	Command uint64 // repeated in the Reply
	Job     grid.Job
	NoWait  bool // refuse the job when it cannot be placed now
	// Key names the request, if it is not empty: a repetition is answered with the job that it
	// made before. A digest, at most MaxKey bytes long; sites never hear of it.
	Key string `json:",omitempty"`
	// Done lists those of the jobs it comes after that the history has as done: the machine
	// knows them no more.
	Done []grid.JobID
	// Ordered says for whom the job runs here; zero: for this site's own user.
	Ordered Ordered `json:",omitzero"`
}

// MaxKey is the longest key of a Submit, in bytes.
const MaxKey = 64

// Probe asks for offers without placing anything (`submit plan`).
type Probe struct {
	Command uint64
	Job     grid.Job
	Ordered Ordered `json:",omitzero"` // as in Submit
}

// CancelJob calls a job off.
type CancelJob struct {
	Command uint64
	Job     grid.JobID
}

// HoldJob keeps a job that has not begun from being placed, or lets it go on.
type HoldJob struct {
	Command uint64
	Job     grid.JobID
	Release bool // it may be placed again
}

// MoveTasks asks to move running tasks to other sites, each after a checkpoint. The Reply says
// whether that was begun; what becomes of it is shown with each task.
type MoveTasks struct {
	Command uint64
	Job     grid.JobID
	Tasks   []uint32 // their indexes; empty: all that a site has
	// Anew: those that have saved nothing move, too, and begin anew.
	Anew bool
}

// ForgetJob drops the record of a job that has ended.
type ForgetJob struct {
	Command uint64
	Job     grid.JobID
}

// Archived says that the history holds ended jobs, durably.
type Archived struct {
	Jobs []grid.JobID
}

// Controller says who the controller of the domain is, as far as this site knows: the acting member
// of the domain's group. A run begins without one. It awards nothing and holds no lease: it says
// which promised tasks leave a failed site, and where to.
type Controller struct {
	Site grid.SiteID // where it runs, which may be here; empty: there is none
	Term uint64      // its term, from 1; 0 with no site
}

// IsValid reports whether a site has a term, and none has none.
func (c Controller) IsValid() bool {
	if c.Site == "" {
		return c.Term == 0
	}
	return c.Term > 0 && c.Site.Validate() == nil
}

func (Boot) input()                {}
func (MessageReceived) input()     {}
func (TimerFired) input()          {}
func (PeerSeen) input()            {}
func (PeerGone) input()            {}
func (AttemptsDied) input()        {}
func (BandwidthMeasured) input()   {}
func (ClockStepped) input()        {}
func (AttemptStarted) input()      {}
func (AttemptFrozen) input()       {}
func (AttemptResumed) input()      {}
func (AttemptExited) input()       {}
func (StageProgress) input()       {}
func (Staged) input()              {}
func (CanSave) input()             {}
func (Saved) input()               {}
func (Pulled) input()              {}
func (Verified) input()            {}
func (PlanningChanged) input()     {}
func (TermsChanged) input()        {}
func (Collected) input()           {}
func (SpaceChanged) input()        {}
func (ShareChanged) input()        {}
func (HeldChanged) input()         {}
func (CapacityChanged) input()     {}
func (Pause) input()               {}
func (Resume) input()              {}
func (Drain) input()               {}
func (OwnerBusy) input()           {}
func (OwnerAway) input()           {}
func (OwnerReturns) input()        {}
func (BansChanged) input()         {}
func (Submit) input()              {}
func (Probe) input()               {}
func (CancelJob) input()           {}
func (HoldJob) input()             {}
func (MoveTasks) input()           {}
func (ForgetJob) input()           {}
func (Archived) input()            {}
func (Controller) input()          {}
func (AvailabilityLearned) input() {}
