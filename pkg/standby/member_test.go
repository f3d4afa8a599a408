package standby

import (
	"strconv"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// member drives a Group as an agent would: a disk, messages, wake-ups, and the machine.
type member struct {
	*host
	id    MemberID
	seed  uint64
	first []MemberID // of the group

	disk    *Stored
	lost    bool   // the disk, and the ID with it
	writing []Save // not on the disk yet
	group   *Group

	machine *jobs
	term    uint64 // of the machine
	timers  int    // of the machine, those set before are void
	hold    bool
	held    []any // inputs of the machine

	boots, ends int
	problem     error
	lastWake    int
}

func newMember(w *world, id MemberID, seed uint64, first ...MemberID) *member {
	disk := Founded(0, nil, first...)
	return &member{
		host: newHost(w, "m"+strconv.FormatUint(uint64(id), 10)), id: id,
		seed: seed + uint64(id)<<32, first: first, disk: &disk,
	}
}

// join is a member that comes later, with an ID of its own.
func (w *world) join(id MemberID) *member {
	m := newMember(w, id, uint64(w.rng.Uint32()))
	m.disk = new(Stored)
	*m.disk = Joining()
	w.members = append(w.members, m)
	m.start()
	return m
}

// start begins another life of the agent.
func (m *member) start() {
	if m.up {
		return
	}
	if m.lost {
		if !m.world.off.newID {
			return // rule 12: without its log it is this member no longer
		}
		disk := Founded(0, nil, m.first...)
		m.disk, m.lost = &disk, false
	}
	m.world.note("%s starts", m.name)
	m.up = true
	cfg := m.world.cfg
	cfg.ID, cfg.Seed = m.id, m.seed+uint64(m.life)
	m.lastWake++
	group, err := New(cfg, m.clock(), m.disk.clone())
	if err != nil {
		m.ended(err)
		return
	}
	m.group = group
	m.input(func(now time.Time) { m.give(now, Woken{}) })
}

// clone copies what is on a disk.
func (s *Stored) clone() *Stored {
	c := *s
	c.Table = step.Facts{}
	for _, f := range s.Table.All() {
		c.Table.Apply(f)
	}
	c.Entries = append([]Entry(nil), s.Entries...)
	return &c
}

// crash ends the agent. Of what it was writing, the disk has got a part: whole Saves, in order.
func (m *member) crash() {
	if !m.up {
		return
	}
	done := m.world.rng.IntN(len(m.writing) + 1)
	for _, save := range m.writing[:done] {
		m.disk.Apply(save)
	}
	if m.world.off.oneSave && done < len(m.writing) {
		m.tear(m.writing[done])
	}
	m.writing = nil
	m.drop("crash")
	m.group = nil
	m.stop()
}

// tear writes the half of a Save that must not part from the other: how far the table has
// come, without what came.
func (m *member) tear(save Save) {
	save.Facts = nil
	m.disk.Apply(save)
}

// loseDisk ends the agent, and its log with it.
func (m *member) loseDisk() {
	m.crash()
	m.world.note("%s loses its disk", m.name)
	m.lost = true
}

// give hands an input to the group and carries out what comes back.
func (m *member) give(now time.Time, in Input) {
	effects := m.group.Step(now, in)
	if err := m.group.Check(); err != nil && m.problem == nil {
		m.problem = err
	}
	for _, e := range effects {
		m.carry(now, e)
		if m.group == nil {
			return
		}
	}
}

func (m *member) carry(now time.Time, e Effect) {
	switch e := e.(type) {
	case Wake:
		m.lastWake++
		wake := m.lastWake
		m.at(e.At, func(now time.Time) {
			if m.lastWake == wake {
				m.give(now, Woken{})
			}
		})
	case Send:
		m.send(e)
	case Save:
		m.save(e)
	case Boot:
		m.boot(now, e)
	case Discard:
		m.drop(e.Why)
	case Release:
		m.release(e)
	case Hold:
		m.hold = e.On
		for held := m.held; !m.hold && len(held) > 0; held = held[1:] {
			m.held = nil
			m.toMachine(now, held[0])
		}
	case Ended:
		m.ended(e.Err)
	}
}

func (m *member) ended(err error) {
	m.world.note("%s ends: %v", m.name, err)
	m.ends++
	m.writing = nil
	m.drop("ended")
	m.group = nil
	m.stop()
}

func (m *member) send(e Send) {
	to := m.world.member(e.To)
	if to == nil {
		return
	}
	from := m.id
	m.world.send(m.host, to.host, e, func(now time.Time) {
		if to.group != nil {
			to.give(now, Received{From: from, Data: e.Data})
		}
	})
}

func (w *world) member(id MemberID) *member {
	for _, m := range w.members {
		if m.id == id {
			return m
		}
	}
	return nil
}

// save writes with the disk's delay. What needs no Sync goes with the next that does.
func (m *member) save(e Save) {
	m.writing = append(m.writing, e)
	if !e.Sync {
		return
	}
	d := m.world.between(m.world.disk[0], m.world.disk[1])
	m.at(m.clock().Add(d), func(now time.Time) {
		for len(m.writing) > 0 && m.writing[0].Number <= e.Number {
			m.disk.Apply(m.writing[0])
			m.writing = m.writing[1:]
		}
		m.give(now, Saved{Number: e.Number})
	})
}

func (m *member) boot(now time.Time, e Boot) {
	m.world.note("%s boots in term %d: %s", m.name, e.Term, e.Facts)
	m.boots++
	m.machine, m.term = newJobs(m.world.jobs, e.Term, e.Facts), e.Term
	m.toMachine(now, booted{})
}

func (m *member) drop(why string) {
	if m.machine != nil {
		m.world.note("%s drops the machine: %s", m.name, why)
	}
	m.machine, m.hold, m.held = nil, false, nil
	m.timers++
}

// toMachine gives the machine an input, if one runs here.
func (m *member) toMachine(now time.Time, in any) {
	switch {
	case m.machine == nil || m.group == nil:
	case m.hold:
		m.held = append(m.held, in)
	default:
		m.give(now, Stepped{Term: m.term, Effects: m.machine.step(now, in)})
		if m.world.rests && m.machine != nil {
			m.give(now, Rest{On: m.machine.idle()})
		}
	}
}

// release carries out what the machine wanted.
func (m *member) release(e Release) {
	for _, e := range e.Effects {
		switch e := e.(type) {
		case step.SetTimer:
			m.timers++
			timer := m.timers
			m.at(e.At, func(now time.Time) {
				if m.timers == timer {
					m.toMachine(now, ticked{})
				}
			})
		case step.Send:
			m.tell(e.To, e.Message)
		case step.Reply:
			m.world.user.answer(m, e.Command)
		}
	}
}

func (m *member) tell(to grid.SiteID, message protocol.Message) {
	n, _ := strconv.Atoi(string(to))
	s, term := m.world.sites[n], m.term
	m.world.send(m.host, s.host, message, func(now time.Time) { s.heed(now, term, message) })
}
