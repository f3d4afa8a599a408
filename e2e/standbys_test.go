//go:build e2e

package e2e_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/suspend/suspendtest"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

var ownerAway = flag.Duration("owner-away", 0,
	"how long the owner is away in TestTheOwnerIsAway, at least")

var standbyKills = flag.Int("standby-kills", 2,
	"how many times each test of standbys ends the submitter's agent")

// What a submitter with standbys wants, and its standbys: they run nothing. Workers run its jobs
// and stand by for nobody.
const (
	wantsStandbys = submitOnly + "standby: {count: 2}\n"
	worker        = twoCores + "standby: {accept: none}\n"
)

// lanLease is the lease of the preset lan, which the meshes of these tests have.
const lanLease = 3 * time.Second

// What was promised for a LAN, with the silence of an agent the slowest.
const (
	actsWithin  = 1600 * time.Millisecond
	handsWithin = 500 * time.Millisecond
	movesWithin = lanLease + 2500*time.Millisecond
	busyFactor  = 10 // what a busy machine may take, when few are measured
)

// group is a mesh whose first site has the next two as standbys.
type group struct {
	*mesh
	owner    *site
	standbys []*site
	workers  []*site
}

// newGroup starts a submitter, its two standbys and two workers that have run the guest.
func newGroup(t *testing.T) *group {
	t.Helper()
	m := prepareMeshWith(t, func(s *site) { s.lease = lanLease },
		wantsStandbys, submitOnly, submitOnly, worker, worker)
	for _, s := range m.sites {
		s.start(t)
	}
	m.awaitWhole(t)
	g := &group{mesh: m, owner: m.sites[0], standbys: m.sites[1:3], workers: m.sites[3:]}
	g.awaitGroup(t)
	m.submit(t, "run", "-d", "--count", "4", "--wasm", bin.guest, "--", "ticks=1").want(t, 0)
	eventually(t, patience, "both workers have run the guest", func() bool {
		return !slices.ContainsFunc(g.workers, func(s *site) bool {
			_, err := os.Stat(filepath.Join(s.state, "runs.jsonl"))
			return err != nil
		})
	})
	return g
}

// awaitGroup waits until the owner's agent acts and all members see each other.
func (g *group) awaitGroup(t *testing.T) {
	t.Helper()
	eventually(t, 2*patience, "the owner's agent acts, with two standbys", func() bool {
		return !slices.ContainsFunc(g.sites[:3], func(s *site) bool {
			at := s.groupOf(t, g.owner)
			away := slices.ContainsFunc(at.Members, func(m view.GroupMember) bool { return m.Away })
			return away || at.Changing || len(at.Members) != 3 || at.Acting != g.owner.id
		})
	})
}

// groupOf returns an owner's group as a site sees it; zero: it has no part in it, or is silent.
func (s *site) groupOf(t *testing.T, owner *site) view.Group {
	t.Helper()
	if !s.alive() {
		return view.Group{}
	}
	status, err := s.client.Status(t.Context())
	if err != nil {
		return view.Group{}
	}
	for _, g := range status.Standbys {
		if g.Owner == owner.id {
			return g
		}
	}
	return view.Group{}
}

// actsSince is when a site said that it acts, after that moment; zero: it has not.
func (s *site) actsSince(t *testing.T, moment time.Time) time.Time {
	t.Helper()
	for _, line := range slices.Backward(strings.Split(readFile(t, s.log), "\n")) {
		rest, is := strings.CutPrefix(line, "time=")
		stamp, text, _ := strings.Cut(rest, " ")
		at, err := time.Parse(time.RFC3339Nano, stamp)
		if !is || err != nil {
			continue
		}
		if at.Before(moment.Truncate(time.Millisecond)) {
			break
		}
		if strings.Contains(text, `msg="this agent acts for the jobs of an owner"`) {
			return at
		}
	}
	return time.Time{}
}

// awaitSuccessor waits until a standby acts, and tells how long after that moment.
func (g *group) awaitSuccessor(t *testing.T, since time.Time) (acting *site, took time.Duration) {
	t.Helper()
	eventually(t, patience, "a standby acts", func() bool {
		for _, s := range g.standbys {
			if at := s.actsSince(t, since); !at.IsZero() {
				acting, took = s, at.Sub(since)
			}
		}
		return acting != nil
	})
	return acting, took
}

