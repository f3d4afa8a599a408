package relay

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/holepunch"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Each try to make a relayed connection direct is counted and logged under its result.
func TestHolePunchingIsCounted(t *testing.T) {
	const remote = peer.ID("remote")
	site := wire.SiteOf(remote)
	line := func(result string) string {
		return fmt.Sprintf("level=DEBUG msg=\"hole punching\" peer=%s result=%s\n", site, result)
	}
	for _, c := range []struct {
		what  any
		count string
		log   string
	}{
		{&holepunch.StartHolePunchEvt{}, "", ""},
		{&holepunch.HolePunchAttemptEvt{}, "attempt", line("attempt")},
		{&holepunch.EndHolePunchEvt{Success: true}, "ok", line("ok")},
		{&holepunch.EndHolePunchEvt{}, "failed", line("failed")},
		{&holepunch.DirectDialEvt{Success: true}, "direct", line("direct")},
		{&holepunch.DirectDialEvt{}, "", ""}, // it goes on with the next way
		{
			&holepunch.ProtocolErrorEvt{Error: "other"}, "",
			fmt.Sprintf("level=DEBUG msg=\"hole punching is not agreed\" peer=%s error=other\n", site),
		},
	} {
		var log logged
		counts := wire.NewCounters(nil)
		NewPuncher(counts, log.logger()).Trace(&holepunch.Event{Remote: remote, Evt: c.what})
		want := map[string]uint64{}
		if c.count != "" {
			want[c.count] = 1
		}
		if diff := cmp.Diff(want, counts.Labels(wire.CountPunches)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", c.what, diff)
		}
		if log.text() != c.log {
			t.Errorf("%+v is logged as\n%s want\n%s", c.what, log.text(), c.log)
		}
	}
}

// someone is a peer's ID as text.
const someone = "12D3KooWBg3QfxMVDfA6YbVfYN75az3n8fZqjiBndEGbuQuQDiMe"

// An address through a relay is known as one, and names the relay.
func TestAddressesThroughRelays(t *testing.T) {
	const relay, hidden = someone, someone
	for text, want := range map[string]struct {
		circuit bool
		through grid.SiteID
	}{
		"/ip4/10.0.0.1/tcp/1":                                             {},
		"/ip4/10.0.0.1/tcp/1/p2p/" + relay:                                {false, relay},
		"/ip4/10.0.0.1/tcp/1/p2p/" + relay + "/p2p-circuit":               {true, relay},
		"/ip4/10.0.0.1/tcp/1/p2p/" + relay + "/p2p-circuit/p2p/" + hidden: {true, relay},
		"/ip4/10.0.0.1/tcp/1/p2p-circuit/p2p/" + hidden:                   {true, ""},
		"/dns4/example.org/tcp/1/p2p/" + relay + "/p2p-circuit":           {true, relay},
	} {
		a := address(t, text)
		if got := IsCircuit(a); got != want.circuit {
			t.Errorf("%s leads through a relay: %t", text, got)
		}
		if got := Through(a); got != want.through {
			t.Errorf("%s leads through %q, want %q", text, got, want.through)
		}
	}
	if IsCircuit(nil) {
		t.Error("no address leads through a relay")
	}
}

// Who knows how the router translates one transport names the other one, too.
func TestAddressesForHolesAreCompleted(t *testing.T) {
	const both = "/ip4/1.2.3.4/tcp/5 /ip4/1.2.3.4/udp/5/quic-v1"
	for said, want := range map[string]string{
		"/ip4/1.2.3.4/tcp/5":         both,
		"/ip4/1.2.3.4/udp/5/quic-v1": both,
		both:                         both,
		"/ip6/1::2/tcp/5":            "/ip6/1::2/tcp/5 /ip6/1::2/udp/5/quic-v1",
		"/ip4/1.2.3.4/tcp/5/ws":      "/ip4/1.2.3.4/tcp/5/ws",
		"/ip4/1.2.3.4":               "/ip4/1.2.3.4",
	} {
		var addrs []ma.Multiaddr
		for a := range strings.FieldsSeq(said) {
			addrs = append(addrs, address(t, a))
		}
		var got []string
		for _, a := range quietPuncher().FilterLocal("x", addrs) {
			got = append(got, a.String())
		}
		if diff := cmp.Diff(strings.Fields(want), got); diff != "" {
			t.Errorf("of %s (-want +got):\n%s", said, diff)
		}
	}
}

// punches is libp2p's service as far as it is asked for holes, of which it punches none.
type punches chan peer.ID

func (p punches) DirectConnect(to peer.ID) error {
	p <- to
	return errors.New("no hole")
}

// A hole to a member that dialled this site through a relay is tried again in pauses that double,
// as soon as this host knows where it can be dialled, and no more when the member is reached
// directly.
func TestHolesAreTriedAgain(t *testing.T) {
	const member = peer.ID("member")
	asked := make(punches, 1)
	puncher := quietPuncher()
	puncher.service = asked
	relayed := &line{from: address(t, "/ip4/10.0.0.1/tcp/1/p2p-circuit"), in: true}
	s := newSite(t, Use, func(c *Config) {
		c.Puncher = puncher
		c.Host = partly{Host: c.Host, network: lines{all: []network.Conn{relayed}}}
	})
	s.others.enter(member)
	start := time.Now()
	after := func(passed time.Duration, want bool) {
		t.Helper()
		planned := s.punched[member].pause
		s.punchAgain(start.Add(passed))
		if tried := planned > 0 && s.punched[member].pause > planned; tried != want {
			t.Fatalf("after %s: tried %t, want %t", passed, tried, want)
		}
		if !want {
			return
		}
		if got := <-asked; got != member {
			t.Errorf("after %s a hole to %s was tried", passed, got)
		}
	}
	after(0, false)
	if len(s.punched) > 0 {
		t.Error("a host that knows no address of its own plans to punch holes")
	}
	s.host.SetStreamHandler(holepunch.Protocol, func(network.Stream) {})
	after(0, false)
	after(5*time.Second-1, false)
	after(5*time.Second, true)
	after(15*time.Second-1, false)
	after(15*time.Second, true)
	after(35*time.Second-1, false)
	after(35*time.Second, true)
	last := s.punched[member]
	for last.pause < longestPunchPause {
		after(last.until.Sub(start), true)
		last = s.punched[member]
	}
	if last.pause != longestPunchPause {
		t.Errorf("the longest pause is %s, want %s", last.pause, longestPunchPause)
	}
	relayed.in = false // the other side's to try
	after(last.until.Sub(start), false)
	if len(s.punched) > 0 {
		t.Errorf("holes are planned: %v", s.punched)
	}
}
