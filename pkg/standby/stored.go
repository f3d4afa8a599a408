package standby

import (
	"errors"
	"fmt"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Position is a place in the log.
type Position struct {
	Index uint64 // from 1
	Term  uint64 // of the entry there
}

// Ballot holds all that a member must not forget of elections.
type Ballot struct {
	Term   uint64   // the newest that it has heard of
	Vote   MemberID // for whom it voted in that term; 0: nobody
	Commit uint64   // entries up to here are committed
}

// Conf says who belongs to a group. During a change both sets of voters must agree.
type Conf struct {
	Voters       []MemberID
	Learners     []MemberID // have the log and do not vote
	Outgoing     []MemberID // the voters before a change that is under way
	LearnersNext []MemberID // of Outgoing, learners when the change is over
	AutoLeave    bool       // the change ends by itself
}

// Entry is an entry of the log.
type Entry struct {
	Position
	Kind uint8  // as raft numbers them
	Data []byte // see entry.go
}

// Stored holds all that a member has on its disk.
type Stored struct {
	Ballot  Ballot
	Base    Position // the entry before the first one that is left
	Entries []Entry  // without a gap
	Applied uint64   // the table holds the entries up to here
	Conf    Conf     // as of Applied
	Table   step.Facts
	Fresh   bool // a member that joins: nothing was saved yet
}

// errNoLog refuses a member without its log.
var errNoLog = errors.New("a member without its log is a new member: join again under a new ID")

// foundation begins the log of every group. Nothing before it exists, so that a
// member without a log is sent the whole table with the voters in it.
const foundation = 1

// Founded is the disk of a member of a new group. All its members begin with the same voters
// and facts. It is used once for a group; a disk that was lost is not founded again, see rule 12.
// Terms, which are the machine's incarnations (rule 8), begin above the given one: that of the
// machine's last run without the group, or 0.
func Founded(term uint64, facts []step.Fact, voters ...MemberID) Stored {
	at := Position{Index: foundation, Term: max(term, foundation)}
	s := Stored{
		Ballot: Ballot{Term: at.Term, Commit: at.Index},
		Base:   at, Applied: at.Index,
		Conf: Conf{Voters: slices.Sorted(slices.Values(voters))},
	}
	for _, f := range facts {
		s.Table.Apply(f)
	}
	return s
}

// Joining is the disk of a member that joins a group, under an ID that was drawn for it. It
// campaigns and votes for nobody until a leader has sent it the table.
func Joining() Stored { return Stored{Fresh: true} }

// Apply does to s what a Save does to the disk.
func (s *Stored) Apply(save Save) {
	s.Fresh = false
	if save.Ballot != nil {
		s.Ballot = *save.Ballot
	}
	if save.Replaced {
		s.Base, s.Entries, s.Table = save.Applied, nil, step.Facts{}
	}
	s.append(save.Entries)
	for _, f := range save.Facts {
		s.Table.Apply(f)
	}
	if save.Applied.Index > 0 {
		s.Applied = save.Applied.Index
	}
	if save.Conf != nil {
		s.Conf = *save.Conf
	}
	if save.Base.Index > s.Base.Index {
		s.Entries = slices.Clone(s.Entries[save.Base.Index-s.Base.Index:])
		s.Base = save.Base
	}
}

func (s *Stored) append(entries []Entry) {
	if len(entries) == 0 {
		return
	}
	s.Entries = append(s.Entries[:entries[0].Index-s.Base.Index-1], entries...)
}

// Whole is the table with all entries of the log in it, committed or not: all that this member has
// ever promised is there, for it was on its disk first. It is for an owner who goes on without the
// others (rule 16).
func (s *Stored) Whole() []step.Fact {
	var whole step.Facts
	for _, f := range s.Table.All() {
		whole.Apply(f)
	}
	for _, e := range s.Entries {
		if e.Index <= s.Applied || pb.EntryType(e.Kind) != pb.EntryNormal || len(e.Data) == 0 {
			continue
		}
		if b, err := decodeBatch(e.Data); err == nil && b.term == e.Term {
			for _, f := range b.facts {
				whole.Apply(f)
			}
		}
	}
	return whole.All()
}

// last is the index of the newest entry.
func (s *Stored) last() uint64 { return s.Base.Index + uint64(len(s.Entries)) }

// check says what is wrong with a disk: raft would panic on it, or know less than it has said.
func (s *Stored) check() error {
	if s.Ballot.Term == 0 && !s.Fresh {
		return errNoLog
	}
	for i, e := range s.Entries {
		if want := s.Base.Index + 1 + uint64(i); e.Index != want {
			return fmt.Errorf("stored log: entry %d stands where %d belongs: %w",
				e.Index, want, errNoLog)
		}
	}
	if s.Applied < s.Base.Index || s.Applied > s.Ballot.Commit || s.Ballot.Commit > s.last() {
		return fmt.Errorf("stored log: %d to %d, committed to %d, applied to %d: %w",
			s.Base.Index, s.last(), s.Ballot.Commit, s.Applied, errNoLog)
	}
	return nil
}
