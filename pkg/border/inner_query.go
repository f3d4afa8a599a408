package border

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// inner is the half that gives.
type inner struct {
	probes   map[string]*probe // by their names
	guests   table[*guest]
	commands map[uint64]string               // of Orders that are not answered yet, whose they are
	foreign  map[grid.JobID]protocol.Passage // how the jobs of neighbours came here
	// disowned holds jobs of neighbours that are not wanted any more, the last ones: what is still
	// asked for them is no question of this domain's own.
	disowned []grid.JobID
	refused  []recalled // what no member could take a moment ago, ascending by time
}

func newInner() inner {
	return inner{
		probes: make(map[string]*probe), commands: make(map[uint64]string),
		foreign: make(map[grid.JobID]protocol.Passage),
	}
}

// probe is a query of a neighbour that the broker looks at.
type probe struct {
	domain  grid.SiteID
	passage protocol.Passage
	asked   grid.JobID // as which job the neighbour asked
	seq     uint32
	count   uint32
	req     grid.Requirement
	command uint64
	job     grid.JobID // as which job the broker asks; empty: not known yet
	at      time.Time  // it was asked
	until   time.Time
}

// probeName names a probe: a neighbour asks once at a time for a job.
func probeName(domain grid.SiteID, job grid.JobID) string {
	return "query " + string(job) + " " + string(domain)
}

// onQuery has the broker look for offers, if the terms of the link allow what is asked for.
func (m *Machine) onQuery(domain grid.SiteID, msg protocol.BorderQuery) {
	ref := probeName(domain, msg.Job)
	m.endLateProbes()
	why, never := m.admits(domain, msg.Passage, msg.Req.Kind, msg.Req.Need.MilliCPUs, ref)
	switch {
	case why != grid.ReasonNone:
	case !mayCross(msg.Req):
		why = grid.ReasonStays
	case m.probes[ref] == nil && m.isCrowded(domain):
		why = grid.ReasonTooMany
	}
	if why != grid.ReasonNone {
		m.unserved(domain, why)
		m.refuseQuery(domain, msg.Job, msg.Seq, grid.Refusal{Reason: why, Never: never})
		return
	}
	if m.probes[ref] != nil {
		m.dropProbe(ref) // the neighbour asks anew
	}
	if refusal, known := m.recall(msg); known {
		m.answerRefused(m.near.links[domain], msg.Job, msg.Seq, refusal)
		return
	}
	p := &probe{
		domain: domain, passage: msg.Passage, asked: msg.Job, seq: msg.Seq,
		count: msg.Count, req: msg.Req, command: m.number(),
		at: m.now, until: m.now.Add(msg.TTL),
	}
	m.probes[ref], m.commands[p.command] = p, ref
	m.out.Emit(step.Order{Command: p.command, Input: step.Probe{
		Command: p.command, Job: m.probeJob(domain, msg),
		Ordered: m.ordered(domain, msg.Passage, ref),
	}})
}

// isCrowded reports whether no more queries are looked at. Of the last half of the places those
// neighbours get none that owe too much.
func (m *Machine) isCrowded(domain grid.SiteID) bool {
	most := m.cfg.MaxQueries
	if m.owes(domain) {
		most = (most + 1) / 2
	}
	return len(m.probes) >= most
}

// admits judges by the terms of the link, and by the way a request has come, whether it may be
// served here; never: no other time would help. ref names the request that is judged.
func (m *Machine) admits(
	domain grid.SiteID, way protocol.Passage, kind grid.WorkKind, need int64, ref string,
) (why grid.Reason, never bool) {
	l, why := m.near.open(domain)
	switch {
	case why == grid.ReasonLinkClosed:
		return why, false
	case way.Path[len(way.Path)-1] != domain:
		return grid.ReasonInvalid, false
	case !m.cfg.NoHops && slices.Contains(way.Path, m.cfg.Domain), m.isHereAlready(way, ref):
		return grid.ReasonPassedOn, false
	case !slices.Contains(l.terms.Kinds, kind):
		return grid.ReasonKind, true
	case m.giveLeft(l) < need, m.isKeptWaiting(domain):
		return grid.ReasonShare, false
	case l.terms.Tasks > 0 && m.running(domain) >= int(l.terms.Tasks):
		return grid.ReasonShare, false
	default:
		return grid.ReasonNone, false
	}
}