// wantTimes logs how long something took, and wants 95 of 100 within a limit: on a quiet machine,
// so that few are given more.
func wantTimes(t *testing.T, what string, took []time.Duration, limit time.Duration) {
	t.Helper()
	slices.Sort(took)
	at := func(share int) time.Duration {
		return took[(len(took)-1)*share/100].Round(time.Millisecond)
	}
	t.Logf("%s: p50 %s, p95 %s, longest %s of %d", what, at(50), at(95), at(100), len(took))
	const many = 20
	if len(took) < many {
		limit *= busyFactor
	}
	if at(95) > limit {
		t.Errorf("%s: p95 %s, want %s at most", what, at(95), limit)
	}
}

// wantUndisturbed wants a job's task to run as it has, and no run of a worker to have been frozen.
func (g *group) wantUndisturbed(t *testing.T, id grid.JobID, before view.TaskView) {
	t.Helper()
	now := g.tasks(t, id)[0]
	if now.Site != before.Site || now.Token != before.Token || len(now.Attempts) > 1 {
		t.Errorf("it ran as %d on %s, and runs as %d on %s, with %d attempts",
			before.Token, before.SiteName, now.Token, now.SiteName, len(now.Attempts))
	}
	for _, s := range g.workers {
		text := readFile(t, filepath.Join(s.state, "runs.jsonl"))
		if strings.Contains(text, "frozen") {
			t.Errorf("a task on %s was frozen meanwhile:\n%s", s.name, text)
		}
	}
}

// The submitter's agent is killed, and another one acts in its place: before a second is over if
// its host refuses the dial, and else when it was silent for so long. Running jobs run on.
func TestAnotherAgentActs(t *testing.T) {
	silence := func(t *testing.T, s *site) {
		if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	for name, end := range map[string]func(*testing.T, *site){
		"refused": func(t *testing.T, s *site) { s.kill(t) }, "silent": silence,
	} {
		t.Run(name, func(t *testing.T) {
			g := newGroup(t)
			g.endsAgain(t, actsWithin, end, func() {
				_ = g.owner.cmd.Process.Kill() // one that is silent only lives still
				<-g.owner.ended
			})
		})
	}
}

// endsAgain ends the owner's agent as often as asked, while a task runs that must not notice, and
// wants that another agent acts within a time. ended waits until the process is gone.
func (g *group) endsAgain(
	t *testing.T, within time.Duration, end func(*testing.T, *site), ended func(),
) {
	t.Helper()
	id := g.begin(t, nil, "ticks=100000")
	g.awaitPhase(t, id, view.PhaseRunning)
	before := g.tasks(t, id)[0]
	var took []time.Duration
	for range *standbyKills {
		g.awaitGroup(t)
		began := time.Now()
		end(t, g.owner)
		_, after := g.awaitSuccessor(t, began)
		took = append(took, after)
		ended()
		g.owner.start(t)
	}
	g.awaitGroup(t)
	wantTimes(t, "another agent acts after", took, within)
	g.wantUndisturbed(t, id, before)
	g.submit(t, "cancel", string(id)).want(t, 0)
	g.audit(t)
}

// An agent that stops in order hands over: after SIGTERM as after siteagent stop.
func TestAnAgentThatStopsHandsOver(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *site){
		"SIGTERM": func(t *testing.T, s *site) {
			if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		},
		"siteagent stop": func(t *testing.T, s *site) { s.command(t, "stop").want(t, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			g := newGroup(t)
			g.endsAgain(t, handsWithin, end, func() {
				select {
				case <-g.owner.ended:
				case <-time.After(patience):
					t.Fatal("the agent did not end")
				}
			})
		})
	}
}

