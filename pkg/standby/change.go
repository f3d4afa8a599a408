package standby

import (
	"math"
	"slices"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

// Rule 13: members are replaced in one joint step, in which a majority of the old ones and one
// of the new ones must agree to everything; so two of three may be replaced together, and a
// group of one becomes one of three without two in between, which would be worse than one.
// The change is over when a majority of the new ones has applied its end, and can be told by
// Members of each: until then the old ones may be needed for an election.
// Those that come are learners first, until they have nearly all of the log: else the group
// would wait for them. The acting member is never removed; it hands the lead over before.

// near counts the entries that a learner may be behind to get a vote.
const near = 64

// change says which members the leader wants; it is asked again after a new boot.
type change struct {
	voters []MemberID // ascending; empty: nothing
}

// onChange takes the voters that the group is to have.
func (g *Group) onChange(in Change) {
	want := slices.Compact(slices.Sorted(slices.Values(in.Voters)))
	if g.lead.acting == 0 || !slices.Contains(want, g.cfg.ID) || slices.Contains(want, 0) {
		return
	}
	g.change.voters = want
}

// changeOn proposes the next part of a change, with each heartbeat: raft turns a proposal that
// comes at the wrong moment into nothing, without an error.
func (g *Group) changeOn() {
	want, conf := g.change.voters, g.stored.Conf
	if len(want) == 0 || g.lead.acting == 0 || len(conf.Outgoing) > 0 || g.lead.rebuild {
		return
	}
	coming, going := missing(want, conf.Voters), missing(conf.Voters, want)
	strays := missing(conf.Learners, want)
	switch {
	case len(strays) > 0:
		g.proposeChange(pb.ConfChangeRemoveNode, strays[:1])
	case len(missing(coming, conf.Learners)) > 0:
		g.proposeChange(pb.ConfChangeAddLearnerNode, missing(coming, conf.Learners)[:1])
	case len(coming)+len(going) == 0:
		g.change = change{}
	case g.allNear(coming):
		g.proposeJoint(coming, going)
	}
}

// missing lists those of some members that are not among others.
func missing(some, others []MemberID) (rest []MemberID) {
	for _, id := range some {
		if !slices.Contains(others, id) {
			rest = append(rest, id)
		}
	}
	return rest
}

// allNear reports whether members have nearly all of the log. Who has not got the table has
// nothing, however short the log is.
func (g *Group) allNear(ids []MemberID) bool {
	behind := uint64(math.MaxUint64)
	found := 0
	g.node.WithProgress(func(id uint64, _ raft.ProgressType, p tracker.Progress) {
		if slices.Contains(ids, MemberID(id)) {
			behind, found = min(behind, p.Match), found+1
		}
	})
	hasTable := behind >= g.stored.Base.Index
	return found == len(ids) && (found == 0 || hasTable && behind+near > g.stored.last())
}

func (g *Group) proposeChange(kind pb.ConfChangeType, ids []MemberID) {
	g.proposeConf(&pb.ConfChangeV2{Changes: singles(kind, ids)})
}

func (g *Group) proposeJoint(coming, going []MemberID) {
	transition := pb.ConfChangeTransitionJointImplicit
	g.proposeConf(&pb.ConfChangeV2{
		Transition: &transition,
		Changes: slices.Concat(
			singles(pb.ConfChangeAddNode, coming), singles(pb.ConfChangeRemoveNode, going)),
	})
}

func singles(kind pb.ConfChangeType, ids []MemberID) (all []*pb.ConfChangeSingle) {
	for _, id := range ids {
		all = append(all, &pb.ConfChangeSingle{Type: &kind, NodeId: new(uint64(id))})
	}
	return all
}

func (g *Group) proposeConf(c *pb.ConfChangeV2) {
	if err := g.node.ProposeConfChange(c); err != nil {
		g.stepDown("a change of members was refused: " + err.Error())
	}
	g.watch()
}
