package relay

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/proto"
	ma "github.com/multiformats/go-multiaddr"
)

// What a site does depends on its role, and on whether others can dial it.
func TestPartsInRelaying(t *testing.T) {
	unknown, public, private := network.ReachabilityUnknown, network.ReachabilityPublic,
		network.ReachabilityPrivate
	for _, c := range []struct {
		role          Role
		reach         network.Reachability
		serves, holds bool
	}{
		{Off, public, false, false},
		{Off, private, false, false},
		{Off, unknown, false, false},
		{Use, public, false, false},
		{Use, private, false, true},
		{Use, unknown, false, true},
		{Serve, public, true, false},
		{Serve, private, true, false},
		{Serve, unknown, true, false},
		{Auto, public, true, false},
		{Auto, private, false, true},
		{Auto, unknown, false, true},
	} {
		s := newSite(t, c.role)
		servers(t, 1, s)
		s.reached(c.reach)
		for range 2 { // the second time nothing changes
			s.review(t.Context())
			reach := s.Reach()
			if holds := len(reach.Relays) == 1; reach.Serving != c.serves || holds != c.holds {
				t.Errorf("%s, %s: relays %t, is relayed %t\n%s", c.role, c.reach, reach.Serving, holds,
					s.log.text())
			}
			if is := slices.Contains(s.host.Mux().Protocols(), proto.ProtoIDv2Hop); is != c.serves {
				t.Errorf("%s, %s: its host relays: %t", c.role, c.reach, is)
			}
		}
		if n := strings.Count(s.log.text(), "this site relays for members"); (n == 1) != c.serves {
			t.Errorf("%s, %s: that it relays is logged %d times", c.role, c.reach, n)
		}
	}
}

// Of reaching a site that is known which was found out, unless its owner says it.
func TestWhatIsKnownOfReachingASite(t *testing.T) {
	for found, want := range map[network.Reachability]Reachability{
		network.ReachabilityUnknown: "unknown", network.ReachabilityPublic: "public",
		network.ReachabilityPrivate: "private",
	} {
		for said, all := range map[Reachability]Reachability{
			ReachabilityAuto: want, ReachabilityPublic: "public", ReachabilityPrivate: "private",
		} {
			r := New(Config{NAT: NAT{Relay: Auto, Reachability: said}})
			r.reach = found
			r.slots = map[peer.ID]slot{"b": {}, "c": {}, "a": {}}
			if got := r.Reach(); got.Reachability != all || got.Serving || len(got.Relays) != 3 ||
				!slices.IsSorted(got.Relays) {
				t.Errorf("found %s, said %s: %+v", found, said, got)
			}
		}
	}
}

// running starts a site's part and returns what ends it and waits.
func running(t *testing.T, s *site) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

// found tells a host that its reachability is another one.
func found(t *testing.T, h host.Host, reach network.Reachability) {
	t.Helper()
	emitter, err := h.EventBus().Emitter(new(event.EvtLocalReachabilityChanged))
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, emitter)
	if err := emitter.Emit(event.EvtLocalReachabilityChanged{Reachability: reach}); err != nil {
		t.Fatal(err)
	}
}

// A site that may do either is relayed until it is found to be reachable; then it relays, until
// it is hidden again, or ends.
func TestFromRelayedToRelaying(t *testing.T) {
	s := newSite(t, Auto)
	server := servers(t, 1, s)[0].host.ID()
	stop := running(t, s)
	relayed := func() bool { r := s.Reach(); return !r.Serving && len(r.Relays) == 1 }
	eventually(t, "it is relayed", func() bool { return relayed() && len(s.others.heard()) == 1 })
	found(t, s.host, network.ReachabilityPublic)
	eventually(t, "it relays", func() bool { r := s.Reach(); return r.Serving && len(r.Relays) == 0 })
	eventually(t, "its addresses are withdrawn", func() bool { return len(s.others.heard()) == 2 })
	if addrs := s.others.heard()[1]; len(addrs) != 0 || len(s.Addrs()) != 0 {
		t.Errorf("a site that can be dialled is still told at %v", addrs)
	}
	if got := s.Reach().Reachability; got != ReachabilityPublic {
		t.Errorf("it is %s, want public", got)
	}
	found(t, s.host, network.ReachabilityPrivate)
	eventually(t, "it is hidden", func() bool { return relayed() && len(s.others.heard()) == 3 })
	found(t, s.host, network.ReachabilityPrivate)
	found(t, s.host, network.ReachabilityPublic)
	eventually(t, "it relays again", func() bool { return s.Reach().Serving })
	stop()
	if s.Reach().Serving || slices.Contains(s.host.Mux().Protocols(), proto.ProtoIDv2Hop) {
		t.Error("a site that has ended still relays")
	}
	var changes []string
	for line := range strings.Lines(s.log.text()) {
		if _, now, is := strings.Cut(line, `msg="reachability changed" now=`); is {
			changes = append(changes, strings.TrimSpace(now))
		}
	}
	if !slices.Equal(changes, []string{"public", "private", "public"}) {
		t.Errorf("logged are the changes %v of %s", changes, server)
	}
}

