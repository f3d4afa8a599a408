//go:build e2e

package e2e_test

import (
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/netlab"
	"github.com/mrsmesh/mrsmesh/internal/scripttest"
)

// A volunteer's first ten minutes, as the README has them. What is typed and answered
// stands in testdata/script.

func TestFirstTenMinutesOnALocalNetwork(t *testing.T) {
	lab := netlab.Start(t)
	scripttest.RunOn(t, "testdata/script/lan", scripttest.Machines{
		"anna": words(t, place(t, lab, "anna")), "ben": words(t, place(t, lab, "ben")),
	})
}

func TestFirstTenMinutesBehindTwoRouters(t *testing.T) {
	lab := netlab.StartPublic(t)
	machines := scripttest.Machines{"hub": words(t, place(t, lab, "hub"))}
	for _, name := range []string{"anna", "ben"} {
		nat, err := lab.NAT(t.Context(), "nat"+name, netlab.NATConfig{})
		must(t, err)
		host, err := nat.Inside(t.Context(), name, netlab.Link{})
		must(t, err)
		machines[name] = words(t, host)
	}
	scripttest.RunOn(t, "testdata/script/routers", machines)
}

// The administrators of three domains, one of them behind a router.
func TestThreeAdministratorsLinkTheirDomains(t *testing.T) {
	lab := netlab.StartPublic(t)
	nat, err := lab.NAT(t.Context(), "nat", netlab.NATConfig{Kind: netlab.Symmetric})
	must(t, err)
	attic, err := nat.Inside(t.Context(), "attic", netlab.Link{})
	must(t, err)
	scripttest.RunOn(t, "testdata/script/domains", scripttest.Machines{
		"lab": words(t, place(t, lab, "lab")), "campus": words(t, place(t, lab, "campus")),
		"attic": words(t, attic),
	})
}

func place(t *testing.T, lab *netlab.Lab, name string) *netlab.Host {
	t.Helper()
	host, err := lab.Host(t.Context(), name, netlab.Link{})
	must(t, err)
	return host
}

// words are what stands before a command that runs on the host.
func words(t *testing.T, host *netlab.Host) []string {
	t.Helper()
	const last = "true"
	line := host.Command(t.Context(), last).Args
	return line[:len(line)-1]
}
