//go:build e2e

package e2e_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/netlab"
	"github.com/mrsmesh/mrsmesh/internal/view"
)

// realm is a domain with one site in a namespace, which is its gateway.
type realm struct {
	*labSite
	t *testing.T
}

// link is the row of another domain, as `siteagent domains` has it; the name is empty where there
// is none.
func (r realm) link(ctx context.Context, other string) view.LinkRow {
	r.t.Helper()
	links, err := r.client.Links(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, row := range links.Links {
		if string(row.Name) == other {
			return row
		}
	}
	return view.LinkRow{}
}

// sees waits until another domain is connected, or is not.
func (r realm) sees(ctx context.Context, other string, connected bool) {
	r.t.Helper()
	what := r.name + " is connected with " + other
	if !connected {
		what = r.name + " has lost " + other
	}
	if err := await(ctx, patience, what, func() (bool, error) {
		return r.link(ctx, other).Connected == connected, nil
	}); err != nil {
		r.t.Fatalf("%v: %+v", err, r.link(ctx, other))
	}
}

// join links it with the domain of a token that another one prints.
func (r realm) join(ctx context.Context, inviter realm) {
	r.t.Helper()
	token := inviter.mustSay(ctx, r.t, "domain", "invite", "--name", r.name)
	r.mustSay(ctx, r.t, "domain", "join", strings.TrimSpace(token))
	r.sees(ctx, inviter.name, true)
	inviter.sees(ctx, r.name, true)
}

// startRealms starts three domains; the gateway of the last one is behind a NAT.
func startRealms(ctx context.Context, t *testing.T) []realm {
	t.Helper()
	lab := netlab.StartPublic(t)
	dir, err := os.MkdirTemp(bin.dir, "d")
	if err != nil {
		t.Fatal(err)
	}
	m := &labMesh{dir: dir, lab: lab}
	m.endWith(t)
	var realms []realm
	for _, name := range []string{"lab", "campus", "attic"} {
		inside := lab.Host
		if name == "attic" {
			nat, err := lab.NAT(ctx, "nat", netlab.NATConfig{Kind: netlab.Symmetric})
			if err != nil {
				t.Fatal(err)
			}
			inside = nat.Inside
		}
		host, err := inside(ctx, name, netlab.Link{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := newLabSite(ctx, dir, name, host, onWAN+"domain: "+name+"\n")
		if err != nil {
			t.Fatal(err)
		}
		m.sites = append(m.sites, s)
		for _, start := range []func(context.Context) error{s.launch, s.ready} {
			if err := start(ctx); err != nil {
				t.Fatal(err)
			}
		}
		realms = append(realms, realm{s, t})
	}
	return realms
}

// Three domains, one of them behind a NAT, are linked by the commands of their administrators, find
// each other again after one was killed, and forget a link that one side ends.
func TestDomainsAreLinked(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	realms := startRealms(ctx, t)
	lab, campus, attic := realms[0], realms[1], realms[2]
	campus.join(ctx, lab)
	attic.join(ctx, lab) // from behind its NAT it dials, and nobody dials it
	attic.join(ctx, campus)
	for _, r := range realms {
		shown := r.mustSay(ctx, t, "domains")
		if n := strings.Count(shown, " yes "); n != 2 {
			t.Errorf("%s is connected with %d domains, want 2:\n%s", r.name, n, shown)
		}
		if members := r.mustSay(ctx, t, "members"); strings.Count(members, "12D3KooW") != 1 {
			t.Errorf("%s has other members than itself:\n%s", r.name, members)
		}
	}
	if err := lab.kill(ctx); err != nil {
		t.Fatal(err)
	}
	attic.sees(ctx, "lab", false)
	campus.sees(ctx, "lab", false)
	for _, start := range []func(context.Context) error{lab.launch, lab.ready} {
		if err := start(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range []realm{campus, attic} {
		r.sees(ctx, "lab", true)
		lab.sees(ctx, r.name, true)
	}
	lab.mustSay(ctx, t, "domain", "unlink", "attic")
	if err := await(ctx, patience, "attic forgets lab", func() (bool, error) {
		return attic.link(ctx, "lab").Name == "", nil
	}); err != nil {
		t.Fatal(err)
	}
	attic.sees(ctx, "campus", true)
}
