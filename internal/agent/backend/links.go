package backend

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Links lists the domains that this one is linked with, by name.
func (b *Backend) Links(ctx context.Context) (view.Links, error) {
	v := view.Links{
		Domain: b.cfg.P2P.Domain, DomainKey: b.members.Key(), Holder: b.members.Holds(),
		Links: []view.LinkRow{}, Invites: []view.LinkInvite{}, Ended: []view.EndedLink{},
	}
	if !v.Holder && v.DomainKey != "" {
		v.Where = b.members.Founder()
	}
	var n names
	if err := b.agent.AskBroker(ctx, func(m *broker.Machine) { n = b.namesNow(m) }); err != nil {
		return v, err
	}
	v.Gateway = b.gateway(n)
	near := make(map[grid.DomainKey]p2p.Neighbour)
	for _, n := range b.mesh.Neighbours() {
		near[n.Key] = n
	}
	for _, link := range b.links.List() {
		v.Links = append(v.Links, b.linkRow(ctx, link, near[link.Side.Key]))
	}
	for _, i := range b.links.Invites() {
		v.Invites = append(v.Invites, view.LinkInvite{
			ID: i.ID, Name: i.Name, Created: view.At(i.Created), Expires: view.At(i.Expires),
		})
	}
	for _, e := range b.links.Ended() {
		v.Ended = append(v.Ended, view.EndedLink{
			Name: e.Name, Key: e.Key, At: view.At(e.At), ByThem: e.ByThem,
		})
	}
	return v, nil
}

// gateway shows who holds the links, with names; nil: there are none.
func (b *Backend) gateway(n names) *view.Gateway {
	v := b.agent.Gateway()
	if v == nil {
		return nil
	}
	v.ActingName = n[v.Acting]
	for i, d := range v.Deputies {
		v.Deputies[i].Name = n[d.Site]
	}
	return v
}

// linkRow shows a link; n is the zero value where it is not held here.
func (b *Backend) linkRow(
	ctx context.Context, link member.Link, n p2p.Neighbour,
) view.LinkRow {
	p := link.Policy
	row := view.LinkRow{
		Name: link.Name, Domain: n.Site, Key: link.Side.Key,
		Connected: n.Connected, Why: n.Why, Gateway: n.Gateway, Addr: n.Addr,
		Policy: view.LinkPolicy{
			Give: p.Give, Take: p.Take, Kinds: p.Kinds, Tasks: p.Tasks, Closed: p.Closed,
			Beside: p.Beside, Onward: p.Onward,
		},
		Since: view.At(link.Since), Last: view.At(link.Last),
	}
	if row.Connected {
		row.Last = view.At(time.Now())
	}
	row.Given, row.Taken = b.agent.Favours(ctx, n.Site)
	return row
}

// rowOf shows the link with the domain of that key.
func (b *Backend) rowOf(
	ctx context.Context, key grid.DomainKey,
) (view.LinkRow, error) {
	link, found := b.links.Get(key)
	if !found {
		return view.LinkRow{}, linkError(member.LinkUnlinked)
	}
	for _, n := range b.mesh.Neighbours() {
		if n.Key == key {
			return b.linkRow(ctx, link, n), nil
		}
	}
	return b.linkRow(ctx, link, p2p.Neighbour{}), nil
}

// linkError names an error in the words of the API.
func linkError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, member.ErrNoKey):
		return fmt.Errorf("%w: %w", view.ErrDenied, err)
	case errors.Is(err, member.ErrNoLink):
		return fmt.Errorf("%w: %w", view.ErrNotFound, err)
	case errors.As(err, new(member.LinkRefusal)), errors.Is(err, member.ErrTooMany),
		errors.Is(err, p2p.ErrInviterSilent), errors.Is(err, p2p.ErrInviterClosed):
		return fmt.Errorf("%w: %w", view.ErrConflict, err)
	default:
		return err
	}
}

// errAnyone says why a domain cannot be linked.
var errAnyone = errors.New("this domain takes anyone and has no key, so it cannot be linked; " +
	"for one: siteagent config set accept listed, siteagent invite")

// needsKey refuses what a domain without a key cannot do.
func (b *Backend) needsKey() error {
	if b.cfg.P2P.AcceptAnyone && b.members.Key() == "" {
		return fmt.Errorf("%w: %w", view.ErrConflict, errAnyone)
	}
	return nil
}

