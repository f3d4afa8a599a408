package member

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// Terms are those of an invitation.
type Terms struct {
	Name string        // what it is for, for people; may be empty, is cut to 64 bytes
	Span time.Duration // it is good for so long, 1 s to MaxInvite
	Uses int           // and for so many sites, 1 to MaxUses
	Ask  bool          // each of them waits until it is admitted by hand
}

// Invite makes an invitation and returns its secret, which is not stored. The first one makes
// the domain's key.
func (r *Registry) Invite(terms Terms) (secret []byte, made Invite, err error) {
	span, uses := terms.Span, terms.Uses
	if span < time.Second || span > MaxInvite {
		return nil, made, fmt.Errorf("%w: an invitation is good for 1s to %d days, not %s",
			grid.ErrInvalid, MaxInvite/(24*time.Hour), span)
	}
	if uses < 1 || uses > MaxUses {
		return nil, made, fmt.Errorf(
			"%w: an invitation has 1 to %d uses, not %d", grid.ErrInvalid, MaxUses, uses,
		)
	}
	r.disk.Lock()
	defer r.disk.Unlock()
	if err := r.ensureKey(); err != nil {
		return nil, made, fmt.Errorf("invite: %w", err)
	}
	now := r.cfg.Now()
	invites := pruned(r.invites, now)
	if countOpen(invites, now) >= maxInvites {
		return nil, made, fmt.Errorf(
			"invite: %w: %d invitations are open; revoke one (siteagent invite --list shows "+
				"them), or wait until one expires", ErrTooMany, maxInvites,
		)
	}
	secret = make([]byte, protocol.SecretBytes)
	_, _ = rand.Read(secret) // it never fails
	fresh := invite{
		Hash: hashOf(secret), Name: inviteName(terms.Name), CreatedMS: now.UnixMilli(),
		ExpiresMS: now.Add(span).UnixMilli(), Left: uses, Ask: terms.Ask,
	}
	if err := r.keepInvites(append(invites, fresh)); err != nil {
		return nil, made, fmt.Errorf("invite: %w", err)
	}
	return secret, fresh.public(now), nil
}

// keepInvites writes the invitations down and takes them over; the caller holds
// disk.
func (r *Registry) keepInvites(invites []invite) error {
	if err := save(r.cfg.Dir, invitesFile, invitesText{
		Version: fileVersion, Invites: invites,
	}); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.invites = invites
	return nil
}

// Invites lists the open invitations, the oldest first.
func (r *Registry) Invites() []Invite {
	r.mu.RLock()
	defer r.mu.RUnlock()
	now := r.cfg.Now()
	var list []Invite
	for _, i := range r.invites {
		if i.open(now) {
			list = append(list, i.public(now))
		}
	}
	return list
}

// AllInvites lists the invitations that are known, the oldest first: the open ones, and those
// that closed until a week after they would have expired.
func (r *Registry) AllInvites() []Invite {
	r.mu.RLock()
	defer r.mu.RUnlock()
	now := r.cfg.Now()
	var list []Invite
	for _, i := range r.invites {
		if now.Sub(time.UnixMilli(i.ExpiresMS)) <= closedKept {
			list = append(list, i.public(now))
		}
	}
	return list
}

// Inviting reports whether strangers may connect to redeem an invitation: one is
// open, or was closed so recently that they should hear why it is refused.
func (r *Registry) Inviting() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	now := r.cfg.Now()
	return slices.ContainsFunc(r.invites, func(i invite) bool { return i.open(now) || i.told(now) })
}

// Redeem admits a site that knows the secret of an open invitation, or notes that it waits to
// be admitted by hand. Either is on disk when Redeem returns. The same site may ask again with
// the same secret, because an answer can be lost.
func (r *Registry) Redeem(site grid.SiteID, request protocol.JoinRequest) protocol.JoinAnswer {
	r.disk.Lock()
	defer r.disk.Unlock()
	now := r.cfg.Now()
	standing := r.Standing(site)
	hash := hashOf(request.Secret)
	at := slices.IndexFunc(r.invites, func(i invite) bool { return i.Hash == hash })
	switch {
	case at < 0:
		return refuse(protocol.JoinUnknown, "ask for a new invitation")
	case standing == Banned || standing == BannedHere:
		return refuse(protocol.JoinBanned, "siteagent admit on the inviter's machine lifts the ban")
	}
	if record, known := r.Roster().Get(site); known && standing == Admitted &&
		slices.Contains(r.invites[at].By, site) {
		return protocol.JoinAnswer{Admit: &record}
	}
	if refusal := r.invites[at].refusal(now); refusal != protocol.JoinAdmitted {
		return refuse(refusal, "ask for a new invitation")
	}
	if r.invites[at].Ask {
		return r.askedBy(site, request.Name, at)
	}
	// The use is written down first: a crash between the two costs a use, never
	// admits twice.
	invites := slices.Clone(r.invites)
	invites[at] = invites[at].usedBy(site, now)
	if err := r.keepInvites(invites); err != nil {
		return refuse(protocol.JoinBroken, err.Error())
	}
	record, err := r.issue(site, protocol.MemberAdmit, request.Name, "invitation "+hash[:idChars])
	switch {
	case errors.Is(err, ErrTooMany):
		return refuse(protocol.JoinFull, err.Error())
	case err != nil:
		return refuse(protocol.JoinBroken, err.Error())
	}
	return protocol.JoinAnswer{Admit: &record}
}

func refuse(why protocol.JoinRefusal, text string) protocol.JoinAnswer {
	return protocol.JoinAnswer{Refusal: why, Text: cut(text, 200)}
}
