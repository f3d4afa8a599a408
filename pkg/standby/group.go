package standby

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/raft/v3"
)

// Group is one member's part of a group: raft's RawNode, and what it may not decide itself.
// Like a step.Machine it has one owner, is told the time and never waits.
type Group struct {
	cfg    Config
	now    time.Time
	node   *raft.RawNode
	stored *Stored // the disk when all that was saved is on it
	out    []Effect

	saves    uint64 // Saves so far
	changing bool   // see storage
	applied  int    // bytes of the entries that are in the table and still in the log
	pending  *ready // what waits for the newest Save with Sync

	votes    votes
	lead     lead
	gate     gate
	transfer transfer
	hold     hold
	change   change

	wake  time.Time // asked for; zero: none
	ended bool
}

// New is a member whose disk holds what stored says; it takes stored over. The first input is
// Woken. The error names what is wrong with the configuration or the disk.
func New(cfg Config, now time.Time, stored *Stored) (g *Group, err error) {
	if err = errors.Join(cfg.Validate(), stored.check()); err != nil {
		return nil, err
	}
	defer func() {
		if problem := recover(); problem != nil {
			g, err = nil, fmt.Errorf("start member %d: %v", cfg.ID, problem)
		}
	}()
	g = &Group{cfg: cfg, now: now, stored: stored}
	for _, e := range stored.Entries {
		if e.Index <= stored.Applied {
			g.applied += int(e.size())
		}
	}
	g.restart()
	return g, nil
}

// Step takes one input. now never decreases and was read after the input was taken from the
// queue (rule 9): messages may have waited there over a suspend of the machine.
//
// A panic of raft ends this member and no other: the effects of that Step are left out, for
// they could tell others what is not on the disk.
func (g *Group) Step(now time.Time, in Input) (effects []Effect) {
	if g.ended {
		return nil
	}
	defer func() {
		if problem := recover(); problem != nil {
			effects = g.end(fmt.Errorf("member %d: %v", g.cfg.ID, problem))
		}
	}()
	if now.After(g.now) {
		g.now = now
	}
	g.take(in)
	g.pump()
	g.keepTime()
	g.pump()
	g.askAgain()
	return g.flush()
}

// take hands the input to the part that it concerns.
func (g *Group) take(in Input) {
	switch in := in.(type) {
	case Woken:
		g.onWoken()
	case Received:
		g.onReceived(in)
	case Saved:
		g.onSaved(in)
	case Stepped:
		g.onStepped(in)
	case Refusing:
		g.onRefusing(in)
	case Unreachable:
		g.node.ReportUnreachable(uint64(in.Member))
	case Delivering:
		g.lead.delivers(in.Member, g.now)
	case Transfer:
		g.onTransfer(in)
	case Change:
		g.onChange(in)
		g.stir()
	case Rest:
		g.onRest(in)
	}
}

// onReceived shows a message to raft, unless it has to be ignored.
func (g *Group) onReceived(in Received) {
	m, err := g.read(in)
	if err != nil {
		return
	}
	if asksVote(m) && !isForced(m) && g.withholds() {
		return
	}
	if isOfLeader(m) && m.GetTerm() >= g.term() {
		until := g.now.Add(g.announced(m))
		g.votes.heard(in.From, until)
		g.votes.campaign = until.Add(g.votes.patience)
	}
	if isAnswer(m) && m.GetTerm() == g.term() {
		g.lead.answered(in.From, g.now)
	}
	_ = g.node.Step(m) // the errors: a proposal that is dropped, an answer of a stranger
	g.waitForVotedFor(m)
	g.watch()
}

// onWoken does what its time has come for.
func (g *Group) onWoken() {
	g.wake = time.Time{}
	if g.isLeader() && !g.now.Before(g.lead.beat) {
		g.lead.beat = g.nextBeat()
		g.node.Tick()
		g.resign()
		g.sendTablesAnew()
		g.changeOn()
	}
	g.campaignIfDue()
}

// keepTime does what has become due in the Step, whatever its input was.
func (g *Group) keepTime() {
	g.failTransfer()
	g.holdInputs()
	g.rebuildIfFree()
}

// askAgain asks to be woken when the next thing is due. To be woken too early costs nothing, so
// that not every message of a leader sets a timer.
func (g *Group) askAgain() {
	next := g.votes.campaign
	if g.isLeader() {
		next = g.lead.beat
	}
	if !g.wake.IsZero() && !next.Before(g.wake) {
		return
	}
	g.wake = next
	g.emit(Wake{At: next})
}

func (g *Group) emit(e Effect) { g.out = append(g.out, e) }

func (g *Group) flush() []Effect {
	out := g.out
	g.out = nil
	return out
}

// end makes this the last Step. A machine that ran here is thrown away.
func (g *Group) end(err error) []Effect {
	g.ended, g.out = true, nil
	if g.lead.acting != 0 {
		g.emit(Discard{Term: g.lead.acting, Why: "the group's member has ended"})
		g.lead.acting = 0
	}
	g.emit(Ended{Err: err})
	return g.flush()
}

// Leader is the member that leads as far as is known here, 0 for nobody, and the term.
func (g *Group) Leader() (leader MemberID, term uint64) {
	status := g.node.BasicStatus()
	return MemberID(status.Lead), status.GetTerm()
}

// Members says who belongs to the group, as far as was applied here. The slices are not to be
// changed.
func (g *Group) Members() Conf { return g.stored.Conf }

// Acting is the term of the machine that runs here; 0: another member acts, or nobody.
func (g *Group) Acting() uint64 { return g.lead.acting }

// Table is the committed table as far as it was applied here, see step.EncodeFacts, and the
// entry that it was applied to: equal entries, equal tables.
func (g *Group) Table() (facts []byte, applied uint64) {
	return g.stored.Table.Encode(), g.stored.Applied
}

// TableBytes is about what Table would give, in bytes, without making it.
func (g *Group) TableBytes() int64 { return int64(g.stored.Table.Bytes()) }

// LogBytes is about what the log holds beside the table.
func (g *Group) LogBytes() (bytes int64) {
	for _, e := range g.stored.Entries {
		bytes += int64(e.size())
	}
	return bytes
}

// Row is a row of the committed table; nil if there is none.
func (g *Group) Row(kind, key string) []byte { return g.stored.Table.Get(kind, key) }

// Applied is the entry to which the committed table has come here.
func (g *Group) Applied() uint64 { return g.stored.Applied }

// Heard is when a member last answered this one, which leads; the beginning of the lead for
// those that have not.
func (g *Group) Heard(id MemberID) time.Time { return g.lead.contact[id] }

// CanLead reports whether a voter has nearly all of the log, so that the lead can be handed to
// it without a wait. Only who leads knows that.
func (g *Group) CanLead(id MemberID) bool {
	return g.isLeader() && slices.Contains(g.stored.Conf.Voters, id) && g.allNear([]MemberID{id})
}

// Check reports a broken invariant, or nil.
func (g *Group) Check() error {
	if g.ended {
		return nil
	}
	acting := g.lead.acting
	switch {
	case acting != 0 && !g.cfg.off.crash && (!g.isLeader() || g.term() != acting):
		return fmt.Errorf("a machine of term %d acts, but this member does not lead it", acting)
	case acting == 0 && (len(g.gate.queue) > 0 || len(g.gate.open) > 0):
		return fmt.Errorf("%d effects wait without a machine", len(g.gate.queue))
	case acting > g.lead.booted:
		return fmt.Errorf("a machine of term %d acts, the last boot was in %d",
			acting, g.lead.booted)
	}
	return g.stored.check()
}
