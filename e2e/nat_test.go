//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/netlab"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// usable is the time within which two sites behind two NATs must be able to use each other.
const usable = 15 * time.Second

// divided is a mesh of a public site that relays and two sites behind a NAT
// each, which know nothing but the public one.
type divided struct {
	*labMesh
	relay, a, b *labSite
	since       time.Time // when the two were started
}

// newDivided starts the mesh. The first of the two submits, the second works.
func newDivided(t *testing.T, kind netlab.NATKind) *divided {
	t.Helper()
	d := newOpen(t)
	for i, s := range []**labSite{&d.a, &d.b} {
		name := string(rune('a' + i))
		nat, err := d.lab.NAT(t.Context(), "nat"+name, netlab.NATConfig{Kind: kind})
		if err != nil {
			t.Fatal(err)
		}
		host, err := nat.Inside(t.Context(), name, netlab.Link{})
		if err != nil {
			t.Fatal(err)
		}
		*s = d.add(t, name, host, onWAN+[]string{submitOnly, twoCores}[i])
		(*s).bootstrap = []string{d.relay.addr()}
	}
	d.launchAll(t)
	return d
}

// onWAN are the settings of a site that meets the others over the Internet.
const onWAN = "preset: wan\nlease: {length: 3s, margin: 500ms}\n"

// newOpen makes a lab with the public site alone.
func newOpen(t *testing.T) *divided {
	t.Helper()
	lab := netlab.StartPublic(t)
	dir, err := os.MkdirTemp(bin.dir, "n") //nolint:usetesting // sockets need short paths
	if err != nil {
		t.Fatal(err)
	}
	d := &divided{labMesh: &labMesh{dir: dir, lab: lab}}
	d.endWith(t)
	public, err := lab.Host(t.Context(), "relay", netlab.Link{})
	if err != nil {
		t.Fatal(err)
	}
	d.relay = d.add(t, "relay", public, onWAN+"nat: {relay: serve}\n"+submitOnly)
	return d
}

func (d *divided) add(t *testing.T, name string, host *netlab.Host, settings string) *labSite {
	t.Helper()
	s, err := newLabSite(t.Context(), d.dir, name, host, settings)
	if err != nil {
		t.Fatal(err)
	}
	d.sites = append(d.sites, s)
	return s
}

