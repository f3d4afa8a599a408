package standby

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"
)

var (
	seeds     = flag.Int("standby.seeds", 300, "how many random runs of groups")
	talk      = flag.Bool("standby.talk", false, "log what happens in random runs")
	firstSeed = flag.Uint64("standby.first", 1, "the seed of the first of them")
)

// trouble happens to a world by chance, for so long.
type trouble struct {
	*world
	until time.Duration
	seen  map[string]int // what happened, and how often
	lost  bool           // a disk, and its member is not replaced yet

	newest   MemberID // that has joined
	replaced int
}

// drawn makes a world of which everything is drawn: the number of members, clocks up to 5 %
// off, the network, and whether tasks have rivals or long leases.
func drawn(seed uint64) *world {
	w := newWorld(seed, 3, 4)
	w.user.tasks = 1 + w.rng.IntN(6)
	w.loss = []float64{0, 0, .02, .1}[w.rng.IntN(4)]
	w.jobs.rivals = w.rng.IntN(4) == 0
	w.rests = w.rng.IntN(2) == 0
	w.cfg.KeepBytes = []int{0, 2000, 1 << 20}[w.rng.IntN(3)] // members behind are sent tables
	for _, h := range w.hosts {
		h.rate = .95 + .1*w.rng.Float64()
		h.shift = w.between(0, time.Hour)
	}
	return w
}

// begin lets trouble begin and go on until its time is over.
func (t *trouble) begin() {
	if t.now >= t.until {
		return
	}
	t.one()
	t.after(t.between(50*time.Millisecond, 2500*time.Millisecond), t.begin)
}

// one trouble of some kind, at some host.
func (t *trouble) one() {
	m := t.members[t.rng.IntN(len(t.members))]
	if m.lost {
		return
	}
	if acting := t.acting(); acting != nil && t.rng.IntN(2) == 0 {
		m = acting // who acts has the more interesting troubles
	}
	s := t.sites[t.rng.IntN(len(t.sites))]
	d := t.between(10*time.Millisecond, 6*time.Second)
	kinds := []struct {
		name string
		do   func()
	}{
		{"crash", func() { t.crash(m, d) }},
		{"isolation", func() { t.isolate(m, true); t.after(d, func() { t.isolate(m, false) }) }},
		{"one-way cut", func() { t.cutOneWay(d) }},
		{"one-way cut", func() { t.cutOneWay(d) }},
		{"suspend of a member", func() { m.suspend(d) }},
		{"suspend of a site", func() { s.suspend(d) }},
		{"stuck messages", func() { m.stuck = m.up; t.after(d, m.unstick) }},
		{"crash of a site", func() { s.crash(); t.after(d, s.start) }},
		{"transfer", func() { t.transfer(m) }},
		{"lost disk", func() { t.loseDisk(m) }},
	}
	k := kinds[t.rng.IntN(len(kinds))]
	if k.name == "lost disk" && (t.lost || t.rng.IntN(4) > 0) {
		return
	}
	t.seen[k.name]++
	k.do()
}

// crash ends an agent for a while. Others may see that its host refuses connections.
func (t *trouble) crash(m *member, d time.Duration) {
	m.crash()
	t.after(d, m.start)
	for _, other := range t.members {
		if other != m && t.rng.IntN(3) == 0 {
			t.send(m.host, other.host, "refused", func(now time.Time) {
				if other.group != nil && !m.up {
					other.give(now, Refusing{Member: m.id})
				}
			})
		}
	}
}

func (t *trouble) cutOneWay(d time.Duration) {
	from, to := t.hosts[t.rng.IntN(len(t.hosts))], t.hosts[t.rng.IntN(len(t.hosts))]
	t.part(from, to, true)
	t.after(d, func() { t.part(from, to, false) })
}

func (t *trouble) transfer(m *member) {
	to := t.members[t.rng.IntN(len(t.members))].id
	m.input(func(now time.Time) {
		if m.group != nil {
			m.give(now, Transfer{To: to})
		}
	})
}

// loseDisk takes a disk for good. After a while a new member takes the place of the lost one;
// only then another may be lost, for two of three are more than the group promises to bear.
func (t *trouble) loseDisk(m *member) {
	t.lost = true
	m.loseDisk()
	t.after(t.between(0, time.Second), m.start) // for nothing: its ID went with the log
	var voters []MemberID
	for _, other := range t.members {
		if !other.lost {
			voters = append(voters, other.id)
		}
	}
	t.newest++
	joins := t.newest
	voters = append(voters, joins)
	t.after(t.between(0, 5*time.Second), func() {
		t.join(joins)
		t.replace(voters)
	})
}

// knowing counts the members that have applied the end of a change. Only when a majority has,
// the members before are not needed any more (rule 15: two sign the final certificate).
func (t *trouble) knowing(voters []MemberID) (n int) {
	for _, m := range t.members {
		if m.disk.knows(voters) && !m.lost {
			n++
		}
	}
	return n
}

// knows reports whether these are the only voters, as far as was applied on a disk.
func (s *Stored) knows(voters []MemberID) bool {
	return slices.Equal(s.Conf.Voters, voters) && len(s.Conf.Outgoing) == 0
}

// replace asks the member that acts for a change of members, until there is one.
func (t *trouble) replace(voters []MemberID) {
	if m := t.acting(); m != nil {
		if t.knowing(voters) >= 2 {
			t.lost = false
			t.replaced++
			return
		}
		m.input(func(now time.Time) {
			if m.group != nil {
				m.give(now, Change{Voters: voters})
			}
		})
	}
	t.after(500*time.Millisecond, func() { t.replace(voters) })
}

// heal ends all trouble.
func (t *trouble) heal() {
	t.loss, t.cut = 0, map[[2]*host]bool{}
	for _, h := range t.hosts {
		h.unstick()
		h.resume()
	}
	for _, m := range t.members {
		m.start()
	}
	for _, s := range t.sites {
		s.start()
	}
}

// play is one random run: a minute of trouble, then peace until all has ended.
func play(w *world) (*trouble, []string) {
	t := &trouble{world: w, until: time.Minute, seen: map[string]int{}, newest: 100}
	w.begin()
	t.begin()
	w.run(t.until)
	t.heal()
	// Agents that a panic has ended are started again by their supervisors.
	for range 20 {
		if w.runUntil(10*time.Second, w.allDone) {
			break
		}
		t.heal()
	}
	found := w.verdict()
	if !w.allDone() {
		found = append(found,
			fmt.Sprintf("not all ended by %s: accepted %v", w.now, w.user.accepted))
	}
	return t, found
}

func TestRandomTroubleDoublesAndLosesNothing(t *testing.T) {
	seen := map[string]int{}
	boots, ends, replaced := 0, 0, 0
	for i := range uint64(*seeds) {
		seed := *firstSeed + i
		w := drawn(seed)
		if *talk {
			w.tell = t.Logf
		}
		run, found := play(w)
		if len(found) > 0 {
			t.Errorf("seed %d: %v", seed, found)
		}
		for kind, n := range run.seen {
			seen[kind] += n
		}
		replaced += run.replaced
		for _, m := range run.members {
			boots, ends = boots+m.boots, ends+m.ends
		}
		if t.Failed() && i > 20 {
			break
		}
	}
	t.Logf("%d seeds: %d boots, %d members ended by a panic, %d replaced, %v",
		*seeds, boots, ends, replaced, seen)
	if ends > 0 {
		t.Errorf("%d members ended by a panic", ends)
	}
	if boots < 3**seeds {
		t.Errorf("only %d boots in %d runs: the trouble is none", boots, *seeds)
	}
}
