package standby

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// site runs attempts under leases, which it counts by its own clock from the moment at which it
// asked. It heeds no term below one that it has heeded (rule 10).
type site struct {
	*host
	number   int
	term     uint64
	attempts map[int]*attempt
	fenced   map[int]grid.Token // attempts below never run here again
	renewals uint64
}

type attempt struct {
	task    int
	token   grid.Token
	asked   map[uint64]time.Time // by renewal
	until   time.Time            // of the lease
	left    time.Duration        // of its work
	since   time.Time            // it runs since then
	running bool
	ended   bool
}

const workTime = 12 * time.Second

func newSite(w *world, number int) *site {
	s := &site{
		host: newHost(w, "s"+strconv.Itoa(number)), number: number,
		attempts: map[int]*attempt{}, fenced: map[int]grid.Token{},
	}
	s.up = true
	return s
}

// heed takes a message of an acting submitter.
func (s *site) heed(now time.Time, term uint64, message protocol.Message) {
	if term < s.term {
		return
	}
	s.term = term
	switch message := message.(type) {
	case protocol.Award:
		for _, t := range message.Tasks {
			s.award(now, int(t.Index), t.Token)
		}
	case protocol.Lease:
		for _, id := range message.Attempts {
			s.lease(now, id, message.Renewal, message.Duration)
		}
	case protocol.Fence:
		for _, id := range message.Below {
			s.fence(now, id)
		}
	case protocol.ExitAck:
		for _, id := range message.Attempts {
			s.acknowledged(now, id)
		}
	}
}

func (s *site) award(now time.Time, task int, token grid.Token) {
	if old := s.attempts[task]; token < s.fenced[task] || old != nil && old.token >= token {
		return
	}
	s.drop(now, task)
	a := &attempt{task: task, token: token, asked: map[uint64]time.Time{}, left: workTime}
	s.attempts[task] = a
	s.ask(now, a)
}

// ask asks all members for a lease, and again after a third of it.
func (s *site) ask(now time.Time, a *attempt) {
	if s.attempts[a.task] != a {
		return
	}
	if a.ended {
		s.world.toAll(s.host, exited{site: s.number, task: a.task, token: a.token})
	} else {
		s.renewals++
		a.asked[s.renewals] = now
		s.world.toAll(s.host, asked{
			site: s.number, task: a.task, token: a.token, renewal: s.renewals,
		})
	}
	s.at(now.Add(s.world.jobs.lease/3), func(now time.Time) { s.ask(now, a) })
}

// toAll sends to every member; those that do not act ignore it.
func (w *world) toAll(from *host, in any) {
	for _, m := range w.members {
		w.send(from, m.host, in, func(now time.Time) { m.toMachine(now, in) })
	}
}

func (s *site) lease(now time.Time, id grid.AttemptID, renewal uint64, d time.Duration) {
	a := s.attempts[int(id.Task.Index)]
	if a == nil || a.token != id.Token || a.ended {
		return
	}
	from, known := a.asked[renewal]
	if !known {
		return
	}
	if s.world.off.fromAsk {
		from = now
	}
	if end := from.Add(d); end.After(a.until) {
		a.until = end
		s.at(end, func(now time.Time) { s.look(now, a) })
	}
	s.look(now, a)
}

// look starts, freezes or ends an attempt, whatever its clock says.
func (s *site) look(now time.Time, a *attempt) {
	if s.attempts[a.task] != a || a.ended {
		return
	}
	if a.running {
		a.left -= now.Sub(a.since)
		a.since = now
	}
	leased := now.Before(a.until)
	switch {
	case a.running && !leased:
		s.freeze(now, a)
	case a.left <= 0:
		s.freeze(now, a)
		a.ended = true
		s.ask(now, a)
	case leased && !a.running:
		a.running, a.since = true, now
		s.world.oracle.starts(a.task, s.number, a.token)
		fallthrough
	default:
		if a.running {
			s.at(now.Add(a.left), func(now time.Time) { s.look(now, a) })
		}
	}
}

func (s *site) freeze(_ time.Time, a *attempt) {
	if a.running {
		a.running = false
		s.world.oracle.stops(a.task, s.number)
	}
}

func (s *site) fence(now time.Time, below grid.AttemptID) {
	task := int(below.Task.Index)
	s.fenced[task] = max(s.fenced[task], below.Token)
	if a := s.attempts[task]; a != nil && a.token < below.Token {
		s.drop(now, task)
	}
}

func (s *site) acknowledged(now time.Time, id grid.AttemptID) {
	task := int(id.Task.Index)
	if a := s.attempts[task]; a != nil && a.token == id.Token && a.ended {
		s.world.oracle.acknowledged(task)
		s.drop(now, task)
	}
}

func (s *site) drop(now time.Time, task int) {
	if a := s.attempts[task]; a != nil {
		s.freeze(now, a)
		delete(s.attempts, task)
	}
}

func (s *site) tasks() []int { return slices.Sorted(maps.Keys(s.attempts)) }

// crash ends the site and all its attempts.
func (s *site) crash() {
	for _, task := range s.tasks() {
		s.drop(s.clock(), task)
	}
	s.stop()
}

// suspend stops the site with its attempts.
func (s *site) suspend(d time.Duration) {
	if s.suspended || !s.up {
		return
	}
	var frozen []*attempt
	for _, task := range s.tasks() {
		a := s.attempts[task]
		if a.running {
			s.world.oracle.stops(a.task, s.number)
			frozen = append(frozen, a)
		}
	}
	s.host.suspend(d)
	life := s.life
	// The site's own clocks come first when it goes on: what has no lease does not run.
	s.world.after(d, func() {
		if s.life != life {
			return
		}
		for _, a := range frozen {
			if s.attempts[a.task] == a && a.running && !s.suspended {
				s.wake(a)
			}
		}
	})
}

// wake lets an attempt go on after a suspend, if its lease still holds.
func (s *site) wake(a *attempt) {
	now := s.clock()
	if now.Before(a.until) {
		s.world.oracle.starts(a.task, s.number, a.token)
		return
	}
	a.running = false
}

// start brings a site back that has crashed.
func (s *site) start() { s.up = true }

// user submits tasks until a member has accepted each.
type user struct {
	*host
	tasks    int
	accepted map[int]bool
}

func newUser(w *world) *user {
	u := &user{host: newHost(w, "user"), accepted: map[int]bool{}}
	u.up = true
	return u
}

func (u *user) begin() {
	for task := range u.tasks {
		u.submit(task)
	}
}

// submit hands a task in, again and again.
func (u *user) submit(task int) {
	if u.accepted[task] {
		return
	}
	u.world.toAll(u.host, submitted{task: task, command: uint64(task)})
	u.at(u.clock().Add(500*time.Millisecond), func(time.Time) { u.submit(task) })
}

// answer is a member's reply.
func (u *user) answer(m *member, command uint64) {
	u.world.send(m.host, u.host, command, func(time.Time) {
		u.accepted[int(command)] = true
		u.world.note("task %d is accepted", command)
	})
}
