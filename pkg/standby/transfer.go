package standby

import (
	"slices"
	"time"
)

// Rule 14: before an orderly leave the lead goes to another member. The leader throws its
// machine away first, and never acts again in that term, even if the transfer fails: the
// member may have been told to take over, and that message is good for the whole term. A
// leader whose transfer has failed makes raft anew, as a follower.
type transfer struct {
	started bool
	until   time.Time // then it has failed
}

func (g *Group) onTransfer(in Transfer) {
	mayLead := in.To != g.cfg.ID && slices.Contains(g.stored.Conf.Voters, in.To)
	if g.lead.term == 0 || g.transfer.started || !mayLead {
		return
	}
	if g.lead.acting != 0 && !g.cfg.off.throwAway {
		g.discard("the lead is handed over")
	}
	g.transfer = transfer{started: true, until: g.now.Add(g.cfg.TransferTimeout)}
	g.node.TransferLeader(uint64(in.To))
	g.watch()
}

// failTransfer gives the lead up if nobody has taken it.
func (g *Group) failTransfer() {
	if !g.transfer.started || g.now.Before(g.transfer.until) {
		return
	}
	if g.cfg.off.rebuild {
		g.actAgain()
		return
	}
	g.transfer.until = g.now.Add(g.cfg.TransferTimeout) // while the disk is busy
	g.stepDown("the transfer has failed")
}

// actAgain must not happen.
func (g *Group) actAgain() {
	g.transfer = transfer{}
	g.lead.booted--
	g.boot()
}