func (d *divided) launchAll(t *testing.T) {
	t.Helper()
	var members []grid.SiteID
	for _, s := range d.sites {
		members = append(members, s.id)
	}
	for i, s := range d.sites {
		if err := s.configure(members); err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			d.since = time.Now()
		}
		if err := s.launch(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s == d.relay {
			if err := s.ready(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// status asks a site for its status; it is empty while the site does not answer.
func (s *labSite) status(ctx context.Context) view.AgentStatus {
	status, err := s.client.Status(ctx)
	if err != nil {
		return view.AgentStatus{}
	}
	return status
}

// both waits until a condition holds at both sites behind NATs.
func (d *divided) both(
	t *testing.T, limit time.Duration, what string, holds func(view.AgentStatus) bool,
) {
	t.Helper()
	eventually(t, limit, what, func() bool {
		return holds(d.a.status(t.Context())) && holds(d.b.status(t.Context()))
	})
}

// watch tells when a condition first held at both sites behind NATs.
func (d *divided) watch(t *testing.T, holds func(view.AgentStatus) bool) <-chan time.Time {
	t.Helper()
	at := make(chan time.Time, 1)
	go func() {
		defer close(at)
		err := await(t.Context(), patience, "both are so", func() (bool, error) {
			return holds(d.a.status(t.Context())) && holds(d.b.status(t.Context())), nil
		})
		if err == nil {
			at <- time.Now()
		}
	}()
	return at
}

// runs submits at the first site and wants the job done at the second. It gives
// the time at which the second site had the job.
func (d *divided) runs(t *testing.T) time.Time {
	t.Helper()
	id := d.completes(t)
	tasks, err := d.a.client.AllTasks(t.Context(), id)
	if err != nil || len(tasks) != 1 || len(tasks[0].Attempts) != 1 ||
		tasks[0].Attempts[0].Site != d.b.id {
		t.Fatalf("tasks = %+v, %v; want one attempt at %s", tasks, err, d.b.id)
	}
	return tasks[0].Attempts[0].Started.Time
}

// completes submits a job at the first site and waits until it is done.
func (d *divided) completes(t *testing.T) grid.JobID {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(
		ctx, bin.submit, "run", "--parsable", "-d", "--wasm", bin.guest, "--", "print=through",
	)
	cmd.Env = append(os.Environ(), "MRS_ADDR="+d.a.socket, "XDG_CONFIG_HOME="+d.dir, "NO_COLOR=1")
	cmd.Dir = d.dir
	out, err := cmd.Output()
	id := grid.JobID(strings.TrimSpace(string(out)))
	if err != nil || id.Validate() != nil {
		t.Fatalf("submit run: %v: %q", err, out)
	}
	eventually(t, patience, "the job is done", func() bool {
		job, err := d.a.client.Job(ctx, id)
		return err == nil && job.Status.Phase == view.PhaseDone
	})
	return id
}

// total is a counter of both sites behind NATs together.
func (d *divided) total(t *testing.T, line string) int {
	t.Helper()
	sum := 0
	for _, s := range []*labSite{d.a, d.b} {
		n, err := s.counter(t.Context(), line)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}

func TestDoubleNATIsUsableThroughTheRelayAndThenDirect(t *testing.T) {
	t.Parallel()
	d := newDivided(t, netlab.Cone)
	directly := d.watch(
		t, func(s view.AgentStatus) bool { return s.Peers == 2 && s.Reach.Direct == 2 },
	)
	d.both(t, usable, "both see each other", func(s view.AgentStatus) bool { return s.Peers == 2 })
	seen := time.Since(d.since)
	ran := d.runs(t).Sub(d.since)
	if ran > usable {
		t.Errorf("a job ran after %s, want %s", ran, usable)
	}
	d.both(t, patience, "both are connected directly", func(s view.AgentStatus) bool {
		return s.Reach.Direct == 2 && s.Reach.Relayed == 0 && len(s.Reach.Relays) == 1
	})
	t.Logf("two NATs: seen after %.2f s, direct after %.2f s, a job ran after %.2f s",
		seen.Seconds(), (<-directly).Sub(d.since).Seconds(), ran.Seconds())
	if n := d.total(t, `mrs_p2p_punches_total{result="ok"}`); n == 0 {
		t.Error("no hole was punched")
	}
	eventually(t, patience, "the relayed connections end", func() bool {
		return d.total(t, `mrs_p2p_moves_total{result="ok"}`) > 0
	})
	d.beginsAnew(t)
	if err := d.relay.kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.both(t, patience, "the relay is missed", func(s view.AgentStatus) bool { return s.Peers == 1 })
	d.runs(t)
	d.both(
		t, time.Second, "nobody else is missed",
		func(s view.AgentStatus) bool { return s.Peers == 1 && s.Reach.Direct == 1 },
	)
	for _, how := range []string{"refusing", "silent"} {
		if n := d.total(t, `mrs_p2p_peers_lost_total{how="`+how+`"}`); n > 2 {
			t.Errorf("%d peers were lost (%s), want the relay alone", n, how)
		}
	}
}

// beginsAnew starts the second site again. It is connected through the relay before it knows an
// address at which the first can dial it, and yet is reached directly some time later.
func (d *divided) beginsAnew(t *testing.T) {
	t.Helper()
	if err := errors.Join(d.b.kill(t.Context()), d.b.launch(t.Context())); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	d.both(t, usable, "both see each other again", func(s view.AgentStatus) bool {
		return s.Peers == 2
	})
	seen := time.Since(begun)
	d.both(t, patience, "both are connected directly again", func(s view.AgentStatus) bool {
		return s.Reach.Direct == 2 && s.Reach.Relayed == 0
	})
	t.Logf("started again: seen after %.2f s, direct after %.2f s",
		seen.Seconds(), time.Since(begun).Seconds())
}

func TestSymmetricNATsStayOnTheRelay(t *testing.T) {
	t.Parallel()
	d := newDivided(t, netlab.Symmetric)
	d.both(
		t, usable, "both see each other",
		func(s view.AgentStatus) bool { return s.Peers == 2 && s.Reach.Relayed == 1 },
	)
	seen := time.Since(d.since)
	ran := d.runs(t).Sub(d.since)
	if ran > usable {
		t.Errorf("a job ran after %s, want %s", ran, usable)
	}
	t.Logf(
		"two symmetric NATs: seen after %.2f s, a job ran after %.2f s", seen.Seconds(), ran.Seconds(),
	)
	eventually(t, patience, "holes are tried to be punched", func() bool {
		return d.total(t, `mrs_p2p_punches_total{result="failed"}`) > 0
	})
	for range 3 {
		d.runs(t)
	}
	d.both(t, time.Second, "both are still relayed", func(s view.AgentStatus) bool {
		return s.Peers == 2 && s.Reach.Relayed == 1 && len(s.Reach.Relays) == 1 &&
			s.Reach.Relays[0] == d.relay.id
	})
	out, err := exec.Command(bin.siteagent, "--config", d.a.file(), "status", "--all").CombinedOutput()
	if want := fmt.Sprintf("1 through a relay; reached through %s", d.relay.id); err != nil ||
		!strings.Contains(string(out), want) {
		t.Errorf("siteagent status: %v, want %q in\n%s", err, want, out)
	}
}

func TestASiteThatIsReachableFindsOutAndRelays(t *testing.T) {
	t.Parallel()
	d := newOpen(t)
	host, err := d.lab.Host(t.Context(), "found", netlab.Link{})
	if err != nil {
		t.Fatal(err)
	}
	found := d.add(t, "found", host, onWAN+submitOnly)
	found.bootstrap = []string{d.relay.addr()}
	d.launchAll(t)
	eventually(
		t, patience, "the site sees the other",
		func() bool { return found.status(t.Context()).Peers == 1 },
	)
	eventually(t, patience, "it knows that it is reachable, and relays", func() bool {
		reach := found.status(t.Context()).Reach
		return reach.Reachability == "public" && reach.Serving && len(reach.Relays) == 0
	})
	t.Logf("reachable after %.1f s", time.Since(d.since).Seconds())
}
