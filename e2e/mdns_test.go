//go:build e2e

package e2e_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/netlab"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// TestSitesOfOneNetworkFindEachOther gives two sites a cable and no address.
func TestSitesOfOneNetworkFindEachOther(t *testing.T) {
	lab := netlab.Start(t)
	dir, err := os.MkdirTemp(bin.dir, "d") //nolint:usetesting // sockets need short paths
	if err != nil {
		t.Fatal(err)
	}
	m := &labMesh{dir: dir, lab: lab}
	t.Cleanup(func() {
		if err := m.close(); err != nil {
			t.Error(err)
		}
	})
	var hosts []*netlab.Host
	for _, name := range []string{"a", "b", "c"} {
		host, err := lab.Host(t.Context(), name, netlab.Link{})
		if err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, host)
	}
	ip := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %v: %v: %s", args, err, out)
		}
	}
	ip(
		"link", "add", "cable", "netns", hosts[0].Namespace(), "type", "veth", "peer", "name", "cable",
		"netns", hosts[1].Namespace(),
	)
	for i, addr := range []string{"192.168.77.1/24", "192.168.77.2/24"} {
		ip("-n", hosts[i].Namespace(), "addr", "add", addr, "dev", "cable")
		ip("-n", hosts[i].Namespace(), "link", "set", "cable", "up")
	}
	var members []grid.SiteID
	for i, name := range []string{"a", "b", "c"} { // the third has no cable
		s, err := newLabSite(t.Context(), dir, name, hosts[i], "mdns: true\n"+submitOnly)
		if err != nil {
			t.Fatal(err)
		}
		m.sites, members = append(m.sites, s), append(members, s.id)
	}
	for _, s := range m.sites {
		s.everywhere = true
		if err := s.configure(members); err != nil {
			t.Fatal(err)
		}
		if err := s.launch(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, patience, "the two with a cable see each other", func() bool {
		return m.sites[0].status(t.Context()).Peers >= 1 && m.sites[1].status(t.Context()).Peers >= 1
	})
	if got := m.sites[2].status(t.Context()).Peers; got != 0 {
		t.Errorf("the one without a cable is connected to %d sites", got)
	}
	for _, s := range m.sites[:2] {
		if got := s.status(t.Context()).Reach.Direct; got < 1 {
			t.Errorf("%s is connected directly to %d sites", s.name, got)
		}
	}
}
