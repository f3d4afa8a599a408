package standby

import (
	"testing"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
)

// Without trouble a group elects a leader, runs every task once and ends them all.
func TestCalmGroupsEndTheirTasks(t *testing.T) {
	for _, members := range []int{1, 2, 3, 5} {
		w := newWorld(7, members, 4)
		w.user.tasks = 5
		w.begin()
		if !w.runUntil(time.Minute, w.allDone) {
			t.Errorf("%d members: after %s not all is done: %v", members, w.now, w.user.accepted)
		}
		if bad := w.verdict(); len(bad) > 0 {
			t.Errorf("%d members: %v", members, bad)
		}
		if w.oracle.begun != 5 {
			t.Errorf("%d members: %d starts of 5 tasks", members, w.oracle.begun)
		}
	}
}

// Rule 5: a follower that cannot hear its leader does not depose it while others hear it.
func TestAMemberThatHearsNoLeaderKeepsCalm(t *testing.T) {
	boots := func(out bool) (n int) {
		for seed := range uint64(10) {
			w := newWorld(seed, 3, 2)
			w.cfg.off.filter = out
			w.begin()
			leader := w.leader()
			w.part(leader.host, w.others(leader)[0].host, true)
			w.run(10 * time.Second)
			for _, m := range w.members {
				n += m.boots
			}
		}
		return n
	}
	if in := boots(false); in != 10 {
		t.Errorf("%d boots in 10 runs, want one in each", in)
	}
	if out := boots(true); out < 20 {
		t.Errorf("votes are given to all, and yet there are only %d boots in 10 runs", out)
	}
}

// A leader that can send and cannot hear gives up, or its followers would wait forever.
func TestADeafLeaderGivesUp(t *testing.T) {
	w := newWorld(3, 3, 2)
	w.user.tasks = 3
	w.begin()
	leader := w.leader()
	for _, m := range w.others(leader) {
		w.part(m.host, leader.host, true)
	}
	if !w.runUntil(30*time.Second, w.allDone) {
		t.Errorf("nothing goes on")
	}
	if bad := w.verdict(); len(bad) > 0 {
		t.Error(bad)
	}
}

// Rule 7: another member acts within 1.4 s of a leader's death, the time of its last heartbeat
// and the election included; sooner where its host refuses connections, or after a transfer. With
// disks so slow that an election takes longer than a slot, it takes these times more, and no second
// election.
func TestHowSoonAnotherActs(t *testing.T) {
	const slow = 60 * time.Millisecond
	cases := []struct {
		name string
		do   func(w *world, m *member)
		want time.Duration
		disk time.Duration
	}{
		{"killed", func(_ *world, m *member) { m.crash() }, 1400 * time.Millisecond, 0},
		{
			"killed, slow disks", func(_ *world, m *member) { m.crash() },
			1400*time.Millisecond + 4*slow, slow,
		},
		{"killed, its host refuses", func(w *world, m *member) {
			m.crash()
			w.run(20 * time.Millisecond) // what it has sent has arrived
			for _, other := range w.others(m) {
				other.input(func(now time.Time) { other.give(now, Refusing{Member: m.id}) })
			}
		}, 150 * time.Millisecond, 0},
		{"orderly leave", func(w *world, m *member) { w.hand(m) }, 100 * time.Millisecond, 0},
		{
			"orderly leave, slow disks", func(w *world, m *member) { w.hand(m) },
			100*time.Millisecond + 4*slow, slow,
		},
	}
	const runs = 50
	for _, c := range cases {
		var longest time.Duration
		for seed := range uint64(runs) {
			w := newWorld(seed, 3, 2)
			if c.disk > 0 {
				w.disk = [2]time.Duration{c.disk / 2, c.disk}
			}
			w.begin()
			w.leader()
			w.run(w.between(500*time.Millisecond, 1500*time.Millisecond))
			m, began := w.leader(), w.now
			c.do(w, m)
			another := func() bool { return w.acting() != nil && w.acting() != m }
			if !w.runUntil(10*time.Second, another) {
				t.Errorf("%s: nobody acts, seed %d", c.name, seed)
			}
			longest = max(longest, w.now-began)
		}
		t.Logf("%s: %s at most, in %d runs", c.name, longest, runs)
		if longest > c.want {
			t.Errorf("%s: %s until another acts, want %s at most", c.name, longest, c.want)
		}
	}
}

// Equal seeds give equal runs, to the last message.
func TestEqualSeedsGiveEqualRuns(t *testing.T) {
	traces := map[uint64]bool{}
	for seed := range uint64(5) {
		a, _ := play(drawn(seed))
		b, _ := play(drawn(seed))
		if a.trace != b.trace || a.serial != b.serial {
			t.Errorf("seed %d: trace %x of %d events, then %x of %d",
				seed, a.trace, a.serial, b.trace, b.serial)
		}
		traces[a.trace] = true
	}
	if len(traces) != 5 {
		t.Errorf("%d traces of 5 seeds", len(traces))
	}
}

// How far the log is committed is told with the next entry, or with the next heartbeat: in calm no
// message is sent for that alone. Where entries are lost, empty messages go on finding that out.
func TestNewsOfCommitsWaitForTheNextMessage(t *testing.T) {
	w := newWorld(5, 3, 2)
	w.user.tasks = 5
	entries, empty := 0, 0
	w.drops = func(_, _ *host, payload any) bool {
		switch m := raftMessage(payload); {
		case m.GetType() != pb.MsgApp:
		case len(m.GetEntries()) > 0:
			entries++
		default:
			empty++
		}
		return false
	}
	w.begin()
	if !w.runUntil(time.Minute, w.allDone) {
		t.Fatal("not all is done")
	}
	leader := w.leader()
	w.run(w.cfg.Heartbeat + 2*w.delay[1])
	for _, m := range w.others(leader) {
		if got, want := m.group.Applied(), leader.group.Applied(); got != want {
			t.Errorf("a heartbeat later %s has %d entries, want %d", m.name, got, want)
		}
	}
	if entries == 0 || empty > 0 {
		t.Errorf("%d messages with entries, %d without", entries, empty)
	}
	behind, lost := w.others(leader)[0], 0
	w.drops = func(_, to *host, payload any) bool {
		drop := to == behind.host && len(raftMessage(payload).GetEntries()) > 0
		if drop {
			lost++
		}
		return drop
	}
	w.user.submit(5)
	w.run(w.cfg.ElectionTimeout)
	w.drops = nil
	w.run(3 * w.cfg.Heartbeat)
	if got, want := behind.group.Applied(), leader.group.Applied(); got != want || lost == 0 {
		t.Errorf("%d messages were lost, and %d entries are known, want %d", lost, got, want)
	}
}
