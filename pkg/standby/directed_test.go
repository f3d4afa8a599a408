package standby

import (
	"flag"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

var directedSeeds = flag.Int("standby.directed", 20, "how many runs of each directed schedule")

// schedule is trouble in an order that a random search rarely meets. Each is played with its
// safeguard, and then nothing is doubled or lost, and without, and then something is.
type schedule struct {
	name      string
	safeguard string
	members   int          // 0: three
	both      func(*world) // changes the world with the safeguard and without it
	out       func(*world) // takes the safeguard out
	play      func(*world)
}

// leader is who acts; the schedules begin when somebody does.
func (w *world) leader() *member {
	if !w.runUntil(30*time.Second, func() bool { return w.acting() != nil }) {
		panic("nobody acts")
	}
	return w.acting()
}

// others are the members besides one.
func (w *world) others(m *member) (rest []*member) {
	for _, other := range w.members {
		if other != m {
			rest = append(rest, other)
		}
	}
	return rest
}

// busy lets time pass until every task runs, and lists the sites at which they do.
func (w *world) busy() (busy []*site) {
	w.runUntil(20*time.Second, func() bool {
		runs := 0
		for task := range w.user.tasks {
			runs += len(w.oracle.running[task])
		}
		return runs >= w.user.tasks
	})
	w.run(w.between(200*time.Millisecond, 1500*time.Millisecond))
	for _, s := range w.sites {
		for _, task := range s.tasks() {
			if s.attempts[task].running {
				busy = append(busy, s)
				break
			}
		}
	}
	return busy
}

// split parts hosts from all others.
func (w *world) split(hosts ...*host) {
	in := map[*host]bool{}
	for _, h := range hosts {
		in[h] = true
	}
	for _, a := range w.hosts {
		for _, b := range w.hosts {
			if in[a] != in[b] {
				w.part(a, b, true)
			}
		}
	}
}

// splitWith parts a member and sites from all others.
func (w *world) splitWith(m *member, sites []*site) {
	hosts := []*host{m.host}
	for _, s := range sites {
		hosts = append(hosts, s.host)
	}
	w.split(hosts...)
}

// raftMessage reads a payload as raft does, nil if it is not for raft.
func raftMessage(payload any) *pb.Message {
	send, is := payload.(Send)
	if !is {
		return nil
	}
	m := new(pb.Message)
	if proto.Unmarshal(send.Data, m) != nil {
		return nil
	}
	return m
}

// bearsEntries reports whether a payload brings entries to another member.
func bearsEntries(payload any) bool {
	m := raftMessage(payload)
	return m != nil && len(m.GetEntries()) > 0
}

// saysOnlyCommit reports whether a payload tells another member what is committed, and no more.
func saysOnlyCommit(payload any) bool {
	m := raftMessage(payload)
	return m != nil && m.GetType() == pb.MsgApp && len(m.GetEntries()) == 0
}

// onFirst does something when the first lease leaves a member, before anything else does.
func (w *world) onFirst(isWanted func(payload any) bool, do func(from, to *host)) {
	done := false
	w.drops = func(from, to *host, payload any) bool {
		if !done && isWanted(payload) {
			done = true
			do(from, to)
		}
		return false
	}
}

func isLease(payload any) bool { _, is := payload.(protocol.Lease); return is }

func noConfirm(w *world) { w.cfg.off.confirm = true }

func hostsOf(sites []*site) (hosts []*host) {
	for _, s := range sites {
		hosts = append(hosts, s.host)
	}
	return hosts
}

// hand lets a leader hand its lead to another member.
func (w *world) hand(m *member) {
	to := w.others(m)[0].id
	m.input(func(now time.Time) {
		if m.group != nil {
			m.give(now, Transfer{To: to})
		}
	})
}

// directed plays a schedule and reports what was doubled or lost, and whether all has ended
// without a panic.
func directed(s schedule, seed uint64, out bool) (found []string, ended bool) {
	n := s.members
	if n == 0 {
		n = 3
	}
	w := newWorld(seed, n, 6)
	w.user.tasks = 2
	w.cfg.ResignAfter = time.Hour // it is for progress, and nothing may rest on it
	if s.both != nil {
		s.both(w)
	}
	if out {
		s.out(w)
	}
	w.begin()
	s.play(w)
	w.drops, w.lags = nil, nil
	t := trouble{world: w}
	for range 12 {
		t.heal()
		if w.runUntil(10*time.Second, w.allDone) {
			break
		}
	}
	ended = w.allDone()
	for _, m := range w.members {
		ended = ended && m.ends == 0
	}
	if out { // a broken invariant alone is no double run
		return w.broken(), ended
	}
	return w.verdict(), ended
}

func TestDirectedSchedules(t *testing.T) {
	for _, s := range schedules() {
		t.Run(strings.ReplaceAll(s.name, " ", "_"), func(t *testing.T) {
			in, out := 0, 0
			for seed := range uint64(*directedSeeds) {
				found, ended := directed(s, seed, false)
				if len(found) > 0 {
					in++
					t.Errorf("seed %d: %v", seed, found)
				}
				if !ended {
					t.Errorf("seed %d: not all has ended", seed)
				}
				if found, _ := directed(s, seed, true); len(found) > 0 {
					out++
				}
			}
			t.Logf("%s: in %d, out %d of %d doubled or lost", s.safeguard, in, out, *directedSeeds)
			if out < *directedSeeds/5 {
				t.Errorf("without %s only %d of %d runs are doubled: the schedule shows nothing",
					s.safeguard, out, *directedSeeds)
			}
		})
	}
}
