package api

import (
	"context"
	"fmt"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// ListLinks answers GET /links.
func (h *handlers) ListLinks(
	ctx context.Context, _ ListLinksRequestObject,
) (ListLinksResponseObject, error) {
	links, err := h.backend.Links(ctx)
	if err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	links.Links, links.Invites = orEmpty(links.Links), orEmpty(links.Invites)
	links.Ended = orEmpty(links.Ended)
	for i := range links.Links {
		links.Links[i].Policy.Kinds = orEmpty(links.Links[i].Policy.Kinds)
	}
	return ListLinks200JSONResponse(links), nil
}

// ListNeighbours answers GET /neighbours.
func (h *handlers) ListNeighbours(
	ctx context.Context, _ ListNeighboursRequestObject,
) (ListNeighboursResponseObject, error) {
	rows, err := h.backend.Neighbours(ctx)
	if err != nil {
		return nil, fmt.Errorf("list neighbours: %w", err)
	}
	return ListNeighbours200JSONResponse(orEmpty(rows)), nil
}

// JoinDomain answers POST /links.
func (h *handlers) JoinDomain(
	ctx context.Context, r JoinDomainRequestObject,
) (JoinDomainResponseObject, error) {
	row, err := h.backend.JoinDomain(ctx, r.Body.Token)
	if err != nil {
		return nil, fmt.Errorf("join domain: %w", err)
	}
	row.Policy.Kinds = orEmpty(row.Policy.Kinds)
	return JoinDomain201JSONResponse(row), nil
}

// SetLinkPolicy answers POST /links/{name}/policy.
func (h *handlers) SetLinkPolicy(
	ctx context.Context, r SetLinkPolicyRequestObject,
) (SetLinkPolicyResponseObject, error) {
	row, err := h.backend.SetLinkPolicy(ctx, grid.DomainID(r.Name), *r.Body)
	if err != nil {
		return nil, fmt.Errorf("change policy: %w", err)
	}
	row.Policy.Kinds = orEmpty(row.Policy.Kinds)
	return SetLinkPolicy200JSONResponse(row), nil
}

// UnlinkDomain answers DELETE /links/{name}.
func (h *handlers) UnlinkDomain(
	ctx context.Context, r UnlinkDomainRequestObject,
) (UnlinkDomainResponseObject, error) {
	if err := h.backend.Unlink(ctx, grid.DomainID(r.Name)); err != nil {
		return nil, fmt.Errorf("unlink: %w", err)
	}
	return UnlinkDomain204Response{}, nil
}

// InviteDomain answers POST /link-invites.
func (h *handlers) InviteDomain(
	ctx context.Context, r InviteDomainRequestObject,
) (InviteDomainResponseObject, error) {
	span, name := defaultInvite, grid.DomainID("")
	if r.Body != nil && r.Body.ForSeconds != nil {
		span = view.Duration(float64(*r.Body.ForSeconds))
	}
	if r.Body != nil && r.Body.Name != nil {
		name = grid.DomainID(*r.Body.Name)
	}
	invitation, err := h.backend.InviteDomain(ctx, name, span)
	if err != nil {
		return nil, fmt.Errorf("invite domain: %w", err)
	}
	invitation.Notices = orEmpty(invitation.Notices)
	return InviteDomain201JSONResponse(invitation), nil
}

// WithdrawInvite answers DELETE /link-invites/{id}.
func (h *handlers) WithdrawInvite(
	ctx context.Context, r WithdrawInviteRequestObject,
) (WithdrawInviteResponseObject, error) {
	if err := h.backend.WithdrawInvite(ctx, r.Id); err != nil {
		return nil, fmt.Errorf("withdraw invitation: %w", err)
	}
	return WithdrawInvite204Response{}, nil
}

// RotateKey answers POST /domain-key/rotate.
func (h *handlers) RotateKey(
	ctx context.Context, r RotateKeyRequestObject,
) (RotateKeyResponseObject, error) {
	var from grid.DomainKey
	if r.Body != nil && r.Body.From != nil {
		from = grid.DomainKey(*r.Body.From)
	}
	done, err := h.backend.RotateKey(ctx, from)
	if err != nil {
		return nil, fmt.Errorf("rotate the domain's key: %w", err)
	}
	done.Revoked, done.Withdrawn = orEmpty(done.Revoked), orEmpty(done.Withdrawn)
	for i := range done.Revoked {
		done.Revoked[i].By = orEmpty(done.Revoked[i].By)
	}
	return RotateKey200JSONResponse(done), nil
}
