package standby

import "github.com/mrsmesh/mrsmesh/pkg/step"

// Input is an event at a member of a group.
type Input interface{ input() }

// Woken says that the time of the last Wake has come. It is the first input of a member, and
// one too many does no harm.
type Woken struct{}

// Received is a message of another member. The driver vouches for From: it knows the site by
// its key, and the member of the site by the certificate.
type Received struct {
	From MemberID
	Data []byte // of Send; kept and never changed
}

// Saved says that what a Save with Sync holds is on the disk, and all that was saved before.
type Saved struct{ Number uint64 }

// Stepped bears the effects of a Step of the machine. Its facts become an entry of the log, the
// other effects come back in a Release. Effects of a machine that was thrown away are dropped.
type Stepped struct {
	Term    uint64 // of the Boot of the machine
	Effects []step.Effect
}

// Refusing says that the host of a member refuses connections: the member has probably died.
// If it leads, this member need not wait to elect another (rule 5).
type Refusing struct{ Member MemberID }

// Unreachable says that a message to a member could not be delivered.
type Unreachable struct{ Member MemberID }

// Delivering says that a bulk message to a member is still on its way: the member takes it, part by
// part. A table that is long is not sent anew meanwhile.
type Delivering struct{ Member MemberID }

// Transfer asks the leader to hand the lead to a member before it leaves; see transfer.go.
// It does nothing at a member that does not lead.
type Transfer struct{ To MemberID }

// Change asks the leader to replace members until the group has these voters; see change.go. It
// is asked again after every Boot, until Group.Members has them.
type Change struct{ Voters []MemberID }

// Rest says whether the machine here has nothing to do, no job above all: then the leader and its
// followers look for each other less often, see rest.go. It counts until the machine goes.
type Rest struct{ On bool }

func (Change) input()      {}
func (Rest) input()        {}
func (Woken) input()       {}
func (Received) input()    {}
func (Saved) input()       {}
func (Stepped) input()     {}
func (Refusing) input()    {}
func (Unreachable) input() {}
func (Delivering) input()  {}
func (Transfer) input()    {}
