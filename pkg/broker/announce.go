package broker

import (
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// herald says to other sites what is wanted for a job, or a probe, and what is not wanted
// any more. It awaits the answers in a round and decides nothing.
type herald struct {
	*run
	peers *peers
	jobs  *jobs
}

// announce opens a round that asks all sites for the first time: those known to
// answer directly, the rest by gossip if there may be a rest (thesis 4.1, step 1).
func (h herald) announce(j *job) {
	if j.traits.bound() {
		h.announceWithin(j)
		return
	}
	if !h.awaitSearch(j) {
		h.announceNow(j)
	}
}

// announceNow asks, whatever other jobs search for.
func (h herald) announceNow(j *job) {
	others := h.peers.connected()
	r := h.openRound(j, append(others, h.cfg.Here), true)
	j.announced, others = true, h.sooner(j, r, h.spare(j, r, others))
	j.inPart = h.asksInPart(j, len(others))
	if j.inPart {
		h.askInPart(j, r, len(others))
	}
	near := h.besides(j, r)
	var msg protocol.Message = j.announcement(&h.cfg, h.wall()) // one for all that it goes to
	for _, p := range others {
		if h.peers.all[p].answers && r.sample == 1 {
			h.out.Send(p, msg)
		}
	}
	for _, p := range near {
		h.out.Send(p, msg)
	}
	if r.sample == 1 && h.peers.allKnown(j) {
		h.out.Send(h.cfg.Here, msg)
	} else {
		h.gossip(j, msg)
	}
	h.startTimers(j)
}

// askInPart lets a part of so many sites answer the announcement that begins a round.
func (h herald) askInPart(j *job, r *round, others int) {
	n := &h.near
	r.theta, r.complete = n.distance(&j.req), false
	n.tally.settle(h.now)
	r.drawn = n.draws(h.cfg.ReplyTarget, r.theta)
	r.sample = r.drawn / float64(others)
	j.sampled, j.searched = j.seq, j.seq
	j.poll = n.tally.add(r.drawn, h.now.Add(min(j.spec.TTL, searchLongest)))
	if r.theta == 0 && isLarge(r.sample) {
		n.send(j, h.now)
	}
}

// asksInPart reports whether only a part of so many sites is to answer.
func (h herald) asksInPart(j *job, others int) bool {
	return h.cfg.ReplyTarget > 0 && others > h.cfg.ReplyTarget && !j.traits.probe
}

// announceWithin asks only the sites that hold the job's reservation. While none does,
// the job waits.
func (h herald) announceWithin(j *job) {
	sites := h.holders(j.traits.within)
	if len(sites) == 0 && !j.traits.probe {
		h.rest(j, true)
		return
	}
	j.announced = true
	r := h.openRound(j, sites, true)
	r.explain, r.within = true, true
	msg := j.announcement(&h.cfg, h.wall())
	for _, site := range sites {
		h.out.Send(site, msg)
	}
	h.startTimers(j)
}

// announceAgain asks all sites about a job whose requirement they may have cached (thesis 4.1,
// re-submission). Where a part of the sites was asked only those have it: it is announced anew.
func (h herald) announceAgain(j *job) {
	if !j.announced || j.traits.bound() || j.inPart {
		h.announce(j)
		return
	}
	others := h.peers.connected()
	r := h.openRound(j, append(others, h.cfg.Here), true)
	near := h.besides(j, r)
	h.callAgain(j, others)
	for _, p := range near { // a gateway remembers no requirement
		h.out.Send(p, j.announcement(&h.cfg, h.wall()))
	}
	if !j.gossiped { // the known sites have no capacity for it: there may be others
		h.gossip(j, j.announcement(&h.cfg, h.wall()))
	}
	h.startTimers(j)
}

// ask asks one site.
func (h herald) ask(j *job, site grid.SiteID) {
	h.openRound(j, []grid.SiteID{site}, false)
	if h.peers.isBeside(site) { // a gateway remembers no requirement
		h.saysWhose(j)
		h.out.Send(site, j.announcement(&h.cfg, h.wall()))
	} else {
		h.out.Send(site, j.reannouncement(&h.cfg, h.wall()))
	}
	h.startTimers(j)
}

// widen repeats a sampled round with eight times the sites.
func (h herald) widen(j *job, last *round) {
	r := h.openRound(j, append(h.peers.connected(), h.cfg.Here), true)
	r.sample, r.theta, r.drawn = min(1, 8*last.sample), last.theta, 8*last.drawn
	r.complete = r.sample == 1
	j.inPart = !r.complete
	h.gossip(j, j.announcement(&h.cfg, h.wall()))
	h.startTimers(j)
}

// rest pauses before a job is announced again, longer each time that all sites were asked. A
// round that something else began meanwhile, such as a site with new capacity, leaves the
// pause as it is: a network that loses its answers must not cost the job the pauses, too.
func (h herald) rest(j *job, everybody bool) {
	clear(j.vacant)
	if over := !h.now.Before(j.pauseEnd); over || j.pause == 0 {
		if everybody || j.pause == 0 {
			j.pause = min(max(2*j.pause, h.cfg.BackoffMin), h.cfg.BackoffMax)
		}
		part := time.Duration(h.rng.Float64() * float64(j.pause) / 2)
		j.pauseEnd = h.now.Add(j.pause/2 + part)
	}
	h.setTimer(timerAgain, string(j.id), j.pauseEnd)
}

// gossip sends a message about a job to all sites, known or not.
func (h herald) gossip(j *job, msg protocol.Message) {
	j.gossiped = true
	h.out.Broadcast(msg)
}

// callAgain sends a re-announcement to all sites, this one included.
func (h herald) callAgain(j *job, others []grid.SiteID) {
	msg := j.reannouncement(&h.cfg, h.wall())
	if len(others) > h.cfg.UnicastUpTo {
		h.gossip(j, msg)
		return
	}
	for _, p := range others {
		h.out.Send(p, msg)
	}
	h.out.Send(h.cfg.Here, msg)
}

// onExplainTimer asks for reasons when half the TTL has brought no offer.
func (h herald) onExplainTimer(j *job) {
	r := j.round()
	if r == nil || r.offers > 0 || r.explain {
		return
	}
	r.explain = true
	j.seq++
	h.callAgain(j, h.peers.connected())
}

// onNeedRequirements serves a site whose cache was cold (thesis 4.1,
// re-submission, step 3).
func (h herald) onNeedRequirements(
	from grid.SiteID, msg protocol.NeedRequirements, asked enquiries,
) {
	j, ok := asked.enquiry(msg.Job)
	if !ok || j.open == 0 || msg.Seq != j.seq {
		return
	}
	h.out.Send(from, protocol.Requirements{Announce: j.announcement(&h.cfg, h.wall())})
}

// clear tells the sites that were asked that a job needs their offers no more. All know that of a
// job that is placed: its end is said to those alone that had a task of it. Where a part of the
// sites was asked only those that have answered need to know that it is placed.
func (h herald) clear(j *job, kind protocol.ClearKind) {
	var msg protocol.Message = protocol.Clear{Job: j.id, Submitter: h.cfg.Owner, Kind: kind}
	switch {
	case j.seq == 0 && !j.gossiped: // nobody has heard of it
		return
	case j.traits.bound():
		h.clearAnswered(j, msg)
		return
	case kind != protocol.ClearPlaced && j.placed:
		for _, site := range j.hosts() {
			h.out.Send(site, msg)
		}
		return
	case kind == protocol.ClearPlaced && j.inPart && len(j.answers) < maxAnswers:
		h.clearAnswered(j, msg)
		return
	}
	if j.gossiped || !h.peers.allKnown(j) {
		h.out.Broadcast(msg)
		return
	}
	for _, p := range h.peers.connected() {
		h.out.Send(p, msg)
	}
	h.out.Send(h.cfg.Here, msg)
}

// clearAnswered tells it the sites that have answered, and those that have a task.
func (h herald) clearAnswered(j *job, msg protocol.Message) {
	asked := make(map[grid.SiteID]bool)
	for _, site := range sortedSites(j.answers) {
		asked[site] = true
	}
	for i := range j.tasks {
		if site := j.tasks[i].site; site != "" {
			asked[site] = true
		}
	}
	for _, site := range sortedSites(asked) {
		h.out.Send(site, msg)
	}
}

// release tells a site that what it holds for a job is not wanted.
func (h herald) release(j *job, site grid.SiteID, kind protocol.ClearKind) {
	h.out.Send(site, protocol.Clear{Job: j.id, Submitter: h.cfg.Owner, Kind: kind})
}

// mayAsk reports whether a site may be asked for the job: of one that runs inside a
// reservation, only those that hold its places; a neighbour only for what may go abroad.
func (h herald) mayAsk(j *job, site grid.SiteID) bool {
	if h.peers.isBeside(site) {
		return h.mayGoAbroad(j)
	}
	return !j.traits.bound() || slices.Contains(h.holders(j.traits.within), site)
}

// holders lists the sites that hold places of a reservation and can be reached,
// ascending.
func (h herald) holders(reservation grid.JobID) []grid.SiteID {
	res, known := h.jobs.all[reservation]
	if !known {
		return nil
	}
	sites := make(map[grid.SiteID]bool)
	for i := range res.tasks {
		t := &res.tasks[i]
		if t.active() && t.phase > grid.PhaseAwarded && h.peers.reachable(t.site) {
			sites[t.site] = true
		}
	}
	return sortedSites(sites)
}

func (h herald) startTimers(j *job) {
	r, long := j.round(), j.spec.TTL
	if r.search.part > 0 {
		long = min(long, r.search.long)
	}
	if r.long > 0 {
		long = r.long
	}
	h.setTimer(timerRound, string(j.id), h.now.Add(long))
	if r.complete && !r.explain {
		h.setTimer(timerExplain, string(j.id), h.now.Add(j.spec.TTL/2))
	}
	h.out.Report(step.LevelDebug, eventAnnounced, step.Report{
		Attempt: j.about(), Value: float64(j.seq),
	})
}

// announcement tells sites of a job; clock is the wall clock's time.
func (j *job) announcement(cfg *Config, clock time.Time) protocol.Announce {
	msg := protocol.Announce{
		Job: j.id, Seq: j.seq, Submitter: cfg.Owner, Addrs: cfg.Addrs, Req: j.req, Count: j.wanted(),
		TTL: j.spec.TTL, Sample: 1, Clock: clock, Probe: j.traits.probe,
	}
	if r := j.round(); r != nil {
		msg.Sample, msg.Theta, msg.Explain = r.sample, r.theta, r.explain
		if r.search.part > 0 {
			msg.Sample, msg.Nearer, msg.Part = noSample, r.search.nearer, r.search.part
		}
	}
	return msg
}

func (j *job) reannouncement(cfg *Config, clock time.Time) protocol.Reannounce {
	r := j.round()
	return protocol.Reannounce{
		Job: j.id, Seq: j.seq, Submitter: cfg.Owner, Digest: j.digest, Count: j.wanted(),
		TTL: j.spec.TTL, Explain: r != nil && r.explain,
		Clock: clock,
	}
}
