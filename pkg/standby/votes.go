package standby

import (
	"slices"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Rule 5: votes are withheld, and nobody campaigns, for the election timeout after any leader
// was heard whose term was not below one's own then. A later change of term does not clear
// that. It is for calm only: a member that cannot hear a leader that others hear is not
// elected over it. Who may act does not rest on it, or on any clock (rule 6).
type votes struct {
	leader   MemberID  // the last one that was heard
	at       time.Time // when; zero: none
	campaign time.Time // when this member campaigns, if it hears no leader before
	drawn    uint64    // how often patience was drawn

	patience time.Duration // how long without a leader it waits for that
}

// heard notes a sign of life of a leader.
func (v *votes) heard(leader MemberID, at time.Time) { v.leader, v.at = leader, at }

// onRefusing lifts the wait: the leader's own host says that it does not run.
func (g *Group) onRefusing(in Refusing) {
	v := &g.votes
	if v.leader == in.Member && !v.at.IsZero() && !g.isLeader() {
		v.at, v.campaign = time.Time{}, g.now.Add(g.spread(in.Member))
	}
}

// withholds reports whether a vote is refused now. A leader has heard itself when a majority
// last answered it: else a follower that is deaf would depose it with its help.
func (g *Group) withholds() bool {
	if g.cfg.off.filter {
		return false
	}
	heard := g.votes.at
	if g.isLeader() {
		heard = g.lastContact()
	}
	return !heard.IsZero() && g.now.Before(heard.Add(g.cfg.ElectionTimeout))
}

// postpone draws anew how long this member waits for a leader, from now.
func (g *Group) postpone() {
	g.votes.drawn++
	g.votes.patience = g.cfg.ElectionTimeout + g.spread(0)
	g.votes.campaign = g.now.Add(g.votes.patience)
}

// spread parts the campaigns of members that lost their leader together, which would else take
// each other's votes. Each has a slot of its own, of which the first half is drawn from. A leader
// that is known to be dead has none.
func (g *Group) spread(dead MemberID) time.Duration {
	voters := slices.DeleteFunc(slices.Clone(g.stored.Conf.Voters), func(id MemberID) bool {
		return id == dead
	})
	slot := g.cfg.ElectionSpread / time.Duration(len(voters)+1)
	place := len(voters)
	if i := slices.Index(voters, g.cfg.ID); i >= 0 {
		place = i
	}
	chance := step.NewRand(g.cfg.Seed, "standby/election", g.votes.drawn)
	return time.Duration(place)*slot + time.Duration(chance.Int64N(int64(slot)/2+1))
}

// waitForVotedFor gives the one that has just got this member's vote the time to win: an election
// waits for three disks, one after the other, and takes longer than a slot where they are slow. A
// campaign meanwhile would end what this vote has begun, and both would wait anew.
func (g *Group) waitForVotedFor(m *pb.Message) {
	status := g.node.BasicStatus()
	if m.GetType() == pb.MsgVote && status.GetVote() == m.GetFrom() &&
		status.GetTerm() == m.GetTerm() {
		g.votes.campaign = g.now.Add(g.votes.patience)
	}
}

// campaignAlone lets the only voter of a group lead without waiting: there is nobody to hear.
func (g *Group) campaignAlone() {
	if g.isAlone() {
		g.votes.campaign = g.now
	}
}

// isAlone reports whether this member is its whole group.
func (g *Group) isAlone() bool {
	conf := g.stored.Conf
	return len(conf.Outgoing)+len(conf.Learners) == 0 &&
		slices.Equal(conf.Voters, []MemberID{g.cfg.ID})
}

// campaignIfDue asks for votes when no leader was heard for long enough. Campaigning is a vote
// for oneself, so what withholds votes withholds it. Raft ignores a leader's campaign, and
// that of one who is no voter.
func (g *Group) campaignIfDue() {
	if g.isLeader() || g.now.Before(g.votes.campaign) {
		return
	}
	g.postpone()
	if g.withholds() {
		return
	}
	_ = g.node.Campaign() // raft gives none
	g.watch()
}

// lastContact is when the newest round was answered by a majority, this leader included.
func (g *Group) lastContact() time.Time {
	conf := g.stored.Conf
	at := g.contactOf(conf.Voters)
	if len(conf.Outgoing) > 0 {
		if other := g.contactOf(conf.Outgoing); other.Before(at) {
			return other
		}
	}
	return at
}

func (g *Group) contactOf(voters []MemberID) time.Time {
	if len(voters) == 0 {
		return g.now
	}
	var times []time.Time
	for _, id := range voters {
		at := g.lead.contact[id]
		if id == g.cfg.ID {
			at = g.now
		}
		times = append(times, at)
	}
	slices.SortFunc(times, func(a, b time.Time) int { return b.Compare(a) })
	return times[len(voters)/2]
}
