//go:build e2e

package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// strangers makes sites that know nothing of each other.
func strangers(t *testing.T, settings ...string) *mesh {
	t.Helper()
	m := prepareMesh(t, settings...)
	for _, s := range m.sites {
		writeFile(t, s.config, "# "+s.name+"'s own words\n"+s.base())
	}
	return m
}

// join lets the site join with a token, and starts it.
func (s *site) join(t *testing.T, token string) {
	t.Helper()
	began := time.Now()
	a := s.command(t, "join", token)
	a.want(t, 0, "start the site with: siteagent")
	if !strings.HasPrefix(a.out, "my offers arrive: yes (distance ") ||
		strings.Count(a.out, "\n") != 1 {
		t.Errorf("join prints %q", a.out)
	}
	t.Logf("%s: %.1f s from join to its first offer: %s", s.name, time.Since(began).Seconds(), a.out)
	if took := time.Since(began); took > 30*time.Second { // 10 s on a machine that does nothing else
		t.Errorf("that took %s", took)
	}
	text := readFile(t, s.config)
	for _, want := range []string{
		"# " + s.name + "'s own words", "domain-key: \"ed25519:", "bootstrap: /ip4/", "preset: test",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the configuration lacks %q:\n%s", want, text)
		}
	}
	s.start(t)
}

func (s *site) peers(t *testing.T) int {
	t.Helper()
	status, err := s.client.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return status.Peers
}

func TestJoin(t *testing.T) {
	t.Parallel()
	m := strangers(t, submitOnly, twoCores, twoCores)
	a, b, c := m.sites[0], m.sites[1], m.sites[2]
	a.start(t)
	invited := a.command(t, "invite", "--uses", "2")
	invited.want(t, 0, "only sites on this machine", "siteagent join <the line above>")
	token := strings.TrimSpace(invited.out)
	if strings.Count(invited.out, "\n") != 1 || !strings.HasPrefix(token, "mrs1.") {
		t.Fatalf("invite prints %q", invited.out)
	}
	b.join(t, token)
	b.command(t, "join", token).want(t, 1, "is running", "siteagent stop")
	c.join(t, token)
	m.awaitWhole(t) // b and c know each other by the roster alone
	m.submit(t, "sites").want(t, 0)
	c.command(t, "check").want(t, 0)

	b.command(t, "pause").want(t, 0)
	first := m.begin(t, nil, "ticks=10")
	if at := m.holder(t, first); at != c {
		t.Errorf("with b paused a job runs at %s", at.name)
	}
	m.submit(t, "wait", string(first)).want(t, 0)
	c.command(t, "pause").want(t, 0)
	waiting := m.begin(t, nil, "print=at last")
	m.awaitPhase(t, waiting, view.PhaseWaiting)
	b.command(t, "resume").want(t, 0)
	m.submit(t, "wait", string(waiting)).want(t, 0)

	// While it is banned, c holds a job of a, and b one of c.
	theirs := c.begin(t, m, "ticks=60")
	eventually(t, patience, "b runs a job of c", func() bool { return b.runsFor(t, c.id) == 1 })
	b.command(t, "pause").want(t, 0)
	c.command(t, "resume").want(t, 0)
	ours := m.begin(t, result, "ticks=60", "put=/out/r:result 0")
	if at := m.holder(t, ours); at != c {
		t.Fatalf("the job runs at %s", at.name)
	}
	b.command(t, "resume").want(t, 0)
	began := time.Now()
	a.command(t, "ban", "c", "--note", "misbehaved").want(t, 0, "banned")
	eventually(t, patience, "nobody is connected to c", func() bool {
		return a.peers(t) == 1 && b.peers(t) == 1 && c.peers(t) == 0
	})
	eventually(t, patience, "b has ended the job of c", func() bool { return b.runsFor(t, c.id) == 0 })
	took := time.Since(began)
	t.Logf("the ban took effect everywhere within %s", took)
	if took > 5*time.Second {
		t.Errorf("the ban took effect after %s, want 5 s", took)
	}
	m.wantResults(t, ours, 1)
	if task := m.tasks(t, ours)[0]; task.Site != b.id || len(task.Attempts) != 2 {
		t.Errorf("the job did not move to b: %+v", task)
	}
	eventually(t, 2*patience, "c ends its own job itself", func() bool {
		detail, err := c.client.Job(t.Context(), theirs)
		return err == nil && detail.Status.Phase == view.PhaseDone
	})
	c.stays(t, a, b)
	m.audit(t)
	m.replay(t)
}

