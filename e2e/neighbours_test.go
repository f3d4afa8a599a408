//go:build e2e

package e2e_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// linkWith links the domain with another one, whose gateway gives it all that it has.
func (m *mesh) linkWith(t *testing.T, other *mesh) {
	t.Helper()
	invited := m.sites[0].command(t, "domain", "invite")
	invited.want(t, 0)
	other.sites[0].command(t, "domain", "join", strings.TrimSpace(invited.out)).want(t, 0)
	links, err := other.sites[0].client.Links(t.Context())
	if err != nil || len(links.Links) != 1 {
		t.Fatalf("%+v, %v", links, err)
	}
	other.sites[0].command(
		t, "domain", "policy", string(links.Links[0].Name), "--give", "100%",
	).want(t, 0)
	m.awaitLink(t)
}

// awaitLink waits until the gateway of the linked domain is connected.
func (m *mesh) awaitLink(t *testing.T) {
	t.Helper()
	eventually(t, patience, "the domains are connected", func() bool {
		links, err := m.sites[0].client.Links(t.Context())
		return err == nil && len(links.Links) == 1 && links.Links[0].Connected
	})
}

// linkOf is the one link of a domain, as its gateway has it.
func (m *mesh) linkOf(t *testing.T) view.LinkRow {
	t.Helper()
	links, err := m.sites[0].client.Links(t.Context())
	if err != nil || len(links.Links) != 1 {
		return view.LinkRow{}
	}
	return links.Links[0]
}

// awaitDeputies waits until two other sites may stand in for the gateway, and know it.
func (m *mesh) awaitDeputies(t *testing.T) {
	t.Helper()
	eventually(t, patience, "two sites may stand in", func() bool {
		links, err := m.sites[0].client.Links(t.Context())
		if err != nil || links.Gateway == nil || len(links.Gateway.Deputies) != 2 {
			return false
		}
		for _, d := range links.Gateway.Deputies {
			s := m.siteOf(d.Site)
			own, err := s.client.Links(t.Context())
			if err != nil || own.Gateway == nil || len(own.Gateway.Deputies) != 2 {
				return false
			}
		}
		return true
	})
}

func (m *mesh) siteOf(id grid.SiteID) *site {
	return m.sites[slices.IndexFunc(m.sites, func(s *site) bool { return s.id == id })]
}

// asSeenBy is the mesh with another site before all others: users hand their jobs to it.
func (m *mesh) asSeenBy(at int) *mesh {
	other := *m
	other.sites = slices.Concat(m.sites[at:], m.sites[:at])
	return &other
}

// abroad counts the tasks of a job that are at no site of this domain and in the phase.
func (m *mesh) abroad(t *testing.T, id grid.JobID, phase view.Phase) (n int) {
	t.Helper()
	here := make(map[grid.SiteID]bool)
	for _, s := range m.sites {
		here[s.id] = true
	}
	for _, task := range m.tasks(t, id) {
		if task.Phase == phase && !here[task.Site] {
			n++
		}
	}
	return n
}

// allDone reports whether all tasks of a job are done.
func (m *mesh) allDone(t *testing.T, id grid.JobID) bool {
	t.Helper()
	tasks := m.tasks(t, id)
	for _, task := range tasks {
		if task.Phase != view.PhaseDone {
			return false
		}
	}
	return len(tasks) > 0
}

// What a domain has no space for runs in the linked one. Where one of the gateways is killed
// meanwhile, nothing is lost, nothing runs twice, and the journals replay. The submitter is no
// gateway in the first domain but its first site, so that both kinds of messages are on the way.
func TestAGatewayIsKilledWhileTasksRunNextDoor(t *testing.T) {
	t.Parallel()
	for _, victim := range []string{"of the domain that gives", "of the domain that takes"} {
		t.Run(victim, func(t *testing.T) {
			t.Parallel()
			home := foundDomain(t, submitOnly, oneCore)
			next := foundDomain(t, submitOnly, twoCores)
			home.linkWith(t, next)
			id := home.begin(t, []string{"--count", "6"}, "ticks=60")
			eventually(t, patience, "a task runs next door", func() bool {
				return home.abroad(t, id, view.PhaseRunning) > 0
			})
			killed := next.sites[0]
			if victim == "of the domain that takes" {
				killed = home.sites[0]
			}
			killed.kill(t)
			killed.start(t)
			home.awaitLink(t)
			eventually(t, 3*patience, "all are done", func() bool { return home.allDone(t, id) })
			if n := home.abroad(t, id, view.PhaseDone); n == 0 {
				t.Error("none was done next door")
			}
			for _, m := range []*mesh{home, next} {
				m.audit(t)
				m.replay(t)
			}
		})
	}
}

