package standby

import (
	"errors"
	"time"
)

// MemberID names a member of a group: one disk of one site. It is drawn at random when the
// member joins and stored beside its log. It is never used again after that log is lost
// (rule 12). 0 is nobody.
type MemberID uint64

// Config holds what a member is told when it is made. Start from Default.
type Config struct {
	ID   MemberID // required
	Seed uint64   // of this member's election timer; the same seed gives the same run

	// Votes are withheld, and nobody campaigns, for ElectionTimeout after a leader was heard;
	// then each voter has a slot of its own in ElectionSpread. A slot is to be longer than the
	// way of a message and its answer; there are as many as voters, and one more.
	ElectionTimeout time.Duration
	ElectionSpread  time.Duration
	Heartbeat       time.Duration // of the leader; below ElectionTimeout
	Rest            time.Duration // between heartbeats while there is nothing to do; 0: as ever

	// A transfer that takes longer than TransferTimeout has failed. A leader that no majority
	// answers for ResignAfter gives its lead up.
	TransferTimeout time.Duration
	ResignAfter     time.Duration
	// SnapshotTimeout after a member has taken the last of a table and not answered, or has taken
	// nothing of it, it is sent anew.
	SnapshotTimeout time.Duration

	// The machine is given no input while so much waits, or has waited so long, to be committed.
	MaxWaitingBytes int
	MaxWaiting      time.Duration

	BatchBytes int // an entry of so many bytes waits for no other one to be committed
	KeepBytes  int // of applied entries, for members that fall behind a little
	MaxMessage int // bytes of a message that is read at all

	off safeguards // nothing, but in tests
}

// safeguards are taken out one by one by tests, which then have to find the double run.
type safeguards struct {
	confirm   bool // rule 6: answers leave without a question
	commit    bool // rule 2: effects leave before their facts are committed
	crash     bool // rule 3: a machine outlives its lead, and followers' proposals are taken
	applied   bool // rule 7: a machine boots before its term's own entry is applied
	filter    bool // rule 5: votes are never withheld
	throwAway bool // rule 14: a machine goes on during a transfer
	rebuild   bool // rule 14: a leader whose transfer has failed goes on in its term
}

// Default is a configuration for the members of one LAN (rule 5).
func Default(id MemberID) Config {
	return Config{
		ID: id, ElectionTimeout: time.Second, ElectionSpread: 300 * time.Millisecond,
		Heartbeat: 200 * time.Millisecond, Rest: 2 * time.Second, TransferTimeout: 2 * time.Second,
		ResignAfter: 3 * time.Second, SnapshotTimeout: 30 * time.Second,
		MaxWaitingBytes: 8 << 20, MaxWaiting: time.Second,
		BatchBytes: 256 << 10, KeepBytes: 8 << 20, MaxMessage: 96 << 20,
	}
}

// Validate reports all fields that are out of range.
func (c Config) Validate() error {
	var errs []error
	want := func(holds bool, text string) {
		if !holds {
			errs = append(errs, errors.New(text))
		}
	}
	want(c.ID != 0 && c.ID < maxMember, "member ID: want 1 to 2^64-3; draw another at random")
	want(c.Heartbeat > 0 && c.Heartbeat < c.ElectionTimeout,
		"heartbeat: want more than 0 and less than the election timeout")
	want(c.ElectionSpread > 0, "election spread: want more than 0")
	want(c.Rest >= 0, "rest: want at least 0")
	want(c.TransferTimeout > 0, "transfer timeout: want more than 0")
	want(c.ResignAfter > c.ElectionTimeout, "resign after: want more than the election timeout")
	want(c.SnapshotTimeout > 0, "snapshot timeout: want more than 0")
	want(c.MaxWaitingBytes > 0 && c.MaxWaiting > 0, "most that waits: want more than 0")
	want(c.BatchBytes > 0 && c.BatchBytes <= c.MaxWaitingBytes,
		"batch bytes: want more than 0 and at most the bytes that may wait")
	want(c.KeepBytes >= 0, "kept entries: want at least 0 bytes")
	want(c.MaxMessage > c.MaxWaitingBytes,
		"longest message: want more than the bytes that may wait")
	return errors.Join(errs...)
}

// maxMember is the first ID that raft keeps for itself.
const maxMember = ^MemberID(0) - 1
