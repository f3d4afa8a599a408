package data

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// grants says which peer may have which roots.
type grants struct {
	mu    sync.Mutex
	may   map[string]bool
	asked int
}

func (g *grants) serves(p grid.SiteID, root grid.CID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked++
	return g.may[fmt.Sprint(p, root)]
}

func (g *grants) let(p peer.ID, root grid.CID, may bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.may == nil {
		g.may = make(map[string]bool)
	}
	g.may[fmt.Sprint(p.String(), root)] = may
}

// blocksBelow lists the blocks of a root that is here.
func blocksBelow(t *testing.T, s *Store, root grid.CID) (cids []cid.Cid) {
	t.Helper()
	c, err := parseCID(root)
	if err != nil {
		t.Fatal(err)
	}
	n, err := s.node(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range n.links {
		cids = append(cids, l.Cid)
	}
	return append(cids, c)
}

// Who may have a root gets all of it, and nobody else a block, neither the root nor what is below.
func TestOnlyThoseThatMayHaveARootAreServed(t *testing.T) {
	t.Parallel()
	var g grants
	holder := newSite(t, func(c *Config) { c.Serves = g.serves })
	awarded, onlooker := newSite(t, nil), newSite(t, nil)
	awarded.knows(holder)
	onlooker.knows(holder)
	content := noise(1, 3<<20)
	large, other := mustAdd(t, holder.Store, content), mustAdd(t, holder.Store, noise(2, 1<<20))
	g.let(awarded.host.ID(), large.CID, true)
	g.let(onlooker.host.ID(), other.CID, true)
	if _, err := awarded.Fetch(within(t), large.CID, []grid.SiteID{holder.id}, nil); err != nil {
		t.Errorf("who may have it: %v", err)
	}
	if got := mustCat(t, awarded.Store, large.CID); !bytes.Equal(got, content) {
		t.Errorf("%d other bytes", len(got))
	}
	for _, c := range blocksBelow(t, holder.Store, large.CID) {
		result, err := onlooker.Fetch(within(t), gridCID(c), []grid.SiteID{holder.id}, nil)
		if err == nil || result.Bytes != 0 {
			t.Errorf("who may have another root gets %d bytes of %s: %v", result.Bytes, c, err)
		}
	}
	if _, err := onlooker.Fetch(within(t), other.CID, []grid.SiteID{holder.id}, nil); err != nil {
		t.Errorf("its own: %v", err)
	}
}

// A block that two roots share is served to who may have one of them, whichever was asked for
// before, and also without the root's being asked for: the fetch goes on after a break.
func TestSharedBlocksAndBrokenFetches(t *testing.T) {
	t.Parallel()
	var g grants
	s := newSite(t, func(c *Config) { c.Serves = g.serves })
	content := noise(3, 1<<20)
	file := mustAdd(t, s.Store, content)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	tree, err := s.AddDir(within(t), dir)
	if err != nil {
		t.Fatal(err)
	}
	g.let("one", tree.CID, true)
	for _, c := range blocksBelow(t, s.Store, file.CID) { // its root is one of the tree's blocks
		if !s.swap.allow("one", c) {
			t.Errorf("who may have the tree does not get %s of its file", c)
		}
		if s.swap.allow("two", c) {
			t.Errorf("who may have nothing gets %s", c)
		}
	}
}

// What was allowed is asked again after a while, and a search that found nothing is not repeated
// for a moment, so that it costs little to be asked for blocks.
func TestTheGateForgets(t *testing.T) {
	t.Parallel()
	var g grants
	s := newSite(t, func(c *Config) { c.Serves = g.serves })
	now := time.Unix(1e9, 0)
	s.now = func() time.Time { return now }
	file := mustAdd(t, s.Store, noise(4, 1<<20))
	blocks := blocksBelow(t, s.Store, file.CID)
	leaf, root := blocks[0], blocks[len(blocks)-1]
	g.let("one", file.CID, true)
	if !s.swap.allow("one", root) || !s.swap.allow("one", leaf) {
		t.Fatal("who may have it does not get it")
	}
	before := g.asked
	if !s.swap.allow("one", leaf) || g.asked != before {
		t.Errorf("a block more is asked about %d times", g.asked-before)
	}
	g.let("one", file.CID, false)
	now = now.Add(serveAgain)
	if s.swap.allow("one", leaf) {
		t.Error("what is no longer allowed is served")
	}
	before = g.asked
	for range 100 {
		s.swap.allow("one", leaf)
	}
	if g.asked != before {
		t.Errorf("%d searches in no time", g.asked-before)
	}
	g.let("one", file.CID, true)
	now = now.Add(searchAgain)
	if !s.swap.allow("one", leaf) {
		t.Error("what is allowed again is not served")
	}
	unknown, err := parseCID("bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy")
	if err != nil || s.swap.allow("one", unknown) || s.swap.allow("one", cid.Undef) {
		t.Errorf("what is not here is promised, or: %v", err)
	}
}

// What the gate remembers is bounded, by peers, roots and blocks.
func TestTheGateIsBounded(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *Config) { c.Serves = func(grid.SiteID, grid.CID) bool { return true } })
	gate := s.swap.gate
	for n := range gatePeers + 2*rootsOfPeer {
		gate.remember(peer.ID(fmt.Sprint(n)), "root")
		gate.remember("one", grid.CID(fmt.Sprint(n)))
	}
	if len(gate.peers) > gatePeers || len(gate.peers["one"].roots) > rootsOfPeer {
		t.Errorf("%d peers and %d roots", len(gate.peers), len(gate.peers["one"].roots))
	}
	file := mustAdd(t, s.Store, noise(5, 1<<20))
	gate.blocks = gateBlocks
	leaf := blocksBelow(t, s.Store, file.CID)[0]
	if !s.swap.allow("two", leaf) || gate.blocks > 10 {
		t.Errorf("%d blocks are remembered", gate.blocks)
	}
}
