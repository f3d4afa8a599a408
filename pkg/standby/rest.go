package standby

import (
	"time"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

// A group rests while the machine has no job: its leader sends heartbeats seldom, since most of
// what an idle group costs is to be woken for them. Each of these says how much longer than usual
// followers are to wait for the next one, in a field that raft does not read in heartbeats. So a
// leader that dies meanwhile is missed later, when there is nothing to go on with. The first entry
// after that ends the rest at all who get it: who has acknowledged a job is watched as ever.

// So many heartbeats in a row find nothing to do before a leader rests: after one of them all know
// what is committed.
const restAfter = 5

// onRest notes whether the machine here has nothing to do.
func (g *Group) onRest(in Rest) {
	g.lead.idle = in.On && g.lead.acting != 0
	if !g.lead.idle {
		g.stir()
	}
}

// stir ends a rest.
func (g *Group) stir() {
	g.lead.calm = 0
	if next := g.now.Add(g.cfg.Heartbeat); g.isLeader() && g.lead.beat.After(next) {
		g.lead.beat = next
	}
}

// nextBeat says when the leader's next heartbeat is due, after one.
func (g *Group) nextBeat() time.Time {
	if g.isBusy() {
		g.lead.calm = 0
	} else {
		g.lead.calm++
	}
	if g.cfg.Rest > g.cfg.Heartbeat && g.lead.calm > restAfter {
		return g.now.Add(g.cfg.Rest)
	}
	return g.now.Add(g.cfg.Heartbeat)
}

// isBusy reports whether there is anything that heartbeats are needed for.
func (g *Group) isBusy() bool {
	conf := g.stored.Conf
	if !g.lead.idle || len(g.gate.queue)+len(g.gate.open)+len(g.change.voters) > 0 ||
		len(conf.Outgoing)+len(conf.Learners) > 0 || g.transfer.started || g.lead.rebuild {
		return true
	}
	last, behind := g.stored.last(), false
	g.node.WithProgress(func(_ uint64, _ raft.ProgressType, p tracker.Progress) {
		behind = behind || p.Match < last
	})
	return behind
}

// announceRest says in a heartbeat how much longer than usual to wait for the next one. One of them
// may be lost.
func (g *Group) announceRest(m *pb.Message) {
	if more := g.lead.beat.Sub(g.now) - g.cfg.Heartbeat; more > 0 {
		m.RejectHint = new(uint64((more + g.cfg.Rest).Milliseconds()))
	}
}

// announced says how much longer than usual a follower waits for the next sign of life: at most as
// long as a leader with its own settings would ask for.
func (g *Group) announced(m *pb.Message) time.Duration {
	if m.GetType() != pb.MsgHeartbeat {
		return 0
	}
	most := uint64(max(2*g.cfg.Rest-g.cfg.Heartbeat, 0).Milliseconds())
	return time.Duration(min(m.GetRejectHint(), most)) * time.Millisecond
}
