package standby

import (
	"slices"
	"testing"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
)

// ask asks the member that acts for a change, again and again, until there is one.
func (w *world) change(voters ...MemberID) bool {
	return w.runUntil(30*time.Second, func() bool {
		m := w.acting()
		if m == nil || m.suspended {
			return false
		}
		conf := m.group.Members()
		if slices.Equal(conf.Voters, voters) && len(conf.Outgoing)+len(conf.Learners) == 0 {
			return true
		}
		m.give(m.clock(), Change{Voters: voters})
		return false
	})
}

// Rule 13: a group of one becomes one of three and then another one of three, its first member
// goes last, and nothing of the jobs is lost on the way.
func TestMembersAreReplaced(t *testing.T) {
	for seed := range uint64(20) {
		w := newWorld(seed, 1, 4)
		w.cfg.KeepBytes = 500 // members that come are sent tables
		w.user.tasks = 3
		w.begin()
		w.leader()
		w.run(time.Second)
		for id := range MemberID(4) {
			w.join(id + 2)
		}
		if !w.change(1, 2, 3) {
			t.Fatalf("seed %d: 1, 2 and 3: %+v", seed, w.acting().group.Members())
		}
		if !w.change(1, 4, 5) {
			t.Fatalf("seed %d: 1, 4 and 5: %+v", seed, w.acting().group.Members())
		}
		w.acting().give(w.acting().clock(), Change{Voters: []MemberID{4, 5}}) // never itself
		w.acting().give(w.acting().clock(), Transfer{To: 4})
		w.run(time.Second)
		if m := w.acting(); m == nil || m.id != 4 {
			t.Fatalf("seed %d: the lead was not handed over", seed)
		}
		if !w.change(4) {
			t.Fatalf("seed %d: 4: %+v", seed, w.acting().group.Members())
		}
		for _, m := range w.members {
			if m.id != 4 {
				m.crash()
			}
		}
		if !w.runUntil(time.Minute, w.allDone) {
			t.Errorf("seed %d: not all has ended", seed)
		}
		if bad := w.verdict(); len(bad) > 0 || w.oracle.begun != 3 {
			t.Errorf("seed %d: %v, %d starts", seed, bad, w.oracle.begun)
		}
	}
}

// Both standbys are replaced together, and the leader is cut off in the middle of it: with the
// old ones or the new ones alone there is no majority.
func TestTwoReplacedTogether(t *testing.T) {
	for seed := range uint64(50) {
		w := newWorld(seed, 3, 6)
		w.user.tasks = 2
		w.begin()
		m, busy := w.leader(), w.busy()
		rest := w.others(m)
		comes := []*member{w.join(10), w.join(11)}
		m.give(m.clock(), Change{Voters: []MemberID{m.id, 10, 11}})
		w.run(w.between(0, 900*time.Millisecond))
		old := []*host{rest[0].host, rest[1].host}
		w.split(old...)                       // the old ones among themselves
		w.split(comes[0].host, comes[1].host) // and the new ones
		w.splitWith(m, busy)
		w.run(w.between(0, 12*time.Second))
		tr := trouble{world: w}
		tr.heal()
		if !w.change(m.id, 10, 11) && !w.change(slices.Sorted(slices.Values([]MemberID{
			w.acting().id, 10, 11,
		}))...) {
			t.Errorf("seed %d: members %+v", seed, w.acting().group.Members())
		}
		if !w.runUntil(time.Minute, w.allDone) {
			t.Errorf("seed %d: not all has ended", seed)
		}
		if bad := w.verdict(); len(bad) > 0 {
			t.Errorf("seed %d: %v", seed, bad)
		}
	}
}

// Rule 12: who joins has no vote and nothing to say until it has the table.
func TestWhoJoinsKeepsQuiet(t *testing.T) {
	w := newWorld(1, 3, 2)
	m := w.join(9)
	w.run(20 * time.Second)
	if leader, term := m.group.Leader(); leader != 0 || term != 0 || m.boots > 0 {
		t.Errorf("leader %d, term %d, %d boots", leader, term, m.boots)
	}
}

// oneAway is a world in which all was done while a member was away, for whom its leader has only
// the table for, not the entries.
func oneAway(t *testing.T) (w *world, leader, away *member) {
	t.Helper()
	w = newWorld(5, 3, 4)
	w.cfg.KeepBytes, w.cfg.SnapshotTimeout = 300, 3*time.Second
	w.user.tasks = 8
	w.begin()
	leader = w.leader()
	away = w.others(leader)[0]
	away.crash()
	if !w.runUntil(time.Minute, w.allDone) {
		t.Fatal("not all has ended")
	}
	return w, leader, away
}

// A member that was away for long is sent the whole table; one that is lost on its way is sent
// anew, which raft does not do by itself.
func TestATableThatIsLostIsSentAnew(t *testing.T) {
	w, m, away := oneAway(t)
	tables := 0
	w.drops = func(_, _ *host, payload any) bool {
		r := raftMessage(payload)
		if r == nil || r.GetType() != pb.MsgSnap {
			return false
		}
		tables++
		return tables == 1
	}
	away.start()
	same := func() bool {
		return string(away.group.stored.Table.Encode()) == string(m.group.stored.Table.Encode())
	}
	if w.run(2500 * time.Millisecond); same() || tables != 1 {
		t.Errorf("after 2.5 s: %d tables sent, the same: %t", tables, same())
	}
	if w.run(2500 * time.Millisecond); !same() || tables != 2 {
		t.Errorf("after 5 s: %d tables sent, the same: %t", tables, same())
	}
}

// A table that takes longer on its way than that is not sent anew while its member takes it.
func TestATableThatTakesLongIsSentOnce(t *testing.T) {
	w, m, away := oneAway(t)
	tables := 0
	w.drops = func(_, _ *host, payload any) bool { // none arrives
		r := raftMessage(payload)
		isTable := r != nil && r.GetType() == pb.MsgSnap
		if isTable {
			tables++
		}
		return isTable
	}
	away.start()
	for range 10 {
		w.run(time.Second)
		m.input(func(now time.Time) { m.give(now, Delivering{Member: away.id}) })
	}
	if tables != 1 {
		t.Errorf("%d tables sent while the first one is taken", tables)
	}
	if w.run(3500 * time.Millisecond); tables != 2 {
		t.Errorf("%d tables sent when nothing of the first one is taken any more", tables)
	}
}

// A member that has not got the table gets no vote, however few entries the log has: the others
// would wait for it with everything.
func TestAMemberWithoutTheTableGetsNoVote(t *testing.T) {
	w := newWorld(2, 1, 4)
	w.begin()
	m := w.leader()
	w.join(2)
	w.join(3)
	waits := true
	w.drops = func(_, _ *host, payload any) bool { // the table is long
		r := raftMessage(payload)
		return waits && r != nil && r.GetType() == pb.MsgSnap
	}
	m.input(func(now time.Time) { m.give(now, Change{Voters: []MemberID{1, 2, 3}}) })
	w.run(5 * time.Second)
	conf := m.group.Members()
	if len(conf.Learners) != 2 || !slices.Equal(conf.Voters, []MemberID{1}) || m.boots != 1 {
		t.Errorf("without the table the members are %+v, %d boots", conf, m.boots)
	}
	waits = false
	if !w.change(1, 2, 3) {
		t.Errorf("with it they are %+v", m.group.Members())
	}
}
