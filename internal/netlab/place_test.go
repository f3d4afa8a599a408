package netlab

import (
	"net/netip"
	"testing"
	"time"
)

func TestPlaces(t *testing.T) {
	r := &router{net: privateNet(3)}
	if got, want := r.gateway(), netip.MustParseAddr("192.168.3.254"); got != want {
		t.Errorf("gateway %s, want %s", got, want)
	}
	seen := make(map[netip.Addr]bool)
	for {
		addr, _, err := r.place()
		if err != nil {
			break
		}
		if seen[addr] || !r.net.Contains(addr) || addr == r.gateway() {
			t.Fatalf("%s was given", addr)
		}
		seen[addr] = true
	}
	if len(seen) != 253 {
		t.Errorf("%d addresses, want 253", len(seen))
	}
	big := &router{net: netip.MustParsePrefix(outside)}
	for range 256 {
		if _, _, err := big.place(); err != nil {
			t.Fatal(err)
		}
	}
	if addr, port, err := big.place(); err != nil || addr != netip.MustParseAddr("10.77.1.1") ||
		port != "p257" {
		t.Errorf("the 257th is at %s by %s, %v", addr, port, err)
	}
}

// packetOf is the shortest packet from 10.77.0.a to 10.77.0.b.
func packetOf(a, b byte) []byte {
	p := make([]byte, 20)
	p[0] = 0x45
	copy(p[12:], []byte{10, 77, 0, a, 10, 77, 0, b})
	return p
}

func TestPacketsOfOneWayKeepTheirOrder(t *testing.T) {
	p := &proxy{last: make(map[way]time.Time), rng: newChances(5)}
	p.set(Impairment{Latency: 10 * time.Millisecond, Jitter: 50 * time.Millisecond})
	now := time.Unix(1000, 0)
	for i := range 100 {
		packet := packetOf(1, 2)
		packet[1] = byte(i)
		p.plan(packet, now.Add(time.Duration(i)*time.Millisecond))
	}
	p.plan([]byte{0x60, 1, 2}, now)
	end := now.Add(time.Second)
	for i := range 100 {
		packet, _ := p.pop(end)
		if packet == nil || packet[1] != byte(i) {
			t.Fatalf("packet %d is %v", i, packet)
		}
	}
	if packet, wait := p.pop(end); packet != nil || wait <= 0 || p.bytes != 0 {
		t.Errorf("left: %v, %s, %d bytes", packet, wait, p.bytes)
	}
}

func TestWhatIsOnItsWayIsBounded(t *testing.T) {
	p := &proxy{last: make(map[way]time.Time), rng: newChances(5)}
	p.set(Impairment{Latency: time.Hour})
	packet := append(packetOf(1, 2), make([]byte, 1<<20)...)
	for range 100 {
		p.plan(packet, time.Unix(1000, 0))
	}
	if p.bytes > onTheWayMost || p.passed.Overflow != 100-63 {
		t.Errorf("%d bytes wait, %+v", p.bytes, p.passed)
	}
	if packet, wait := p.pop(time.Unix(1000, 0)); packet != nil || wait != time.Hour {
		t.Errorf("%d bytes came immediately, wait %s", len(packet), wait)
	}
}
