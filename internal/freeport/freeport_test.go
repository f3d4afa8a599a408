package freeport

import (
	"fmt"
	"net"
	"testing"
)

func TestAPickedPortCanBeHad(t *testing.T) {
	t.Parallel()
	seen := make(map[int]bool)
	for range 20 {
		port, err := Pick()
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if seen[port] {
			t.Errorf("port %d was picked while a listener has it", port)
		}
		seen[port] = true
	}
}

func TestATakenPortIsNotFree(t *testing.T) {
	t.Parallel()
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer packets.Close()
	if free(packets.LocalAddr().(*net.UDPAddr).Port) == nil {
		t.Error("a port that an UDP listener has counts as free")
	}
}
