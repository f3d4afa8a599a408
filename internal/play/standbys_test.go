package play

import (
	"slices"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/standby"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// grouped is a paced mesh in which the jobs of the first site have a group: the machines are
// those that agents run, and a group stands between the broker and all that it wants.
type grouped struct {
	*paced

	owner   grid.SiteID
	config  broker.Config // of the owner's broker, but for where it runs
	members []*groupMember
	begun   map[grid.AttemptID]grid.SiteID
	running map[grid.TaskID]int
	doubled []grid.TaskID
	job     grid.JobID // the one that was accepted
}

// groupMember is an agent of the group.
type groupMember struct {
	mesh   *grouped
	site   grid.SiteID
	id     standby.MemberID
	group  *standby.Group // nil: the agent is dead
	disk   standby.Stored
	broker *broker.Machine // nil: it does not act
	term   uint64
	boots  int
}

// office takes what is for the owner's broker to the group: to whichever member acts.
type office struct{ mesh *grouped }

func (o office) Step(_ time.Time, in step.Input) []step.Effect {
	for _, m := range o.mesh.members {
		m.toBroker(in)
	}
	return nil
}

func (office) Snapshot() []byte     { return nil }
func (office) Restore([]byte) error { return nil }
func (office) Check() error         { return nil }

// gone is the machine of a dead agent.
type gone struct{ office }

func (gone) Step(time.Time, step.Input) []step.Effect { return nil }

// looked is a site's machine, and counts the attempts that run there.
type looked struct {
	step.Machine

	mesh *grouped
	site grid.SiteID
}

func (l looked) Step(now time.Time, in step.Input) []step.Effect {
	if exited, is := in.(step.AttemptExited); is {
		l.mesh.running[exited.Attempt.Task]--
	}
	effects := l.Machine.Step(now, in)
	for _, e := range effects {
		if start, is := e.(step.StartAttempt); is {
			l.mesh.begun[start.Attempt] = l.site
			l.mesh.running[start.Attempt.Task]++
			if l.mesh.running[start.Attempt.Task] > 1 {
				l.mesh.doubled = append(l.mesh.doubled, start.Attempt.Task)
			}
		}
	}
	return effects
}

// newGrouped has agents of two cores each, of which the first so many are a group.
func newGrouped(t *testing.T, agents, members int) *grouped {
	t.Helper()
	p := newPaced(t, slices.Repeat([]int64{2}, agents)...)
	g := &grouped{
		paced: p, owner: p.order[0].site, begun: map[grid.AttemptID]grid.SiteID{},
		running: map[grid.TaskID]int{},
	}
	g.config = broker.Default(g.owner)
	g.config.Name, g.config.Seed = "a", 5
	p.machines[watched{g.owner, true}] = office{g}
	var sites []grid.SiteID
	for _, m := range p.order {
		if !m.broker {
			sites = append(sites, m.site)
			p.machines[m] = looked{p.machines[m], g, m.site}
		}
	}
	var ids []standby.MemberID
	for i := range members {
		ids = append(ids, standby.MemberID(i+1))
	}
	for i, id := range ids {
		g.join(sites[i], id, func() standby.Stored { return standby.Founded(0, nil, ids...) })
	}
	return g
}

// join makes an agent a member of the group, with one disk for the group and an equal one for
// the world.
func (g *grouped) join(site grid.SiteID, id standby.MemberID, disk func() standby.Stored) {
	m := &groupMember{mesh: g, site: site, id: id, disk: disk()}
	g.members = append(g.members, m)
	stored := disk()
	group, err := standby.New(standby.Default(id), g.now, &stored)
	if err != nil {
		g.t.Fatal(err)
	}
	m.group = group
	m.give(standby.Woken{})
}

// kill ends an agent: its member of the group, and its site.
func (m *groupMember) kill() {
	if m.broker != nil {
		m.dropTimers()
	}
	m.group, m.broker = nil, nil
	m.mesh.machines[watched{site: m.site}] = gone{}
	for id := range m.mesh.begun {
		if m.mesh.begun[id] == m.site {
			m.mesh.running[id.Task] = 0 // what ran here has ended with it
		}
	}
}

// dropTimers forgets the timers of the machine that acted.
func (m *groupMember) dropTimers() {
	for timer := range m.mesh.timers {
		if timer.watched == (watched{m.mesh.owner, true}) {
			delete(m.mesh.timers, timer)
		}
	}
}

// give hands an input to the group and carries out what it wants.
func (m *groupMember) give(in standby.Input) {
	if m.group == nil {
		return
	}
	for _, e := range m.group.Step(m.mesh.now, in) {
		m.carryOut(e)
	}
	if m.group == nil {
		return
	}
	if err := m.group.Check(); err != nil {
		m.mesh.t.Error(err)
	}
}

func (m *groupMember) carryOut(e standby.Effect) {
	switch e := e.(type) {
	case standby.Wake:
		m.mesh.after(e.At.Sub(m.mesh.now), func() { m.give(standby.Woken{}) })
	case standby.Send:
		to := m.mesh.members[e.To-1]
		m.mesh.after(pacedWay, func() {
			if to.group == nil {
				m.give(standby.Unreachable{Member: to.id})
				m.give(standby.Refusing{Member: to.id})
			}
			to.give(standby.Received{From: m.id, Data: e.Data})
		})
	case standby.Save:
		m.disk.Apply(e)
		if e.Sync {
			m.mesh.after(time.Millisecond, func() { m.give(standby.Saved{Number: e.Number}) })
		}
	case standby.Boot:
		m.boot(e)
	case standby.Discard:
		m.broker = nil
		m.dropTimers()
	case standby.Release:
		for _, e := range e.Effects {
			if reply, is := e.(step.Reply); is {
				m.mesh.job = reply.Job
			}
			m.mesh.carryOut(watched{m.mesh.owner, true}, e)
		}
	case standby.Ended:
		m.mesh.t.Error(e.Err)
	}
}

// boot makes this member's agent the acting submitter.
func (m *groupMember) boot(e standby.Boot) {
	config := m.mesh.config
	config.Here = m.site
	m.broker, m.term = broker.New(config), e.Term
	m.boots++
	if err := m.broker.Restore(e.Facts); err != nil {
		m.mesh.t.Fatal(err)
	}
	m.toBroker(step.Boot{Incarnation: e.Term})
	for _, other := range m.mesh.order {
		if !other.broker && other.site != m.site {
			m.toBroker(step.PeerSeen{Site: other.site, Name: string(other.site)})
		}
	}
}

func (m *groupMember) toBroker(in step.Input) {
	if m.broker == nil {
		return
	}
	effects := m.broker.Step(m.mesh.now, in)
	if err := m.broker.Check(); err != nil {
		m.mesh.t.Error(err)
	}
	m.give(standby.Stepped{Term: m.term, Effects: effects})
}

// acting is the member that acts; nil: none.
func (g *grouped) acting() *groupMember {
	for _, m := range g.members {
		if m.broker != nil {
			return m
		}
	}
	return nil
}

// phases are those of the job's tasks as who acts has them.
func (g *grouped) phases() (phases []grid.Phase) {
	g.t.Helper()
	m := g.acting()
	if m == nil {
		g.t.Fatal("nobody acts")
	}
	state, known := m.broker.Job(g.job)
	if !known {
		g.t.Fatalf("%s does not know the job %q", m.site, g.job)
	}
	for _, task := range state.Tasks {
		phases = append(phases, task.Phase)
	}
	return phases
}

// begins submits a job of so many tasks, each as long, when the sites know each other.
func (g *grouped) begins(tasks uint32, run time.Duration) {
	g.t.Helper()
	g.run(2 * time.Second)
	job := pacedJob("render", run)
	job.Count = tasks
	g.submit(g.owner, job)
}

// wantDone checks that all tasks are done, after so many attempts of which no two of one task ran
// at the same time.
func (g *grouped) wantDone(attempts int) {
	g.t.Helper()
	for i, phase := range g.phases() {
		if phase != grid.PhaseDone {
			g.t.Errorf("task %d is %v", i, phase)
		}
	}
	if len(g.begun) != attempts || len(g.doubled) > 0 {
		g.t.Errorf("%d attempts, want %d: %v; doubled %v",
			len(g.begun), attempts, g.begun, g.doubled)
	}
}

// An agent dies in the middle of a job, with its site. If it acted, another member goes on: tasks
// that run elsewhere are neither started again nor lost, those of the dead site move. A new
// member takes its place.
func TestStandbysGoOnWithTheJobs(t *testing.T) {
	for _, owner := range []bool{true, false} {
		g := newGrouped(t, 5, 3)
		g.begins(9, 6*time.Second)
		g.run(4 * time.Second)
		dead := g.acting()
		if !owner { // a standby dies instead
			dead = g.members[(slices.Index(g.members, dead)+1)%len(g.members)]
		}
		moved := map[grid.TaskID]bool{}
		for at, site := range g.begun {
			moved[at.Task] = moved[at.Task] || site == dead.site
		}
		if len(moved) != 9 || !slices.Contains([]int{1, 2}, count(moved)) {
			t.Fatalf("9 tasks are to run, one or two of them on %s: %v", dead.site, g.begun)
		}
		dead.kill()
		g.run(3 * time.Second)
		g.join(g.order[6].site, 4, standby.Joining)
		voters := []standby.MemberID{4}
		for _, m := range g.members[:3] {
			if m != dead {
				voters = append(voters, m.id)
			}
		}
		g.acting().give(standby.Change{Voters: voters})
		g.run(40 * time.Second)
		slices.Sort(voters)
		if conf := g.members[3].group.Members(); !slices.Equal(conf.Voters, voters) {
			t.Errorf("the new member knows %+v, want the voters %v", conf, voters)
		}
		g.wantDone(9 + count(moved))
		table := g.acting().disk.Table.All()
		if !slices.EqualFunc(table, g.members[3].disk.Table.All(), sameFact) {
			t.Errorf("the new member's table is not that of %s", g.acting().site)
		}
		boots := 0
		for _, m := range g.members {
			boots += m.boots
		}
		if want := map[bool]int{true: 2, false: 1}[owner]; boots != want {
			t.Errorf("%d boots of the broker, want %d", boots, want)
		}
		g.end()
	}
}

func sameFact(a, b step.Fact) bool {
	return a.Kind == b.Kind && a.Key == b.Key && string(a.Value) == string(b.Value)
}

func count(set map[grid.TaskID]bool) (n int) {
	for _, in := range set {
		if in {
			n++
		}
	}
	return n
}

// The lead is handed over in the middle of a job: nobody notices.
func TestTheLeadIsHandedOver(t *testing.T) {
	g := newGrouped(t, 4, 3)
	g.begins(6, 5*time.Second)
	g.run(3 * time.Second)
	old := g.acting()
	next := g.members[(slices.Index(g.members, old)+1)%len(g.members)]
	old.give(standby.Transfer{To: next.id})
	g.run(100 * time.Millisecond)
	if g.acting() != next {
		t.Fatalf("%v acts", g.acting())
	}
	g.run(30 * time.Second)
	g.wantDone(6)
	if _, term := next.group.Leader(); term != next.term {
		t.Errorf("term %d, the broker's is %d", term, next.term)
	}
	g.end()
}

// A group of one is the broker as it was: the same tasks at the same sites.
func TestAGroupOfOneDoesWhatABrokerDoes(t *testing.T) {
	g := newGrouped(t, 4, 1)
	g.begins(6, 5*time.Second)
	g.run(30 * time.Second)
	g.wantDone(6)
	g.end()
}
