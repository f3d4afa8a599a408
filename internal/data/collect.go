package data

import (
	"fmt"
	"slices"

	"github.com/ipfs/go-cid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// walkLocal visits every distinct block of a graph as far as it is here. It
// reports what is here, and whether something is missing.
func (s *Store) walkLocal(c cid.Cid) (
	blocks map[digest]bool, bytes int64, missing bool, err error,
) {
	type step struct {
		c     cid.Cid
		depth int
	}
	blocks = make(map[digest]bool)
	todo := []step{{c: c}}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		d, err := digestOf(at.c)
		if err != nil {
			return nil, 0, false, err
		}
		if blocks[d] {
			continue
		}
		size, here := s.blocks.size(d)
		if !here {
			missing = true
			continue
		}
		if len(blocks) >= s.cfg.Limits.Nodes || at.depth > maxGraphDepth {
			return nil, 0, false, fmt.Errorf("%w: graph of %s has more than %d blocks or %d levels",
				ErrTooLarge, c, s.cfg.Limits.Nodes, maxGraphDepth)
		}
		if at.c.Type() != cid.Raw {
			n, err := s.node(at.c)
			if err != nil { // damaged: the same as missing
				missing = true
				continue
			}
			for _, l := range n.links {
				todo = append(todo, step{c: l.Cid, depth: at.depth + 1})
			}
		}
		blocks[d] = true
		bytes += size
	}
	return blocks, bytes, missing, nil
}

// candidate is a root that may be collected.
type candidate struct {
	r      *root
	blocks map[digest]bool
}

// plan lists what a collection would remove.
type plan struct {
	roots  []grid.CID
	blocks []digest
	freed  int64
}

// makeRoom collects until n more bytes fit into the quota. When that is not
// possible it removes nothing and fails with ErrQuota.
func (s *Store) makeRoom(n int64) error {
	if s.cfg.QuotaBytes == 0 {
		return nil
	}
	if n > s.cfg.QuotaBytes {
		return fmt.Errorf("%w: %s are needed, the quota is %s", ErrQuota,
			grid.FormatBytes(n), grid.FormatBytes(s.cfg.QuotaBytes))
	}
	s.gcMu.Lock()
	defer s.gcMu.Unlock()
	used := s.blocks.usedBytes()
	need := used + n - s.cfg.QuotaBytes
	if need <= 0 {
		return nil
	}
	p := s.planCollection(need)
	if p.freed < need {
		return fmt.Errorf("%w: %s more are needed, %s of the quota of %s are in use "+
			"and only %s of them may go; unpin data or raise the quota",
			ErrQuota, grid.FormatBytes(n), grid.FormatBytes(used),
			grid.FormatBytes(s.cfg.QuotaBytes), grid.FormatBytes(p.freed))
	}
	return s.collect(p)
}

// planCollection chooses what goes to free at least need bytes: blocks of no
// root, then roots by their last use. A block goes only with the last root that
// has it. gcMu is held.
func (s *Store) planCollection(need int64) plan {
	counts, candidates := s.countBlocks()
	s.mu.Lock()
	defer s.mu.Unlock()
	var p plan
	drop := func(d digest) {
		if size, here := s.blocks.size(d); here && s.holds[d] == 0 {
			p.blocks = append(p.blocks, d)
			p.freed += size
		}
	}
	for _, d := range s.blocks.all(func(d digest) bool { return counts[d] == 0 }) {
		drop(d)
	}
	for _, c := range candidates {
		if p.freed >= need {
			break
		}
		if c.r.busy > 0 {
			continue
		}
		p.roots = append(p.roots, c.r.CID)
		for d := range c.blocks {
			if counts[d]--; counts[d] == 0 {
				drop(d)
			}
		}
	}
	return p
}

// countBlocks counts for each block the roots that have it, and gives the roots
// that may go, least recently used first.
func (s *Store) countBlocks() (map[digest]int, []candidate) {
	s.mu.Lock()
	all := make([]*root, 0, len(s.roots))
	evictable := make(map[grid.CID]bool)
	for _, r := range s.roots {
		all = append(all, r)
		evictable[r.CID] = r.busy == 0 && !r.pinned(s.now())
	}
	slices.SortFunc(all, func(a, b *root) int {
		if c := a.Used.Compare(b.Used); c != 0 {
			return c
		}
		return compareCID(a.CID, b.CID)
	})
	s.mu.Unlock()
	counts := make(map[digest]int)
	var candidates []candidate
	for _, r := range all {
		c, err := parseCID(r.CID)
		if err != nil {
			continue
		}
		blocks, _, _, err := s.walkLocal(c)
		if err != nil {
			continue
		}
		for d := range blocks {
			counts[d]++
		}
		if evictable[r.CID] {
			candidates = append(candidates, candidate{r: r, blocks: blocks})
		}
	}
	return counts, candidates
}

func compareCID(a, b grid.CID) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	default:
		return 0
	}
}

// collect removes what the plan names: the roots' entries first, so that a crash
// in between leaves blocks without a root and never a root without its blocks.
func (s *Store) collect(p plan) error {
	s.mu.Lock()
	for _, id := range p.roots {
		if err := s.dropLocked(id); err != nil {
			s.mu.Unlock()
			return err
		}
		s.cfg.Log.Info("data collected", "cid", string(id))
	}
	s.mu.Unlock()
	for _, d := range p.blocks {
		if err := s.blocks.remove(d); err != nil {
			return err
		}
	}
	s.metrics.collectedBytes.Add(float64(p.freed))
	s.metrics.collectedRoots.Add(float64(len(p.roots)))
	return nil
}

// forget removes a root and the blocks that only it has, pinned or not, unless
// something uses it just now. What is not held is no error.
func (s *Store) forget(c grid.CID) error {
	s.gcMu.Lock()
	defer s.gcMu.Unlock()
	s.mu.Lock()
	r, ok := s.roots[c]
	busy := ok && r.busy > 0
	s.mu.Unlock()
	if !ok {
		return nil
	}
	if busy {
		return fmt.Errorf("forget %s: it is being read or fetched", c)
	}
	counts, _ := s.countBlocks()
	id, err := parseCID(c)
	if err != nil {
		return err
	}
	blocks, _, _, err := s.walkLocal(id)
	if err != nil {
		return err
	}
	p := plan{roots: []grid.CID{c}}
	s.mu.Lock()
	for d := range blocks {
		size, here := s.blocks.size(d)
		if here && counts[d] <= 1 && s.holds[d] == 0 {
			p.blocks = append(p.blocks, d)
			p.freed += size
		}
	}
	s.mu.Unlock()
	return s.collect(p)
}
