package agent_test

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// keyed are the plans of agents of a domain with a key, which the first one holds. All take part in
// its group if they are asked.
func keyed(t *testing.T, n int) []agent.Config {
	t.Helper()
	configs := agent.Plans(t, n)
	c := configs[0]
	if err := os.MkdirAll(c.StateDir, 0o700); err != nil {
		t.Fatal(err)
	}
	registry, err := member.Open(member.Config{
		Dir: c.StateDir, Domain: c.P2P.Domain, Self: c.P2P.Allow[0], Name: c.Name,
	})
	if err == nil {
		_, _, err = registry.Invite(member.Terms{Span: time.Hour, Uses: 1})
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range configs {
		configs[i].DomainKey = registry.Key()
		configs[i].Controller = agent.Controlling{Found: true, Accept: true}
	}
	return configs
}

// controller is the domain's controller as an agent sees it.
func (n *node) controller(t *testing.T) view.Controller {
	t.Helper()
	status, err := n.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if status.Controller == nil {
		return view.Controller{}
	}
	return *status.Controller
}

// awaitController waits until all nodes agree on who the controller is, one of them.
func awaitController(t *testing.T, nodes ...*node) (acting *node) {
	t.Helper()
	agent.Eventually(t, "all agree on the controller", func() bool {
		site := nodes[0].controller(t).Acting
		at := slices.IndexFunc(nodes, func(n *node) bool { return n.Self() == site })
		if at < 0 {
			return false
		}
		acting = nodes[at]
		return !slices.ContainsFunc(nodes, func(n *node) bool {
			c := n.controller(t)
			return c.Acting != site || c.Changing || len(c.Members) != 3 ||
				c.Here != (n.Self() == site)
		})
	})
	return acting
}

// ruled starts agents of a domain with a key, and waits for its controller.
func ruled(t *testing.T, n int) (nodes []*node, acting *node) {
	t.Helper()
	for _, c := range keyed(t, n) {
		nodes = append(nodes, start(t, c, nodes...))
	}
	return nodes, awaitController(t, nodes...)
}

// but are the nodes without one.
func but(nodes []*node, without *node) []*node {
	return slices.DeleteFunc(slices.Clone(nodes), func(n *node) bool { return n == without })
}

// takeOver was promised: so soon after the end of a controller there is another one.
const takeOver = 5 * time.Second

// Three members of a domain have a controller. It is killed, and another one acts soon; the lead
// does not return when the killed one does, which is a member again; and it may be killed again.
func TestAControllerOutlivesItsAgent(t *testing.T) {
	t.Parallel()
	nodes, acting := ruled(t, 4)
	term := acting.controller(t).Term
	for range 2 {
		lost := acting
		rest := but(nodes, lost)
		began := time.Now()
		lost.die(t)
		agent.Eventually(t, "another one acts", func() bool {
			return slices.ContainsFunc(rest, func(n *node) bool { return n.controller(t).Here })
		})
		if took := time.Since(began); took > takeOver {
			t.Errorf("another one acts after %s, want %s at most", took, takeOver)
		} else {
			t.Logf("another one acts after %s", took)
		}
		acting = awaitController(t, rest...)
		back := start(t, lost.cfg, rest...)
		nodes = append(rest, back)
		if again := awaitController(t, nodes...); again != acting {
			t.Errorf("%s acts, and %s did before the other one was back", again.cfg.Name,
				acting.cfg.Name)
		}
		now := acting.controller(t).Term
		if now <= term {
			t.Errorf("it acts in term %d, and before it was %d", now, term)
		}
		term = now
	}
}

// The founder is away and comes back, and does not act. A member then wants no part any more: the
// founder gets the lead, and another site takes its place. Then the founder wants no controller.
func TestTheFounderReplacesAMember(t *testing.T) {
	t.Parallel()
	nodes, _ := ruled(t, 4)
	founder := nodes[0]
	founder.die(t)
	acting := awaitController(t, nodes[1:]...)
	weary := nodes[slices.IndexFunc(nodes, func(n *node) bool {
		return n != founder && n != acting && isMember(t, acting, n)
	})]
	if c := weary.controller(t); c.Notice == "" || c.Founder != founder.Self() {
		t.Errorf("without the founder a member is shown %+v", c)
	}
	nodes[0] = start(t, founder.cfg, but(nodes, founder)...)
	founder = nodes[0]
	awaitController(t, nodes...)
	at := slices.Index(nodes, weary)
	weary.die(t)
	weary.cfg.Controller.Accept = false
	nodes[at] = start(t, weary.cfg, but(nodes, weary)...)
	agent.Eventually(t, "another one takes its place", func() bool {
		return !isMember(t, founder, nodes[at]) && !founder.controller(t).Changing
	})
	if now := awaitController(t, nodes...); now != founder {
		t.Errorf("%s acts, and the founder has to replace a member", now.cfg.Name)
	}

	founder.die(t)
	awaitController(t, nodes[1:]...)
	founder.cfg.Controller.Found = false
	nodes[0] = start(t, founder.cfg, nodes[1:]...)
	agent.Eventually(t, "there is no controller any more", func() bool {
		return !slices.ContainsFunc(nodes, func(n *node) bool {
			c := n.controller(t)
			return c.Acting != "" || c.Why == ""
		})
	})
}

// The founder's disk is lost, but for its key, or that key is given to another site: who has it
// joins the group with a number of its own and is the founder.
func TestTheKeyIsOnAnotherDisk(t *testing.T) {
	t.Parallel()
	for name, same := range map[string]bool{"of the same site": true, "of another one": false} {
		t.Run(name, func(t *testing.T) {
			nodes, _ := ruled(t, 4)
			old := nodes[0].cfg
			key, err := os.ReadFile(filepath.Join(old.StateDir, member.KeyFile))
			if err != nil {
				t.Fatal(err)
			}
			next := nodes[0]
			if !same { // which is no member
				next = nodes[slices.IndexFunc(nodes, func(n *node) bool {
					return !isMember(t, nodes[0], n)
				})]
			}
			for _, n := range slices.Compact([]*node{nodes[0], next}) {
				n.die(t)
			}
			rest := but(but(nodes, nodes[0]), next)
			fresh := next.cfg
			fresh.StateDir = t.TempDir()
			file := filepath.Join(fresh.StateDir, member.KeyFile)
			if err := os.WriteFile(file, key, 0o600); err != nil {
				t.Fatal(err)
			}
			back := start(t, fresh, rest...)
			agent.Eventually(t, "who has the key acts, for it had to end the change", func() bool {
				return awaitController(t, append(rest, back)...) == back
			})
			if c := rest[0].controller(t); c.Founder != back.Self() || !isMember(t, back, back) {
				t.Errorf("another member sees %+v", c)
			}
		})
	}
}

// Two members are lost for good: the founder makes the group anew with two others, of higher terms
// than the lost ones had.
func TestALostMajorityIsMadeAnew(t *testing.T) {
	t.Parallel()
	nodes, acting := ruled(t, 5)
	term := acting.controller(t).Term
	founder, rest := nodes[0], []*node{nodes[0]}
	for _, n := range nodes[1:] {
		if isMember(t, founder, n) {
			n.die(t)
		} else {
			rest = append(rest, n)
		}
	}
	agent.Eventually(t, "there is another controller", func() bool {
		founder.LostForLong(t.Context())
		c := rest[1].controller(t)
		return c.Acting == founder.Self() && isMember(t, rest[1], rest[1])
	})
	if now := awaitController(t, rest...).controller(t).Term; now < term+1000 {
		t.Errorf("it acts in term %d, and before it was %d", now, term)
	}
}

// isMember reports whether an agent takes another one for a member of the domain's group.
func isMember(t *testing.T, as, n *node) bool {
	t.Helper()
	return slices.ContainsFunc(as.controller(t).Members, func(m view.GroupMember) bool {
		return m.Site == n.Self()
	})
}

// A domain's group rests while nothing happens: its messages become few.
func TestADomainsGroupRests(t *testing.T) {
	t.Parallel()
	configs := keyed(t, 3)
	var mu sync.Mutex
	var last, gap time.Duration // between two messages of a group from the first agent to the last
	began := time.Now()
	configs[0].Taps.Sending = func(to grid.SiteID, m protocol.Message) bool {
		if _, is := m.(protocol.Group); is && to == configs[0].P2P.Allow[2] {
			mu.Lock()
			defer mu.Unlock()
			now := time.Since(began)
			last, gap = now, now-last
		}
		return true
	}
	var nodes []*node
	for _, c := range configs {
		nodes = append(nodes, start(t, c, nodes...))
	}
	if acting := awaitController(t, nodes...); acting != nodes[0] {
		t.Fatalf("%s acts, and the founder was the only one", acting.cfg.Name)
	}
	mu.Lock()
	gap = 0
	mu.Unlock()
	agent.Eventually(t, "its heartbeats are seldom", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return gap > time.Second
	})
}

