package relay

import (
	"bytes"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/proto"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
)

// patience is the time for which a test waits for what must happen.
const patience = 10 * time.Second

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); time.Now().Before(end); <-tick.C {
		if holds() {
			return
		}
	}
	t.Fatalf("after %s still not true: %s", patience, what)
}

func address(t *testing.T, text string) ma.Multiaddr {
	t.Helper()
	a, err := ma.NewMultiaddr(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// logged collects what is logged, without the time.
type logged struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}

func (l *logged) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.String()
}

func (l *logged) logger() *slog.Logger {
	timeless := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{
		Level: slog.LevelDebug, ReplaceAttr: timeless,
	}))
}

// crowd holds the peers on a list, and those that are admitted, and what they were told.
type crowd struct {
	listed, admitted map[peer.ID]bool // listed: nil = all
	mu               sync.Mutex
	present          []peer.ID
	also             []ma.Multiaddr // where each of them can be dialled besides
	told             [][]ma.Multiaddr
}

func (c *crowd) Allowed(p peer.ID) bool {
	return c.listed == nil || c.listed[p]
}
func (c *crowd) Admitted(p peer.ID) bool { return c.admitted[p] }

func (c *crowd) Present() []peer.ID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.present)
}

func (c *crowd) enter(ids ...peer.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.present = append(c.present, ids...)
}

func (c *crowd) DirectAddrs(_ peer.ID, conn network.Conn) []ma.Multiaddr {
	return append([]ma.Multiaddr{conn.RemoteMultiaddr()}, c.also...)
}

func (c *crowd) TellOwn(addrs []ma.Multiaddr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = append(c.told, addrs)
}

func (c *crowd) heard() [][]ma.Multiaddr {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.told)
}

// options are those of a host with that role and nothing else.
func (r Role) options(t *testing.T) []libp2p.Option {
	t.Helper()
	return NAT{Relay: r}.WithDefaults().Options(
		[]string{"/ip4/127.0.0.1/tcp/0"}, false, quietPuncher(),
	)
}

// quietPuncher counts for nobody.
func quietPuncher() *Puncher {
	return NewPuncher(wire.NewCounters(nil), slog.New(slog.DiscardHandler))
}

// newHost starts a host, which ends with the test.
func newHost(t *testing.T, options []libp2p.Option) host.Host {
	t.Helper()
	h, err := libp2p.New(append(options, libp2p.DisableMetrics())...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, h) })
	return h
}

func closed(t *testing.T, c io.Closer) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// meet has one host dial another one.
func meet(t *testing.T, from, to host.Host) {
	t.Helper()
	if err := from.Connect(t.Context(), peer.AddrInfo{ID: to.ID(), Addrs: to.Addrs()}); err != nil {
		t.Fatal(err)
	}
}

// meetRelay has a host dial one that relays, and waits until it knows that; a host is told some
// time after it has connected what the other one speaks by now.
func meetRelay(t *testing.T, from, to host.Host) {
	t.Helper()
	meet(t, from, to)
	eventually(t, "it is known who relays", func() bool {
		speaks, err := from.Peerstore().SupportsProtocols(to.ID(), proto.ProtoIDv2Hop)
		return err == nil && len(speaks) == 1
	})
}

// site is a host with its part in relaying, and what that did.
type site struct {
	*Relays
	host   host.Host
	others *crowd
	counts *wire.Counters
	log    logged
	later  []time.Duration // after which something is done
	then   []func()
}

// newSite starts a site of a role that nobody knows of, and does nothing yet.
func newSite(t *testing.T, role Role, change ...func(*Config)) *site {
	t.Helper()
	s := &site{
		host: newHost(t, role.options(t)), others: &crowd{}, counts: wire.NewCounters(nil),
	}
	cfg := Config{
		Host: s.host, NAT: NAT{Relay: role}.WithDefaults(), Every: time.Hour, Named: 1, Slots: 16,
		Circuits: 16, Peers: 16, Members: s.others, Counts: s.counts, Log: s.log.logger(),
		After: func(d time.Duration, f func()) {
			s.later, s.then = append(s.later, d), append(s.then, f)
		},
	}
	for _, c := range change {
		c(&cfg)
	}
	s.Relays = New(cfg)
	t.Cleanup(s.stopService)
	return s
}

// admit takes others in as members.
func (s *site) admit(others ...*site) {
	if s.others.admitted == nil {
		s.others.admitted = make(map[peer.ID]bool)
	}
	for _, o := range others {
		s.others.admitted[o.host.ID()] = true
	}
}

// servers are sites that relay for a member that is connected with all of them.
func servers(t *testing.T, n int, member *site) []*site {
	t.Helper()
	var all []*site
	for range n {
		s := newSite(t, Serve)
		s.admit(member)
		s.review(t.Context())
		meetRelay(t, member.host, s.host)
		member.others.enter(s.host.ID())
		all = append(all, s)
	}
	return all
}

// partly is a host of which something is another's.
type partly struct {
	host.Host
	network network.Network
	bus     event.Bus
}

func (p partly) Network() network.Network { return p.network }
func (p partly) EventBus() event.Bus      { return p.bus }
