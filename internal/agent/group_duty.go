package agent

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// duty is what a group is for: the machine that its acting member runs, and what belongs to it. The
// group knows members, the log and the disk, and nothing of what the facts say. Its methods are
// called on the group's loop.
type duty interface {
	chair

	// makeMachine makes one as the group is set up, and its settings for the journal.
	makeMachine() (m step.Machine, config any)
	// begins is told that a machine runs here from now on, before its first input; begun that it
	// has booted, for the first time in this run or not; ends that it runs here no longer.
	begins(m step.Machine, term uint64)
	begun(first bool)
	ends(why string)

	takes(in step.Input) bool               // it is one for the machine
	isIdle() bool                           // the machine that runs here has nothing to do
	rest(usual time.Duration) time.Duration // between heartbeats while there is nothing to do
	restored() bool                         // the machine that boots is to know that the state was restored
	perform(e step.Effect)                  // one that the group has let go
	tick()                                  // once a second
	met(site grid.SiteID)                   // a site is connected
	unreadable(err error)                   // the machine does not take the facts
	dismissed()                             // this agent is no member any more
}

// chair is the owner of a group, whose word it is who belongs to it.
type chair interface {
	holds() bool                      // this agent has the owner's key
	seat() grid.SiteID                // who has it, as far as is known; empty: nobody that is
	sign(text []byte) ([]byte, error) // with that key
	settings() any                    // by which all members know how the machine is set up
	wanted() int                      // others in the group
	candidates() []grid.SiteID        // connected sites, who is asked first
	invite(site grid.SiteID, epoch uint64)
	refuse(site grid.SiteID, reason string) // says that this agent is no member, or not for long
	mayRejoin(to grid.SiteID) bool          // a group that has others may be joined again
}
