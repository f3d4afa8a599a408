package join

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// An invitation that is revoked while its holder is in the lobby admits nobody. The holder is told
// so, and by an older version in words that this one has: it would take others for damage.
func TestRevokedWhileJoining(t *testing.T) {
	for name, c := range map[string]struct{ knows, want protocol.JoinRefusal }{
		"now":      {protocol.JoinRefusals, protocol.JoinRevoked},
		"an older": {0, protocol.JoinExpired},
		"a later":  {protocol.JoinRefusals + 1, protocol.JoinRevoked},
	} {
		h := newHall(t, 8, false)
		h.Lobby.cfg.Log = slog.New(slog.DiscardHandler)
		secret, _, err := h.cfg.Members.Invite(member.Terms{Span: time.Hour, Uses: 1})
		if err != nil {
			t.Fatal(err)
		}
		id, err := wire.NewIdentity()
		if err != nil {
			t.Fatal(err)
		}
		l := h.from("/ip4/10.0.0.1/tcp/1")
		if l.peer, err = wire.PeerOf(id.Site()); err != nil || !h.Enter(l) {
			t.Fatalf("the holder is not let in, %v", err)
		}
		if _, err = h.cfg.Members.RevokeAll(); err != nil {
			t.Fatal(err)
		}
		s := &call{conn: l, in: bytes.NewReader(said(t, protocol.JoinRequest{
			Secret: secret, Name: "n", Knows: c.knows,
		}))}
		h.Serve(t.Context(), s)
		answer, _, err := readAnswer(&pieces{Reader: &s.out})
		want := "ask for a new invitation"
		if c.want != protocol.JoinRevoked {
			want = "the invitation was revoked: " + want
		}
		if err != nil || answer.Refusal != c.want || answer.Text != want {
			t.Errorf("%s hears %q, %q, %v", name, answer.Refusal, answer.Text, err)
		}
		if h.cfg.Counts.Get(wire.CountJoins, "revoked") != 1 || h.guests[l.ID()].wrong {
			t.Errorf("%s: counted %v, blamed %t", name, h.cfg.Counts.Labels(wire.CountJoins),
				h.guests[l.ID()].wrong)
		}
	}
}
