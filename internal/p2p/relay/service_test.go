package relay

import (
	"errors"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/client"
	ma "github.com/multiformats/go-multiaddr"
)

func TestWhoMayUseARelay(t *testing.T) {
	list := map[peer.ID]bool{"listed": true, "member": true}
	admitted := map[peer.ID]bool{"member": true, "banned": true}
	members := acl{Config{Members: &crowd{listed: list, admitted: admitted}}}
	linked := members
	linked.cfg.Crosses = func(stranger, _ peer.ID) bool { return stranger == "neighbour" }
	anyone := acl{Config{Anyone: true, Members: &crowd{admitted: admitted}}}
	for _, c := range []struct {
		name             string
		acl              acl
		from, to         peer.ID
		reserve, connect bool
	}{
		{"a member", members, "member", "member", true, true},
		{"listed, and not yet admitted", members, "listed", "member", false, true},
		{"to one who is not admitted", members, "member", "listed", true, false},
		{"a stranger", members, "stranger", "member", false, false},
		{"admitted once, and banned", members, "banned", "member", false, false},
		{"who comes by a link", linked, "neighbour", "member", false, true},
		{"by a link, to one who is not admitted", linked, "neighbour", "listed", false, false},
		{"a stranger beside", linked, "stranger", "member", false, false},
		{"anyone, not admitted", anyone, "stranger", "member", false, false},
		{"anyone, admitted", anyone, "member", "member", true, true},
	} {
		if got := c.acl.AllowReserve(c.from, nil); got != c.reserve {
			t.Errorf("%s: gets a slot %t, want %t", c.name, got, c.reserve)
		}
		if got := c.acl.AllowConnect(c.from, nil, c.to); got != c.connect {
			t.Errorf("%s: reaches a member %t, want %t", c.name, got, c.connect)
		}
	}
}

// A relay gives as many slots as it is told to, also to members behind one router, for its time
// and without bounds on what is carried; and tells them no addresses, which members know.
func TestWhatARelayGives(t *testing.T) {
	const slots = 9 // one more than libp2p gives to one router
	server := newSite(t, Serve, func(c *Config) { c.Slots, c.Circuits = slots, 1 })
	server.review(t.Context())
	var hidden []*site
	for n := range slots + 1 {
		s := newSite(t, Use)
		server.admit(s)
		meet(t, s.host, server.host)
		given, err := client.Reserve(t.Context(), s.host, peer.AddrInfo{ID: server.host.ID()})
		if n == slots {
			if err == nil {
				t.Errorf("a relay for %d members gave %d slots", slots, n+1)
			}
			break
		}
		if err != nil {
			t.Fatalf("slot %d: %v", n, err)
		}
		if given.LimitData != 0 || given.LimitDuration != 0 || len(given.Addrs) != 0 {
			t.Errorf("slot %d is bounded, or tells addresses: %+v", n, given)
		}
		if life := time.Until(given.Expiration); life > slotTime || life < slotTime-5*time.Second {
			t.Errorf("slot %d is for %s, want %s", n, life, slotTime)
		}
		hidden = append(hidden, s)
	}
	end := address(t, "/p2p/"+server.host.ID().String()+circuitOnly)
	through := server.host.Addrs()[0].Encapsulate(end)
	for n, to := range hidden[1:3] { // of each member it carries one circuit at a time
		err := hidden[0].host.Connect(t.Context(), peer.AddrInfo{
			ID: to.host.ID(), Addrs: []ma.Multiaddr{through},
		})
		if (err == nil) != (n == 0) {
			t.Errorf("circuit %d: %v", n, err)
		}
	}
}

// poor is a network that has nothing left to give.
type poor struct{ network.Network }

func (poor) ResourceManager() network.ResourceManager { return spent{} }

type spent struct{ network.ResourceManager }

func (spent) ViewService(string, func(network.ServiceScope) error) error {
	return errors.New("nothing left")
}

// A site that cannot relay says so, and does not say that it does.
func TestASiteThatCannotRelay(t *testing.T) {
	s := newSite(t, Serve, func(c *Config) { c.Host = partly{Host: c.Host, network: poor{}} })
	s.startService()
	if s.Reach().Serving {
		t.Error("it says that it relays")
	}
	want := `level=ERROR msg="this site cannot relay" error="nothing left"` + "\n"
	if got := s.log.text(); got != want {
		t.Errorf("logged is %q, want %q", got, want)
	}
}