// A site looks when it starts, when it is woken, and from time to time.
func TestWhenASiteLooks(t *testing.T) {
	for name, every := range map[string]time.Duration{"woken": time.Hour, "later": time.Millisecond} {
		s := newSite(t, Use, func(c *Config) { c.Every = every })
		server := newSite(t, Serve)
		server.admit(s)
		server.review(t.Context())
		meetRelay(t, s.host, server.host)
		stop := running(t, s)
		s.others.enter(server.host.ID())
		if name == "woken" {
			s.Wake()
		}
		eventually(t, name, func() bool { return len(s.Reach().Relays) == 1 })
		stop()
	}
}

// deaf is a bus that tells nothing.
type deaf struct{ event.Bus }

func (deaf) Subscribe(any, ...event.SubscriptionOpt) (event.Subscription, error) {
	return nil, errors.New("no events")
}

// A host that was made elsewhere may have no events: it is not asked for them where nothing is to
// be done, and where something is, it is said what is wrong.
func TestHostsWithoutEvents(t *testing.T) {
	for _, c := range []struct {
		role     Role
		injected bool
		want     string
	}{
		{Off, true, ""},
		{Off, false, `level=ERROR msg="reachability is not watched" error="no events"` + "\n"},
		{Use, true, `level=ERROR msg="reachability is not watched" error="no events"` + "\n"},
	} {
		s := newSite(t, c.role, func(c2 *Config) {
			c2.Host, c2.Injected = partly{Host: c2.Host, bus: deaf{}}, c.injected
		})
		s.Run(t.Context())
		if got := s.log.text(); got != c.want {
			t.Errorf("%s, injected %t: logged %q, want %q", c.role, c.injected, got, c.want)
		}
	}
}

// line is a connection from an address.
type line struct {
	network.Conn
	from  ma.Multiaddr
	in    bool // it came in
	ended bool
}

func (l *line) RemoteMultiaddr() ma.Multiaddr { return l.from }
func (l *line) IsClosed() bool                { return l.ended }

// Stat implements network.Conn.
func (l *line) Stat() network.ConnStats {
	direction := network.DirOutbound
	if l.in {
		direction = network.DirInbound
	}
	return network.ConnStats{Stats: network.Stats{Direction: direction}}
}

// lines is a network that has connections.
type lines struct {
	network.Network
	all []network.Conn
}

func (l lines) ConnsToPeer(peer.ID) []network.Conn { return l.all }

// A connection is direct if no relay carries it and it has not ended.
func TestDirectConnections(t *testing.T) {
	plain := address(t, "/ip4/10.0.0.1/tcp/1")
	relayed := &line{from: address(t, "/ip4/10.0.0.1/tcp/1/p2p/"+someone+"/p2p-circuit")}
	ended, direct := &line{from: plain, ended: true}, &line{from: plain}
	for _, c := range []struct {
		all  []network.Conn
		want network.Conn
	}{
		{nil, nil},
		{[]network.Conn{relayed, ended}, nil},
		{[]network.Conn{relayed, ended, direct}, direct},
	} {
		if got := Direct(partly{network: lines{all: c.all}}, "x"); got != c.want {
			t.Errorf("of %v: %v, want %v", c.all, got, c.want)
		}
	}
	r := New(Config{Host: partly{network: lines{}}, Members: &crowd{}, Named: 1})
	r.slots["x"] = slot{}
	if got := r.findCircuits(); got != nil {
		t.Errorf("through a relay that is gone the site is at %v", got)
	}
}
