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
	invitation, err := c.Invite(t.Context(), time.Hour, 3)
	if err != nil || invitation.Token == "" || invitation.Uses != 3 ||
		!invitation.Expires.Equal(clock().Add(time.Hour)) {
		t.Errorf("Invite = %+v, %v", invitation, err)
	}
	if _, err := c.Invite(t.Context(), time.Hour, 0); !errors.Is(err, grid.ErrInvalid) {
		t.Errorf("Invite for nobody = %v, want ErrInvalid", err)
	}
	if row, err := c.Ban(t.Context(), "12D3KooWother", "left"); err != nil || row.Member ||
		row.Note != "left" {
		t.Errorf("Ban = %+v, %v", row, err)
	}
	if row, err := c.Admit(t.Context(), "12D3KooWother", ""); err != nil || !row.Member {
		t.Errorf("Admit = %+v, %v", row, err)
	}
	if _, err := c.Ban(t.Context(), "no site", ""); !errors.Is(err, view.ErrNotFound) {
		t.Errorf("Ban of nobody = %v, want ErrNotFound", err)
	}
	if members, err := c.Members(t.Context()); err != nil || len(members.Sites) != 2 {
		t.Errorf("Members = %+v, %v", members, err)
	}
	if result, err := c.Check(t.Context()); err != nil || result.Arrive {
		t.Errorf("Check = %+v, %v", result, err)
	}
}
