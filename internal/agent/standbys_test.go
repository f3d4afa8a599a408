package agent_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/store"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// grouped are agents of which the first has two standbys among the others.
func grouped(t *testing.T, n int) []*node {
	t.Helper()
	configs := agent.Plans(t, n)
	configs[0].Standbys.Count = 2
	var nodes []*node
	for i := range configs {
		configs[i].Standbys.Accept = true
		nodes = append(nodes, start(t, configs[i], nodes...))
	}
	for _, one := range nodes {
		one.awaitPeers(t, n-1)
	}
	agent.Eventually(t, "the first agent has two standbys", func() bool {
		own := nodes[0].standing(t, nodes[0].Self())
		return len(own.Members) == 3 && own.Acting == nodes[0].Self() && !own.Changing
	})
	return nodes
}

// standing is an owner's group as an agent sees it; zero: it has no part in it.
func (n *node) standing(t *testing.T, owner grid.SiteID) view.Group {
	t.Helper()
	groups, err := n.Groups(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		if g.Owner == owner {
			return g
		}
	}
	return view.Group{}
}

// die ends an agent immediately, as far as others can tell.
func (n *node) die(t *testing.T) {
	t.Helper()
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	n.awaitEnd(t)
}

// standbysOf are the nodes that stand by for a node, as its agent has it: a site that was asked and
// is not needed is none.
func standbysOf(t *testing.T, nodes []*node, owner *node) (standbys []*node) {
	t.Helper()
	for _, m := range owner.standing(t, owner.Self()).Members {
		for _, n := range nodes {
			if n.Self() == m.Site && n != owner {
				standbys = append(standbys, n)
			}
		}
	}
	return standbys
}

// actsFor waits until one of the nodes acts for an owner.
func actsFor(t *testing.T, nodes []*node, owner grid.SiteID) (acting *node) {
	t.Helper()
	agent.Eventually(t, "another agent acts", func() bool {
		for _, n := range nodes {
			if g := n.standing(t, owner); g.Here {
				acting = n
			}
		}
		return acting != nil
	})
	return acting
}

// output is the content of a task's one output.
func (n *node) output(t *testing.T, task view.TaskView) string {
	t.Helper()
	if len(task.Outputs) != 1 {
		t.Fatalf("task = %+v", task)
	}
	return n.text(t, task.Outputs[0].CID)
}

// The owner's agent dies while its job runs; the job goes on, neither moved nor lost, ends while
// the owner is away, and the owner that comes back has its result.
func TestAJobOutlivesItsOwnersAgent(t *testing.T) {
	t.Parallel()
	nodes := grouped(t, 4)
	owner := nodes[0]
	job := owner.job(t, "run=4s", "put=/out/x:result", "exit=0")
	job.Spec.Outputs = []grid.Output{{Path: "/out/x", To: "x"}}
	id := owner.submit(t, job)
	running := owner.await(t, id, view.PhaseRunning)
	owner.die(t)

	acting := actsFor(t, nodes[1:], owner.Self())
	if group := acting.standing(t, owner.Self()); group.Term == 0 || group.Jobs != 1 {
		t.Errorf("who acts sees %+v", group)
	}
	agent.Eventually(t, "the job has ended", func() bool {
		return acting.standing(t, owner.Self()).Open == 0
	})
	back := start(t, owner.cfg, nodes[1:]...)
	ended := back.await(t, id, view.PhaseDone)
	if ended.Token != running.Token || ended.Site != running.Site {
		t.Errorf("it ran as %d on %s, then as %d on %s",
			running.Token, running.Site, ended.Token, ended.Site)
	}
	if text := back.output(t, ended); text != "result" {
		t.Errorf("the result is %q", text)
	}
	agent.Eventually(t, "the owner's agent acts again", func() bool {
		return back.standing(t, owner.Self()).Here
	})
	again := back.submit(t, back.job(t, "exit=0"))
	back.await(t, again, view.PhaseDone)
}

