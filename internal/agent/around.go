package agent

import (
	"maps"
	"slices"
	"sync"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// around holds what the machines were told of this site's surroundings, for those that boot later.
// It is safe for concurrent use.
type around struct {
	mu         sync.Mutex
	peers      map[grid.SiteID]step.PeerSeen          // guarded by mu
	links      map[grid.SiteID]step.BandwidthMeasured // guarded by mu
	neighbours map[grid.SiteID]step.PeerSeen          // guarded by mu; linked domains
	bans       *step.BansChanged                      // guarded by mu
	space      *step.SpaceChanged                     // guarded by mu
	controller *step.Controller                       // guarded by mu
	capacity   *step.CapacityChanged                  // guarded by mu
}

func (r *around) note(in step.Input) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.peers == nil {
		r.peers = make(map[grid.SiteID]step.PeerSeen)
		r.links = make(map[grid.SiteID]step.BandwidthMeasured)
		r.neighbours = make(map[grid.SiteID]step.PeerSeen)
	}
	switch in := in.(type) {
	case step.PeerSeen:
		if in.Domain != "" {
			r.neighbours[in.Site] = in
		} else {
			r.peers[in.Site] = in
		}
	case step.PeerGone:
		delete(r.peers, in.Site)
		delete(r.neighbours, in.Site)
		delete(r.links, in.Site)
	case step.BandwidthMeasured:
		r.links[in.Peer] = in
	case step.BansChanged:
		r.bans = &in
	case step.SpaceChanged:
		r.space = &in
	case step.CapacityChanged:
		r.capacity = &in
	case step.Controller:
		r.controller = &in
	}
}

// all lists it in an order in which a machine can take it.
func (r *around) all() (inputs []step.Input) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bans != nil {
		inputs = append(inputs, *r.bans)
	}
	if r.space != nil {
		inputs = append(inputs, *r.space)
	}
	if r.capacity != nil {
		inputs = append(inputs, *r.capacity)
	}
	if r.controller != nil {
		inputs = append(inputs, *r.controller)
	}
	for _, site := range slices.Sorted(maps.Keys(r.peers)) {
		inputs = append(inputs, r.peers[site])
		if link, measured := r.links[site]; measured {
			inputs = append(inputs, link)
		}
	}
	for _, site := range slices.Sorted(maps.Keys(r.neighbours)) {
		inputs = append(inputs, r.neighbours[site])
	}
	return inputs
}

// peer has what a connected site says of itself.
func (r *around) peer(site grid.SiteID) (step.PeerSeen, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, connected := r.peers[site]
	return p, connected
}

func (r *around) has(site grid.SiteID) bool {
	_, connected := r.peer(site)
	return connected
}

// sites lists those that are connected, in an order of each owner's own.
func (r *around) sites(owner grid.SiteID) []grid.SiteID {
	r.mu.Lock()
	defer r.mu.Unlock()
	sites := slices.Collect(maps.Keys(r.peers))
	rank := make(map[grid.SiteID]uint64, len(sites))
	for _, site := range sites {
		rank[site] = step.NewRand(0, "standby/"+string(owner)+"/"+string(site), 0).Uint64()
	}
	slices.SortFunc(sites, func(a, b grid.SiteID) int {
		switch {
		case rank[a] < rank[b]:
			return -1
		case rank[a] > rank[b]:
			return 1
		}
		return 0
	})
	return sites
}
