package site

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/index"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// window remembers which announcement numbers were answered: the highest one
// and the 63 below it.
type window struct {
	last uint32
	seen uint64 // bit i: last-i was answered
}

// windowBits is the width of a window in numbers. A number below it comes from a
// submitter that has started to count again.
const windowBits = 64

// add notes a number and reports whether it is new.
func (w *window) add(n uint32) bool {
	switch {
	case n > w.last: // 0 before the first
		w.seen = w.seen<<min(n-w.last, windowBits) | 1
		w.last = n
	case w.last-n >= windowBits:
		*w = window{last: n, seen: 1}
	case w.seen>>(w.last-n)&1 == 1:
		return false
	default:
		w.seen |= 1 << (w.last - n)
	}
	return true
}

// call is an announcement that waits for an answer.
type call struct {
	job       grid.JobID
	seq       uint32
	submitter grid.SiteID
	count     uint32
	drawn     bool    // to answer however far away it is
	theta     float64 // else up to this distance
	explain   bool
	probe     bool // nothing is awarded for it: nothing is kept
}

// onAnnounce is thesis 4.1, steps 1 and 2: the requirement is cached and answered with this site's
// distance. It serves Requirements, too. Of an announcement that wants only a part of the sites to
// answer, those that were not drawn and are too far away keep nothing and say nothing.
func (m *Machine) onAnnounce(from grid.SiteID, told protocol.Message) {
	msg := announceOf(told)
	b := m.admitAnnounce(msg.Job, from, msg.Submitter)
	if b == nil {
		return
	}
	if !b.note(msg.Seq, m.now, m.cfg.OfferValidity) {
		m.out.Report(step.LevelDebug, eventDuplicate, aboutJob(msg.Job, from))
		return
	}
	m.hearClock(from, msg.Clock)
	m.dropOffer(msg.Job) // the new announcement replaces it; what it held is free again
	c := call{
		job: msg.Job, seq: msg.Seq, submitter: from, count: msg.Count,
		theta: msg.Theta, explain: msg.Explain, probe: msg.Probe,
	}
	req := m.here(from, msg.Req)
	c.drawn = m.isDrawn(c, msg.Sample, req)
	if msg.Part > 0 && m.chance(c) < msg.Part {
		c.theta = max(c.theta, msg.Nearer)
	}
	if !c.drawn && !m.mayBeNear(c, req) {
		m.out.Report(step.LevelDebug, eventNotSampled, aboutJob(c.job, c.submitter))
		return
	}
	if !c.probe {
		m.remember(msg.Job, from, &announced{told: told})
	}
	m.answer(c, req)
}

// announced is a requirement as it is cached: the message that it came with. Nobody changes a
// message, so that the sites of a simulated mesh share it, where a copy for each of 10,000 sites
// and each job was most of what they kept.
type announced struct {
	told   protocol.Message // Announce or Requirements
	digest *protocol.Digest // of the requirement; nil before anybody has asked
}

// announceOf is the announcement that a message is, or has.
func announceOf(told protocol.Message) protocol.Announce {
	if served, is := told.(protocol.Requirements); is {
		return served.Announce
	}
	return told.(protocol.Announce) //nolint:forcetypeassert // onMessage knows no other
}

func (a *announced) requirement() grid.Requirement { return announceOf(a.told).Req }

// is reports whether a requirement has that digest.
func (a *announced) is(digest protocol.Digest) bool {
	if a.digest == nil {
		of := protocol.DigestOf(a.requirement())
		a.digest = &of
	}
	return *a.digest == digest
}

// remember caches a requirement as one of a job that waits.
func (m *Machine) remember(job grid.JobID, submitter grid.SiteID, req *announced) {
	if err := m.cache.Put(m.now, job, submitter, req, m.cfg.CacheTTL); err != nil {
		r := aboutJob(job, submitter) // the binding was checked: not reached
		r.Text = err.Error()
		m.out.Report(step.LevelWarn, eventInvalid, r)
	}
}

// onReannounce is thesis 4.1, re-submission, step 2: a site that has the
// requirement in its cache answers, another one asks for it.
func (m *Machine) onReannounce(from grid.SiteID, msg protocol.Reannounce) {
	b := m.admitAnnounce(msg.Job, from, msg.Submitter)
	if b == nil {
		return
	}
	entry, cached := m.cache.Get(m.now, msg.Job)
	if !cached || !entry.Value.is(msg.Digest) {
		m.out.Report(step.LevelDebug, eventCacheMiss, aboutJob(msg.Job, from))
		m.out.Send(from, protocol.NeedRequirements{Job: msg.Job, Seq: msg.Seq})
		return
	}
	if !b.note(msg.Seq, m.now, m.cfg.OfferValidity) {
		m.out.Report(step.LevelDebug, eventDuplicate, aboutJob(msg.Job, from))
		return
	}
	m.out.Report(step.LevelDebug, eventCacheHit, aboutJob(msg.Job, from))
	m.hearClock(from, msg.Clock)
	m.dropOffer(msg.Job)
	m.remember(msg.Job, from, entry.Value)
	m.answer(call{
		job: msg.Job, seq: msg.Seq, submitter: from, count: msg.Count,
		drawn: true, explain: msg.Explain,
	}, m.here(from, entry.Value.requirement()))
}