// An agent that stops in order hands over before it goes, however it is told to: nobody has to
// miss it first.
func TestAnOrderlyStopHandsOver(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*testing.T, *node){
		"by a signal": func(_ *testing.T, n *node) { n.end() },
		"by its owner": func(t *testing.T, n *node) {
			if err := n.Stop(t.Context(), false); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := grouped(t, 4)
			owner := nodes[0]
			id := owner.submit(t, owner.job(t, "run=1s", "exit=0"))
			owner.await(t, id, view.PhaseRunning)
			stop(t, owner)
			owner.awaitEnd(t)
			if leader := owner.LeaderOfOwn(); leader == "" || leader == owner.Self() {
				t.Errorf("the agent has ended, and %q leads its group as far as it knows", leader)
			}
			owner.close(t)
			acting := actsFor(t, nodes[1:], owner.Self())
			agent.Eventually(t, "the job has ended", func() bool {
				return acting.standing(t, owner.Self()).Open == 0
			})
		})
	}
}

// The owner's disk is lost, but for its key. The agent that starts anew with the key joins its
// group again, and has the jobs and their results.
func TestAJobOutlivesItsOwnersDisk(t *testing.T) {
	t.Parallel()
	nodes := grouped(t, 4)
	owner := nodes[0]
	job := owner.job(t, "run=2s", "put=/out/x:result", "exit=0")
	job.Spec.Outputs = []grid.Output{{Path: "/out/x", To: "x"}}
	id := owner.submit(t, job)
	owner.await(t, id, view.PhaseRunning)
	owner.die(t)
	acting := actsFor(t, nodes[1:], owner.Self())
	agent.Eventually(t, "the job has ended", func() bool {
		return acting.standing(t, owner.Self()).Open == 0
	})
	fresh := owner.cfg
	fresh.StateDir = t.TempDir()
	back := start(t, fresh, nodes[1:]...)
	agent.Eventually(t, "the group is of three again", func() bool {
		own := back.standing(t, owner.Self())
		return own.Here && len(own.Members) == 3 && !own.Changing
	})
	ended := back.await(t, id, view.PhaseDone)
	if text := back.output(t, ended); text != "result" {
		t.Errorf("the result is %q", text)
	}
	again := back.submit(t, back.job(t, "exit=0"))
	back.await(t, again, view.PhaseDone)
}

// A standby that is lost is not missed; what its site ran moves.
func TestAStandbyIsLost(t *testing.T) {
	t.Parallel()
	nodes := grouped(t, 4)
	owner := nodes[0]
	id := owner.submit(t, owner.job(t, "run=2s", "exit=0"))
	owner.await(t, id, view.PhaseRunning)
	lost := standbysOf(t, nodes, owner)[0]
	lost.die(t)
	if task := owner.await(t, id, view.PhaseDone); task.Site == lost.Self() {
		t.Errorf("it ended on %s", task.Site)
	}
	again := owner.submit(t, owner.job(t, "exit=0"))
	owner.await(t, again, view.PhaseDone)
}

// A site that stands by for nobody says so, and the owner's agent shows it.
func TestWhoDoesNotStandByIsShown(t *testing.T) {
	t.Parallel()
	configs := agent.Plans(t, 2)
	configs[0].Standbys.Count = 1
	owner := start(t, configs[0])
	other := start(t, configs[1], owner)
	owner.awaitPeers(t, 1)
	var own view.Group
	agent.Eventually(t, "the refusal is shown", func() bool {
		own = owner.standing(t, owner.Self())
		return len(own.Refusals) == 1
	})
	if r := own.Refusals[0]; r.Site != other.Self() || own.Wanted != 1 ||
		!strings.Contains(r.Reason, "this site's owner lets it stand by for nobody") {
		t.Errorf("%d wanted, %+v", own.Wanted, r)
	}
}

