package p2p

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"
	"time"

	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// ErrNoInterface says that this machine has no address but loopback ones.
var ErrNoInterface = errors.New("this machine has no address on a network")

// PortTakenError says that another program listens where this site was to.
type PortTakenError struct{ Port string }

// Error implements error.
func (e PortTakenError) Error() string {
	return "port " + e.Port + " is taken by another program: stop it, or set listen to another port"
}

// refuseTaken says which of the addresses is taken. libp2p is content when one of them
// is free, and says of the others nothing that an owner understands.
func refuseTaken(ctx context.Context, listen []string) error {
	for _, text := range listen {
		addr, err := ma.NewMultiaddr(text)
		if err != nil {
			return fmt.Errorf("listen on %q: %w", text, err)
		}
		network, host, err := manet.DialArgs(addr)
		if err != nil ||
			network != "tcp4" && network != "tcp6" && network != "udp4" && network != "udp6" {
			continue // nothing that a socket is bound to
		}
		if err = tryBinding(ctx, network, host); errors.Is(err, syscall.EADDRINUSE) {
			_, port, _ := net.SplitHostPort(host)
			return PortTakenError{port}
		}
	}
	return nil
}

// tryBinding binds a socket for a moment.
func tryBinding(ctx context.Context, network, host string) error {
	var config net.ListenConfig
	if network[:3] == "udp" {
		c, err := config.ListenPacket(ctx, network, host)
		if err == nil {
			err = c.Close()
		}
		return err
	}
	l, err := config.Listen(ctx, network, host)
	if err == nil {
		err = l.Close()
	}
	return err
}

// listenPatience limits how long new addresses may take to be those of the host.
const listenPatience = 5 * time.Second

// Listen listens on further addresses while the mesh runs. An address of all interfaces
// stands for those that this machine has now, but for loopback ones. It returns when
// Addrs has them. The error is PortTakenError or ErrNoInterface where that is the cause.
func (m *Mesh) Listen(ctx context.Context, addrs []string) error {
	var wanted []ma.Multiaddr
	for _, text := range addrs {
		resolved, err := onInterfaces(text)
		if err != nil {
			return fmt.Errorf("listen on %q: %w", text, err)
		}
		wanted = append(wanted, resolved...)
	}
	have := m.host.Network().ListenAddresses()
	wanted = slices.DeleteFunc(wanted, func(a ma.Multiaddr) bool {
		return slices.ContainsFunc(have, a.Equal)
	})
	var texts []string
	for _, a := range wanted {
		texts = append(texts, a.String())
	}
	if err := refuseTaken(ctx, texts); err != nil {
		return err
	}
	before := len(m.Addrs())
	if err := m.host.Network().Listen(wanted...); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	deadline := time.Now().Add(listenPatience)
	for len(wanted) > 0 && len(m.Addrs()) <= before && time.Now().Before(deadline) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

// onInterfaces is an address, or those of the interfaces that it stands for.
func onInterfaces(text string) ([]ma.Multiaddr, error) {
	addr, err := ma.NewMultiaddr(text)
	if err != nil {
		return nil, err
	}
	if !manet.IsIPUnspecified(addr) {
		return []ma.Multiaddr{addr}, nil
	}
	interfaces, err := manet.InterfaceMultiaddrs()
	if err != nil {
		return nil, fmt.Errorf("read the addresses of this machine: %w", err)
	}
	resolved, err := manet.ResolveUnspecifiedAddress(addr, interfaces)
	if err != nil {
		return nil, errors.Join(ErrNoInterface, err)
	}
	resolved = slices.DeleteFunc(resolved, func(a ma.Multiaddr) bool {
		return manet.IsIPLoopback(a) || manet.IsIP6LinkLocal(a)
	})
	if len(resolved) == 0 {
		return nil, ErrNoInterface
	}
	return resolved, nil
}
