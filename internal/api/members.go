package api

import (
	"context"
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// defaultInvite is the default validity of an invitation.
const defaultInvite = 24 * time.Hour

// ListMembers answers GET /members.
func (h *handlers) ListMembers(
	ctx context.Context, r ListMembersRequestObject,
) (ListMembersResponseObject, error) {
	members, err := h.backend.Members(ctx)
	if err != nil {
		return nil, fmt.Errorf("list members: %w", err)
	}
	q := pageQuery(r.Params.Limit, r.Params.After)
	members.Sites, err = view.Page(
		members.Sites, q, func(row view.MemberRow) grid.SiteID { return row.Site },
	)
	if err != nil {
		return nil, fmt.Errorf("list members: %w", err)
	}
	members.Sites, members.Invites = orEmpty(members.Sites), orEmpty(members.Invites)
	return ListMembers200JSONResponse(members), nil
}

// AdmitSite answers POST /members/{site}/admit.
func (h *handlers) AdmitSite(
	ctx context.Context, r AdmitSiteRequestObject,
) (AdmitSiteResponseObject, error) {
	row, err := h.backend.Admit(ctx, r.Site, noteOf(r.Body))
	if err != nil {
		return nil, fmt.Errorf("admit site: %w", err)
	}
	return AdmitSite200JSONResponse(row), nil
}

// BanSite answers POST /members/{site}/ban.
func (h *handlers) BanSite(
	ctx context.Context, r BanSiteRequestObject,
) (BanSiteResponseObject, error) {
	note, keep := "", false
	if r.Body != nil && r.Body.Note != nil {
		note = *r.Body.Note
	}
	if r.Body != nil && r.Body.KeepInvitation != nil {
		keep = *r.Body.KeepInvitation
	}
	row, err := h.backend.Ban(ctx, r.Site, note, keep)
	if err != nil {
		return nil, fmt.Errorf("ban site: %w", err)
	}
	row.Revoked = inviteRows(row.Revoked)
	return BanSite200JSONResponse(row), nil
}

func noteOf(body *DecisionRequest) string {
	if body == nil || body.Note == nil {
		return ""
	}
	return *body.Note
}

// InviteSite answers POST /invites.
func (h *handlers) InviteSite(
	ctx context.Context, r InviteSiteRequestObject,
) (InviteSiteResponseObject, error) {
	terms := view.InviteTerms{Span: defaultInvite, Uses: 1}
	if r.Body != nil {
		given(&terms.Name, r.Body.Name)
		given(&terms.Uses, r.Body.Uses)
		given(&terms.Ask, r.Body.Ask)
		if r.Body.ForSeconds != nil {
			terms.Span = view.Duration(float64(*r.Body.ForSeconds))
		}
	}
	invitation, err := h.backend.Invite(ctx, terms)
	if err != nil {
		return nil, fmt.Errorf("invite: %w", err)
	}
	invitation.Notices = orEmpty(invitation.Notices)
	return InviteSite201JSONResponse(invitation), nil
}

// ListInvites answers GET /invites.
func (h *handlers) ListInvites(
	ctx context.Context, r ListInvitesRequestObject,
) (ListInvitesResponseObject, error) {
	rows, err := h.backend.Invites(ctx)
	if err != nil {
		return nil, fmt.Errorf("list invitations: %w", err)
	}
	q := pageQuery(r.Params.Limit, r.Params.After)
	rows, err = view.Page(rows, q, func(row view.InviteRow) string { return row.ID })
	if err != nil {
		return nil, fmt.Errorf("list invitations: %w", err)
	}
	return ListInvites200JSONResponse(inviteRows(rows)), nil
}

// RevokeInvite answers DELETE /invites/{id}.
func (h *handlers) RevokeInvite(
	ctx context.Context, r RevokeInviteRequestObject,
) (RevokeInviteResponseObject, error) {
	row, err := h.backend.Revoke(ctx, r.Id)
	if err != nil {
		return nil, fmt.Errorf("revoke invitation: %w", err)
	}
	row.By = orEmpty(row.By)
	return RevokeInvite200JSONResponse(row), nil
}

// RevokeInvites answers DELETE /invites.
func (h *handlers) RevokeInvites(
	ctx context.Context, _ RevokeInvitesRequestObject,
) (RevokeInvitesResponseObject, error) {
	rows, err := h.backend.RevokeAll(ctx)
	if err != nil {
		return nil, fmt.Errorf("revoke invitations: %w", err)
	}
	return RevokeInvites200JSONResponse(inviteRows(rows)), nil
}

// inviteRows has lists where there may be none.
func inviteRows(rows []view.InviteRow) []view.InviteRow {
	for i := range rows {
		rows[i].By = orEmpty(rows[i].By)
	}
	return orEmpty(rows)
}

// CheckSite answers POST /check.
func (h *handlers) CheckSite(
	ctx context.Context, _ CheckSiteRequestObject,
) (CheckSiteResponseObject, error) {
	result, err := h.backend.Check(ctx)
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	return CheckSite200JSONResponse(result), nil
}
