package relay

import (
	"testing"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

// crowd holds the peers on a list, and those that are admitted.
type crowd struct{ listed, admitted map[peer.ID]bool }

func (c crowd) Allowed(p peer.ID) bool {
	return c.listed == nil || c.listed[p]
}
func (c crowd) Admitted(p peer.ID) bool                          { return c.admitted[p] }
func (c crowd) Present() []peer.ID                               { return nil }
func (c crowd) DirectAddrs(peer.ID, network.Conn) []ma.Multiaddr { return nil }
func (c crowd) TellOwn([]ma.Multiaddr)                           {}

func TestWhoMayUseARelay(t *testing.T) {
	list := map[peer.ID]bool{"listed": true, "member": true}
	admitted := map[peer.ID]bool{"member": true, "banned": true}
	for _, c := range []struct {
		name             string
		acl              acl
		from, to         peer.ID
		reserve, connect bool
	}{
		{"a member", acl{Config{Members: crowd{list, admitted}}}, "member", "member", true, true},
		{
			"listed, and not yet admitted",
			acl{Config{Members: crowd{list, admitted}}},
			"listed", "member", false, true,
		},
		{
			"to one who is not admitted",
			acl{Config{Members: crowd{list, admitted}}},
			"member", "listed", true, false,
		},
		{"a stranger", acl{Config{Members: crowd{list, admitted}}}, "stranger", "member", false, false},
		{
			"admitted once, and banned",
			acl{Config{Members: crowd{list, admitted}}},
			"banned", "member", false, false,
		},
		{
			"anyone, not admitted",
			acl{Config{Anyone: true, Members: crowd{nil, admitted}}},
			"stranger", "member", false, false,
		},
		{
			"anyone, admitted",
			acl{Config{Anyone: true, Members: crowd{nil, admitted}}},
			"member", "member", true, true,
		},
	} {
		if got := c.acl.AllowReserve(c.from, nil); got != c.reserve {
			t.Errorf("%s: gets a slot %t, want %t", c.name, got, c.reserve)
		}
		if got := c.acl.AllowConnect(c.from, nil, c.to); got != c.connect {
			t.Errorf("%s: reaches a member %t, want %t", c.name, got, c.connect)
		}
	}
}

func TestOutOfRange(t *testing.T) {
	for _, n := range []NAT{
		{Relay: "always"},
		{Reachability: "maybe"},
		{Reachability: ReachabilityUnknown},
		{Relay: Serve, Reachability: ReachabilityPrivate},
	} {
		if n.Validate() == nil {
			t.Errorf("Validate() accepts %+v", n)
		}
	}
	if err := (NAT{}).WithDefaults().Validate(); err != nil {
		t.Errorf("the zero value: %v", err)
	}
}
