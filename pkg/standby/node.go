package standby

import (
	"fmt"
	"math"

	"go.etcd.io/raft/v3"
)

// raft is told the time by the leader alone: a tick for each heartbeat. Followers are never
// ticked, because raft's own election timer is random; votes.go has another.
const (
	electionTicks  = 10 // only for raft's own end of a transfer
	heartbeatTicks = 1
)

// Bounds on what raft has under way to one member, in messages and bytes.
const (
	maxInflight      = 256
	maxInflightBytes = 16 << 20
	maxAppendBytes   = 1 << 20
)

// restart makes raft anew from the disk. It is a follower in the term that it was in, which is
// the only way for a leader to step down (rule 14).
func (g *Group) restart() {
	node, err := raft.NewRawNode(&raft.Config{
		ID: uint64(g.cfg.ID), ElectionTick: electionTicks, HeartbeatTick: heartbeatTicks,
		Storage: storage{g.stored, &g.changing}, Applied: g.stored.Applied,
		MaxSizePerMsg:   maxAppendBytes,
		MaxInflightMsgs: maxInflight, MaxInflightBytes: maxInflightBytes,
		// hold.go bounds what is not committed. Raft's own bound counts what is committed until it
		// is on this disk, and refuses what does not fit, which would cost the lead.
		MaxUncommittedEntriesSize: math.MaxUint64,
		// With CheckQuorum, followers that are not ticked would ignore votes forever.
		CheckQuorum: false, PreVote: true, ReadOnlyOption: raft.ReadOnlySafe,
		DisableProposalForwarding: !g.cfg.off.crash, StepDownOnRemoval: true,
		Logger: quiet{},
	})
	if err != nil {
		panic(err.Error())
	}
	g.node = node
	g.postpone()
	g.campaignAlone()
}

func (g *Group) isLeader() bool { return g.node.BasicStatus().RaftState == raft.StateLeader }

func (g *Group) term() uint64 { return g.node.BasicStatus().GetTerm() }

// quiet is a logger that says nothing: what matters leaves as effects. Its Panic and Fatal end
// the member, see Step.
type quiet struct{}

var _ raft.Logger = quiet{}

func (quiet) Debug(...any)            {}
func (quiet) Debugf(string, ...any)   {}
func (quiet) Info(...any)             {}
func (quiet) Infof(string, ...any)    {}
func (quiet) Warning(...any)          {}
func (quiet) Warningf(string, ...any) {}
func (quiet) Error(...any)            {}
func (quiet) Errorf(string, ...any)   {}

func (quiet) Fatal(v ...any)                 { panic(fmt.Sprint(v...)) }
func (quiet) Fatalf(format string, v ...any) { panic(fmt.Sprintf(format, v...)) }
func (quiet) Panic(v ...any)                 { panic(fmt.Sprint(v...)) }
func (quiet) Panicf(format string, v ...any) { panic(fmt.Sprintf(format, v...)) }