// A site that has promised two places dies: the controller tells the submitter that the one that
// starts soon is to leave it, and the other one not, for the site may be back, and it is. When the
// first one moves, which takes a lease of a minute, is shown by pkg/sim.
func TestAControllerSaysWhatLeavesAFailedSite(t *testing.T) {
	t.Parallel()
	configs := keyed(t, 4)
	configs[2].Capability = configs[0].Capability // it gives next to nothing
	var nodes []*node
	for _, c := range configs[:3] {
		nodes = append(nodes, start(t, c, nodes...))
	}
	awaitController(t, nodes...)
	user, site := nodes[0], nodes[1]
	near := user.reserve(t, 2*time.Minute, 1000)
	far := user.reserve(t, 30*time.Minute, 100)
	agent.Eventually(t, "both places are promised, and the controller knows", func() bool {
		return user.placeOf(t, near).Site == site.Self() &&
			user.placeOf(t, far).Site == site.Self() && user.controller(t).Bookings == 2
	})
	other := start(t, configs[3], nodes...)
	awaitController(t, append(nodes, other)...)
	site.die(t)
	var c view.Controller
	agent.Eventually(t, "the controller has told the submitter", func() bool {
		c = user.controller(t)
		return len(c.Failed) == 1 && user.Known().Counters["remap_sent"] > 0
	})
	f := c.Failed[0]
	if f.Site != site.Self() || f.Bookings != 2 || f.Leaving != 1 || f.Stuck != 0 {
		t.Errorf("the controller shows %+v", f)
	}
	if known := user.Known().Counters; known["remap_refused"]+known["heed_no_controller"] > 0 {
		t.Errorf("the submitter has counted %v", known)
	}
	start(t, site.cfg, append(but(nodes, site), other)...)
	agent.Eventually(t, "the site is no failed one", func() bool {
		c = user.controller(t)
		return len(c.Failed) == 0
	})
	if c.Bookings != 2 || user.placeOf(t, far).Site != site.Self() {
		t.Errorf("after the site is back the controller shows %+v, and the far one is at %+v", c,
			user.placeOf(t, far))
	}
}

// reserve asks for a place on some site, for a minute from then on.
func (n *node) reserve(t *testing.T, in time.Duration, milliCPUs int64) grid.JobID {
	t.Helper()
	job := n.job(t)
	job.Spec.Kind, job.Spec.Module = grid.KindReservation, grid.Input{}
	job.Spec.Window.At = time.Now().Add(in)
	job.Spec.Need.MilliCPUs, job.Spec.Need.MFLOPS = milliCPUs, milliCPUs
	return n.submit(t, job).Job
}

// placeOf is the one place of a reservation.
func (n *node) placeOf(t *testing.T, id grid.JobID) view.ReservedPlace {
	t.Helper()
	all, err := n.Reservations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if r.ID == id && len(r.Places) == 1 {
			return r.Places[0]
		}
	}
	return view.ReservedPlace{}
}
