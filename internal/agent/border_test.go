package agent

import (
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/p2p"
)

// TestOneDecisionAboutLinksAtATime: a policy that was changed while an earlier decision was under
// way is not put back by it. The links are read when it is a decision's turn, and no other one
// comes in between.
func TestOneDecisionAboutLinksAtATime(t *testing.T) {
	t.Parallel()
	key := func(dir string) *member.Registry {
		t.Helper()
		r, err := member.Open(member.Config{Dir: dir, Domain: "lab", Self: adminSite, Name: "lab"})
		if err == nil {
			_, _, err = r.Invite(member.Terms{Span: time.Hour, Uses: 1}) // which makes the key
		}
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	links, err := member.OpenLinks(key(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	a := newBare(t).Agent
	a.links = links
	g := newGateway(a)
	link := member.Link{Name: "campus", Policy: member.LinkPolicy{
		Give: 20, Take: 100, Tasks: 64, Kinds: []string{"wasm"},
	}}
	link.Side.Key = key(t.TempDir()).Key()
	domain, err := p2p.DomainSite(link.Side.Key)
	if err != nil {
		t.Fatal(err)
	}
	for _, give := range []int{20, 100} {
		g.decided(func() []member.Link {
			if g.deciding.TryLock() {
				g.deciding.Unlock()
				t.Error("another decision could come in between")
			}
			link.Policy.Give = give
			return []member.Link{link}
		})
		if got := g.terms[domain].Give; got != uint32(give) {
			t.Errorf("gives %d %%, want %d", got, give)
		}
	}
}
