package main

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/config"
)

func TestWhereANewSiteListens(t *testing.T) {
	t.Parallel()
	const home, cafe, rented = "192.168.1.20/24", "10.7.0.9/16", "203.0.113.7/24"
	const wide = "listen /ip4/0.0.0.0/tcp/4801,/ip4/0.0.0.0/udp/4801/quic-v1"
	for _, c := range []struct {
		name    string
		here    []string
		inviter string
		want    string // the settings that are chosen
		why     string // a part of the sentence
	}{
		{
			"one machine",
			[]string{home},
			"/ip4/127.0.0.1/tcp/4801", "",
			"on this machine alone, too",
		},
		{"no network", nil, "/ip4/192.168.1.7/tcp/4801", "", "on no network now"},
		{
			"one network",
			[]string{home},
			"/ip4/127.0.0.1/tcp/1 /ip4/192.168.1.7/tcp/4801", wide,
			"a network of this machine, 192.168.1.0/24",
		},
		{
			"one network, and known outside, too",
			[]string{cafe, home},
			"/ip4/198.51.100.1/tcp/4801 /ip4/192.168.1.7/tcp/4801", wide, "192.168.1.0/24",
		},
		{"two buildings", []string{cafe}, "/ip4/10.9.1.1/tcp/4801", wide, "a private network"},
		{"a router", []string{home}, "/ip4/198.51.100.1/tcp/4801", "preset wan", "behind a router"},
		{
			"a name",
			[]string{home},
			"/dns4/hub.example.org/tcp/4801", "preset wan",
			"behind a router",
		},
		{
			"a relay",
			[]string{home},
			"/ip4/192.168.9.1/tcp/1/p2p/12D3KooW/p2p-circuit", "preset wan", "behind a router",
		},
		{
			"a provider's network",
			[]string{"100.70.1.2/24"},
			"/ip4/198.51.100.1/tcp/4801", "preset wan",
			"behind a router",
		},
		{
			"rented",
			[]string{rented},
			"/ip4/198.51.100.1/tcp/4801", "preset wan",
			"the public address 203.0.113.7",
		},
		{"two rented ones", []string{rented}, "/ip4/203.0.113.9/tcp/1", wide, "203.0.113.0/24"},
		{"IPv6", []string{"fd00:1::5/64"}, "/ip6/fd00:1::9/tcp/4801", wide, "fd00:1::/64"},
		{"nonsense", []string{home}, "/unix", "preset wan", "behind a router"},
	} {
		var here []netip.Prefix
		for _, text := range c.here {
			here = append(here, netip.MustParsePrefix(text))
		}
		got := listenFor(here, strings.Fields(c.inviter))
		var chosen []string
		for _, v := range got.values {
			chosen = append(chosen, v.Name+" "+v.Text)
		}
		if text := strings.Join(chosen, "; "); text != c.want {
			t.Errorf("%s: %q, want %q", c.name, text, c.want)
		}
		if !strings.Contains(got.why, c.why) || !strings.HasSuffix(got.why, anotherWay) {
			t.Errorf("%s: %q does not say %q and what to do", c.name, got.why, c.why)
		}
		if _, err := config.LoadAgent(config.Sources{
			File: "siteagent.yaml", Text: config.NewFile(got.values),
		}); err != nil {
			t.Errorf("%s: what is chosen is no configuration: %v", c.name, err)
		}
	}
}

func TestGuestsNetworksAreNoneOfThisMachine(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"docker0": true, "br-1f2e": true, "veth1": true,
		"eth0": false, "wlp2s0": false, "tailscale0": false,
	} {
		if got := isMade(name); got != want {
			t.Errorf("%s: %t, want %t", name, got, want)
		}
	}
}
