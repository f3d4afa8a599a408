package backend

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// maxInviteAddrs bounds the addresses that an invitation names.
const maxInviteAddrs = protocol.MaxJoinAddrs

// Invite makes an invitation. Where anyone is accepted it only says where the domain is.
func (b *Backend) Invite(_ context.Context, terms view.InviteTerms) (view.Invitation, error) {
	if terms.Ask && b.cfg.P2P.AcceptAnyone {
		return view.Invitation{}, fmt.Errorf("%w: this site works with anyone (accept: anyone), so "+
			"that nobody would wait; set accept: listed first", view.ErrConflict)
	}
	addrs, notices := b.inviteAddrs(b.mesh.Addrs())
	if len(addrs) == 0 {
		return view.Invitation{}, fmt.Errorf(
			"%w: this site has no address that others could dial; give it one under listen",
			view.ErrConflict,
		)
	}
	token := member.Token{
		Domain: b.cfg.P2P.Domain, Inviter: b.mesh.Self(), Addrs: addrs,
		Expires: time.Now().Add(terms.Span),
	}
	open := b.cfg.P2P.AcceptAnyone && b.members.Key() == ""
	var made member.Invite
	if !open {
		var secret []byte
		var err error
		if secret, made, err = b.members.Invite(member.Terms(terms)); err != nil {
			return view.Invitation{}, memberError(err)
		}
		token.Key, token.Secret, token.Expires = b.members.Key(), secret, made.Expires
		notices = append(notices, b.listNotice(token.Key)...)
	}
	text, err := token.Text()
	if err != nil {
		return view.Invitation{}, fmt.Errorf("write the token: %w", err)
	}
	return view.Invitation{
		ID: made.ID, Token: text, Name: made.Name, Domain: token.Domain, Open: open,
		Expires: view.At(token.Expires.Truncate(time.Second)), Uses: terms.Uses, Notices: notices,
	}, nil
}

// listNotice says that sites which know this one by their lists alone will not
// know who is invited.
func (b *Backend) listNotice(key grid.DomainKey) []view.Notice {
	if len(b.listed()) == 0 {
		return nil
	}
	return []view.Notice{{
		Text:   "sites that were listed by hand do not hear of who is invited",
		Cause:  "they do not know the domain's key",
		Action: "give each of them domain-key: " + string(key) + " and restart it",
	}}
}

// inviteAddrs lists where strangers may dial this site, the likeliest to work
// first.
func (b *Backend) inviteAddrs(own []string) ([]string, []view.Notice) {
	suffix := "/p2p/" + string(b.mesh.Self())
	var addrs []string
	far := 0
	for _, addr := range own {
		addrs = append(addrs, strings.TrimSuffix(addr, suffix))
		if !isLoopback(addr) {
			far++
		}
	}
	slices.SortStableFunc(addrs, func(x, y string) int {
		return cmp.Compare(order(!isLoopback(x)), order(!isLoopback(y)))
	})
	notices := []view.Notice{}
	if far == 0 {
		notices = append(notices, view.Notice{
			Text:   "only sites on this machine can use this invitation",
			Cause:  "this site listens on loopback addresses alone",
			Action: "to invite sites of your local network: siteagent invite --listen lan",
		})
	}
	return addrs[:min(len(addrs), maxInviteAddrs)], notices
}

func isLoopback(addr string) bool {
	return strings.HasPrefix(addr, "/ip4/127.") || strings.HasPrefix(addr, "/ip6/::1/")
}

// Invites lists the invitations that were made here, the oldest first, closed ones included.
func (b *Backend) Invites(ctx context.Context) ([]view.InviteRow, error) {
	return inviteRows(b.members.AllInvites(), b.invitedNames(ctx)), nil
}

// Revoke makes an open invitation useless.
func (b *Backend) Revoke(ctx context.Context, which string) (view.InviteRow, error) {
	revoked, err := b.members.Revoke(which)
	if err != nil {
		return view.InviteRow{}, memberError(err)
	}
	return inviteRows([]member.Invite{revoked}, b.invitedNames(ctx))[0], nil
}

// RevokeAll makes all open invitations useless, and returns them.
func (b *Backend) RevokeAll(ctx context.Context) ([]view.InviteRow, error) {
	revoked, err := b.members.RevokeAll()
	return inviteRows(revoked, b.invitedNames(ctx)), memberError(err)
}

// invitedNames are the names of sites that may have used an invitation. While the broker does not
// answer they are those of the members' records: to revoke waits for nobody.
func (b *Backend) invitedNames(ctx context.Context) names {
	called := names{}
	_ = b.agent.AskBroker(ctx, func(m *broker.Machine) { called = b.namesNow(m) })
	for _, e := range b.members.Entries() {
		if called[e.Site] == "" {
			called[e.Site] = e.Name
		}
	}
	return called
}

// inviteRows shows invitations, with the names of who used them.
func inviteRows(invites []member.Invite, called names) []view.InviteRow {
	rows := make([]view.InviteRow, 0, len(invites))
	for _, i := range invites {
		row := view.InviteRow{
			ID: i.ID, Name: i.Name, State: inviteState(i.Refusal), Created: view.At(i.Created),
			Expires: view.At(i.Expires), Left: i.Left, Uses: i.Uses, By: []view.InvitedSite{},
			Ask: i.Ask,
		}
		for _, site := range i.By {
			row.By = append(row.By, view.InvitedSite{Site: site, Name: called[site]})
		}
		rows = append(rows, row)
	}
	return rows
}

// inviteState is a word for what an invitation is good for.
func inviteState(refusal protocol.JoinRefusal) string {
	switch refusal {
	case protocol.JoinAdmitted:
		return "open"
	case protocol.JoinUsed:
		return "used"
	case protocol.JoinRevoked:
		return "revoked"
	default:
		return "expired"
	}
}
