package relay

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/network"
	ma "github.com/multiformats/go-multiaddr"
)

// What an owner may say of the router, and what the words are where it is wrong.
func TestWhatAnOwnerMaySay(t *testing.T) {
	const (
		relay, reach = `relay "always": want off, use, serve or auto`,
			`reachability "maybe": want auto, public or private`
		untold = `reachability "unknown": want auto, public or private`
		hidden = "relay serve with reachability private: who relays must be reachable; choose use"
	)
	for n, want := range map[NAT]string{
		{}: "", {Relay: Off}: "", {Relay: Use}: "", {Relay: Serve}: "", {Relay: Auto}: "",
		{Reachability: ReachabilityAuto}: "", {Reachability: ReachabilityPublic}: "",
		{Reachability: ReachabilityPrivate}:               "",
		{Relay: Use, Reachability: ReachabilityPrivate}:   "",
		{Relay: "always"}:                                 relay,
		{Reachability: "maybe"}:                           reach,
		{Relay: "always", Reachability: "maybe"}:          relay + "\n" + reach,
		{Reachability: ReachabilityUnknown}:               untold,
		{Relay: Serve, Reachability: ReachabilityPrivate}: hidden,
	} {
		got := ""
		if err := n.Validate(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%+v: %q, want %q", n, got, want)
		}
	}
}

// What is left open has a default; who relays is reachable.
func TestDefaults(t *testing.T) {
	for n, want := range map[NAT]NAT{
		{}:                                  {Relay: Off, Reachability: ReachabilityAuto},
		{Relay: Use, Punch: true}:           {Relay: Use, Reachability: ReachabilityAuto, Punch: true},
		{Relay: Serve}:                      {Relay: Serve, Reachability: ReachabilityPublic},
		{Reachability: ReachabilityPrivate}: {Relay: Off, Reachability: ReachabilityPrivate},
	} {
		if got := n.WithDefaults(); got != want {
			t.Errorf("%+v with defaults is %+v, want %+v", n, got, want)
		}
	}
}

// told says what a host hears of a site's way of meeting the others.
type told struct {
	Relay      bool // may be reached, and reach others, through relays
	TellsPeers bool // tells others whether they are reachable
	Punches    bool
	MapsPort   bool
	Forced     network.Reachability // unknown: to be found out
}

func TestWhatAHostIsTold(t *testing.T) {
	public, private := network.ReachabilityPublic, network.ReachabilityPrivate
	for n, want := range map[NAT]told{
		{}:                                       {},
		{Punch: true}:                            {}, // without relays there is nothing to be made direct
		{Relay: Use}:                             {Relay: true},
		{Relay: Use, Punch: true, MapPort: true}: {Relay: true, Punches: true, MapsPort: true},
		{Relay: Auto}:                            {Relay: true, TellsPeers: true},
		{Relay: Auto, Reachability: ReachabilityPrivate}: {Relay: true, Forced: private},
		{Relay: Auto, Reachability: ReachabilityPublic}: {
			Relay: true, TellsPeers: true, Forced: public,
		},
		{Relay: Serve, Punch: true}: {
			Relay: true, TellsPeers: true, Punches: true, Forced: public,
		},
		{Reachability: ReachabilityPrivate}:               {Forced: private},
		{Reachability: ReachabilityPublic, MapPort: true}: {Forced: public, MapsPort: true},
	} {
		options := n.WithDefaults().Options(nil, false, quietPuncher())
		var host libp2p.Config
		if err := host.Apply(options...); err != nil {
			t.Fatal(err)
		}
		got := told{
			Relay: host.Relay, TellsPeers: host.EnableService, Punches: host.EnableHolePunching,
			MapsPort: host.NATManager != nil,
		}
		if host.ForceReachability != nil {
			got.Forced = *host.ForceReachability
		}
		if diff := cmp.Diff(want, got); diff != "" || !host.RelayCustom {
			t.Errorf("%+v (-want +got):\n%s", n, diff)
		}
		if punches := len(host.HolePunchingOptions) > 0; punches != want.Punches {
			t.Errorf("%+v: hole punching is counted: %t", n, punches)
		}
	}
}

// Who dials from the port that it listens on keeps the router's hole open, and two sites of one
// machine out of each other's socket: only those elsewhere, or behind routers, do.
func TestWhoDialsFromItsOwnPort(t *testing.T) {
	for _, c := range []struct {
		nat        NAT
		wide, want bool
	}{
		{NAT{}, false, false},
		{NAT{}, true, true},
		{NAT{Punch: true}, false, true},
	} {
		options := c.nat.WithDefaults().Options(
			[]string{"/ip4/127.0.0.1/tcp/0"}, c.wide, quietPuncher())
		from, to := newHost(t, options), newHost(t, Off.options(t))
		meet(t, from, to)
		port, err := from.Network().ListenAddresses()[0].ValueForProtocol(ma.P_TCP)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Direct(to, from.ID()).RemoteMultiaddr().ValueForProtocol(ma.P_TCP)
		if err != nil || (got == port) != c.want {
			t.Errorf("%+v, wide %t: listens on %s and dials from %s, %v", c.nat, c.wide, port, got, err)
		}
	}
}

func TestWhereAHostListens(t *testing.T) {
	const a, b = "/ip4/127.0.0.1/tcp/1", "/ip4/127.0.0.1/tcp/2"
	for listen, want := range map[string][]string{
		"": nil, circuitOnly: nil, // what a relay's transport listens on, it does by itself
		a: {a}, a + " " + b: {a, b}, a + " " + circuitOnly + " " + b: {a, b},
	} {
		var host libp2p.Config
		given := strings.Fields(listen)
		if err := host.Apply(listenOption(given)); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, address := range host.ListenAddrs {
			got = append(got, address.String())
		}
		if diff := cmp.Diff(want, got); diff != "" || strings.Join(given, " ") != listen {
			t.Errorf("%q (-want +got):\n%s", listen, diff)
		}
	}
}
