package site

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// submitters holds what this site remembers of those that give it work, beside their
// attempts. Who may order what is asked here and nowhere else. The tables forget
// what nobody asked for in the longest time, so that no submitter can make them
// grow; only tenants is exact.
type submitters struct {
	bindings *recent[grid.JobID, *binding]
	tenants  map[grid.SiteID]*tenant

	// tokens has the highest token of a task that was heard of without an attempt of
	// it here: declined, or fenced off before it came. An award at or below it is
	// stale. To forget one is safe: the attempt that is accepted then gets no lease,
	// since its submitter grants none to a token that it has overtaken.
	tokens *recent[grid.TaskID, grid.Token]

	requests requests

	// lines has the line of runs, as in step.Boot, that each submitter is in.
	lines *recent[grid.SiteID, uint64]
	// names has each submitter's name once: all bindings of its jobs share it.
	names *recent[grid.SiteID, grid.SiteID]
}

func newSubmitters() submitters {
	return submitters{
		bindings: newRecent[grid.JobID, *binding](maxBindings), tenants: make(map[grid.SiteID]*tenant),
		tokens: newRecent[grid.TaskID, grid.Token](maxTokens),
		lines:  newRecent[grid.SiteID, uint64](maxPeers),
		names:  newRecent[grid.SiteID, grid.SiteID](maxPeers),
	}
}

// binding is the memory of a job beside its requirement. The first
// announcement binds the job to its submitter for as long as anything is
// remembered of it.
type binding struct {
	submitter grid.SiteID
	numbers   window    // of the job's announcements
	last      time.Time // when one was heard for the first time; zero: none, or it has ended
	ended     bool      // cleared for good: what comes late is ignored
	line      uint64    // of the submitter's runs that has cleared it
}

// end notes that a job was cleared for good.
func (s *submitters) end(job grid.JobID) {
	if b, ok := s.bindings.recall(job); ok {
		b.ended, b.numbers, b.last = true, window{}, time.Time{}
		b.line, _ = s.lines.recall(b.submitter)
	}
}

// hasEnded reports whether a job was cleared for good. Another line of the submitter's runs, of
// a restored state or on another machine, may not know of that: what it has is its business.
func (s *submitters) hasEnded(b *binding) bool {
	line, _ := s.lines.recall(b.submitter)
	return b.ended && b.line == line
}

// note notes an announcement's number and reports whether it has to be
// answered. Numbers are forgotten when the last answer has expired: a submitter
// that was restarted counts from 1 again, and must not be taken for an echo.
func (b *binding) note(seq uint32, now time.Time, validity time.Duration) bool {
	if now.Sub(b.last) > validity {
		b.numbers = window{}
	}
	if !b.numbers.add(seq) {
		return false
	}
	b.last = now
	return true
}

// tenant is a submitter with attempts that need leases.
type tenant struct {
	next time.Time // when the renewal timer fires
	told time.Time // when it was last told how all its attempts go
}

// bind binds an unknown job to a submitter.
func (s *submitters) bind(job grid.JobID, submitter grid.SiteID) *binding {
	b := &binding{submitter: s.name(submitter)}
	s.bindings.put(job, b)
	return b
}

func (s *submitters) name(submitter grid.SiteID) grid.SiteID {
	name, known := s.names.recall(submitter)
	if !known {
		name = submitter
		s.names.put(name, name)
	}
	return name
}

// recallOwner is the submitter that a job is bound to.
func (m *Machine) recallOwner(job grid.JobID) (grid.SiteID, bool) {
	if b, ok := m.submitters.bindings.recall(job); ok {
		return b.submitter, true
	}
	return m.ownerElsewhere(job)
}

// ownerElsewhere is the submitter that a job without a binding belongs to.
func (m *Machine) ownerElsewhere(job grid.JobID) (grid.SiteID, bool) {
	if use := m.roster.byJob[job]; use != nil {
		return use.submitter, true
	}
	if entry, ok := m.cache.Peek(m.now, job); ok {
		return entry.Submitter, true
	}
	return "", false
}

// admitOrder lets a submitter's order through if the job is bound to it, and reports any
// other.
func (m *Machine) admitOrder(job grid.JobID, from grid.SiteID) bool {
	owner, known := m.recallOwner(job)
	switch {
	case !known:
		m.out.Report(step.LevelDebug, eventUnknownJob, aboutJob(job, from))
	case owner != from:
		m.out.Report(step.LevelWarn, eventNotSubmitter, aboutJob(job, from))
	default:
		return true
	}
	return false
}

// admitAnnounce lets an announcement of a job through: it binds an unknown job to its
// submitter, and reports those of others and of jobs that have ended, for which it
// returns nil.
func (m *Machine) admitAnnounce(job grid.JobID, from, submitter grid.SiteID) *binding {
	if from != submitter {
		m.out.Report(step.LevelWarn, eventForged, aboutJob(job, from))
		return nil
	}
	b, bound := m.submitters.bindings.recall(job)
	if !bound {
		if owner, known := m.ownerElsewhere(job); !known || owner == from {
			b = m.submitters.bind(job, from)
		}
	}
	if b == nil || b.submitter != from {
		m.out.Report(step.LevelWarn, eventNotSubmitter, aboutJob(job, from))
		return nil
	}
	if m.submitters.hasEnded(b) {
		m.out.Report(step.LevelDebug, eventJobEnded, aboutJob(job, from))
		return nil
	}
	return b
}

// raiseToken remembers the highest token of a task that this site knows to have
// been given out.
func (m *Machine) raiseToken(task grid.TaskID, token grid.Token) {
	if token > m.recallToken(task) {
		m.submitters.tokens.put(task, token)
	}
}

// recallToken is the highest token known of a task, 0 if none.
func (m *Machine) recallToken(task grid.TaskID) grid.Token {
	token, _ := m.submitters.tokens.recall(task)
	if list := m.roster.byTask[task]; len(list) > 0 {
		token = max(token, list[len(list)-1].id.Token)
	}
	return token
}
