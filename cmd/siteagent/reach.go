package main

import (
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/mrsmesh/mrsmesh/internal/config"
)

// listening says where a new site listens, so that others reach it, as far as can be known before
// it runs.
type listening struct {
	values []config.Value // to be written into a new configuration
	why    string         // for people
}

// anotherWay says how to choose otherwise.
const anotherWay = " (--listen and --preset choose otherwise)"

// listenFor decides where a new site listens, by the networks that this machine is on and the
// addresses of the site that invites it.
//
// Both on one network, or the inviter known by addresses of a private network alone: it listens
// there, for that network. Else the inviter is somewhere on the internet: preset wan, with which a
// site finds out itself whether it can be reached, and is relayed for if not.
func listenFor(here []netip.Prefix, inviter []string) listening {
	var dialled []netip.Addr
	public := false
	for _, addr := range inviter {
		ip, known := ipOf(addr)
		switch {
		case strings.Contains(addr, "/p2p-circuit"), !known: // through a relay, or a name
			public = true
		case ip.IsLoopback():
		default:
			dialled = append(dialled, ip)
			public = public || !inside(ip)
		}
	}
	switch {
	case len(dialled) == 0 && !public:
		return listening{why: "The site that invites is on this machine: this one listens on " +
			"this machine alone, too" + anotherWay}
	case len(here) == 0:
		return listening{why: "This machine is on no network now: the site listens on this " +
			"machine alone" + anotherWay}
	}
	if one, together := neighbour(here, dialled); together {
		return lan("The site that invites is on a network of this machine, " +
			one.Masked().String())
	}
	if !public {
		return lan("The site that invites is known by an address of a private network")
	}
	why := "This machine is behind a router that lets nobody in, as far as is known"
	if i := slices.IndexFunc(here, func(p netip.Prefix) bool { return !inside(p.Addr()) }); i >= 0 {
		why = "This machine has the public address " + here[i].Addr().String()
	}
	return listening{
		values: []config.Value{{Name: "preset", Text: config.PresetWAN}},
		why: why + ": preset wan, which listens on all interfaces, finds out whether others can " +
			"reach it, and goes through members that relay if not" + anotherWay,
	}
}

// lan listens for a local network.
func lan(why string) listening {
	listen, _ := networkListen(config.Default(config.PresetLAN, os.LookupEnv).Listen)
	return listening{
		values: []config.Value{{Name: "listen", Text: strings.Join(listen, ",")}},
		why:    why + ": this one listens on all interfaces" + anotherWay,
	}
}

// neighbour finds the network of this machine that an address is in.
func neighbour(here []netip.Prefix, dialled []netip.Addr) (netip.Prefix, bool) {
	for _, network := range here {
		if slices.ContainsFunc(dialled, network.Contains) {
			return network, true
		}
	}
	return netip.Prefix{}, false
}

// inside reports whether an address is of a private network: also those that providers use between
// themselves and their customers, and those of one link.
func inside(ip netip.Addr) bool {
	shared := netip.MustParsePrefix("100.64.0.0/10") // RFC 6598
	return ip.IsPrivate() || ip.IsLinkLocalUnicast() || shared.Contains(ip)
}

// ipOf is the IP address of a multiaddr; false for a name.
func ipOf(addr string) (netip.Addr, bool) {
	parts := strings.Split(addr, "/") // "", "ip4", address, ...
	if len(parts) < 3 || parts[1] != "ip4" && parts[1] != "ip6" {
		return netip.Addr{}, false
	}
	ip, err := netip.ParseAddr(parts[2])
	return ip.Unmap(), err == nil
}

// isMade reports whether an interface is one that programs make for their guests: it has addresses
// that other machines have as well.
func isMade(name string) bool {
	return slices.ContainsFunc(
		[]string{
			"docker", "br-", "veth", "virbr", "lxc", "lxd", "cni", "podman", "flannel", "vmnet",
		},
		func(begin string) bool { return strings.HasPrefix(name, begin) },
	)
}
