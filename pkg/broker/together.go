package broker

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// together is what sites are asked to hold places for: a common start.
type together struct {
	shares []share
	at     time.Time
	tries  int // divisions that came to nothing because somebody did not hold
}

// maxDivisions bounds how many divisions of the same offers are tried.
const maxDivisions = 16

// split reports whether the job's tasks are parts that run together.
func (j *job) split() bool { return j.job.Split != grid.SplitNone }

// firm reports whether the job is awarded to firm offers only.
func (j *job) firm() bool { return j.promised() || j.split() }

// gather looks for places in which all parts of a job can start together, and asks
// for them. All of them are held or none.
func (m *Machine) gather(j *job) {
	if j.hold != nil || j.probe || len(j.waiting) < len(j.tasks) || m.apart(j) {
		return
	}
	j.hold = &holding{parts: &together{}}
	if !m.holdTogether(j) {
		m.endHold(j)
	}
}

// holdTogether divides the parts among the offers that stand and asks the chosen
// sites to hold their shares. Who holds something from a division that came to
// nothing, and is not chosen again, is told that it is free. It reports whether there
// was a division.
func (m *Machine) holdTogether(j *job) bool {
	h, before := j.hold, j.hold.firm
	h.awaited, h.firm = make(map[grid.SiteID]*candidate), make(map[grid.SiteID]*candidate)
	h.parts.shares, h.parts.at = m.division(j)
	for _, s := range h.parts.shares {
		c := j.offers[s.site]
		delete(j.offers, s.site)
		h.awaited[s.site] = c
		m.out.Send(s.site, protocol.HoldOffer{
			Job: j.id, Seq: c.seq, OfferID: c.offer.ID, Tasks: s.parts, At: m.commonStartAt(j, s.site, h.parts.at),
		})
	}
	for _, site := range sortedSites(before) {
		if h.awaited[site] == nil {
			delete(j.offers, site)
			m.release(j, site)
		}
	}
	if len(h.parts.shares) == 0 {
		return false
	}
	m.out.SetTimer(timerHold, string(j.id), m.now.Add(m.cfg.AwardWindow))
	return true
}

// division is the best division of the parts among the standing offers, and when they
// can start. Sites that failed a part come in only when the job has waited for a
// further round and the others do not suffice.
func (m *Machine) division(j *job) ([]share, time.Time) {
	var good, all []place
	for _, c := range m.standing(j) {
		p := m.placeOf(c)
		if p.ready > grid.MaxRuntime || p.run > grid.MaxRuntime {
			continue
		}
		all = append(all, p)
		if !slices.ContainsFunc(j.tasks, func(t task) bool { return slices.Contains(t.failed, p.site) }) {
			good = append(good, p)
		}
	}
	n := uint32(len(j.tasks))
	shares := divide(j.job.Split, n, j.job.CommBytes, good)
	if shares == nil && len(good) < len(all) {
		if first := &j.tasks[0]; first.roundsFailed > 1 {
			shares = divide(j.job.Split, n, j.job.CommBytes, all)
		} else {
			first.roundsFailed++
		}
	}
	if shares == nil {
		return nil, timeZero
	}
	at := m.commonStart(j, shares)
	if !m.inTime(j, shares, at) || !m.sayable(j, shares) {
		return nil, timeZero
	}
	return shares, at
}

// placeOf is what an offer means for parts that start together. Durations in an offer
// count from its sending.
func (m *Machine) placeOf(c *candidate) place {
	parts := c.offer.Parts
	ready := c.offer.Finish - parts.Run
	if ready < parts.Wait {
		ready = parts.Wait + min(parts.StageIn, grid.MaxRuntime)
	}
	site := m.cfg.Capability
	if p, known := m.members[c.offer.Site]; known {
		site = p.capability
	}
	return place{
		site: c.offer.Site, room: c.left, ready: max(ready-m.now.Sub(c.at), 0), run: parts.Run,
		bps: min(site.UpBps, site.DownBps),
	}
}

// latest is the last offer of a site that is held, or asked for.
func (h *holding) latest(site grid.SiteID) uint64 {
	for _, held := range []map[grid.SiteID]*candidate{h.firm, h.awaited} {
		if c := held[site]; c != nil {
			return c.offer.ID
		}
	}
	return 0
}

// commonStart is when all parts can start: the longest wait, staging included, and
// the time it takes to ask and to award.
func (m *Machine) commonStart(j *job, shares []share) time.Time {
	w := j.job.Spec.Window
	if !w.At.IsZero() {
		return w.At
	}
	at := m.now
	for _, s := range shares {
		if t := m.now.Add(s.ready); t.After(at) {
			at = t
		}
	}
	at = at.Add(m.cfg.AwardWindow)
	if at.Before(w.NotBefore) {
		at = w.NotBefore
	}
	return at.Truncate(time.Millisecond).Add(time.Millisecond) // the wire's step
}

// commonStartAt is the common start on a site's own clock, as far as its skew was
// measured. What the user names is what clocks show, and is passed on as it is.
func (m *Machine) commonStartAt(j *job, site grid.SiteID, at time.Time) time.Time {
	p, known := m.members[site]
	if !known || !j.job.Spec.Window.At.IsZero() {
		return at
	}
	return at.Add(p.skew.Truncate(time.Millisecond))
}

// inTime reports whether a common start lies ahead and the parts end before the
// deadline, if there is one.
func (m *Machine) inTime(j *job, shares []share, at time.Time) bool {
	deadline := j.job.Spec.Window.Deadline
	if !at.After(m.now) {
		return false
	}
	return deadline.IsZero() || completion(shares, j.job.CommBytes) <= deadline.Sub(at)+readyOf(shares)
}

