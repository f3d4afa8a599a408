package standby

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// errBadMessage is a message of a member that raft is not shown.
var errBadMessage = errors.New("a message of another member makes no sense")

// fromPeers are the kinds of messages that members send each other. All others are for a
// member's own use, or are proposals and questions of followers, which nobody makes here.
func fromPeers() []pb.MessageType {
	return []pb.MessageType{
		pb.MsgApp, pb.MsgAppResp, pb.MsgVote, pb.MsgVoteResp, pb.MsgPreVote, pb.MsgPreVoteResp,
		pb.MsgSnap, pb.MsgHeartbeat, pb.MsgHeartbeatResp, pb.MsgTimeoutNow,
	}
}

// transferring is the context of votes that a transfer asks for.
const transferring = "CampaignTransfer"

// read is a message from the wire, checked as far as raft does not.
func (g *Group) read(in Received) (*pb.Message, error) {
	if len(in.Data) > g.cfg.MaxMessage {
		return nil, fmt.Errorf("%w: %d bytes", errBadMessage, len(in.Data))
	}
	m := new(pb.Message)
	if err := proto.Unmarshal(in.Data, m); err != nil {
		return nil, fmt.Errorf("%w: %w", errBadMessage, err)
	}
	switch {
	case MemberID(m.GetFrom()) != in.From || in.From == g.cfg.ID || in.From == 0:
		return nil, fmt.Errorf("%w: it claims to be of member %d", errBadMessage, m.GetFrom())
	case MemberID(m.GetTo()) != g.cfg.ID:
		return nil, fmt.Errorf("%w: it is for member %d", errBadMessage, m.GetTo())
	case g.cfg.off.crash && m.GetType() == pb.MsgProp:
		return m, nil
	case !slices.Contains(fromPeers(), m.GetType()) || m.GetTerm() == 0:
		return nil, fmt.Errorf("%w: %v in term %d", errBadMessage, m.GetType(), m.GetTerm())
	case len(m.GetResponses()) > 0:
		return nil, fmt.Errorf("%w: %v with responses", errBadMessage, m.GetType())
	case m.GetType() == pb.MsgHeartbeatResp && len(m.GetContext()) != 0 && len(m.GetContext()) != 8:
		return nil, fmt.Errorf("%w: an answer to no question", errBadMessage)
	}
	return m, errors.Join(checkEntries(m), checkTable(m))
}

// checkEntries wants entries without a gap, of rising terms up to that of the sender.
func checkEntries(m *pb.Message) error {
	index, term := m.GetIndex(), m.GetLogTerm()
	for _, e := range m.GetEntries() {
		if e.GetIndex() != index+1 || e.GetTerm() < term || e.GetTerm() > m.GetTerm() {
			return fmt.Errorf("%w: entry %d of term %d after %d of %d",
				errBadMessage, e.GetIndex(), e.GetTerm(), index, term)
		}
		index, term = e.GetIndex(), e.GetTerm()
	}
	return nil
}

// checkTable wants a table that can be read.
func checkTable(m *pb.Message) error {
	if m.GetType() != pb.MsgSnap {
		return nil
	}
	if _, err := step.DecodeFacts(m.GetSnapshot().GetData()); err != nil {
		return fmt.Errorf("%w: %w", errBadMessage, err)
	}
	return nil
}

// isOfLeader reports whether only the leader of a term sends such messages.
func isOfLeader(m *pb.Message) bool {
	return slices.Contains([]pb.MessageType{pb.MsgApp, pb.MsgHeartbeat, pb.MsgSnap}, m.GetType())
}

// isAnswer reports whether a message answers one of the leader's.
func isAnswer(m *pb.Message) bool {
	return m.GetType() == pb.MsgAppResp || m.GetType() == pb.MsgHeartbeatResp
}

// asksVote reports whether a message asks for a vote, or whether one would be given.
func asksVote(m *pb.Message) bool {
	return m.GetType() == pb.MsgVote || m.GetType() == pb.MsgPreVote
}

// isForced reports whether a vote is asked for by a transfer.
func isForced(m *pb.Message) bool { return bytes.Equal(m.GetContext(), []byte(transferring)) }

// send emits a message of raft to another member.
func (g *Group) send(m *pb.Message) {
	if m.GetType() == pb.MsgHeartbeat {
		g.announceRest(m)
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("encode message to member %d: %v", m.GetTo(), err))
	}
	bulk := m.GetType() == pb.MsgApp || m.GetType() == pb.MsgSnap
	g.emit(Send{To: MemberID(m.GetTo()), Data: data, Bulk: bulk})
}
