package border

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// outer is the half that takes.
type outer struct {
	queries  map[query]asked
	errands  table[*errand]
	receipts map[grid.AttemptID]*receipt
}

func newOuter() outer {
	return outer{
		queries: make(map[query]asked), receipts: make(map[grid.AttemptID]*receipt),
	}
}

// query names what a neighbour is asked: one question of a job at a time.
type query struct {
	job    grid.JobID
	domain grid.SiteID
}

// asked is a query that a neighbour has not answered yet.
type asked struct {
	submitter grid.SiteID
	seq       uint32
	need      int64 // thousandths of a core, of each task
	until     time.Time
}

// lateAnswer is the time beyond its TTL in which an answer is still passed on: a submitter takes
// late offers for what waits, and hears that the neighbour is not silent.
const lateAnswer = 5 * time.Second

// onAnnounce asks the neighbour in whose name the question came. Of what the requirement says of
// the holders of data nothing crosses.
func (m *Machine) onAnnounce(from, to grid.SiteID, msg protocol.Announce) {
	refuse := func(why grid.Reason) { m.refuseJob(from, to, msg.Job, msg.Seq, why) }
	l, why := m.near.open(to)
	if why != grid.ReasonNone {
		refuse(why)
		return
	}
	way, ok := m.passage(from, to, msg.Job)
	if !ok {
		refuse(grid.ReasonPassedOn)
		return
	}
	key := query{job: msg.Job, domain: to}
	m.dropOld()
	_, again := m.queries[key]
	switch {
	case !mayCross(msg.Req):
		refuse(grid.ReasonStays)
	case m.takeLeft(l) < msg.Req.Need.MilliCPUs:
		refuse(grid.ReasonShare)
	case !again && len(m.queries) >= m.cfg.MaxQueries:
		refuse(grid.ReasonTooMany)
	default:
		ttl := max(msg.TTL*3/4, grid.MinTTL) // the answer has a way to go
		m.queries[key] = asked{
			submitter: from, seq: msg.Seq, need: msg.Req.Need.MilliCPUs,
			until: m.now.Add(msg.TTL + lateAnswer),
		}
		m.sendBorder(to, protocol.BorderQuery{
			Passage: way, Job: msg.Job, Seq: msg.Seq, Req: withoutHolders(msg.Req),
			Count: msg.Count, TTL: ttl,
		})
	}
}

// mayCross reports whether such work may run in another domain: a promise, and what a reservation
// holds, stays in its own.
func mayCross(req grid.Requirement) bool {
	return req.Kind != grid.KindReservation && req.Window == grid.Window{} && req.Reservation == ""
}

// withoutHolders is a requirement that names nobody, no project and no data: sizes alone.
func withoutHolders(req grid.Requirement) grid.Requirement {
	req.Project = ""
	req.Sources = slices.Clone(req.Sources)
	for i := range req.Sources {
		req.Sources[i] = grid.DataSource{Bytes: req.Sources[i].Bytes}
	}
	return req
}

// request is a number that no gateway of this domain gives to another request: another site's
// numbers differ from it in all bits by chance.
func (m *Machine) request() uint64 {
	sum := sha256.Sum256([]byte("border " + string(m.cfg.Here)))
	return max(m.number()^binary.BigEndian.Uint64(sum[:]), 1)
}

// passage says how a request reaches a neighbour: it begins here, or goes on if it came from
// another. It reports false if it may not go there, or nobody wants it any more.
func (m *Machine) passage(from, to grid.SiteID, job grid.JobID) (protocol.Passage, bool) {
	before, foreign := m.foreign[job]
	if !foreign && from == m.cfg.Here && slices.Contains(m.disowned, job) {
		return protocol.Passage{}, false
	}
	if from != m.cfg.Here || !foreign || m.cfg.NoHops {
		return protocol.Passage{
			Request: m.request(), Path: []grid.SiteID{m.cfg.Domain}, Hops: m.hops(to),
		}, to != m.cfg.Domain
	}
	if before.Hops == 0 || slices.Contains(before.Path, to) {
		return protocol.Passage{}, false
	}
	return protocol.Passage{
		Request: before.Request, Hops: before.Hops - 1,
		Path: append(slices.Clone(before.Path), m.cfg.Domain),
	}, true
}

