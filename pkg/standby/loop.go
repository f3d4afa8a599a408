package standby

import (
	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
	"google.golang.org/protobuf/proto"

	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// ready holds raft's next wishes, while its Save is not on the disk yet.
type ready struct {
	raft.Ready
	number uint64
	late   []*pb.Message // leave when it is saved
}

// pump lets raft have its way until it has no more wishes, or one of them waits for the disk.
// Inputs go on meanwhile; raft collects what they bring.
func (g *Group) pump() {
	for g.pending == nil && g.node.HasReady() {
		rd := &ready{Ready: g.node.Ready()}
		save := g.saveOf(rd)
		g.sendEarly(rd)
		g.settle(rd)
		if !save.isEmpty() {
			g.saves++
			save.Number, rd.number = g.saves, g.saves
			g.stored.Apply(save)
			g.emit(save)
		}
		if save.Sync {
			g.pending = rd
			return
		}
		g.finish(rd)
	}
}

// settle lets effects go whose facts are committed, or whose question is answered. The group
// has agreed on both: whether this disk knows of it yet does not matter.
func (g *Group) settle(rd *ready) {
	g.onCommitted(rd.CommittedEntries)
	for _, answer := range rd.ReadStates {
		g.onConfirmed(answer.RequestCtx)
	}
	g.release()
}

// onSaved goes on where pump stopped.
func (g *Group) onSaved(in Saved) {
	if rd := g.pending; rd != nil && in.Number >= rd.number {
		g.pending = nil
		g.finish(rd)
	}
}

// sendEarly parts messages: those of a leader to its followers may leave before its own disk
// is done, for its own copy counts only then. Votes and acknowledgements never (raft thesis,
// 10.2.1).
func (g *Group) sendEarly(rd *ready) {
	for _, m := range rd.Messages {
		switch {
		case !isOfLeader(m):
			rd.late = append(rd.late, m)
		case !g.isNewsOnly(m):
			if len(m.GetEntries()) > 0 && g.lead.sent != nil {
				g.lead.sent[MemberID(m.GetTo())] = g.now
			}
			g.send(m)
		}
	}
}

// isNewsOnly reports whether a message tells a member nothing but how far the log is committed.
// The next entry says so too, and so does the next heartbeat: such messages would be half of all,
// and keep members busy while the next entry is on its way. But an empty message also finds out
// that entries were lost, so it leaves if a member has not got all for as long as a heartbeat.
func (g *Group) isNewsOnly(m *pb.Message) bool {
	to := MemberID(m.GetTo())
	if m.GetType() != pb.MsgApp || len(m.GetEntries()) > 0 || g.lead.term == 0 {
		return false
	}
	has := false
	g.node.WithProgress(func(id uint64, _ raft.ProgressType, p tracker.Progress) {
		if MemberID(id) == to && p.State == tracker.StateReplicate {
			has = p.Match == m.GetIndex() || g.now.Before(g.lead.sent[to].Add(g.cfg.Heartbeat))
		}
	})
	return has
}

// finish does what may be done when the Save is on the disk.
func (g *Group) finish(rd *ready) {
	for _, m := range rd.late {
		g.send(m)
	}
	g.node.Advance(rd.Ready)
	g.watch()
	g.bootIfApplied(rd.CommittedEntries)
}

// saveOf collects what goes to the disk, committed entries as changes of the table.
func (g *Group) saveOf(rd *ready) Save {
	save := Save{Sync: rd.MustSync}
	if !raft.IsEmptyHardState(rd.HardState) {
		ballot := ballotOf(rd.HardState)
		save.Ballot = &ballot
	}
	for _, e := range rd.Entries {
		save.Entries = append(save.Entries, entryOf(e))
	}
	if !raft.IsEmptySnap(rd.Snapshot) {
		g.replaceTable(&save, rd.Snapshot)
	}
	for _, e := range rd.CommittedEntries {
		g.apply(&save, e)
	}
	save.Base = g.base(save)
	return save
}

// replaceTable takes the whole table of a leader that no longer has the entries that are
// missing here.
func (g *Group) replaceTable(save *Save, snapshot *pb.Snapshot) {
	facts, err := step.DecodeFacts(snapshot.GetData())
	if err != nil {
		panic(err.Error()) // read has decoded it once
	}
	at, conf := snapshot.GetMetadata(), confOf(snapshot.GetMetadata().GetConfState())
	save.Sync, save.Replaced, save.Facts = true, true, facts
	save.Applied, save.Conf = Position{Index: at.GetIndex(), Term: at.GetTerm()}, &conf
}

// apply takes a committed entry into the table.
func (g *Group) apply(save *Save, e *pb.Entry) {
	save.Applied = Position{Index: e.GetIndex(), Term: e.GetTerm()}
	g.applied += int(entryOf(e).size())
	switch {
	case e.GetType() != pb.EntryNormal:
		save.Conf = g.applyConf(e)
	case len(e.GetData()) > 0:
		b, err := decodeBatch(e.GetData())
		if err != nil {
			panic(err.Error())
		}
		if b.term == e.GetTerm() || g.cfg.off.crash {
			save.Facts = append(save.Facts, b.facts...)
		}
	}
}

// applyConf takes a committed change of members. An empty one ends a change under way.
func (g *Group) applyConf(e *pb.Entry) *Conf {
	change := new(pb.ConfChangeV2)
	var err error
	if e.GetType() == pb.EntryConfChange {
		old := new(pb.ConfChange)
		err = proto.Unmarshal(e.GetData(), old)
		change = old.AsV2()
	} else {
		err = proto.Unmarshal(e.GetData(), change)
	}
	if err != nil {
		panic(err.Error())
	}
	g.changing = true
	conf := confOf(g.node.ApplyConfChange(change))
	g.changing = false
	return &conf
}

// base ends the part of the log that can be deleted: what was applied before, but for some of
// it, which members may need that were away for a moment.
func (g *Group) base(save Save) Position {
	if save.Replaced {
		g.applied = 0
	}
	if g.applied <= 2*g.cfg.KeepBytes {
		return Position{}
	}
	var base Position
	for _, e := range g.stored.Entries {
		if e.Index > g.stored.Applied || g.applied <= g.cfg.KeepBytes {
			break
		}
		base = e.Position
		g.applied -= int(e.size())
	}
	return base
}
