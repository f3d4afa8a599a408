package agent

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// duty says what a group is for: the machine that its acting member runs, and all that belongs to
// it; and whose word it is who belongs to the group. The group knows members, the log and the disk,
// and nothing of what the facts say. All methods are called on the group's loop.
type duty interface {
	office
	witness
	chair
	recruiter

	tick()                // once a second
	met(site grid.SiteID) // a site is connected
}

// office is the machine of a group.
type office interface {
	makeMachine() (m step.Machine, config any) // as the group is set up; config is for the journal
	takes(in step.Input) bool                  // it is one for the machine
	perform(e step.Effect)                     // one that the group has let go
	isIdle() bool                              // the machine that runs here has nothing to do
	rest(usual time.Duration) time.Duration    // between heartbeats while there is nothing to do
	restored() bool                            // the machine is to know that the state was restored
}

// witness is told what becomes of the machine here.
type witness interface {
	begins(m step.Machine, term uint64) // before its first input
	begun(first bool)                   // it has booted, for the first time in this run or not
	ends(why string)                    // it runs here no longer
	unreadable(err error)               // it does not take the facts
	dismissed()                         // this agent is no member any more
}

// chair is the owner of a group.
type chair interface {
	holds() bool                      // this agent has the owner's key
	seat() grid.SiteID                // who has it, as far as is known; empty: nobody that is
	sign(text []byte) ([]byte, error) // with that key
	settings() any                    // by which all members know how the machine is set up
	mayRejoin(to grid.SiteID) bool    // a group that others have may be joined again
}

// recruiter finds the members that the owner wants.
type recruiter interface {
	wanted() int               // others in the group
	candidates() []grid.SiteID // connected sites, who is asked first
	invite(site grid.SiteID, epoch uint64)
	refuse(site grid.SiteID, reason string) // says that this agent is no member, or not for long
}