// An owner's machine falls asleep with a job under way, as when a lid is closed: another agent acts
// before it sleeps, and the owner's when it is awake again.
func TestAMachineFallsAsleep(t *testing.T) {
	bus := suspendtest.Start(t)
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", bus.Address)
	g := newGroup(t)
	id := g.begin(t, nil, "ticks=100000")
	g.awaitPhase(t, id, view.PhaseRunning)
	before := g.tasks(t, id)[0]
	bus.AwaitLocks(t, len(g.sites))
	began := time.Now()
	bus.Sleep(t)
	bus.AwaitSleep(t)
	acting, took := g.awaitSuccessor(t, began)
	if took > busyFactor*handsWithin {
		t.Errorf("another agent acts after %s", took)
	}
	if err := g.owner.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	other := acting.begin(t, g.mesh, "ticks=40") // takes four seconds
	eventually(t, patience, "another submitter's job is done meanwhile", func() bool {
		job, err := acting.client.Job(t.Context(), other)
		return err == nil && job.Status.Phase == view.PhaseDone
	})
	for _, s := range g.standbys { // as after a lead that was offered to a machine that sleeps
		if again := s.actsSince(t, began.Add(took+time.Millisecond)); !again.IsZero() {
			t.Errorf("%s acts %s after another did", s.name, again.Sub(began.Add(took)))
		}
	}
	if err := g.owner.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	bus.Wake(t)
	g.awaitGroup(t)
	g.wantUndisturbed(t, id, before)
	g.submit(t, "cancel", string(id)).want(t, 0)
	g.audit(t)
}

// A site dies together with the submitter's agent, as in a room that loses its power. Who acts
// then has its tasks run elsewhere.
func TestASiteDiesWithItsSubmitter(t *testing.T) {
	g := newGroup(t)
	var took []time.Duration
	for range *standbyKills {
		g.awaitGroup(t)
		id := g.begin(t, result, "ticks=30", "put=/out/r:result 0")
		victim := g.holder(t, id)
		eventually(
			t, patience, "its processes run", func() bool { return len(victim.processes()) > 0 },
		)
		other := g.workers[0]
		if victim == other {
			other = g.workers[1]
		}
		killed := time.Now()
		for _, s := range []*site{g.owner, victim} {
			if err := s.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, patience, "the task runs elsewhere", func() bool { return other.runs(t, id) })
		took = append(took, time.Since(killed))
		for _, s := range []*site{g.owner, victim} {
			<-s.ended
			s.start(t)
		}
		g.wantResults(t, id, 1)
	}
	wantTimes(t, "the task runs elsewhere after", took, movesWithin)
	g.audit(t)
}

// runs reports whether a task of the job runs at a site.
func (s *site) runs(t *testing.T, id grid.JobID) bool {
	t.Helper()
	status, err := s.client.Status(t.Context())
	return err == nil && slices.ContainsFunc(status.Running, func(r view.RunningTask) bool {
		return strings.HasPrefix(r.Task, string(id)) && r.Phase == view.PhaseRunning
	})
}

// The owner is away while its jobs run and end, and comes back: with its state, or on a new disk
// with its key alone. Each job is done once, and its result is there.
func TestTheOwnerIsAway(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]bool{"back": false, "on a new disk": true} {
		t.Run(name, func(t *testing.T) {
			g := newGroup(t)
			id := g.begin(t, append([]string{"--count", "3"}, result...),
				"ticks=30", "put=/out/r:result {{index}}")
			g.awaitPhase(t, id, view.PhaseRunning)
			killed := time.Now()
			g.owner.kill(t)
			if lose {
				g.owner.loseDisk(t, g.dir)
			}
			acting, _ := g.awaitSuccessor(t, killed)
			eventually(t, patience+*ownerAway, "the job has ended, and the owner is away for long",
				func() bool {
					at := acting.groupOf(t, g.owner)
					over := at.Here && at.Jobs > 0 && at.Open == 0
					return over && time.Since(killed) >= *ownerAway
				})
			g.owner.start(t)
			g.awaitGroup(t)
			g.wantResults(t, id, 3)
			for _, task := range g.tasks(t, id) {
				if len(task.Attempts) != 1 {
					t.Errorf("task %d had %d attempts", task.Index, len(task.Attempts))
				}
			}
			g.run(t, "print=again").want(t, 0)
			g.audit(t)
			g.replay(t)
		})
	}
}

// loseDisk empties a site's state but for its key. The state must be in the directory of the mesh.
func (s *site) loseDisk(t *testing.T, dir string) {
	t.Helper()
	const key = "identity.key"
	text := readFile(t, filepath.Join(s.state, key))
	below, err := filepath.Rel(dir, s.state)
	if err != nil || !filepath.IsLocal(below) || text == "" {
		t.Fatalf("%s is no state of this test", s.state)
	}
	if err := os.RemoveAll(s.state); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(s.state, 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(s.state, key), text)
}
