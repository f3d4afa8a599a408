package api

import (
	"context"
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

// defaultInvite is the default validity of an invitation.
const defaultInvite = 24 * time.Hour

// ListMembers answers GET /members.
func (h *handlers) ListMembers(
	ctx context.Context, _ ListMembersRequestObject,
) (ListMembersResponseObject, error) {
	members, err := h.backend.Members(ctx)
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
	row, err := h.backend.Ban(ctx, r.Site, noteOf(r.Body))
	if err != nil {
		return nil, fmt.Errorf("ban site: %w", err)
	}
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
	span, uses := defaultInvite, 1
	if r.Body != nil && r.Body.ForSeconds != nil {
		span = view.Duration(float64(*r.Body.ForSeconds))
	}
	if r.Body != nil && r.Body.Uses != nil {
		uses = *r.Body.Uses
	}
	invitation, err := h.backend.Invite(ctx, span, uses)
	if err != nil {
		return nil, fmt.Errorf("invite: %w", err)
	}
	invitation.Notices = orEmpty(invitation.Notices)
	return InviteSite201JSONResponse(invitation), nil
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
