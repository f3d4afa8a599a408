package agent_test

import (
	"os"
	"slices"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// enrolled are the plans of agents that know each other by the domain's roster alone, as the first
// one holds its key. The last of them is no member yet.
func enrolled(t *testing.T, n int) []agent.Config {
	t.Helper()
	configs := keyed(t, n)
	c := configs[0]
	registry, err := member.Open(member.Config{
		Dir: c.StateDir, Domain: c.P2P.Domain, Self: c.P2P.Allow[0], Name: c.Name,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, site := range c.P2P.Allow[1 : n-1] {
		if _, err := registry.Admit(site, "", ""); err != nil {
			t.Fatal(err)
		}
	}
	for i := range configs {
		dir := configs[i].StateDir
		if i > 0 && i < n-1 { // as siteagent join does
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			own, err := member.Open(member.Config{
				Dir: dir, Domain: c.P2P.Domain, Self: c.P2P.Allow[i], Key: registry.Key(),
			})
			if err == nil {
				_, err = own.Merge(registry.Roster().Records())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		configs[i].P2P.Allow = nil
	}
	return configs
}

// key is the domain's key that an agent goes by.
func (n *node) key(t *testing.T) grid.DomainKey {
	t.Helper()
	m, err := n.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m.DomainKey
}

// awaitKey waits until all agents go by the key and are connected.
func awaitKey(t *testing.T, key grid.DomainKey, nodes ...*node) {
	t.Helper()
	for _, n := range nodes {
		agent.Eventually(t, n.cfg.Name+" goes by the new key", func() bool {
			return n.key(t) == key
		})
		n.awaitPeers(t, len(nodes)-1)
	}
}

// The domain's key is rotated while a job runs. Nobody joins again: not who is there, not who was
// off, and not who restarts. The domain has a controller under the new key, which admits a
// newcomer, and the job ends where it began.
func TestADomainsKeyIsRotated(t *testing.T) {
	t.Parallel()
	configs := enrolled(t, 5)
	var nodes []*node
	for _, c := range configs[:4] {
		nodes = append(nodes, start(t, c, nodes...))
	}
	awaitController(t, nodes...)
	holder, old := nodes[0], nodes[0].key(t)
	id := holder.submit(t, holder.job(t, "run=8s"))
	runs := holder.await(t, id, view.PhaseRunning).Site
	idle := slices.DeleteFunc(slices.Clone(nodes[1:]), func(n *node) bool {
		return n.Self() == runs
	})
	off, restarts := idle[0], idle[1]
	off.die(t)
	there := but(nodes, off)

	done, err := holder.RotateKey(t.Context(), "")
	if err != nil || done.Former != old || done.Key == old || done.Sites != 4 {
		t.Fatalf("%+v, %v", done, err)
	}
	awaitKey(t, done.Key, there...)
	there = append(there, start(t, off.cfg, there...))
	awaitKey(t, done.Key, there...)
	restarts.die(t)
	there = but(there, restarts)
	there = append(there, start(t, restarts.cfg, there...))
	awaitKey(t, done.Key, there...)
	awaitController(t, there...)

	newcomer := configs[4]
	newcomer.DomainKey = done.Key
	newcomer.P2P.Allow = []grid.SiteID{holder.Self()} // as join writes
	site, err := newcomer.P2P.Site()
	if err != nil {
		t.Fatal(err)
	}
	row, err := holder.Admit(t.Context(), string(site), "")
	if err != nil || !row.Member {
		t.Fatalf("%+v, %v", row, err)
	}
	there = append(there, start(t, newcomer, there...))
	awaitKey(t, done.Key, there...)
	if task := holder.await(t, id, view.PhaseDone); task.Site != runs || task.Token != 1 {
		t.Errorf("the job ended at %s with token %d, it began at %s", task.Site, task.Token, runs)
	}
	again, err := holder.RotateKey(t.Context(), old)
	if err != nil || again.Key != done.Key {
		t.Errorf("the same again: %+v, %v", again, err)
	}
}
