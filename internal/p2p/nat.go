package p2p

import (
	"errors"
	"fmt"
	"slices"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/p2p/protocol/holepunch"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	ma "github.com/multiformats/go-multiaddr"
)

// RelayRole is a site's part in reaching machines behind routers that translate
// addresses and let nobody in.
type RelayRole string

// The roles. The default is RelayOff.
const (
	RelayOff   RelayRole = "off"   // neither
	RelayUse   RelayRole = "use"   // be reached through members that relay, unless known to be reachable
	RelayServe RelayRole = "serve" // be reachable, and relay for other members
	RelayAuto  RelayRole = "auto"  // as use, until found to be reachable; then as serve
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

// NAT is how a site behind a translating router meets the others. The zero value
// does nothing about it.
type NAT struct {
	Relay        RelayRole    // empty = RelayOff
	Punch        bool         // make relayed connections direct by dialling from both sides at once
	MapPort      bool         // ask the router, by UPnP or NAT-PMP, to let connections in
	Reachability Reachability // empty = ReachabilityAuto; RelayServe implies ReachabilityPublic
}

// circuitOnly is the listen address of a site that opens no port of its own.
const circuitOnly = "/p2p-circuit"

func (n NAT) validate() error {
	var errs []error
	if !slices.Contains([]RelayRole{"", RelayOff, RelayUse, RelayServe, RelayAuto}, n.Relay) {
		errs = append(errs, fmt.Errorf("relay %q: want off, use, serve or auto", string(n.Relay)))
	}
	if !slices.Contains([]Reachability{"", ReachabilityAuto, ReachabilityPublic, ReachabilityPrivate}, n.Reachability) {
		errs = append(errs, fmt.Errorf("reachability %q: want auto, public or private", string(n.Reachability)))
	}
	if n.Relay == RelayServe && n.Reachability == ReachabilityPrivate {
		errs = append(errs, errors.New("relay serve with reachability private: who relays must be reachable; choose use"))
	}
	return errors.Join(errs...)
}

func (n NAT) withDefaults() NAT {
	if n.Relay == "" {
		n.Relay = RelayOff
	}
	if n.Reachability == "" {
		n.Reachability = ReachabilityAuto
	}
	if n.Relay == RelayServe {
		n.Reachability = ReachabilityPublic
	}
	return n
}

// seeks reports whether the site wants to be reached through members.
func (n NAT) seeks() bool { return n.Relay == RelayUse || n.Relay == RelayAuto }

// transport is the choice between libp2p's two ways of dialling over TCP.
func (n NAT) transport(p Preset) libp2p.Option {
	if p == PresetWAN || n.Punch {
		return libp2p.Transport(tcp.NewTCPTransport)
	}
	// Dialling from the listening port helps only against NATs, and two sites
	// of one machine that dial each other at once would meet in one socket.
	return libp2p.Transport(tcp.NewTCPTransport, tcp.DisableReuseport())
}

// natOptions are the host's options that the configuration of NAT asks for.
func natOptions(m *Mesh) []libp2p.Option {
	n := m.cfg.NAT
	options := []libp2p.Option{n.transport(m.cfg.Preset), listenOption(m.cfg.Listen)}
	if n.Relay == RelayOff {
		options = append(options, libp2p.DisableRelay())
	} else {
		options = append(options, libp2p.EnableRelay())
		if n.Relay != RelayUse && n.Reachability != ReachabilityPrivate {
			options = append(options, libp2p.EnableNATService()) // tell others whether they are reachable
		}
		if n.Punch {
			options = append(options, libp2p.EnableHolePunching(holepunch.WithTracer(punchTracer{m})))
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

// Results of hole punching, the label of CountPunches.
const (
	punchAttempt = "attempt" // both sides dial at once
	punchOK      = "ok"      // and a direct connection came of it
	punchFailed  = "failed"  // and none did
	punchDirect  = "direct"  // dialling plainly was enough
)

// punchTracer counts what hole punching does.
type punchTracer struct{ m *Mesh }

// Trace counts attempts and their results.
func (t punchTracer) Trace(e *holepunch.Event) {
	result := ""
	switch what := e.Evt.(type) {
	case *holepunch.HolePunchAttemptEvt:
		result = punchAttempt
	case *holepunch.EndHolePunchEvt:
		result = punchFailed
		if what.Success {
			result = punchOK
		}
	case *holepunch.DirectDialEvt:
		if what.Success {
			result = punchDirect
		}
	case *holepunch.ProtocolErrorEvt:
		t.m.log.Debug("hole punching is not agreed", "peer", siteOf(e.Remote), "error", what.Error)
	}
	if result != "" {
		t.m.counts.inc(CountPunches, result)
		t.m.log.Debug("hole punching", "peer", siteOf(e.Remote), "result", result)
	}
}

// isCircuit reports whether the address leads through a relay.
func isCircuit(a ma.Multiaddr) bool {
	if a == nil {
		return false
	}
	_, err := a.ValueForProtocol(ma.P_CIRCUIT)
	return err == nil
}
