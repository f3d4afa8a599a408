package p2p

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
)

func TestATakenPortIsNamed(t *testing.T) {
	t.Parallel()
	stream, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer packets.Close()
	for _, c := range []struct {
		addr string
		port int
	}{
		{"/ip4/127.0.0.1/tcp/%d", stream.Addr().(*net.TCPAddr).Port},
		{"/ip4/0.0.0.0/tcp/%d", stream.Addr().(*net.TCPAddr).Port},
		{"/ip4/127.0.0.1/udp/%d/quic-v1", packets.LocalAddr().(*net.UDPAddr).Port},
	} {
		// Another address is free: libp2p would go on without the taken one.
		listen := []string{"/ip4/127.0.0.1/tcp/0", fmt.Sprintf(c.addr, c.port)}
		err := refuseTaken(t.Context(), listen)
		want := fmt.Sprintf(
			"port %d is taken by another program: stop it, or set listen to another port", c.port,
		)
		if !errors.As(err, new(PortTakenError)) || err.Error() != want {
			t.Errorf("%s: %v, want %q", c.addr, err, want)
		}
	}
	for _, free := range []string{
		"/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1", "/p2p-circuit",
	} {
		if err := refuseTaken(t.Context(), []string{free}); err != nil {
			t.Errorf("%s: %v", free, err)
		}
	}
}

func TestAllInterfacesAreThoseOfANetwork(t *testing.T) {
	t.Parallel()
	addrs, err := onInterfaces("/ip4/0.0.0.0/tcp/4801")
	if errors.Is(err, ErrNoInterface) {
		t.Skip("this machine is on no network")
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if text := a.String(); strings.HasPrefix(text, "/ip4/127.") ||
			!strings.HasSuffix(text, "/tcp/4801") {
			t.Errorf("all interfaces are %s", text)
		}
	}
	if one, err := onInterfaces("/ip4/127.0.0.1/tcp/7"); err != nil || len(one) != 1 {
		t.Errorf("one address is %v, %v", one, err)
	}
	if _, err := onInterfaces("tcp"); err == nil {
		t.Error("a word is an address")
	}
}