// isHereAlready reports whether the same request has come another way.
func (m *Machine) isHereAlready(way protocol.Passage, ref string) bool {
	same := func(other protocol.Passage) bool {
		return other.Request == way.Request && other.Path[0] == way.Path[0]
	}
	if m.cfg.NoHops || m.cfg.NoRequestIDs {
		return false
	}
	for _, name := range slices.Sorted(maps.Keys(m.probes)) {
		if name != ref && same(m.probes[name].passage) {
			return true
		}
	}
	return slices.ContainsFunc(m.guests, func(g *guest) bool {
		return g.name != ref && same(g.passage)
	})
}

// giveLeft tells how much a neighbour may still use here, in thousandths of a core: for one that
// owes too much all that neighbours use counts, so that it gets the rest.
func (m *Machine) giveLeft(l *link) int64 {
	all := m.owes(l.terms.Domain)
	if l.terms.Give >= 100 && !all {
		return math.MaxInt64
	}
	left := m.near.share(l.terms.Give)
	passedOn := make(map[grid.JobID]bool) // a further neighbour runs them
	for _, e := range m.errands {
		passedOn[e.attempt.Task.Job] = true
	}
	for _, g := range m.guests {
		if (all || g.domain == l.terms.Domain) && g.exit == nil && !passedOn[g.job] {
			left -= g.spec.Need.MilliCPUs
		}
	}
	return left
}

// isKeptWaiting reports whether a neighbour that owes too much is refused because another one, that
// owes less, has found no capacity here a moment ago.
func (m *Machine) isKeptWaiting(domain grid.SiteID) bool {
	debt := m.favours.of(domain).debt()
	return m.owes(domain) && slices.ContainsFunc(m.near.sorted(), func(l *link) bool {
		return m.favours.of(l.terms.Domain).debt() < debt && !l.unserved.IsZero() &&
			m.now.Sub(l.unserved) < m.cfg.Patience
	})
}

// disown remembers a job of a neighbour that is not wanted any more.
func (m *Machine) disown(job grid.JobID) {
	m.disowned = append(m.disowned, job)
	m.disowned = m.disowned[max(len(m.disowned)-m.cfg.MaxQueries, 0):]
}

// ordered says for whom a job runs here.
func (m *Machine) ordered(domain grid.SiteID, way protocol.Passage, ref string) step.Ordered {
	o := step.Ordered{Domain: domain, Hops: way.Hops, Ref: ref}
	if m.cfg.NoHops {
		o.Hops = 1
	}
	if l := m.near.links[domain]; l != nil {
		o.Name = string(l.terms.Name)
	}
	return o
}

// probeJob is a job with the requirement of a query. Nothing of it is run.
func (m *Machine) probeJob(domain grid.SiteID, msg protocol.BorderQuery) grid.Job {
	req := msg.Req
	spec := grid.Spec{
		Name: m.nameFor(domain, "a query"), Kind: req.Kind, OS: req.OS, Arch: req.Arch,
		Need: req.Need, Runtime: req.Runtime, Map: req.Map, Weights: req.Weights, Axes: req.Axes,
	}
	spec.Checkpoint.Whole = req.Saves
	for i, s := range req.Sources {
		spec.Inputs = append(spec.Inputs, grid.Input{
			Path: fmt.Sprintf("/query/%d", i), CID: "query", Bytes: s.Bytes, // which nobody has
		})
	}
	switch {
	case req.Kind != grid.KindWasm:
		spec.Args = []string{"query"}
	case len(spec.Inputs) > 0:
		spec.Module, spec.Inputs = spec.Inputs[0], spec.Inputs[1:]
	default:
		spec.Module.CID = "query"
	}
	return grid.Job{Spec: spec, Count: msg.Count, TTL: max(msg.TTL*3/4, grid.MinTTL)}
}

// nameFor names a job of a neighbour, for people of this domain.
func (m *Machine) nameFor(domain grid.SiteID, name string) string {
	if l := m.near.links[domain]; l != nil {
		name = string(l.terms.Name) + ": " + name
	}
	return name[:min(len(name), 128)]
}

