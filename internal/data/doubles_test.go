package data

import (
	"context"
	"errors"
	"maps"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	bsnetwork "github.com/ipfs/boxo/bitswap/network"
	"github.com/ipfs/boxo/exchange"
	blocks "github.com/ipfs/go-block-format"
	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/mrsmesh/mrsmesh/internal/obs"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// played is a store on disk around which the network is played, so that its time can be, too.
type played struct {
	*Store
	net  *playedHost
	swap *playedSwap
}

// newPlayed opens a store; nothing of it runs by itself.
func newPlayed(t testing.TB, change func(*Config)) *played {
	t.Helper()
	cfg := Config{Dir: filepath.Join(t.TempDir(), "data"), Allow: everybody}
	if change != nil {
		change(&cfg)
	}
	s, err := openLocal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.log.close() })
	p := &played{
		Store: s, net: &playedHost{id: "self", up: make(map[peer.ID]bool)}, swap: &playedSwap{},
	}
	s.host = p.net
	s.swap = &swap{
		s: s, bs: p.swap, peers: bsnetwork.NewConnectEventManager(),
		upLimit: newLimiter(cfg.UploadBps), downLimit: newLimiter(cfg.DownloadBps),
		fetchers: make(map[*fetcher]struct{}),
	}
	s.meter.done = s.measured
	s.prober = newProber(s)
	return p
}

// playedHost connects to whom the test lets it.
type playedHost struct {
	host.Host // the rest of it is not asked for

	id     peer.ID
	dial   func(ctx context.Context, to peer.ID) error            // nil: each is reached
	stream func(context.Context, peer.ID) (network.Stream, error) // nil: there is none

	mu    sync.Mutex
	up    map[peer.ID]bool
	dials []peer.ID
}

func (h *playedHost) ID() peer.ID { return h.id }

func (h *playedHost) Connect(ctx context.Context, to peer.AddrInfo) error {
	h.mu.Lock()
	h.dials = append(h.dials, to.ID)
	h.mu.Unlock()
	if h.dial != nil {
		if err := h.dial(ctx, to.ID); err != nil {
			return err
		}
	}
	h.set(to.ID, true)
	return nil
}

func (h *playedHost) set(p peer.ID, up bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.up[p] = up
}

func (h *playedHost) dialled() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.dials)
}

func (h *playedHost) Network() network.Network { return playedNetwork{h: h} }

func (h *playedHost) SetStreamHandler(protocol.ID, network.StreamHandler) {}

func (h *playedHost) RemoveStreamHandler(protocol.ID) {}

func (h *playedHost) NewStream(
	ctx context.Context, p peer.ID, _ ...protocol.ID,
) (network.Stream, error) {
	if h.stream == nil {
		return nil, errors.New("no stream")
	}
	return h.stream(ctx, p)
}

type playedNetwork struct {
	network.Network
	h *playedHost
}

func (n playedNetwork) Connectedness(p peer.ID) network.Connectedness {
	n.h.mu.Lock()
	defer n.h.mu.Unlock()
	if n.h.up[p] {
		return network.Connected
	}
	return network.NotConnected
}

func (n playedNetwork) Peers() []peer.ID {
	n.h.mu.Lock()
	defer n.h.mu.Unlock()
	return slices.Sorted(maps.Keys(n.h.up))
}

// playedSwap gives the blocks that the test has for it.
type playedSwap struct {
	exchange.SessionExchange

	give func(ctx context.Context, c cid.Cid) ([]byte, error) // nil: nothing ever comes

	mu    sync.Mutex
	asked []cid.Cid // in the order of the requests
	told  []cid.Cid // blocks that others may wait for
}

func (x *playedSwap) NewSession(context.Context) exchange.Fetcher { return x }

func (x *playedSwap) GetBlock(ctx context.Context, c cid.Cid) (blocks.Block, error) {
	x.mu.Lock()
	x.asked = append(x.asked, c)
	x.mu.Unlock()
	if x.give == nil {
		return silence(ctx)
	}
	data, err := x.give(ctx, c)
	if err != nil {
		return nil, err
	}
	return blocks.NewBlockWithCid(data, c)
}

func (x *playedSwap) NotifyNewBlocks(_ context.Context, some ...blocks.Block) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, b := range some {
		x.told = append(x.told, b.Cid())
	}
	return nil
}

func (x *playedSwap) Close() error { return nil }

// requests counts how often a block was asked for.
func (x *playedSwap) requests() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.asked)
}

// silence is a request to which no answer ever comes.
func silence(ctx context.Context) (blocks.Block, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// from gives the blocks of another store immediately, and is silent about others.
func from(s *Store) func(context.Context, cid.Cid) ([]byte, error) {
	return func(ctx context.Context, c cid.Cid) ([]byte, error) {
		d, err := digestOf(c)
		if err != nil {
			return nil, err
		}
		data, err := s.blocks.get(d)
		if err != nil {
			_, err = silence(ctx)
		}
		return data, err
	}
}

func siteOf(p peer.ID) grid.SiteID { return grid.SiteID(p.String()) }

// wantIdle checks that nothing is under way, and nothing is claimed.
func wantIdle(t *testing.T, s *Store) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.holds)+len(s.running)+len(s.fetches)+len(s.slots) != 0 {
		t.Errorf("%d blocks are claimed, %d operations and %d fetches under way, %d slots taken",
			len(s.holds), len(s.running), len(s.fetches), len(s.slots))
	}
	for id, r := range s.roots {
		if r.busy != 0 {
			t.Errorf("%s is used by %d operations", id, r.busy)
		}
	}
}

// counters are the values of the metrics, by their names with their labels.
type counters struct{ reg *obs.Registry }

func (c counters) of(t *testing.T, name string) float64 {
	t.Helper()
	w := httptest.NewRecorder()
	c.reg.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
	for line := range strings.Lines(w.Body.String()) {
		value, found := strings.CutPrefix(strings.TrimSpace(line), "mrs_"+name+" ")
		if !found {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return 0
}

// rootOf is a root's CID as blocks name it.
func rootOf(t testing.TB, c grid.CID) cid.Cid {
	t.Helper()
	out, err := parseCID(c)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// digestFor is the digest of a block's CID.
func digestFor(t testing.TB, c cid.Cid) digest {
	t.Helper()
	d, err := digestOf(c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// leavesOf are the digests of the blocks right below a root.
func leavesOf(t testing.TB, s *Store, c grid.CID) []digest {
	t.Helper()
	n, err := s.node(rootOf(t, c))
	if err != nil {
		t.Fatal(err)
	}
	var out []digest
	for _, l := range n.links {
		out = append(out, digestFor(t, l.Cid))
	}
	return out
}