// readyOf is the longest time until a share could start.
func readyOf(shares []share) time.Duration {
	var ready time.Duration
	for _, s := range shares {
		ready = max(ready, s.ready)
	}
	return ready
}

// gathered follows an answer, or the end of the time for it: when all chosen sites
// hold their shares these are awarded, else all of them are free again and the next
// division is tried.
func (m *Machine) gathered(j *job) {
	h := j.hold
	complete := h.parts.at.After(m.now)
	for _, s := range h.parts.shares {
		c := h.firm[s.site]
		complete = complete && c != nil && c.left >= s.parts && c.expires.After(m.now)
	}
	if complete {
		m.awardTogether(j)
		return
	}
	h.parts.tries++
	for _, s := range h.parts.shares {
		if c := h.firm[s.site]; c != nil {
			if c.left >= s.parts {
				c.left = max(c.left, s.room)
			}
			j.offers[s.site] = c
		}
	}
	if h.parts.tries < maxDivisions && m.holdTogether(j) {
		return
	}
	for _, site := range sortedSites(h.firm) {
		delete(j.offers, site) // it is released, and no offer any more
	}
	m.releaseHolds(j)
	m.ungathered(j)
}

// ungathered: those who had offered could not hold it all at the same time. Everybody
// is asked again, at once at first.
func (m *Machine) ungathered(j *job) {
	if j.hasty < maxHasty || j.promised() || j.noWait {
		m.nobodyHolds(j)
		return
	}
	j.hasty = 0
	m.waitFor(j, &round{sample: 1, complete: true})
}

// awardTogether awards the shares that are held. The parts are numbered in the order
// of the host list.
func (m *Machine) awardTogether(j *job) {
	h := j.hold
	m.endHold(j)
	hosts := m.hostList(h.parts.shares)
	j.common = &common{at: h.parts.at, env: partEnv(j.job.Spec.Env, len(j.tasks), hosts)}
	j.awardBase += envBytes(hosts)
	rest := slices.Clone(j.waiting)
	for _, s := range h.parts.shares {
		m.awardShare(j, h.firm[s.site], rest[:s.parts], nil)
		rest = rest[s.parts:]
	}
	j.awardBase -= envBytes(hosts)
	j.common = nil
	m.out.Emit(step.Report{
		Event: "awarded_together", Level: step.LevelInfo, Attempt: j.attemptOfJob(), Text: hosts,
		Value: float64(len(h.parts.shares)),
	})
}

// common is what all parts of a job are told when they are awarded.
type common struct {
	at  time.Time
	env []grid.EnvVar
}

// specFor is what a site is awarded.
func (m *Machine) specFor(j *job, site grid.SiteID) grid.Spec {
	spec := j.job.Spec
	if j.common != nil {
		spec.Window.At, spec.Window.NotBefore = m.commonStartAt(j, site, j.common.at), timeZero
		spec.Env = j.common.env
	}
	return spec
}

// The environment of a part: how many there are, which it is, and where they are.
const (
	envParts = "MRS_PARTS"
	envPart  = "MRS_PART"
	envHosts = "MRS_HOSTS"
)

// partEnv adds the variables of a part, and replaces those that are there.
func partEnv(env []grid.EnvVar, parts int, hosts string) []grid.EnvVar {
	own := []grid.EnvVar{
		{Name: envHosts, Value: hosts}, {Name: envPart, Value: "{{index}}"}, {Name: envParts, Value: strconv.Itoa(parts)},
	}
	all := slices.DeleteFunc(slices.Clone(env), func(e grid.EnvVar) bool {
		return slices.ContainsFunc(own, func(o grid.EnvVar) bool { return o.Name == e.Name })
	})
	all = append(all, own...)
	slices.SortFunc(all, func(a, b grid.EnvVar) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// envBytes is an upper bound of what these variables add to an award.
func envBytes(hosts string) int { return len(hosts) + 128 }

// hostList names the sites of the parts in order, each with how many it has:
// "NAME:COUNT,NAME:COUNT". A site whose name is taken, or no name, goes by its ID.
func (m *Machine) hostList(shares []share) string {
	used := make(map[string]bool)
	list := make([]string, 0, len(shares))
	for _, s := range shares {
		name := m.cfg.Name
		if p, known := m.members[s.site]; known {
			name = p.name
		}
		if name == "" || used[name] || strings.ContainsAny(name, ":,{} \t\r\n") {
			name = string(s.site)
		}
		used[name] = true
		list = append(list, fmt.Sprintf("%s:%d", name, s.parts))
	}
	return strings.Join(list, ",")
}

// sayable reports whether the awards can be sent with the list of hosts.
func (m *Machine) sayable(j *job, shares []share) bool {
	hosts := m.hostList(shares)
	spec := j.job.Spec
	spec.Env = partEnv(spec.Env, len(j.tasks), hosts)
	err := spec.Validate()
	for i := range j.job.Items {
		if err == nil && j.awardBase+envBytes(hosts)+itemBytes(j.item(uint32(i))) > protocol.MaxMessageBytes {
			err = fmt.Errorf("%w: item %d: too long for an award with %d hosts", grid.ErrInvalid, i, len(shares))
		}
	}
	if err != nil {
		m.out.Emit(step.Report{
			Event: "hosts_too_many", Level: step.LevelWarn, Attempt: j.attemptOfJob(), Value: float64(len(shares)), Text: err.Error(),
		})
	}
	return err == nil
}
