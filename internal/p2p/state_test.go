package p2p

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func TestTheBookRemembersTheLastSeen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "peers.json")
	b, err := openBook(file)
	if err != nil {
		t.Fatal(err)
	}
	start := time.UnixMilli(1_700_000_000_000)
	addr := ma.StringCast("/ip4/10.0.0.1/tcp/4601")
	f := newForge(t)
	b.put(f.peer(), []ma.Multiaddr{addr}, start)
	for i := range maxRemembered {
		b.put(newID(i), []ma.Multiaddr{addr}, start.Add(time.Duration(i+1)*time.Second))
	}
	if b.has(f.peer()) {
		t.Error("the one not seen for longest was not forgotten")
	}
	b.put(f.peer(), []ma.Multiaddr{addr}, start.Add(time.Hour))
	if err = b.save(); err != nil {
		t.Fatalf("save() = %v", err)
	}
	again, err := openBook(file)
	if err != nil {
		t.Fatalf("open again: %v", err)
	}
	// Made-up IDs do not survive the text form; the real one does.
	if got := again.addrs(f.peer()); len(got) != 1 || !got[0].Equal(addr) ||
		again.ids()[0] != f.peer() {
		t.Errorf("addresses = %v, order %v", got, again.ids()[:1])
	}
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := openBook(file); err == nil || b == nil {
		t.Errorf("a broken file: book %v, error %v; want an empty book and an error", b, err)
	}
}

func TestConfigNamesEveryMistake(t *testing.T) {
	err := Config{
		Domain: "Not A Label", Name: strings.Repeat("x", 65), Preset: "moon",
		Allow:  []grid.SiteID{"nobody"},
		Listen: []string{"4601"}, Bootstrap: []string{"/ip4/10.0.0.1/tcp/1"},
	}.Validate()
	for _, want := range []string{
		"key file", "domain", "name", "incarnation", "preset", "nobody", "listen", "bootstrap",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not speak of %s: %v", want, err)
		}
	}
	err = Config{
		KeyFile: "k", Domain: "lab", Incarnation: 1, Allow: []grid.SiteID{newForge(t).site},
		AcceptAnyone: true,
	}.Validate()
	if err == nil || !strings.Contains(err.Error(), "members") {
		t.Errorf("members listed and anyone accepted: %v", err)
	}
	if err := (Config{KeyFile: "k", Domain: "lab", Incarnation: 1}).Validate(); err != nil {
		t.Errorf("a site on its own: %v", err)
	}
}

func TestTCPIsDialledFirstInsideADomain(t *testing.T) {
	addrs := parseAddrs([]string{"/ip4/10.0.0.1/udp/1/quic-v1", "/ip4/10.0.0.1/tcp/1"})
	order := tcpFirst(addrs)
	at := make(map[bool]network.AddrDelay)
	for _, d := range order {
		at[isTCP(d.Addr)] = d
	}
	if len(order) != 2 || at[true].Delay != 0 || at[false].Delay < quicAfterTCP {
		t.Errorf("order = %v", order)
	}
	if only := tcpFirst(addrs[:1]); len(only) != 1 || only[0].Delay != 0 {
		t.Errorf("QUIC alone = %v, want it without delay", only)
	}
}
