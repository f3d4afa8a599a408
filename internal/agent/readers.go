package agent

import (
	"maps"
	"slices"
	"sync"

	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// readers knows who may have the data that is kept here: the submitter that it belongs to, the
// sites that may act for that one, and those that were given work on it. Nobody else gets a byte,
// members of the domain no more than others. It is safe for concurrent use.
type readers struct {
	mu    sync.Mutex
	of    map[pinOwner]*audience        // guarded by mu
	mates map[grid.SiteID][]grid.SiteID // guarded by mu; of this agent's groups, by their owners
}

// audience is who may have what an owner of data keeps.
type audience struct {
	belongs  grid.SiteID          // to this submitter; empty: not known
	admitted map[grid.SiteID]bool // besides; a domain stands for its gateway
}

func newReaders() *readers {
	return &readers{
		of: make(map[pinOwner]*audience), mates: make(map[grid.SiteID][]grid.SiteID),
	}
}

// at is the audience of an owner, made where it is missing; r.mu is held.
func (r *readers) at(owner pinOwner) *audience {
	if r.of[owner] == nil {
		r.of[owner] = &audience{admitted: make(map[grid.SiteID]bool)}
	}
	return r.of[owner]
}

// belong notes whose data an owner keeps.
func (r *readers) belong(owner pinOwner, submitter grid.SiteID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at(owner).belongs = submitter
}

// admit lets sites have what an owner keeps, and reports whether one of them was not let before.
func (r *readers) admit(owner pinOwner, sites ...grid.SiteID) (fresh bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, site := range sites {
		fresh = fresh || !r.at(owner).admitted[site]
		r.at(owner).admitted[site] = true
	}
	return fresh
}

// admitted lists the sites that were let have what an owner keeps, ascending.
func (r *readers) admitted(owner pinOwner) []grid.SiteID {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of[owner] == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(r.of[owner].admitted))
}

// forget lets nobody have any more what an owner kept.
func (r *readers) forget(owner pinOwner) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, owner)
}

// join notes the members of a submitter's group.
func (r *readers) join(submitter grid.SiteID, members []grid.SiteID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mates[submitter] = members
}

// may reports whether a site may have what an owner keeps. actsFor lists who may act for a
// submitter; stands reports whether the site is the gateway for a domain, nil if it is for none.
func (r *readers) may(
	site grid.SiteID, owner pinOwner,
	actsFor func(grid.SiteID) []grid.SiteID, stands func(domain grid.SiteID) bool,
) bool {
	r.mu.Lock()
	a := r.of[owner]
	if a == nil {
		r.mu.Unlock()
		return false
	}
	belongs := a.belongs
	admitted := a.admitted[site] || site == belongs || slices.Contains(r.mates[belongs], site)
	var others []grid.SiteID
	if stands != nil {
		others = slices.Collect(maps.Keys(a.admitted))
	}
	r.mu.Unlock()
	return admitted || belongs != "" && slices.Contains(actsFor(belongs), site) ||
		slices.ContainsFunc(others, stands)
}

// serves reports whether a site may have data that is kept here. It is called by the data room,
// from any goroutine.
func (a *Agent) serves(site grid.SiteID, cid grid.CID) bool {
	if !a.awake() {
		return false
	}
	var stands func(grid.SiteID) bool
	if gateway, _ := a.neighbours.gateway(); gateway == site || a.border.isBeyond(site) {
		stands = func(domain grid.SiteID) bool {
			return a.neighbours.way(domain) == site || a.border.at(domain) == site
		}
	}
	for _, owner := range a.pins.ownersOf(cid) {
		if a.readers.may(site, owner, a.heeding.members, stands) {
			return true
		}
	}
	return false
}

// admits lets a site have a job's data when work on it is awarded there, and tells the owner's
// other members of it, which have the data, too.
func (j *jobs) admits(to grid.SiteID, m protocol.Message) {
	award, is := m.(protocol.Award)
	if !is || !j.a.readers.admit(jobOwner(award.Job), to) {
		return
	}
	for _, site := range j.others() {
		if j.a.around.has(site) {
			j.content.number++
			j.a.sendQuietly(site, protocol.Keep{
				Owner: j.owner, Job: award.Job, Number: j.content.number,
				Awarded: []grid.SiteID{to},
			})
		}
	}
}

// known notes for whom a job's data is that the group's table has.
func (j *jobs) known(m *broker.Machine, id grid.JobID) {
	j.a.readers.belong(jobOwner(id), j.owner)
	if s, here := m.Job(id); here {
		j.a.readers.admit(jobOwner(id), s.Awarded()...)
	}
}

// release lets go of a job's data.
func (a *Agent) release(id grid.JobID) {
	a.pins.release(jobOwner(id))
	a.readers.forget(jobOwner(id))
}