// stays wants a banned site out, whatever it tries.
func (s *site) stays(t *testing.T, a, b *site) {
	t.Helper()
	if status := s.command(t, "status"); !strings.Contains(status.out, "this site is banned") {
		t.Errorf("status does not say that it is banned: %s", status.out)
	}
	s.command(t, "check").want(t, 1)
	s.terminate(t)
	fresh := strings.TrimSpace(a.command(t, "invite").out)
	s.command(t, "join", fresh).want(t, 1, "banned")
	b.terminate(t)
	b.start(t)
	s.start(t)
	eventually(
		t, patience, "the member is back", func() bool { return a.peers(t) == 1 && b.peers(t) == 1 },
	)
	if members := b.command(t, "members"); !strings.Contains(members.out, "banned") ||
		!strings.Contains(members.out, "misbehaved") {
		t.Errorf("b's members: %s", members.out)
	}
	if s.peers(t) != 0 {
		t.Error("it came back after a restart")
	}
	a.command(t, "admit", string(s.id)).want(t, 0, "member")
	eventually(
		t, patience, "it is let in again", func() bool { return a.peers(t) == 2 && b.peers(t) == 2 },
	)
}

// begin submits the guest at this site.
func (s *site) begin(t *testing.T, m *mesh, args ...string) grid.JobID {
	t.Helper()
	cmd := m.submitCommand(
		t, append([]string{"run", "--parsable", "-d", "--wasm", bin.guest, "--"}, args...)...,
	)
	cmd.Env = append(cmd.Env, "MRS_ADDR="+s.socket)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("submit at %s: %v", s.name, err)
	}
	return grid.JobID(strings.TrimSpace(string(out)))
}

// runsFor counts the attempts of one submitter that the site holds.
func (s *site) runsFor(t *testing.T, submitter grid.SiteID) int {
	t.Helper()
	status, err := s.client.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, r := range status.Running {
		if r.Submitter == submitter {
			n++
		}
	}
	return n
}

func TestJoinSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	m := strangers(t, submitOnly, twoCores)
	a, b := m.sites[0], m.sites[1]
	a.start(t)
	token := strings.TrimSpace(a.command(t, "invite").out)
	b.command(t, "join", token[:len(token)-3]).want(t, 2, "copy the whole line")
	b.command(t, "join", "hello").want(t, 2, "mrs1.")
	b.command(t, "join").want(t, 2, "one token")
	a.command(t, "ban", "nobody").want(t, 1, "siteagent members")
	a.command(t, "invite", "--for", "soon").want(t, 2, "--for")
	a.terminate(t)
	b.command(t, "join", token).want(
		t, 1, "does not answer at 127.0.0.1 port", "siteagent invite --listen lan",
	)
	a.command(t, "join", token).want(t, 1, "the site that invites")
	a.start(t) // the invitation outlives that
	b.join(t, token)
	m.awaitWhole(t)
	m.audit(t)
}

// A domain that takes anyone has no key: its token says where it is, and a ban
// holds where it was said.
func TestJoinAnOpenDomain(t *testing.T) {
	t.Parallel()
	m := strangers(t, submitOnly+"accept: anyone\n", twoCores)
	a, b := m.sites[0], m.sites[1]
	a.start(t)
	invited := a.command(t, "invite")
	invited.want(t, 0, "takes anyone")
	joined := b.command(t, "join", strings.TrimSpace(invited.out))
	joined.want(t, 0, "accept: anyone")
	if !strings.HasPrefix(joined.out, "my offers arrive: yes") {
		t.Errorf("join prints %q", joined.out)
	}
	b.start(t)
	m.awaitWhole(t)
	m.run(t, "exit=0").want(t, 0)
	a.command(t, "ban", "b").want(t, 0, "by the owner of this site")
	eventually(t, patience, "b is out", func() bool { return a.peers(t) == 0 })
	a.terminate(t)
	a.start(t)
	eventually(t, patience, "b is turned away after a restart", func() bool {
		return strings.Contains(a.metrics(t), `mrs_p2p_refused_total{reason="banned"}`)
	})
	if a.peers(t) != 0 {
		t.Error("b is back")
	}
	m.audit(t)
}
