package standby

import (
	"slices"
	"time"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

// Rules 3 and 7: the leader of a term boots one machine in it, when the term's own entry is
// applied: only then the table holds all that earlier terms have committed. To lose the lead
// is a crash of the machine, whatever raft's change looked like: its soft state has no term,
// so a lead that is lost and won again in one call shows there only in the term.
type lead struct {
	term   uint64 // of the lead that this member holds; 0: none
	acting uint64 // the term of the machine that runs here; 0: none
	booted uint64 // the term of the last boot: there is never a second one in a term

	beat    time.Time              // of the next heartbeat
	contact map[MemberID]time.Time // when members answered; at first, when the lead was won
	sent    map[MemberID]time.Time // when entries last left for members
	tables  map[MemberID]time.Time // when a member was last known to take a table
	met     time.Time              // when a majority last answered
	beats   int                    // heartbeats since then
	idle    bool                   // the machine has nothing to do
	calm    int                    // heartbeats in a row that found nothing to do
	rebuild bool                   // raft is to be made anew as soon as its wishes are carried out
}

// answered notes that a member has answered the leader.
func (l *lead) answered(member MemberID, at time.Time) {
	if l.contact != nil {
		l.contact[member] = at
	}
}

// delivers notes that a member still takes what it is sent.
func (l *lead) delivers(member MemberID, at time.Time) {
	if _, sent := l.tables[member]; sent {
		l.tables[member] = at
	}
}

// watch compares what raft is with what is thought here. It follows every call of raft.
func (g *Group) watch() {
	status := g.node.BasicStatus()
	term := status.GetTerm()
	if status.RaftState != raft.StateLeader {
		term = 0
	}
	if term == g.lead.term {
		return
	}
	if g.lead.acting != 0 && g.lead.acting != term && !g.cfg.off.crash {
		g.discard("the lead was lost")
	}
	g.lead.term, g.lead.contact, g.lead.tables, g.lead.sent = term, nil, nil, nil
	g.transfer = transfer{}
	if term == 0 {
		g.postpone()
		return
	}
	g.lead.beat, g.lead.idle, g.lead.calm = g.now.Add(g.cfg.Heartbeat), false, 0
	g.lead.met, g.lead.beats = g.now, 0
	g.lead.contact, g.lead.tables = map[MemberID]time.Time{}, map[MemberID]time.Time{}
	g.lead.sent = map[MemberID]time.Time{}
	for _, id := range slices.Concat(g.stored.Conf.Voters, g.stored.Conf.Outgoing) {
		g.lead.contact[id] = g.now
	}
	if g.cfg.off.applied {
		g.boot()
	}
}

// bootIfApplied boots a machine if the entries that were applied hold the one with which the
// leader's term began.
func (g *Group) bootIfApplied(applied []*pb.Entry) {
	for _, e := range applied {
		if e.GetTerm() == g.lead.term {
			g.boot()
			return
		}
	}
}

func (g *Group) boot() {
	if g.lead.term == 0 || g.lead.term <= g.lead.booted || g.transfer.started {
		return
	}
	if g.lead.acting != 0 {
		g.discard("a new term has begun") // only with a safeguard off
	}
	g.lead.acting, g.lead.booted = g.lead.term, g.lead.term
	g.emit(Boot{Term: g.lead.term, Facts: g.stored.Table.Encode()})
}

// discard throws the machine away, with all that it wanted and that has not left.
func (g *Group) discard(why string) {
	g.emit(Discard{Term: g.lead.acting, Why: why})
	g.lead.acting, g.gate, g.change = 0, gate{}, change{}
	if g.hold.on {
		g.emit(Hold{})
	}
	g.hold = hold{}
}

// stepDown throws the machine away and gives the lead up, for which raft has no call.
func (g *Group) stepDown(why string) {
	if g.lead.acting != 0 {
		g.discard(why)
	}
	g.lead.booted = max(g.lead.booted, g.lead.term)
	g.lead.rebuild = true
}

// resign gives up a lead that no majority has answered for so many heartbeats: its followers may
// hear it all the same, and would never elect another. Heartbeats are counted, not time, so that
// a leader that was suspended asks first whether it still leads.
func (g *Group) resign() {
	if met := g.lastContact(); met.After(g.lead.met) {
		g.lead.met, g.lead.beats = met, 0
	}
	if g.lead.beats++; g.lead.beats > int(g.cfg.ResignAfter/g.cfg.Heartbeat) {
		g.stepDown("no majority answers")
	}
}

// rebuildIfFree makes raft anew from the disk as soon as nothing of it is under way.
func (g *Group) rebuildIfFree() {
	if !g.lead.rebuild || g.pending != nil {
		return
	}
	g.lead.rebuild = false
	if g.lead.term == 0 {
		return // it has stepped down by itself
	}
	g.restart()
	g.watch()
}

// sendTablesAnew frees members from a table that was lost on its way: raft waits for them
// permanently.
func (g *Group) sendTablesAnew() {
	g.node.WithProgress(func(id uint64, _ raft.ProgressType, p tracker.Progress) {
		member := MemberID(id)
		since, known := g.lead.tables[member]
		switch {
		case p.State != tracker.StateSnapshot:
			delete(g.lead.tables, member)
		case !known:
			g.lead.tables[member] = g.now
		case g.now.After(since.Add(g.cfg.SnapshotTimeout)):
			delete(g.lead.tables, member)
			g.node.ReportSnapshot(id, raft.SnapshotFailure)
		}
	})
}