// probed answers a query by what the broker has found.
func (m *Machine) probed(ref string, news step.OrderNews) {
	p := m.probes[ref]
	m.dropProbe(ref)
	l, why := m.near.open(p.domain)
	if why != grid.ReasonNone {
		return
	}
	offer, has := m.offerOf(l, p, news)
	answer := protocol.BorderAnswer{Job: p.asked, Seq: p.seq, Offer: &offer}
	if has && answer.Validate() == nil {
		if l.unserved = m.now; offer.TasksNow >= p.count {
			l.unserved = time.Time{}
		}
		m.sendBorder(p.domain, answer)
		return
	}
	refusal := grid.Refusal{Reason: grid.ReasonFull}
	if news.Refusal != nil && news.Refusal.Validate() == nil {
		refusal = *news.Refusal
		m.noteRefused(p, refusal)
	}
	m.answerRefused(l, p.asked, p.seq, refusal)
}

// answerRefused tells a neighbour that no member takes what it asks for.
func (m *Machine) answerRefused(l *link, job grid.JobID, seq uint32, refusal grid.Refusal) {
	if l.unserved = m.now; refusal.Never {
		l.unserved = time.Time{}
	}
	m.refuseQuery(l.terms.Domain, job, seq, refusal)
}

// offerOf makes the offer to a neighbour: the nearest site's place, and as many tasks as the link
// allows and have space beside the orders that have no site yet.
func (m *Machine) offerOf(l *link, p *probe, news step.OrderNews) (grid.Offer, bool) {
	if news.Offer == nil {
		return grid.Offer{}, false
	}
	unplaced := m.guests.where(func(g *guest) bool {
		return g.exit == nil && g.news.Phase < grid.PhaseAwarded
	})
	free := int64(news.Tasks) - int64(len(unplaced))
	if p.req.Need.MilliCPUs > 0 {
		free = min(free, m.giveLeft(l)/p.req.Need.MilliCPUs)
	}
	if t := l.terms.Tasks; t > 0 {
		free = min(free, int64(t)-int64(m.running(p.domain)))
	}
	if free < 1 {
		return grid.Offer{}, false
	}
	offer := plainOffer(*news.Offer, m.number())
	offer.TasksNow = uint32(min(free, grid.MaxTasks))
	return offer, true
}

// unserved notes that a neighbour has found no capacity.
func (m *Machine) unserved(domain grid.SiteID, why grid.Reason) {
	if l := m.near.links[domain]; l != nil && why == grid.ReasonShare {
		l.unserved = m.now
	}
}

func (m *Machine) refuseQuery(domain grid.SiteID, job grid.JobID, seq uint32, why grid.Refusal) {
	m.out.Report(step.LevelInfo, eventRefused, step.Report{Site: domain, Reason: why.Reason})
	m.sendBorder(domain, protocol.BorderAnswer{Job: job, Seq: seq, Refusal: plainRefusal(why)})
}

// dropProbe forgets a query; what the broker finds is not wanted any more.
func (m *Machine) dropProbe(ref string) {
	p := m.probes[ref]
	delete(m.foreign, p.job)
	delete(m.commands, p.command)
	delete(m.probes, ref)
}

// guest finds an order by its name; nil: it is not here.
func (m *Machine) guest(name string) *guest { return m.guests.get(attemptIn(name), name) }

// endLateProbes forgets queries whose answers nobody awaits.
func (m *Machine) endLateProbes() {
	for _, ref := range slices.Sorted(maps.Keys(m.probes)) {
		if m.probes[ref].until.Before(m.now) {
			m.dropProbe(ref)
		}
	}
}

// running counts a neighbour's orders that have not ended.
func (m *Machine) running(domain grid.SiteID) int {
	return len(m.guests.where(func(g *guest) bool { return g.domain == domain && g.exit == nil }))
}

// guestsOf lists a neighbour's orders, ascending by attempt.
func (m *Machine) guestsOf(domain grid.SiteID) []*guest {
	return m.guests.where(func(g *guest) bool { return g.domain == domain })
}
