package data

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// deadline bounds whatever a test waits for.
const deadline = 20 * time.Second

func newHost(t testing.TB) host.Host {
	t.Helper()
	h, err := libp2p.New(libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"),
		libp2p.Transport(tcp.NewTCPTransport),
		libp2p.DisableRelay(), libp2p.DisableMetrics(), libp2p.DisableIdentifyAddressDiscovery())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func everybody(peer.ID) bool { return true }

type site struct {
	*Store
	host host.Host
	id   grid.SiteID
	cfg  Config
}

// newSite opens a store on a host of its own.
func newSite(t testing.TB, change func(*Config)) *site {
	t.Helper()
	cfg := Config{
		Dir: filepath.Join(t.TempDir(), "data"), Allow: everybody,
		ConnectTimeout: 5 * time.Second, StallTimeout: 5 * time.Second,
	}
	if change != nil {
		change(&cfg)
	}
	h := newHost(t)
	s, err := Open(cfg, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return &site{Store: s, host: h, id: grid.SiteID(h.ID().String()), cfg: cfg}
}

// knows gives a site the addresses of others.
func (s *site) knows(others ...*site) {
	for _, o := range others {
		s.host.Peerstore().AddAddrs(o.host.ID(), o.host.Addrs(), peerstore.PermanentAddrTTL)
	}
}

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	t.Cleanup(cancel)
	return ctx
}

// noise is n bytes that do not repeat.
func noise(seed uint64, n int) []byte {
	var key [32]byte
	key[0], key[1] = byte(seed), byte(seed>>8)
	out := make([]byte, n)
	_, _ = rand.NewChaCha8(key).Read(out)
	return out
}

func mustAdd(t testing.TB, s *Store, data []byte) Ref {
	t.Helper()
	ref, err := s.AddFile(within(t), bytes.NewReader(data))
	if err != nil {
		t.Fatalf("AddFile: %v", err)
	}
	return ref
}

func mustCat(t testing.TB, s *Store, c grid.CID) []byte {
	t.Helper()
	r, err := s.Cat(within(t), c)
	if err != nil {
		t.Fatalf("Cat: %v", err)
	}
	defer func() { _ = r.Close() }()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("Cat: %v", err)
	}
	return data
}

func mustFetch(t testing.TB, s *Store, c grid.CID, holders ...grid.SiteID) FetchResult {
	t.Helper()
	res, err := s.Fetch(within(t), c, holders, nil)
	if err != nil {
		t.Fatalf("Fetch: %v", err)
	}
	return res
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	ctx := within(t)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("it did not happen: %s", what)
		}
	}
}

// writeTree makes files below a new directory; a name that ends in a slash is an
// empty directory.
func writeTree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if name[len(name)-1] == '/' {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// readTree is the inverse of writeTree, for directories as well.
func readTree(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if d.IsDir() {
			out[name+"/"] = ""
			return nil
		}
		data, err := os.ReadFile(path)
		out[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// changeLog collects what OnChange tells.
type changeLog struct {
	mu   sync.Mutex
	held map[grid.CID]bool
}

func (l *changeLog) onChange(added, removed []grid.CID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = make(map[grid.CID]bool)
	}
	for _, c := range added {
		l.held[c] = true
	}
	for _, c := range removed {
		delete(l.held, c)
	}
}

func (l *changeLog) has(c grid.CID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[c]
}
