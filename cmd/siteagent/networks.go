package main

import (
	"net"
	"net/netip"
)

// networksHere are the networks that this machine is on now, with its own addresses, without those
// of guests and of single links.
func networksHere() []netip.Prefix {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil // as if there were none
	}
	var here []netip.Prefix
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagLoopback != 0 || isMade(i.Name) {
			continue
		}
		addrs, _ := i.Addrs() // an interface that goes meanwhile has none
		for _, addr := range addrs {
			network, err := netip.ParsePrefix(addr.String())
			if err == nil && !network.Addr().IsLinkLocalUnicast() {
				here = append(here, network)
			}
		}
	}
	return here
}
