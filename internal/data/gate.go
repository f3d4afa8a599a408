package data

import (
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Bounds of the gate.
const (
	serveAgain  = 10 * time.Second // after so long it is asked again whether a peer may have a root
	searchAgain = time.Second      // between two searches for a peer that found nothing
	rootsOfPeer = 64               // that a peer may have, remembered
	gatePeers   = 1024             // remembered
	gateBlocks  = 4 << 20          // of roots, remembered: 32 MiB
)

// gate decides which blocks a peer gets: those of the roots that Config.Serves lets it have. A
// peer that was told of a root asks for that first, and then for the blocks below. A root that is
// not wholly here is not served.
type gate struct {
	s *Store

	mu     sync.Mutex
	peers  map[peer.ID]*served   // guarded by mu
	below  map[grid.CID][]uint64 // guarded by mu; by root, ascending: the blocks, each as mark says
	blocks int                   // guarded by mu; in below
}

// served tells what one peer may have.
type served struct {
	roots    []servedRoot // the one that was asked for last comes first
	searched time.Time    // when a search for a block found no root
}

type servedRoot struct {
	root  grid.CID
	until time.Time
}

func newGate(s *Store) *gate {
	return &gate{s: s, peers: make(map[peer.ID]*served), below: make(map[grid.CID][]uint64)}
}

// mark stands for a block among those of a root.
func mark(d digest) uint64 { return binary.BigEndian.Uint64(d[:]) }

// lets reports whether a peer may have a block, and whether that is here.
func (g *gate) lets(p peer.ID, c cid.Cid) (allowed, here bool) {
	d, err := digestOf(c)
	if err != nil {
		return false, false
	}
	if _, here = g.s.blocks.size(d); !here {
		return false, false
	}
	return g.mayHave(p, c, d), true
}

func (g *gate) mayHave(p peer.ID, c cid.Cid, d digest) bool {
	if id := gridCID(c); g.s.Has(id) && g.serves(p, id) {
		g.remember(p, id)
		return true
	}
	for _, root := range g.remembered(p) {
		if g.has(root, d) {
			return true
		}
	}
	return g.search(p, d)
}

func (g *gate) serves(p peer.ID, root grid.CID) bool {
	return g.s.cfg.Serves(grid.SiteID(p.String()), root)
}

// remembered lists the roots that a peer may have still, as far as it has asked for them.
func (g *gate) remembered(p peer.ID) []grid.CID {
	now := g.s.now()
	var roots, again []grid.CID
	g.mu.Lock()
	if of := g.peers[p]; of != nil {
		for _, r := range of.roots {
			if r.until.After(now) {
				roots = append(roots, r.root)
			} else {
				again = append(again, r.root)
			}
		}
	}
	g.mu.Unlock()
	for _, root := range again {
		if !g.serves(p, root) {
			g.forget(p, root)
			continue
		}
		g.remember(p, root)
		roots = append(roots, root)
	}
	return roots
}

// search looks through all roots for one that a peer may have and that has the block: a fetch that
// goes on after a break does not ask for its root again.
func (g *gate) search(p peer.ID, d digest) bool {
	now := g.s.now()
	g.mu.Lock()
	of := g.peers[p]
	tired := of != nil && now.Sub(of.searched).Abs() < searchAgain
	g.mu.Unlock()
	if tired {
		return false
	}
	for _, r := range g.s.Roots() {
		root, err := parseCID(r.CID)
		isOneBlock := err != nil || root.Type() == cid.Raw
		if !isOneBlock && g.serves(p, r.CID) && g.has(r.CID, d) {
			g.remember(p, r.CID)
			return true
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.at(p).searched = now
	return false
}

// at gives the record of a peer; g.mu is held.
func (g *gate) at(p peer.ID) *served {
	if g.peers[p] == nil {
		if len(g.peers) >= gatePeers {
			clear(g.peers) // it is found again
		}
		g.peers[p] = &served{}
	}
	return g.peers[p]
}

func (g *gate) remember(p peer.ID, root grid.CID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	of := g.at(p)
	of.drop(root)
	of.roots = slices.Insert(of.roots, 0, servedRoot{root, g.s.now().Add(serveAgain)})
	of.roots = of.roots[:min(len(of.roots), rootsOfPeer)]
}

func (g *gate) forget(p peer.ID, root grid.CID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.at(p).drop(root)
}

func (of *served) drop(root grid.CID) {
	of.roots = slices.DeleteFunc(of.roots, func(r servedRoot) bool { return r.root == root })
}

// has reports whether a block is one of a root's.
func (g *gate) has(root grid.CID, d digest) bool {
	g.mu.Lock()
	marks, known := g.below[root]
	g.mu.Unlock()
	if !known {
		marks = g.walk(root)
	}
	_, found := slices.BinarySearch(marks, mark(d))
	return found
}

// walk lists the blocks of a root that is wholly here, and remembers them: a root's never change.
func (g *gate) walk(root grid.CID) []uint64 {
	c, err := parseCID(root)
	if err != nil {
		return nil
	}
	blocks, _, missing, err := g.s.walkLocal(c)
	if err != nil || missing {
		return nil
	}
	marks := make([]uint64, 0, len(blocks))
	for d := range blocks {
		marks = append(marks, mark(d))
	}
	slices.Sort(marks)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.blocks+len(marks) > gateBlocks {
		clear(g.below)
		g.blocks = 0
	}
	if _, known := g.below[root]; !known {
		g.below[root] = marks
		g.blocks += len(marks)
	}
	return marks
}
