package standby

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Effect is an action that a member wants done. The driver carries effects out in their order.
type Effect interface{ effect() }

// Wake asks for Woken at a time, which replaces the one asked for before.
type Wake struct{ At time.Time }

// Send sends a message to another member. It may be lost, late, doubled or overtaken.
//
// Bulk is said of entries and tables: they may be long, and are of use in their order. They can
// wait for a member that takes them slowly, while others of these messages overtake them.
type Send struct {
	To   MemberID
	Data []byte
	Bulk bool
}

// Save writes to the disk, all of it in one transaction and after every earlier Save. With
// Sync it is answered by Saved as soon as it would survive a power failure; without, later is
// soon enough. Stored.Apply says what it changes.
type Save struct {
	Number  uint64 // from 1, ascending
	Sync    bool
	Ballot  *Ballot  // nil: unchanged
	Entries []Entry  // those stored from the index of the first one on are deleted
	Base    Position // entries up to here are deleted; zero: none

	// The committed table, and how far into the log it has come. They never part: a table that
	// is older than Applied lacks facts for good (rule 1).
	Replaced bool        // a whole table came: the stored one and all entries are deleted
	Facts    []step.Fact // rows written, in order; without a Value: deleted
	Applied  Position    // zero: unchanged
	Conf     *Conf       // nil: unchanged
}

// isEmpty reports whether there is nothing to write.
func (s Save) isEmpty() bool {
	return s.Ballot == nil && len(s.Entries) == 0 && s.Base.Index == 0 && s.Applied.Index == 0
}

// Boot makes this member the acting submitter: the driver makes a machine of its owner's, with
// Term as its incarnation and the owner as its Self, restores it from Facts and boots it.
type Boot struct {
	Term  uint64 // grows from boot to boot, on whatever member it is
	Facts []byte // the committed table, see step.EncodeFacts
}

// Discard throws the machine of a term away, timers and all, as a crash would. Nothing that it
// wanted may leave any more.
type Discard struct {
	Term uint64
	Why  string // for the journal and for people
}

// Release carries out what the machine wanted: timers immediately, and announcements if nothing
// waits before them; all else after rule 2 and, for answers, rule 6 hold. Persists are not among
// it. What leaves the site bears the term.
type Release struct {
	Term    uint64
	Effects []step.Effect
}

// Hold stops the machine's inputs, or with On false lets them go on (rule 2).
type Hold struct{ On bool }

// Ended says that this member is at its end: it takes no more input. The disk may be read
// again by a new one. Others of the group are not affected.
type Ended struct{ Err error }

func (Wake) effect()    {}
func (Send) effect()    {}
func (Save) effect()    {}
func (Boot) effect()    {}
func (Discard) effect() {}
func (Release) effect() {}
func (Hold) effect()    {}
func (Ended) effect()   {}