// With both standbys lost nothing is promised any more: a submission is refused with the reason,
// and with one of them back all goes on.
func TestWithoutAMajorityNothingIsPromised(t *testing.T) {
	t.Parallel()
	nodes := grouped(t, 4)
	owner := nodes[0]
	standbys := standbysOf(t, nodes, owner)
	for _, n := range standbys {
		n.die(t)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if id, err := owner.Submit(ctx, owner.job(t, "exit=0"), ""); err == nil {
		t.Errorf("job %s is accepted although nobody else has it", id)
	} else {
		t.Logf("refused: %v", err)
	}
	others := slices.DeleteFunc(slices.Clone(nodes), func(n *node) bool {
		return slices.Contains(standbys, n)
	})
	start(t, standbys[0].cfg, others...)
	agent.Eventually(t, "the owner's agent acts again", func() bool {
		return owner.standing(t, owner.Self()).Here
	})
	id := owner.submit(t, owner.job(t, "exit=0"))
	owner.await(t, id, view.PhaseDone)
}

// Both standbys are lost for good: the owner says so, naming them, and the agent goes on alone
// with the jobs that it knew, then with others. A standby that is heard cannot be given up.
func TestAnOwnerGoesOnWithoutItsStandbys(t *testing.T) {
	t.Parallel()
	nodes := grouped(t, 5)
	owner := nodes[0]
	if err := owner.Backend.Recover(t.Context(), nil); !errors.Is(err, view.ErrConflict) {
		t.Errorf("Recover of a group that is whole: %v", err)
	}
	standbys := standbysOf(t, nodes, owner)
	id := owner.submit(t, owner.job(t, "run=2s", "exit=0"))
	owner.await(t, id, view.PhaseRunning)
	var lost []grid.SiteID
	for _, n := range standbys {
		lost = append(lost, n.Self())
		n.die(t)
	}
	agent.Eventually(t, "the owner's agent acts no longer", func() bool {
		return !owner.standing(t, owner.Self()).Here
	})
	if err := owner.Backend.Recover(t.Context(), lost[:1]); !errors.Is(err, grid.ErrInvalid) {
		t.Errorf("Recover without naming all: %v", err)
	}
	if err := owner.Backend.Recover(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	owner.await(t, id, view.PhaseDone)
	agent.Eventually(t, "others stand by", func() bool {
		own := owner.standing(t, owner.Self())
		return own.Here && len(own.Members) == 3 && !own.Changing
	})
	again := owner.submit(t, owner.job(t, "exit=0"))
	owner.await(t, again, view.PhaseDone)
}

// The log of the own jobs is lost and their facts are not, as after a repair from the journals:
// the agent does not act beside its standbys. It joins them, or, when they are lost too, waits for
// its owner's word.
func TestFactsWithoutTheirLogDoNotAct(t *testing.T) {
	t.Parallel()
	for _, alive := range []bool{true, false} {
		nodes := grouped(t, 5) // while a slow standby is replaced there are three
		owner := nodes[0]
		id := owner.submit(t, owner.job(t, "run=2s", "exit=0"))
		owner.await(t, id, view.PhaseRunning)
		standbys := standbysOf(t, nodes, owner)
		owner.die(t)
		loseLog(t, owner.cfg.StateDir)
		others := nodes[1:]
		var lost []grid.SiteID
		if !alive {
			for _, n := range standbys {
				lost = append(lost, n.Self())
				n.die(t)
			}
			others = slices.DeleteFunc(slices.Clone(others), func(n *node) bool {
				return slices.Contains(standbys, n)
			})
		}
		back := start(t, owner.cfg, others...)
		if group := back.standing(t, owner.Self()); group.Here {
			t.Errorf("it acts by itself: %+v", group)
		}
		if !alive {
			if err := back.Backend.Recover(t.Context(), lost); err != nil {
				t.Fatal(err)
			}
		}
		agent.Eventually(t, "the owner's agent acts", func() bool {
			return back.standing(t, owner.Self()).Here
		})
		back.await(t, id, view.PhaseDone)
	}
}

// loseLog takes the logs of groups out of the facts of an agent that does not run.
func loseLog(t *testing.T, dir string) {
	t.Helper()
	disk, err := store.Open(dir, slog.New(slog.DiscardHandler))
	if err == nil {
		err = errors.Join(disk.Dismiss("broker", true), disk.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A certificate of a group that is no more, which somebody shows again, changes nothing for its
// owner.
func TestAnOldCertificateChangesNothing(t *testing.T) {
	t.Parallel()
	nodes := grouped(t, 4)
	owner := nodes[0]
	old := owner.Certificate(t.Context())
	owner.die(t)
	alone := owner.cfg
	alone.Standbys.Count = 0
	back := start(t, alone, nodes[1:]...)
	agent.Eventually(t, "nobody stands by any more", func() bool {
		own := back.standing(t, owner.Self())
		return own.Here && len(own.Members) == 1 && !own.Changing
	})
	before := back.standing(t, owner.Self())
	back.HearNews(nodes[3].Self(), old)
	id := back.submit(t, back.job(t, "exit=0"))
	back.await(t, id, view.PhaseDone)
	if after := back.standing(t, owner.Self()); !after.Here || after.Term != before.Term {
		t.Errorf("after an old certificate the group is %+v, before %+v", after, before)
	}
}