// answer makes an offer, or says why not if that is asked for.
func (m *Machine) answer(c call, req grid.Requirement) {
	if !c.explain {
		if reason := m.shortNow(req, c.submitter); reason != grid.ReasonNone {
			m.refused(c, reason)
			return
		}
	}
	q, refusal, ok := m.quote(req, inquiry{job: c.job, submitter: c.submitter, count: c.count})
	if !c.drawn && (!ok || q.parts.Distance > c.theta) {
		m.out.Report(step.LevelDebug, eventNotSampled, aboutJob(c.job, c.submitter))
		return
	}
	if ok {
		if refusal, ok = m.sendBid(c, q); ok {
			return
		}
	}
	m.vacancy.shareRefused = m.vacancy.shareRefused || refusal.Reason == grid.ReasonQuota
	m.refused(c, refusal.Reason)
	if c.explain {
		m.explain(c, refusal)
	}
}

// explain says why there is no offer, and to a probe also what is free: of what needs more this
// site need not be asked until it says that more is free.
func (m *Machine) explain(c call, refusal grid.Refusal) {
	msg := protocol.Refuse{Job: c.job, Seq: c.seq, Refusal: refusal}
	if c.probe && m.promiseWord(c) {
		free := m.plan.FreeNow(m.now)
		msg.Free = &free
	}
	m.out.Send(c.submitter, msg)
}

func (m *Machine) refused(c call, reason grid.Reason) {
	r := aboutJob(c.job, c.submitter)
	r.Reason = reason
	m.out.Report(step.LevelDebug, eventOfferRefused, r)
}

// isDrawn reports whether this site answers an announcement however far away it is: all are to,
// it is the submitter's own, it has the data, or chance says so.
func (m *Machine) isDrawn(c call, sample float64, req grid.Requirement) bool {
	if sample >= 1 || c.submitter == m.cfg.Self || m.hasAll(req) {
		return true
	}
	return m.chance(c) < sample
}

// chance is a number from 0 to 1 for an announcement, another one at each site. It is drawn by
// hashing, so that a site draws the same for the same announcement.
func (m *Machine) chance(c call) float64 {
	text := make([]byte, 0, 128)
	text = binary.BigEndian.AppendUint64(text, m.cfg.Seed)
	text = binary.BigEndian.AppendUint32(text, c.seq)
	text = append(text, c.job...)
	text = append(text, m.cfg.Self...)
	sum := sha256.Sum256(text)
	return float64(binary.BigEndian.Uint64(sum[:8])) / (1 << 64)
}

// mayBeNear reports whether this site could be as near as is asked for if nothing were on it. If
// not there is no need to look for a place.
func (m *Machine) mayBeNear(c call, req grid.Requirement) bool {
	if c.theta <= 0 {
		return false
	}
	bare, _, ok := index.Measure(req, m.bare(req, c.submitter))
	return ok && bare.Distance <= c.theta
}

// keepPlaced keeps the requirement of a job that runs somewhere, for a failover, while it may run:
// most sites are not told when it ends.
func (m *Machine) keepPlaced(job grid.JobID) {
	m.cache.SetPlaced(m.now, job, func(a *announced) time.Duration {
		runtime := min(a.requirement().Runtime, m.cfg.CacheTTL)
		return max(placedRuns*runtime, placedLeast)
	})
}

// placedRuns times the estimated run time a placed job's requirement is kept, and placedLeast at
// least: it may be staged, suspended or slow.
const (
	placedRuns  = 3
	placedLeast = time.Minute
)

// onClear is thesis 4.1, step 5, the "cache clear". Placed keeps the
// requirement for a failover; ended and withdrawn leave nothing.
func (m *Machine) onClear(from grid.SiteID, msg protocol.Clear) {
	if from != msg.Submitter {
		m.out.Report(step.LevelWarn, eventForged, aboutJob(msg.Job, from))
		return
	}
	if !m.admitOrder(msg.Job, from) {
		return
	}
	r := aboutJob(msg.Job, from)
	r.Value = float64(msg.Kind)
	m.out.Report(step.LevelDebug, eventCleared, r)
	m.dropOffer(msg.Job)
	if msg.Kind == protocol.ClearPlaced {
		m.keepPlaced(msg.Job)
		return
	}
	m.cache.Remove(msg.Job)
	m.submitters.end(msg.Job)
	m.stopJob(msg.Job, "the job has ended")
}