// doorNotice says that a gateway which cannot be dialled either does not reach this one.
func (b *Backend) doorNotice(addrs []string) []view.Notice {
	circuit := func(addr string) bool { return strings.Contains(addr, "/p2p-circuit") }
	if len(b.mesh.Reach().Relays) == 0 || slices.ContainsFunc(addrs, circuit) {
		return nil
	}
	return []view.Notice{{
		Text:  "a gateway that is behind a router, too, cannot use this invitation",
		Cause: "no member of this domain's group relays for this site",
		Action: "let a domain invite whose gateway can be dialled, or set nat.relay: serve at a " +
			"member of the group that can be: siteagent status names them under controller",
	}}
}

// InviteDomain makes an invitation to a link that is good once and for so long.
func (b *Backend) InviteDomain(
	_ context.Context, name grid.DomainID, span time.Duration,
) (view.LinkInvitation, error) {
	if err := b.needsKey(); err != nil {
		return view.LinkInvitation{}, err
	}
	b.agent.TellDeputies() // it may be reached through them
	addrs, notices := b.inviteAddrs(b.mesh.BorderAddrs())
	notices = append(notices, b.doorNotice(addrs)...)
	if len(addrs) == 0 {
		return view.LinkInvitation{}, fmt.Errorf(
			"%w: this site has no address that others could dial; give it one under listen, or "+
				"invite from the other domain", view.ErrConflict,
		)
	}
	secret, made, err := b.links.Invite(name, span)
	if err != nil {
		return view.LinkInvitation{}, linkError(err)
	}
	b.agent.TellDeputies() // they let pass who comes with it
	token := member.Token{
		Link: true, Domain: b.cfg.P2P.Domain, Key: b.members.Key(), Inviter: b.mesh.Self(),
		Addrs: addrs, Secret: secret, Expires: made.Expires,
	}
	text, err := token.Text()
	if err != nil {
		return view.LinkInvitation{}, fmt.Errorf("write the token: %w", err)
	}
	return view.LinkInvitation{
		ID: made.ID, Token: text, Domain: token.Domain, Name: name,
		Expires: view.At(made.Expires.Truncate(time.Second)), Notices: notices,
	}, nil
}

// WithdrawInvite makes an invitation to a link useless.
func (b *Backend) WithdrawInvite(_ context.Context, id string) error {
	return linkError(b.links.Withdraw(id))
}

// JoinDomain links this domain with the one whose token it is.
func (b *Backend) JoinDomain(ctx context.Context, text string) (view.LinkRow, error) {
	token, err := member.ParseToken(text)
	switch {
	case err != nil:
		return view.LinkRow{}, fmt.Errorf("%w: %w", grid.ErrInvalid, err)
	case !token.Link:
		return view.LinkRow{}, fmt.Errorf("%w: the token invites a site, not a domain: use it "+
			"with siteagent join; siteagent domain invite prints one for a domain", grid.ErrInvalid)
	}
	if err = b.needsKey(); err != nil {
		return view.LinkRow{}, err
	}
	link, err := b.mesh.LinkWith(ctx, token)
	if err != nil {
		return view.LinkRow{}, linkError(err)
	}
	b.agent.LinksChanged()
	return b.rowOf(ctx, link.Side.Key)
}

// SetLinkPolicy changes what was decided about a linked domain, from now on.
func (b *Backend) SetLinkPolicy(
	ctx context.Context, name grid.DomainID, change view.PolicyChange,
) (view.LinkRow, error) {
	link, err := b.links.Change(name, member.PolicyChange{
		Give: change.Give, Take: change.Take, Tasks: change.Tasks, Kinds: change.Kinds,
		Closed: change.Closed, Beside: change.Beside, Onward: change.Onward,
	})
	if err != nil {
		return view.LinkRow{}, linkError(err)
	}
	b.agent.LinksChanged()
	return b.rowOf(ctx, link.Side.Key)
}

// Unlink ends the link with a domain.
func (b *Backend) Unlink(_ context.Context, name grid.DomainID) error {
	if _, err := b.links.Unlink(name); err != nil {
		return linkError(err)
	}
	b.agent.LinksChanged()
	return nil
}
