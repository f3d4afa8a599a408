package client_test

import (
	"errors"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/api/apitest"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func TestMembers(t *testing.T) {
	t.Parallel()
	socket, _ := serve(t, apitest.New(clock))
	c := connect(t, socket, "")
	terms := view.InviteTerms{Name: "lab 3", Span: time.Hour, Uses: 3}
	invitation, err := c.Invite(t.Context(), terms)
	if err != nil || invitation.Token == "" || invitation.Uses != 3 ||
		!invitation.Expires.Equal(clock().Add(time.Hour)) {
		t.Errorf("Invite = %+v, %v", invitation, err)
	}
	terms.Uses = 0
	if _, err := c.Invite(t.Context(), terms); !errors.Is(err, grid.ErrInvalid) {
		t.Errorf("Invite for nobody = %v, want ErrInvalid", err)
	}
	if row, err := c.Ban(t.Context(), "12D3KooWother", "left", true); err != nil || row.Member ||
		row.Note != "left" || len(row.Revoked) != 0 {
		t.Errorf("Ban = %+v, %v", row, err)
	}
	if rows, err := c.Invites(t.Context()); err != nil || len(rows) != 1 ||
		rows[0].Name != "lab 3" {
		t.Errorf("Invites = %+v, %v", rows, err)
	}
	if row, err := c.Ban(t.Context(), "12D3KooWother", "left", false); err != nil ||
		len(row.Revoked) != 1 || row.Revoked[0].ID != invitation.ID {
		t.Errorf("Ban = %+v, %v", row, err)
	}
	if _, err := c.Revoke(t.Context(), invitation.ID); !errors.Is(err, view.ErrNotFound) {
		t.Errorf("Revoke again = %v, want ErrNotFound", err)
	}
	if rows, err := c.RevokeAll(t.Context()); err != nil || len(rows) != 0 {
		t.Errorf("RevokeAll = %+v, %v", rows, err)
	}
	if row, err := c.Admit(t.Context(), "12D3KooWother", ""); err != nil || !row.Member {
		t.Errorf("Admit = %+v, %v", row, err)
	}
	if _, err := c.Ban(t.Context(), "no site", "", false); !errors.Is(err, view.ErrNotFound) {
		t.Errorf("Ban of nobody = %v, want ErrNotFound", err)
	}
	if members, err := c.Members(t.Context()); err != nil || len(members.Sites) != 2 {
		t.Errorf("Members = %+v, %v", members, err)
	}
	if result, err := c.Check(t.Context()); err != nil || result.Arrive {
		t.Errorf("Check = %+v, %v", result, err)
	}
}
