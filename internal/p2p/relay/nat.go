package relay

import (
	"errors"
	"fmt"
	"slices"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/p2p/protocol/holepunch"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Role is a site's part in reaching machines behind routers that translate
// addresses and let nobody in.
type Role string

// The roles. The default is Off.
const (
	Off   Role = "off"   // neither
	Use   Role = "use"   // be reached through members that relay, unless known to be reachable
	Serve Role = "serve" // be reachable, and relay for other members
	Auto  Role = "auto"  // as use, until found to be reachable; then as serve
)

// Reachability says whether sites elsewhere can dial this one.
type Reachability string

// What may be known of it. The default is to find out.
const (
	ReachabilityAuto    Reachability = "auto"
	ReachabilityPublic  Reachability = "public"
	ReachabilityPrivate Reachability = "private"
	ReachabilityUnknown Reachability = "unknown" // only told, never configured
)

// NAT says how a site behind a translating router meets the others. The zero value
// does nothing about it.
type NAT struct {
	Relay Role // empty = Off
	// make relayed connections direct by dialling from both sides simultaneously
	Punch        bool
	MapPort      bool         // ask the router, by UPnP or NAT-PMP, to let connections in
	Reachability Reachability // empty = ReachabilityAuto; Serve implies ReachabilityPublic
}

// circuitOnly is the listen address of a site that opens no port of its own.
const circuitOnly = "/p2p-circuit"

// Validate reports every field that is out of its range.
func (n NAT) Validate() error {
	var errs []error
	if !slices.Contains([]Role{"", Off, Use, Serve, Auto}, n.Relay) {
		errs = append(errs, fmt.Errorf("relay %q: want off, use, serve or auto", string(n.Relay)))
	}
	known := []Reachability{"", ReachabilityAuto, ReachabilityPublic, ReachabilityPrivate}
	if !slices.Contains(known, n.Reachability) {
		errs = append(errs,
			fmt.Errorf("reachability %q: want auto, public or private", string(n.Reachability)))
	}
	if n.Relay == Serve && n.Reachability == ReachabilityPrivate {
		errs = append(errs, errors.New(
			"relay serve with reachability private: who relays must be reachable; choose use"))
	}
	return errors.Join(errs...)
}

// WithDefaults fills in what was left open.
func (n NAT) WithDefaults() NAT {
	if n.Relay == "" {
		n.Relay = Off
	}
	if n.Reachability == "" {
		n.Reachability = ReachabilityAuto
	}
	if n.Relay == Serve {
		n.Reachability = ReachabilityPublic
	}
	return n
}

// seeks reports whether the site wants to be reached through members.
func (n NAT) seeks() bool { return n.Relay == Use || n.Relay == Auto }

// transport is the choice between libp2p's two ways of dialling over TCP.
func (n NAT) transport(wide bool) libp2p.Option {
	if wide || n.Punch {
		return libp2p.Transport(tcp.NewTCPTransport)
	}
	// Dialling from the listening port helps only against NATs, and two sites
	// of one machine that dial each other simultaneously would meet in one socket.
	return libp2p.Transport(tcp.NewTCPTransport, tcp.DisableReuseport())
}

// Options are the options of a host that listens there and meets the others as n says;
// wide: they are not in a local network. The puncher counts what hole punching does.
func (n NAT) Options(listen []string, wide bool, puncher *Puncher) []libp2p.Option {
	options := []libp2p.Option{n.transport(wide), listenOption(listen)}
	if n.Relay == Off {
		options = append(options, libp2p.DisableRelay())
	} else {
		options = append(options, libp2p.EnableRelay())
		if n.Relay != Use && n.Reachability != ReachabilityPrivate {
			options = append(options, libp2p.EnableNATService()) // tell others whether they are reachable
		}
		if n.Punch {
			options = append(options, libp2p.EnableHolePunching(
				holepunch.WithTracer(puncher), holepunch.WithAddrFilter(puncher), puncher.keep,
			))
		}
	}
	switch n.Reachability {
	case ReachabilityPublic:
		options = append(options, libp2p.ForceReachabilityPublic())
	case ReachabilityPrivate:
		options = append(options, libp2p.ForceReachabilityPrivate())
	case ReachabilityAuto, ReachabilityUnknown:
	}
	if n.MapPort {
		options = append(options, libp2p.NATPortMap())
	}
	return options
}

// listenOption listens where it was said, leaving out what the relay's transport
// does by itself.
func listenOption(listen []string) libp2p.Option {
	own := slices.DeleteFunc(slices.Clone(listen), func(a string) bool { return a == circuitOnly })
	if len(own) == 0 {
		return libp2p.NoListenAddrs
	}
	return libp2p.ListenAddrStrings(own...)
}

// IsCircuit reports whether the address leads through a relay.
func IsCircuit(a ma.Multiaddr) bool {
	if a == nil {
		return false
	}
	_, err := a.ValueForProtocol(ma.P_CIRCUIT)
	return err == nil
}

// Through is the member through which an address leads.
func Through(circuit ma.Multiaddr) grid.SiteID {
	before, _ := ma.SplitFunc(circuit, func(c ma.Component) bool {
		return c.Protocol().Code == ma.P_CIRCUIT
	})
	text, err := before.ValueForProtocol(ma.P_P2P)
	if err != nil {
		return ""
	}
	return grid.SiteID(text)
}
