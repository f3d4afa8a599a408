package p2p

import (
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// deaf makes a site follow no hearsay once it has a peer.
func deaf(cfg *Config) { cfg.Limits.Members = 1 }

func TestAMemberThatMovedIsFoundByAskingAnother(t *testing.T) {
	for _, asks := range []bool{true, false} {
		middle, moved := testConfig(t), testConfig(t)
		middle.DHT, moved.DHT = true, true
		b := startSite(t, middle)
		deaf(&moved)
		moved.Bootstrap = b.Addrs()
		c := startSite(t, moved)
		whole(t, []node{b, c})

		away := testConfig(t)
		deaf(&away)
		away.DHT, away.Bootstrap = asks, b.Addrs()
		old, err := openBook(away.AddressFile)
		if err != nil {
			t.Fatal(err)
		}
		old.put(c.Host().ID(), parseAddrs([]string{"/ip4/127.0.0.1/tcp/1"}), time.Now())
		if err = old.save(); err != nil {
			t.Fatal(err)
		}
		a := startSite(t, away)
		if asks {
			eventually(t, "the moved member is admitted", func() bool {
				_, ok := a.facts(c.Self())
				return ok
			})
			eventually(t, "a lookup is counted", func() bool {
				return a.Count(wire.CountLookups, lookupFound) > 0
			})
			continue
		}
		eventually(t, "the old address fails", func() bool {
			return a.Count(wire.CountDials, "failed") > 2*lookupAfter
		})
		if _, ok := a.facts(c.Self()); ok {
			t.Error("the moved member was found without asking: this test tests nothing")
		}
	}
}

func TestLookupsAreFew(t *testing.T) {
	cfg := testConfig(t)
	cfg.DHT, cfg.Timing.Lookup = true, time.Hour
	n := startSite(t, cfg)
	ghost := newForge(t)
	n.learn(newForge(t).peer(), []string{closedPort(t) + "/p2p/" + string(ghost.site)})
	eventually(t, "the peer is given up", func() bool { return n.lookup(ghost.site) == nil })
	eventually(t, "nobody knew it", func() bool {
		return n.Count(wire.CountLookups, lookupUnknown) > 0
	})
	if got := n.Count(wire.CountLookups, lookupUnknown); got != 1 {
		t.Errorf("%d lookups within an hour, want 1", got)
	}
}

func TestSitesOfTheLocalNetworkAreHearsay(t *testing.T) {
	cfg := testConfig(t)
	listed, stranger := newForge(t), newForge(t)
	cfg.AcceptAnyone, cfg.Allow = false, []grid.SiteID{listed.site}
	n := startSite(t, cfg)
	for _, id := range []forge{listed, stranger} {
		p, err := wire.PeerOf(id.site)
		if err != nil {
			t.Fatal(err)
		}
		found{n.Mesh}.HandlePeerFound(peer.AddrInfo{ID: p, Addrs: parseAddrs([]string{closedPort(t)})})
	}
	if n.lookup(listed.site) == nil {
		t.Error("a member on the local network is not dialled")
	}
	if n.lookup(stranger.site) != nil {
		t.Error("a stranger on the local network is dialled")
	}
}

func TestTheNameOnTheLocalNetworkFitsALabel(t *testing.T) {
	if got := mdnsName("home"); got != "_mrs-home._udp" {
		t.Errorf("mdnsName(home) = %q", got)
	}
	if got, _, _ := strings.Cut(mdnsName(grid.DomainID(strings.Repeat("a", 63))), "."); len(got) > 63 {
		t.Errorf("the label %q has %d bytes, want at most 63", got, len(got))
	}
}
