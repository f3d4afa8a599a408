package p2p

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// maxJoinBytes bounds what a stranger may say at once.
const maxJoinBytes = 1 << 10

// serveJoin lets a stranger redeem an invitation. What is answered is on disk
// and on its way to the members before.
func (m *Mesh) serveJoin(ctx context.Context, stream network.Stream) {
	if !m.enter() {
		_ = stream.Reset()
		return
	}
	defer m.wg.Done()
	stop := context.AfterFunc(ctx, func() { _ = stream.Reset() })
	defer stop()
	defer func() { _ = stream.Reset() }()
	if stream.SetReadDeadline(time.Now().Add(m.cfg.Timing.Guest)) != nil {
		return
	}
	request, err := readJoinRequest(stream, m.cfg.Timing.Guest)
	if err != nil {
		m.counts.inc(CountJoins, "invalid")
		m.lobby.blame(stream.Conn())
		return
	}
	answer := m.redeem(stream.Conn(), request)
	if err := m.answerJoin(stream, answer); err != nil {
		m.log.Info("a newcomer does not take the answer", "peer", siteOf(stream.Conn().RemotePeer()), "error", err)
		return
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(stream, 1)) // until the newcomer has read it
	if m.lobby.has(stream.Conn()) {
		_ = stream.Conn().Close() // it comes back as a member
	}
}

// readJoinRequest reads what a stranger says. The stream's deadline is set by the
// caller.
func readJoinRequest(stream deadlined, limit time.Duration) (protocol.JoinRequest, error) {
	in := &frameReader{stream: fixedDeadline{stream}, in: newBuffer(stream), limit: limit}
	message, err := in.next(maxJoinBytes)
	if err != nil {
		return protocol.JoinRequest{}, err
	}
	request, ok := message.(protocol.JoinRequest)
	if !ok {
		return request, fmt.Errorf("%w: it begins with %s", protocol.ErrMalformed, nameOf(message))
	}
	return request, nil
}

// redeem admits a stranger, or says why not, and tells the members.
func (m *Mesh) redeem(conn network.Conn, request protocol.JoinRequest) protocol.JoinAnswer {
	site := siteOf(conn.RemotePeer())
	answer := m.cfg.Members.Redeem(site, request)
	m.counts.inc(CountJoins, joinLabel(answer.Refusal))
	if answer.Refusal != protocol.JoinAdmitted {
		m.log.Warn("a stranger is not admitted", "peer", site, "name", request.Name, "reason", answer.Refusal.String())
		if answer.Refusal == protocol.JoinUnknown {
			m.lobby.blame(conn)
		}
		return answer
	}
	m.log.Info("a site joined the domain", "peer", site, "name", request.Name)
	for listed := range m.members {
		if listed != site && m.judgeSite(listed) == grid.ReasonNone {
			answer.Listed = append(answer.Listed, listed)
		}
	}
	slices.Sort(answer.Listed)
	answer.Listed = answer.Listed[:min(len(answer.Listed), protocol.MaxListed)]
	for _, addr := range m.Addrs() {
		if len(answer.Addrs) < protocol.MaxJoinAddrs && len(addr) <= maxAddrText {
			answer.Addrs = append(answer.Addrs, addr)
		}
	}
	m.flood([]protocol.MemberRecord{*answer.Admit}, nil)
	m.review()
	if m.handlers.OnMembers != nil {
		m.handlers.OnMembers()
	}
	return answer
}

// answerJoin writes the answer and, for who is admitted, the roster behind it.
func (m *Mesh) answerJoin(stream network.Stream, answer protocol.JoinAnswer) error {
	frames, err := protocol.AppendFrame(nil, answer)
	if err != nil {
		return err
	}
	if answer.Refusal == protocol.JoinAdmitted {
		for _, part := range rosterParts(m.cfg.Members.Roster(), true) {
			if frames, err = protocol.AppendFrame(frames, part); err != nil {
				return err
			}
		}
	}
	if err := stream.SetWriteDeadline(time.Now().Add(m.cfg.Timing.Guest)); err != nil {
		return err
	}
	if _, err := io.Copy(stream, bytes.NewReader(frames)); err != nil {
		return err
	}
	return stream.CloseWrite()
}

func joinLabel(why protocol.JoinRefusal) string {
	switch why {
	case protocol.JoinAdmitted:
		return "admitted"
	case protocol.JoinUnknown:
		return "unknown"
	case protocol.JoinExpired:
		return "expired"
	case protocol.JoinUsed:
		return "used"
	case protocol.JoinBanned:
		return "banned"
	case protocol.JoinFull:
		return "full"
	default:
		return "broken"
	}
}
