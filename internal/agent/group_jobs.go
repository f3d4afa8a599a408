package agent

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// jobs is the duty of an owner's group: the owner's broker, and the data of its jobs.
type jobs struct {
	*group

	making  func() (step.Machine, any) // a machine of the owner's, and its settings
	shown   shown                      // what people see while another one acts
	before  map[grid.JobID]bool        // own jobs of a state that was restored
	content content
	stock   stock // what is kept for another owner
	keeping int   // questions to keep something that are worked on

	waitsSince time.Time // since when a command has waited for who acts
	ownerSince time.Time // since when the owner's agent is connected
	returnedAt time.Time // when the lead was offered to it
	newsAt     time.Time // when it was told who acts
}

func newJobs(g *group) *jobs {
	j := &jobs{group: g, content: newContent()}
	j.making = func() (step.Machine, any) { return j.makeBroker() }
	if !g.own() {
		j.stock.most = g.a.cfg.Standbys.withDefaults().Data
	}
	return j
}

// jobsOf is this agent's part in an owner's jobs, nil if it has none.
func (s *groups) jobsOf(owner grid.SiteID) *jobs {
	if g := s.of(owner); g != nil {
		j, _ := g.duty.(*jobs)
		return j
	}
	return nil
}

// brokerSettings are those of the owner's that its broker has wherever it runs. Leases above
// all: a successor waits for as long as its predecessor has granted.
type brokerSettings struct {
	Name        string
	Lease       time.Duration
	LeaseMargin time.Duration
	Reserved    time.Duration `json:",omitempty"`
	Policy      grid.AvailPolicy
	FIBR        bool
	SoftMin     bool
	Replies     int

	OwnFaults bool          `json:",omitempty"`
	FaultHalf time.Duration `json:",omitempty"`
}

func (a *Agent) brokerSettings() brokerSettings {
	return brokerSettings{
		Name: a.cfg.Name, Lease: a.cfg.Lease, LeaseMargin: a.cfg.LeaseMargin,
		Reserved: a.cfg.Reserved, Policy: a.cfg.Policy,
		FIBR: a.cfg.FIBR, SoftMin: a.cfg.SoftMin, Replies: a.cfg.Replies,
		OwnFaults: a.cfg.OwnFaults, FaultHalf: a.cfg.FaultHalf,
	}
}

// makeBroker makes a machine as the owner has set it up. Here are this site's parts of it: where
// it runs, and the randomness, which is a secret of each run.
func (j *jobs) makeBroker() (*broker.Machine, any) {
	settings := j.a.brokerSettings()
	if !j.own() {
		settings = brokerSettings{}
		if text := j.member.Row(broker.FactGroup, keySettings); text != nil {
			_ = json.Unmarshal(text, &settings) // as it was written; else the defaults
		}
	}
	c := j.a.brokerConfig(j.owner, settings)
	return broker.New(c), c
}

// brokerConfig is that of an owner's broker which runs here.
func (a *Agent) brokerConfig(owner grid.SiteID, s brokerSettings) broker.Config {
	c := broker.Default(owner)
	c.Domain = a.cfg.P2P.Domain
	c.Here, c.HeldBy, c.Name, c.Seed = a.mesh.Self(), a.cfg.P2P.Owner, s.Name, a.cfg.Seed
	c.Addrs, c.Capability = a.mesh.Addrs(), a.cfg.Capability
	c.ReplyTarget, c.Policy, c.FIBR = s.Replies, s.Policy, s.FIBR
	c.OwnFaultsOnly = s.OwnFaults
	setIf(&c.FaultHalfLife, s.FaultHalf)
	if a.cfg.Gossip {
		c.UnicastUpTo = 0
	}
	if s.SoftMin {
		c.Choice = broker.ChoiceSoftMin
	}
	setIf(&c.Lease, s.Lease)
	setIf(&c.LeaseMargin, s.LeaseMargin)
	setIf(&c.ReservationLease, s.Reserved)
	c.ReservationLease = max(c.ReservationLease, c.Lease)
	c.NoFencing = noFencing
	return c
}

func (j *jobs) makeMachine() (step.Machine, any) { return j.making() }

func (j *jobs) begins(m step.Machine, term uint64) {
	typed, _ := m.(*broker.Machine) // else it is a test's own
	j.show(typed)
	if !j.alone() {
		j.log.Info("this agent acts for the jobs of an owner",
			"owner", string(j.owner), "term", term)
		j.a.reports.count("group_booted")
	}
}

func (j *jobs) begun(first bool) {
	if first && j.own() {
		if j.restored() {
			j.noteBefore()
		}
		j.a.ownSubmissions()
		j.a.trustState()
	}
	j.content.boot(j)
}