// Both sides keep the same account of what one has worked for the other, and the account outlives
// the gateways.
func TestReceiptsOfBothDomainsAgree(t *testing.T) {
	t.Parallel()
	home, next := foundDomain(t, submitOnly, submitOnly), foundDomain(t, submitOnly, oneCore)
	home.linkWith(t, next)
	id := home.begin(t, []string{"--count", "3"}, "ticks=10")
	eventually(t, 2*patience, "all are done", func() bool { return home.allDone(t, id) })
	if n := home.abroad(t, id, view.PhaseDone); n != len(home.tasks(t, id)) {
		t.Errorf("%d were done next door", n)
	}
	var taken, given float64
	agree := func() bool {
		a, errA := home.sites[0].client.Links(t.Context())
		b, errB := next.sites[0].client.Links(t.Context())
		if errA != nil || errB != nil || len(a.Links) != 1 || len(b.Links) != 1 {
			return false
		}
		taken, given = a.Links[0].Taken, b.Links[0].Given
		return taken > 0 && taken == given
	}
	eventually(t, patience, "all receipts are there", func() bool {
		return agree() && taken >= 3*time.Second.Seconds()*0.5
	})
	before := taken
	for _, m := range []*mesh{home, next} {
		m.sites[0].kill(t)
		m.sites[0].start(t)
	}
	home.awaitLink(t)
	eventually(t, patience, "the account is as it was", func() bool {
		return agree() && taken == before
	})
}

// The site with the domain's key is killed for good while tasks run next door: another gateway of
// the domain takes the link up within ten seconds, what was next door is placed again, later work
// crosses again, and when the site is back nothing is doubled. So it is on both sides.
func TestAnotherGatewayStandsIn(t *testing.T) {
	t.Parallel()
	for _, victim := range []string{"of the domain that gives", "of the domain that takes"} {
		t.Run(victim, func(t *testing.T) {
			t.Parallel()
			home := foundDomain(t, submitOnly, oneCore, submitOnly, submitOnly)
			next := foundDomain(t, submitOnly, twoCores, twoCores, submitOnly)
			for _, m := range []*mesh{home, next} {
				m.awaitController(t, m.sites...)
			}
			home.linkWith(t, next)
			user := home.asSeenBy(2)
			hurt, well := home, next
			if victim == "of the domain that gives" {
				hurt, well = next, home
			}
			hurt.awaitDeputies(t)
			first := user.begin(t, []string{"--count", "3"}, "ticks=60")
			eventually(t, patience, "a task runs next door", func() bool {
				return user.abroad(t, first, view.PhaseRunning) > 0
			})
			hurt.sites[0].kill(t)
			const within = 10 * time.Second
			eventually(t, within, "another gateway is connected", func() bool {
				row := well.linkOf(t)
				return row.Connected && row.Gateway != hurt.sites[0].id
			})
			second := user.begin(t, []string{"--count", "6"}, "ticks=10")
			eventually(t, 3*patience, "a task runs next door again", func() bool {
				return user.abroad(t, second, view.PhaseRunning) > 0
			})
			eventually(t, 6*patience, "all are done", func() bool {
				return user.allDone(t, first) && user.allDone(t, second)
			})
			hurt.sites[0].start(t)
			third := user.begin(t, []string{"--count", "6"}, "ticks=10")
			eventually(t, patience, "the site with the key is the gateway again", func() bool {
				row := well.linkOf(t)
				return row.Connected && row.Gateway == hurt.sites[0].id
			})
			eventually(t, 3*patience, "all are done", func() bool { return user.allDone(t, third) })
			eventually(t, patience, "both domains count the same, over all gateways", func() bool {
				ours, theirs := hurt.linkOf(t), well.linkOf(t)
				return ours.Given == theirs.Taken && ours.Taken == theirs.Given &&
					ours.Given+ours.Taken > 0
			})
			for _, m := range []*mesh{home, next} {
				m.audit(t)
				m.replay(t)
			}
		})
	}
}
