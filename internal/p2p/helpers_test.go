package p2p

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"go.uber.org/goleak"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		runChild()
		return
	}
	goleak.VerifyTestMain(m,
		// A process-wide cache of memory statistics of the resource manager's limits.
		goleak.IgnoreTopFunction("github.com/filecoin-project/go-clock.(*realClock).Sleep"))
}

// patience is the time for which a test waits for what must happen.
const patience = 20 * time.Second

// eventually waits until the condition holds.
func eventually(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-tick.C {
		if holds() {
			return
		}
	}
	tb.Fatalf("after %s still not true: %s", patience, what)
}

type goneEvent struct {
	site     grid.SiteID
	refusing bool
	at       time.Time
}

type deathEvent struct {
	site     grid.SiteID
	attempts []grid.AttemptID
}

type heard struct {
	from    grid.SiteID
	message protocol.Message
}

// recorder remembers what a mesh told.
type recorder struct {
	mu        sync.Mutex
	messages  []heard
	seen      map[grid.SiteID]Facts
	sightings int
	gone      []goneEvent
	deaths    []deathEvent
	on        func(from grid.SiteID, m protocol.Message)
}

func (r *recorder) handlers() Handlers {
	r.seen = make(map[grid.SiteID]Facts)
	return Handlers{
		OnMessage: func(from grid.SiteID, m protocol.Message) {
			r.mu.Lock()
			r.messages = append(r.messages, heard{from, m})
			on := r.on
			r.mu.Unlock()
			if on != nil {
				on(from, m)
			}
		},
		OnPeerSeen: func(site grid.SiteID, facts Facts) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.seen[site] = facts
			r.sightings++
		},
		OnAttemptsDied: func(site grid.SiteID, ids []grid.AttemptID) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.deaths = append(r.deaths, deathEvent{site, ids})
		},
		OnPeerGone: func(site grid.SiteID, refusing bool) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.gone = append(r.gone, goneEvent{site, refusing, time.Now()})
			delete(r.seen, site)
		},
	}
}

func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.messages)
}

func (r *recorder) heard() []heard {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]heard(nil), r.messages...)
}

func (r *recorder) losses() []goneEvent {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]goneEvent(nil), r.gone...)
}

func (r *recorder) died() []deathEvent {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]deathEvent(nil), r.deaths...)
}

func (r *recorder) peers() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.seen)
}

func (r *recorder) facts(site grid.SiteID) (Facts, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, ok := r.seen[site]
	return f, ok
}

// node is a mesh and what it told.
type node struct {
	*Mesh
	*recorder
}

// hears reports whether gossip goes to all of them directly.
func (n node) hears(others []node) bool {
	for _, o := range others {
		if o.Self() != n.Self() && !n.gossip.Reaches(o.Host().ID()) {
			return false
		}
	}
	return true
}

// circuit is the end of an address through a relay, and where a site listens that
// opens no port.
const circuit = "/p2p-circuit"

// testConfig is a site on loopback that accepts anyone.
func testConfig(tb testing.TB) Config {
	tb.Helper()
	dir := tb.TempDir()
	return Config{
		KeyFile: filepath.Join(dir, "site.key"), AddressFile: filepath.Join(dir, "peers.json"),
		Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Domain: "lab", Name: "site", Incarnation: 1,
		AcceptAnyone: true,
		Preset:       PresetTest,
	}
}

// startSite starts a site and leaves the mesh when the test ends.
func startSite(tb testing.TB, cfg Config) node {
	tb.Helper()
	rec := &recorder{}
	log := slog.New(slog.DiscardHandler)
	if os.Getenv("P2P_TEST_LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	m, err := New(tb.Context(), cfg, rec.handlers(), log)
	if err != nil {
		tb.Fatalf("New() = %v", err)
	}
	tb.Cleanup(func() {
		if err := m.Close(); err != nil {
			tb.Errorf("Close() = %v", err)
		}
	})
	return node{m, rec}
}

// cluster starts n sites that all know only the first one, and waits until
// each has admitted all others.
func cluster(tb testing.TB, n int, change func(i int, cfg *Config)) []node {
	tb.Helper()
	var nodes []node
	for i := range n {
		cfg := testConfig(tb)
		if i > 0 {
			cfg.Bootstrap = nodes[0].Addrs()
		}
		if change != nil {
			change(i, &cfg)
		}
		nodes = append(nodes, startSite(tb, cfg))
	}
	whole(tb, nodes)
	return nodes
}

// whole waits until the mesh is full.
func whole(tb testing.TB, nodes []node) {
	tb.Helper()
	for i, n := range nodes {
		eventually(tb, "all sites admitted each other", func() bool { return n.peers() == len(nodes)-1 })
		eventually(tb, "all sites are on the topic", func() bool { return n.hears(nodes) })
		if got := len(n.Peers()); got != len(nodes)-1 {
			tb.Fatalf("site %d lists %d peers, want %d", i, got, len(nodes)-1)
		}
	}
}

func jobID(i int) grid.JobID {
	id := []byte("aaaaaaaaaaaaaaaa")
	for k := len(id) - 1; i > 0; k, i = k-1, i/26 {
		id[k] = byte('a' + i%26)
	}
	return grid.JobID(id)
}

func announcement(submitter grid.SiteID, i int) protocol.Announce {
	return protocol.Announce{
		Job: jobID(i), Seq: 1, Submitter: submitter, Count: 1, TTL: time.Second, Sample: 1,
		Req: grid.Requirement{
			Kind: grid.KindWasm, Need: grid.Resources{MilliCPUs: 1000, MemoryBytes: 1 << 20, MFLOPS: 1},
			Runtime: time.Second, Weights: grid.DefaultWeights(),
		},
	}
}

// newID makes up a peer ID.
func newID(i int) peer.ID { return peer.ID(fmt.Sprintf("peer-%06d", i)) }
