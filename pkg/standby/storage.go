package standby

import (
	"slices"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
)

// storage shows raft the disk as it will be when every Save so far is done.
type storage struct {
	*Stored

	changing *bool // members are just being changed, and Conf has the old ones
}

var _ raft.Storage = storage{}

// InitialState is the ballot, and the members as of Applied.
func (s storage) InitialState() (*pb.HardState, *pb.ConfState, error) {
	return s.Ballot.proto(), s.Conf.proto(), nil
}

// Entries lists entries from lo to before hi, of at most so many bytes, but at least one.
func (s storage) Entries(lo, hi, maxSize uint64) ([]*pb.Entry, error) {
	if lo <= s.Base.Index {
		return nil, raft.ErrCompacted
	}
	if hi > s.last()+1 || lo >= hi {
		return nil, raft.ErrUnavailable
	}
	var found []*pb.Entry
	var size uint64
	for _, e := range s.Stored.Entries[lo-s.Base.Index-1 : hi-s.Base.Index-1] {
		size += e.size()
		if len(found) > 0 && size > maxSize {
			break
		}
		found = append(found, e.proto())
	}
	return found, nil
}

// Term is the term of an entry, or of the one before the first.
func (s storage) Term(i uint64) (uint64, error) {
	switch {
	case i < s.Base.Index:
		return 0, raft.ErrCompacted
	case i == s.Base.Index:
		return s.Base.Term, nil
	case i > s.last():
		return 0, raft.ErrUnavailable
	}
	return s.Stored.Entries[i-s.Base.Index-1].Term, nil
}

// LastIndex is that of the newest entry.
func (s storage) LastIndex() (uint64, error) { return s.last(), nil }

// FirstIndex is that of the oldest entry.
func (s storage) FirstIndex() (uint64, error) { return s.Base.Index + 1, nil }

// Snapshot is the committed table. In the middle of a change of members there is none: raft
// asks for one right there, and a new member ignores a table in which it is not named.
func (s storage) Snapshot() (*pb.Snapshot, error) {
	if *s.changing {
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	term, err := s.Term(s.Applied)
	if err != nil {
		return nil, err
	}
	return &pb.Snapshot{Data: s.Table.Encode(), Metadata: &pb.SnapshotMetadata{
		ConfState: s.Conf.proto(), Index: new(s.Applied), Term: new(term),
	}}, nil
}

func (b Ballot) proto() *pb.HardState {
	return &pb.HardState{Term: new(b.Term), Vote: new(uint64(b.Vote)), Commit: new(b.Commit)}
}

func ballotOf(h *pb.HardState) Ballot {
	return Ballot{Term: h.GetTerm(), Vote: MemberID(h.GetVote()), Commit: h.GetCommit()}
}

// size is about what an entry takes in a message.
func (e Entry) size() uint64 { return uint64(len(e.Data)) + 24 }

func (e Entry) proto() *pb.Entry {
	kind := pb.EntryType(e.Kind)
	return &pb.Entry{Index: new(e.Index), Term: new(e.Term), Type: &kind, Data: e.Data}
}

func entryOf(e *pb.Entry) Entry {
	return Entry{
		Position: Position{Index: e.GetIndex(), Term: e.GetTerm()},
		Kind:     uint8(e.GetType()), Data: e.GetData(),
	}
}

func (c Conf) proto() *pb.ConfState {
	return &pb.ConfState{
		Voters: numbers(c.Voters), Learners: numbers(c.Learners),
		VotersOutgoing: numbers(c.Outgoing), LearnersNext: numbers(c.LearnersNext),
		AutoLeave: new(c.AutoLeave),
	}
}

func confOf(c *pb.ConfState) Conf {
	return Conf{
		Voters: members(c.GetVoters()), Learners: members(c.GetLearners()),
		Outgoing: members(c.GetVotersOutgoing()), LearnersNext: members(c.GetLearnersNext()),
		AutoLeave: c.GetAutoLeave(),
	}
}

func numbers(ids []MemberID) []uint64 {
	var all []uint64
	for _, id := range ids {
		all = append(all, uint64(id))
	}
	return all
}

func members(ids []uint64) []MemberID {
	var all []MemberID
	for _, id := range ids {
		all = append(all, MemberID(id))
	}
	return slices.Clip(all)
}