func (j *jobs) restored() bool { return j.own() && j.store.Restored() }

func (j *jobs) takes(step.Input) bool { return true }

func (j *jobs) isIdle() bool { return j.shown.machine != nil && j.shown.machine.Open() == 0 }

func (j *jobs) rest(usual time.Duration) time.Duration { return usual }

// ends tells who waits for an answer that the outcome is not known.
func (j *jobs) ends(why string) {
	j.log.Info("this agent acts no longer for the jobs of an owner",
		"owner", string(j.owner), "term", j.term, "why", why)
	j.shown = shown{}
	j.ownerSince = time.Time{} // an owner that hands over is still there, and is not to get it back
	j.content.discard(j)
	if j.own() {
		j.a.commands.fail(fmt.Errorf("%w: %s", view.ErrBusy, why+
			"; whether it was accepted is not known: look with submit list, then try again"))
	}
}

// unreadable ends this agent, if the facts are its own, else its part in the group: another owner's
// facts, which may be wrong on purpose or of a later version, are not to end anything else here.
func (j *jobs) unreadable(err error) {
	if j.own() {
		j.a.leave(err)
		return
	}
	j.log.Error("another owner's jobs cannot be taken up", "owner", string(j.owner), "error", err)
	j.a.reports.count("group_unreadable")
	j.refuse(j.owner, short(err.Error()))
	j.a.spawn(func() { j.a.dismiss(j.group, "its facts cannot be read here") })
}

// noteBefore notes the jobs of a state that was restored. If a group has them, they are its.
func (j *jobs) noteBefore() {
	if j.shown.machine == nil {
		return // a test's own
	}
	j.before = make(map[grid.JobID]bool)
	for _, id := range j.shown.machine.Jobs() {
		j.before[id] = true
	}
}

func (j *jobs) perform(e step.Effect) {
	switch e := e.(type) {
	case step.Send:
		if m, ok := j.a.address(e); ok {
			j.sendOut(e.To, m)
		}
	case step.Broadcast:
		j.a.broadcast(j.wrap(e.Message))
	case step.Report:
		j.noteRound(e)
		j.a.perform(e)
	case step.Hold:
		j.content.hold(j, e)
	case step.Collect:
		j.content.collect(j, e)
	case step.Pull:
		j.content.pull(j, e)
	case step.LetGo:
		j.content.drop(j, e)
	case step.Archive, step.Reply, step.TellBorder:
		if j.own() { // the history and the border are the owner's, and so are those who ask
			j.a.perform(e)
		}
	default:
		j.a.perform(e)
	}
}

func (j *jobs) dismissed() {
	for job := range j.content.held {
		j.a.release(job)
	}
}

// sendOut sends a message of the owner's broker, in the name of the owner if it has certified
// who may act for it. What the owner says of sites it says itself, under its own key.
func (j *jobs) sendOut(to grid.SiteID, m protocol.Message) {
	if _, said := m.(protocol.Testimony); said {
		if j.own() {
			j.a.send(to, m)
		}
		return
	}
	j.admits(to, m)
	j.a.send(to, j.wrap(m))
}

// wrap says for whom a message is, and by which right. Who is in the group at the moment does not
// count: a site that has seen a certificate heeds no message without a term, before the change
// that it is for and after the one that leaves the owner alone.
func (j *jobs) wrap(m protocol.Message) protocol.Message {
	if j.assembly.encoded == nil {
		return m // nobody else has ever been able to
	}
	return j.a.behalf(j.owner, j.term, j.assembly.encoded, m)
}

// shown is the owner's broker as people see it where it does not run: as the group's table has it.
type shown struct {
	machine *broker.Machine
	applied uint64 // of the table
}

// show makes the machine that runs here the one that is seen.
func (j *jobs) show(m *broker.Machine) {
	j.shown = shown{machine: m}
	if j.own() && m != nil {
		j.a.brokerMachine = m
	}
}

// seen is the owner's broker for those who only look.
func (j *jobs) seen() *broker.Machine {
	if j.acts() || j.shown.machine != nil && j.shown.applied == j.member.Applied() {
		return j.shown.machine
	}
	facts, applied := j.member.Table()
	made, _ := j.making()
	m, _ := made.(*broker.Machine)
	if m != nil {
		if err := m.Restore(facts); err != nil {
			j.log.Warn("the jobs of an owner cannot be shown",
				"owner", string(j.owner), "error", err)
			m, _ = j.makeBroker()
		}
	}
	j.shown = shown{machine: m, applied: applied}
	return m
}