// hops counts the borders that a request that begins here may cross from a neighbour on.
func (m *Machine) hops(to grid.SiteID) uint32 {
	hops := m.cfg.MaxHops - 1
	if l := m.near.links[to]; l != nil {
		hops = max(hops, l.terms.Onward)
	}
	return hops
}

// takeLeft tells what may still be taken of a neighbour, in thousandths of a core.
func (m *Machine) takeLeft(l *link) int64 {
	if l.terms.Take >= 100 {
		return math.MaxInt64
	}
	left := m.near.share(l.terms.Take)
	for _, e := range m.errands {
		if e.domain == l.terms.Domain && e.exit == nil {
			left -= e.spec.Need.MilliCPUs
		}
	}
	return left
}

// onAnswer passes a neighbour's answer on to the submitter that asked.
func (m *Machine) onAnswer(domain grid.SiteID, msg protocol.BorderAnswer) {
	key := query{job: msg.Job, domain: domain}
	q, known := m.queries[key]
	if !known || q.seq != msg.Seq || q.until.Before(m.now) {
		m.unexpected(domain, "an answer that is late, or to nothing")
		return
	}
	delete(m.queries, key)
	if msg.Offer == nil {
		m.sendAs(domain, q.submitter, protocol.Refuse{
			Job: msg.Job, Seq: msg.Seq, Refusal: plainRefusal(msg.Refusal),
		})
		return
	}
	offer := plainOffer(*msg.Offer, m.number())
	if l := m.near.links[domain]; l != nil && q.need > 0 {
		offer.TasksNow = min(offer.TasksNow, tasksOf(m.takeLeft(l), q.need))
	}
	m.sendAs(domain, q.submitter, protocol.Bid{Job: msg.Job, Seq: msg.Seq, Offer: offer})
}

// tasksOf counts the tasks that have space in so many cores, one at least.
func tasksOf(cores, need int64) uint32 { return uint32(min(max(cores/need, 1), grid.MaxTasks)) }

// plainOffer is an offer of a domain: where and when, and nothing of who makes it. None holds
// anything.
func plainOffer(o grid.Offer, number uint64) grid.Offer {
	return grid.Offer{
		ID: number, Parts: o.Parts, Finish: o.Finish, Validity: o.Validity, TasksNow: o.TasksNow,
	}
}

// plainRefusal is a refusal of a domain: the reason, and no amounts.
func plainRefusal(r grid.Refusal) grid.Refusal {
	return grid.Refusal{Reason: r.Reason, Never: r.Never}
}

func (m *Machine) refuseJob(to, as grid.SiteID, job grid.JobID, seq uint32, why grid.Reason) {
	m.out.Report(step.LevelDebug, eventNotAsked, step.Report{
		Attempt: grid.AttemptID{Task: grid.TaskID{Job: job}}, Site: as, Reason: why,
	})
	m.sendAs(as, to, protocol.Refuse{Job: job, Seq: seq, Refusal: grid.Refusal{Reason: why}})
}

// dropOld forgets queries whose time is over.
func (m *Machine) dropOld() {
	maps.DeleteFunc(m.queries, func(_ query, q asked) bool { return q.until.Before(m.now) })
}

// dropQueries forgets what a neighbour was asked, and what it has asked.
func (m *Machine) dropQueries(domain grid.SiteID) {
	maps.DeleteFunc(m.queries, func(q query, _ asked) bool { return q.domain == domain })
	for _, ref := range slices.Sorted(maps.Keys(m.probes)) {
		if m.probes[ref].domain == domain {
			m.dropProbe(ref)
		}
	}
}

// errandsOf lists a neighbour's errands, ascending by attempt.
func (m *Machine) errandsOf(domain grid.SiteID) []*errand {
	return m.errands.where(func(e *errand) bool { return e.domain == domain })
}
