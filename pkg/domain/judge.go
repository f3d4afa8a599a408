package domain

import (
	"cmp"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/remap"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// soon collects what sites say in a short while.
const soon = 200 * time.Millisecond

// judgeSoon judges a little later, so that a burst of news makes one judgement.
func (m *Machine) judgeSoon() {
	if at := m.now.Add(soon); m.judging.IsZero() || m.judging.After(at) {
		m.judging = at
		m.out.SetTimer(timerJudge, "", at)
	}
}

// judgeNow works out anew what leaves the sites that have failed, and tells their submitters. It
// judges again in each slot until what a failed site has promised is over.
func (m *Machine) judgeNow() {
	m.judging = time.Time{}
	m.prune()
	m.out.StopTimer(timerJudge, "")
	m.before = 0
	if m.anythingLost() {
		t := m.newTable()
		t.leave()
		m.before = t.ahead()
		m.tell()
	} else if !m.anythingAway() {
		return
	}
	m.judging = m.now.Add(m.cfg.Slot)
	m.out.SetTimer(timerJudge, "", m.judging)
}

// anythingLost reports whether a site that does not work, or not all of it, has promised something
// that is ahead.
func (m *Machine) anythingLost() bool {
	return slices.ContainsFunc(m.sites.all(), func(s *site) bool {
		isAhead := func(b *booking) bool { return b.isAhead(m.now) }
		return s.isImpaired() && slices.ContainsFunc(s.sorted(), isAhead)
	})
}

// anythingAway reports whether a site that has failed has promised something that is not over.
func (m *Machine) anythingAway() bool {
	return slices.ContainsFunc(m.sites.all(), func(s *site) bool {
		return !s.failed.IsZero() && len(s.bookings) > 0
	})
}

// claimed is a booking and the site that says that it has it.
type claimed struct {
	s *site
	b *booking
	r remap.Reservation
}

// table is the time ahead in slots, from now on.
type table struct {
	m       *Machine
	slot    time.Duration
	slots   int64
	sites   []*site // of each machine; one of which a part has failed has two
	load    *remap.Table
	held    map[grid.TaskID][]*claimed
	leaving []*claimed // what is ahead on what has failed, in the order in which it may leave
	before  int64
}

// maxCells bounds a table. One that would be larger has longer slots.
const maxCells = 1 << 18

// newTable puts all bookings into a table.
func (m *Machine) newTable() *table {
	t := &table{m: m, slot: m.cfg.Slot, held: make(map[grid.TaskID][]*claimed)}
	var machines []remap.Amount
	var failed []int
	works, lost := make(map[*site]int), make(map[*site]int)
	for _, s := range m.sites.all() {
		if !s.said || s.failed.IsZero() && !s.here {
			continue // it has promised nothing, or may be back soon
		}
		if s.here {
			works[s] = len(machines)
			machines, t.sites = append(machines, amount(s.works)), append(t.sites, s)
		}
		if s.isImpaired() {
			lost[s] = len(machines)
			failed = append(failed, len(machines))
			machines, t.sites = append(machines, amount(s.lost())), append(t.sites, s)
		}
	}
	t.span(len(machines))
	t.load = remap.NewTable(machines, t.slots)
	for _, c := range t.inOrder() {
		t.put(c, works, lost)
	}
	t.load.Fail(failed...)
	if m.cfg.Prices {
		t.load.Prices = t.prices()
	}
	return t
}

// prices are what each machine's owner asks for a core and an hour.
func (t *table) prices() []float64 {
	sum, named := 0., 0
	for _, s := range t.sites {
		if s.priced {
			sum, named = sum+s.price, named+1
		}
	}
	all := make([]float64, len(t.sites))
	for i, s := range t.sites {
		if all[i] = s.price; !s.priced {
			all[i] = sum / float64(max(named, 1))
		}
	}
	return all
}

// ahead is 1 for a booking that has not begun, else 0.
func ahead(b *booking, now time.Time) int {
	if b.isAhead(now) {
		return 1
	}
	return 0
}

// span finds how many slots there are, and how long they are.
func (t *table) span(machines int) {
	last := t.m.now
	for _, s := range t.m.sites.all() {
		for _, b := range s.sorted() {
			if b.end.After(last) {
				last = b.end
			}
		}
	}
	most := int64(maxCells / max(machines, 1))
	for t.slots = int64(last.Sub(t.m.now)/t.slot) + 2; t.slots > most; {
		t.slot *= 2
		t.slots = int64(last.Sub(t.m.now)/t.slot) + 2
	}
}

// inOrder lists all bookings, in the order in which they were made: first come, first served, but
// for what a broken promise costs.
func (t *table) inOrder() []*claimed {
	m := t.m
	var all []*claimed
	for _, s := range m.sites.all() {
		for _, b := range s.sorted() {
			c := &claimed{s: s, b: b, r: remap.Reservation{
				Start: t.slotOf(b.start), Stop: t.slotAfter(b.end), Need: amount(b.need),
				Machine: remap.None,
			}}
			all = append(all, c)
			t.held[b.attempt.Task] = append(t.held[b.attempt.Task], c)
		}
	}
	slices.SortStableFunc(all, func(a, b *claimed) int {
		return cmp.Or(
			ahead(a.b, m.now)-ahead(b.b, m.now), // what has begun stays where it is
			cmp.Compare(m.cfg.Fines[b.b.submitter], m.cfg.Fines[a.b.submitter]),
			a.b.booked.Compare(b.b.booked), a.b.attempt.Compare(b.b.attempt),
		)
	})
	for i, c := range all {
		c.r.Seq = int64(i)
	}
	return all
}

// put reserves for a booking at its site: what works takes those that fit, in their order, and what
// is lost the rest. A site that says that it has promised more than it has counts for what it has.
func (t *table) put(c *claimed, works, lost map[*site]int) {
	c.b.leaves = false
	if at, is := works[c.s]; is && t.load.Takes(at, c.r.Need, c.r.Start, c.r.Stop) {
		t.reserve(c, at)
		return
	}
	at, is := lost[c.s]
	if !is {
		return
	}
	_, moved := t.isElsewhere(c)
	partly := c.s.failed.IsZero() && c.s.capacity.Fits(c.b.need)
	if !moved && (partly || t.load.Takes(at, c.r.Need, c.r.Start, c.r.Stop)) {
		t.reserve(c, at)
	}
	if c.b.isAhead(t.m.now) {
		t.leaving = append(t.leaving, c)
	}
}

func (t *table) reserve(c *claimed, at int) {
	t.load.Reserve(at, c.r.Need, c.r.Start, c.r.Stop)
	c.r.Machine = at
}

// leave works out the interval, and finds other sites for what starts inside of it.
func (t *table) leave() {
	p := remap.Policy{
		Weight: t.m.cfg.Weight, Share: t.m.cfg.Share, Surviving: !t.m.cfg.AllNodes,
	}
	t.before = p.Before(t.load, 0, remap.Outage{})
	for _, c := range t.leaving {
		if !c.r.Leaves(0, t.before) {
			c.b.to = ""
			continue
		}
		c.b.leaves = true
		if to, moved := t.isElsewhere(c); moved {
			c.b.to = to
			continue
		}
		t.move(c)
	}
}

// move finds a site for one booking: the one that it was told before, if that still has space.
func (t *table) move(c *claimed) {
	was := c.b.to
	again := func(machine int) (from, stop int64, ok bool) {
		from, stop, ok = t.fit(c, machine)
		return from, stop, ok && t.sites[machine].id == was
	}
	if was != "" && t.load.Move(&c.r, c.r.Start, again) {
		return
	}
	c.b.to = ""
	anew := func(machine int) (from, stop int64, ok bool) { return t.fit(c, machine) }
	if t.load.Move(&c.r, c.r.Start, anew) {
		c.b.to = t.sites[c.r.Machine].id
	}
}

// fit tells the slots of a booking at another site: it takes more or less time there, and its data
// has to be there at its start.
func (t *table) fit(c *claimed, machine int) (from, stop int64, ok bool) {
	to, b := t.sites[machine], c.b
	if to == c.s {
		return 0, 0, false
	}
	lasts := b.end.Sub(b.start)
	if b.scales && c.s.coreMFLOPS > 0 && to.coreMFLOPS > 0 {
		lasts = time.Duration(float64(lasts) * float64(c.s.coreMFLOPS) / float64(to.coreMFLOPS))
	}
	if b.data > 0 && to.downBps > 0 {
		moved := time.Duration(float64(b.data) * 8 / float64(to.downBps) * float64(time.Second))
		if t.m.now.Add(moved).After(b.start) {
			return 0, 0, false
		}
	}
	stop = min(max(t.slotAfter(b.start.Add(lasts)), c.r.Start+1), t.slots)
	return c.r.Start, stop, true
}

// isElsewhere tells another site that is there and has a later attempt of the same task, for the
// same submitter: then it has moved, unless one of both lies. Its submitter knows.
func (t *table) isElsewhere(c *claimed) (at grid.SiteID, moved bool) {
	for _, o := range t.held[c.b.attempt.Task] {
		later := o.b.attempt.Token > c.b.attempt.Token && o.b.submitter == c.b.submitter
		if later && o.s != c.s && o.s.here {
			return o.s.id, true
		}
	}
	return "", false
}

// ahead tells how far ahead of now tasks leave.
func (t *table) ahead() time.Duration {
	if t.before >= int64(grid.MaxRuntime/t.slot) {
		return grid.MaxRuntime
	}
	return time.Duration(t.before) * t.slot
}

// slotOf is the slot of a time; what has begun is in the present one.
func (t *table) slotOf(at time.Time) int64 { return max(int64(at.Sub(t.m.now)/t.slot), 0) }

// slotAfter is the slot after the last one that a time reaches into.
func (t *table) slotAfter(at time.Time) int64 {
	return max(int64((at.Sub(t.m.now)+t.slot-1)/t.slot), 1)
}

// amount has what a site can run out of for a task: cores, and MiB of memory.
func amount(r grid.Resources) remap.Amount {
	return remap.Amount{r.MilliCPUs, (r.MemoryBytes + 1<<20 - 1) >> 20}
}

// warn says that some tasks have no other place.
func (m *Machine) warn(s *site, stuck int) {
	if stuck > 0 {
		m.out.Report(step.LevelWarn, eventStuck, step.Report{
			Site: s.id, Reason: grid.ReasonNowhere, Value: float64(stuck),
		})
	}
}
