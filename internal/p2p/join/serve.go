package join

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// maxJoinBytes bounds one message of a stranger.
const maxJoinBytes = 1 << 10

// Serve lets a stranger redeem an invitation. What is answered is on disk
// and on its way to the members before.
func (l *Lobby) Serve(ctx context.Context, stream network.Stream) {
	release, ok := l.cfg.Hold()
	if !ok {
		_ = stream.Reset()
		return
	}
	defer release()
	stop := context.AfterFunc(ctx, func() { _ = stream.Reset() })
	defer stop()
	defer func() { _ = stream.Reset() }()
	if stream.SetReadDeadline(time.Now().Add(l.cfg.Stay)) != nil {
		return
	}
	request, err := readRequest(stream)
	if err != nil {
		l.cfg.Counts.Inc(wire.CountJoins, "invalid")
		l.Blame(stream.Conn())
		return
	}
	answer := l.redeem(stream.Conn(), request)
	if err := l.answer(stream, answer); err != nil {
		l.cfg.Log.Info("a newcomer does not take the answer",
			"peer", wire.SiteOf(stream.Conn().RemotePeer()), "error", err)
		return
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(stream, 1)) // until the newcomer has read it
	if l.Has(stream.Conn()) {
		_ = stream.Conn().Close() // it comes back as a member
	}
}

// readRequest reads what a stranger says. The stream's deadline is set by the
// caller.
func readRequest(stream wire.Stream) (protocol.JoinRequest, error) {
	in := wire.NewTimedReader(stream)
	message, err := in.Next(maxJoinBytes)
	if err != nil {
		return protocol.JoinRequest{}, err
	}
	request, ok := message.(protocol.JoinRequest)
	if !ok {
		return request, fmt.Errorf("%w: it begins with %s", protocol.ErrMalformed, wire.NameOf(message))
	}
	return request, nil
}

// redeem admits a stranger, or says why not, and tells the members.
func (l *Lobby) redeem(conn network.Conn, request protocol.JoinRequest) protocol.JoinAnswer {
	site := wire.SiteOf(conn.RemotePeer())
	answer := l.cfg.Members.Redeem(site, request)
	l.cfg.Counts.Inc(wire.CountJoins, joinLabel(answer.Refusal))
	switch answer.Refusal {
	case protocol.JoinAdmitted:
	case protocol.JoinPending: // it asks again and again
		l.cfg.Log.Debug("a site waits to be admitted", "peer", site, "name", request.Name)
		return understood(answer, request.Knows)
	default:
		l.cfg.Log.Warn("a stranger is not admitted",
			"peer", site, "name", request.Name, "reason", answer.Refusal.String())
		if answer.Refusal == protocol.JoinUnknown {
			l.Blame(conn)
		}
		return understood(answer, request.Knows)
	}
	l.cfg.Log.Info("a site joined the domain", "peer", site, "name", request.Name)
	l.cfg.Fill(site, &answer)
	l.cfg.Admitted(*answer.Admit)
	return answer
}

// understood is a refusal in a form that the newcomer takes for one; the text says what it is.
func understood(answer protocol.JoinAnswer, known protocol.JoinRefusal) protocol.JoinAnswer {
	said := answer.Refusal.For(known)
	if said != answer.Refusal {
		answer.Text = answer.Refusal.String() + ": " + answer.Text
		answer.Refusal = said
	}
	return answer
}

// answer writes the answer and, after an admission, the roster behind it.
func (l *Lobby) answer(stream network.Stream, answer protocol.JoinAnswer) error {
	frames, err := protocol.AppendFrame(nil, answer)
	if err != nil {
		return err
	}
	if answer.Refusal == protocol.JoinAdmitted {
		for _, part := range l.cfg.Roster() {
			if frames, err = protocol.AppendFrame(frames, part); err != nil {
				return err
			}
		}
	}
	if err := stream.SetWriteDeadline(time.Now().Add(l.cfg.Stay)); err != nil {
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
	case protocol.JoinRevoked:
		return "revoked"
	case protocol.JoinPending:
		return "pending"
	case protocol.JoinCrowded:
		return "waiting"
	default:
		return "broken"
	}
}
