//go:build e2e

package e2e_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/netlab"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// behindDoors is a domain whose gateway is behind a NAT and whose other two sites are public and
// relay, and the gateway of another domain, behind a NAT of its own.
type behindDoors struct {
	*divided
	home, away realm
}

func newBehindDoors(ctx context.Context, t *testing.T) behindDoors {
	t.Helper()
	lab := netlab.StartPublic(t)
	dir, err := os.MkdirTemp(bin.dir, "b")
	if err != nil {
		t.Fatal(err)
	}
	b := behindDoors{divided: &divided{labMesh: &labMesh{dir: dir, lab: lab}}}
	b.endWith(t)
	inside := func(name, settings string) *labSite {
		t.Helper()
		nat, err := lab.NAT(ctx, "nat"+name, netlab.NATConfig{Kind: netlab.Symmetric})
		if err != nil {
			t.Fatal(err)
		}
		host, err := nat.Inside(ctx, name, netlab.Link{})
		if err != nil {
			t.Fatal(err)
		}
		return b.add(t, name, host, onWAN+settings)
	}
	home := inside("home", "domain: house\n"+submitOnly)
	for _, name := range []string{"porch", "gate"} {
		host, err := lab.Host(ctx, name, netlab.Link{})
		if err != nil {
			t.Fatal(err)
		}
		b.add(t, name, host, onWAN+"domain: house\nnat: {relay: serve}\n"+submitOnly)
	}
	b.founded(t, home)
	b.away = realm{inside("away", "domain: attic\n"+twoCores), t}
	b.home = realm{home, t}
	for _, s := range b.sites {
		for _, start := range []func(context.Context) error{s.launch, s.ready} {
			if err := start(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	return b
}

// founded gives the sites that there are the domain's key, which the first one holds, and makes
// them members by list.
func (b behindDoors) founded(t *testing.T, holder *labSite) {
	t.Helper()
	registry, err := member.Open(member.Config{
		Dir: holder.state, Domain: "house", Self: holder.id, Name: holder.name,
	})
	if err == nil {
		_, _, err = registry.Invite(member.Terms{Span: time.Hour, Uses: 1})
	}
	if err != nil {
		t.Fatal(err)
	}
	var ids []grid.SiteID
	for _, s := range b.sites {
		ids = append(ids, s.id)
	}
	for _, s := range b.sites {
		s.settings += "domain-key: " + string(registry.Key()) + "\n"
		for _, o := range b.sites {
			if o != s && o != holder {
				s.bootstrap = append(s.bootstrap, o.addr())
			}
		}
		if err := s.configure(ids); err != nil {
			t.Fatal(err)
		}
	}
}

// through is the member through which the link leads, as the other domain sees it; nil: none.
func (b behindDoors) through(ctx context.Context) *labSite {
	addr := b.away.link(ctx, "house").Addr
	at := slices.IndexFunc(b.sites, func(s *labSite) bool {
		return s != b.home.labSite && strings.Contains(addr, string(s.id))
	})
	if at < 0 {
		return nil
	}
	return b.sites[at]
}

// Two domains whose gateways are behind symmetric NATs, so that neither can dial the other, are
// linked by their administrators' commands. Work crosses, and when the member through which they
// are connected dies, another one takes its place.
func TestTwoGatewaysBehindRouters(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	b := newBehindDoors(ctx, t)
	eventually(t, 2*patience, "the gateway is reached through its deputies", func() bool {
		status := b.home.status(ctx)
		return len(status.Reach.Relays) == 2 && status.Controller != nil &&
			len(status.Controller.Members) == 3
	})
	began := time.Now()
	token := strings.TrimSpace(b.home.mustSay(ctx, t, "domain", "invite", "--name", "attic"))
	b.away.mustSay(ctx, t, "domain", "join", token)
	b.away.sees(ctx, "house", true)
	b.home.sees(ctx, "attic", true)
	t.Logf("linked %.1f s after the invitation", time.Since(began).Seconds())
	b.away.mustSay(ctx, t, "domain", "policy", "house", "--give", "100%")
	b.a, b.b = b.home.labSite, b.away.labSite
	b.completes(t)
	first := b.through(ctx)
	if first == nil {
		t.Fatalf("connected by way of %q", b.away.link(ctx, "house").Addr)
	}
	if err := first.kill(ctx); err != nil {
		t.Fatal(err)
	}
	began = time.Now()
	eventually(t, 3*patience, "another member takes its place", func() bool {
		now := b.through(ctx)
		return now != nil && now != first
	})
	b.home.sees(ctx, "attic", true)
	t.Logf("linked again %.1f s after the death of a relay", time.Since(began).Seconds())
	b.completes(t)
}
