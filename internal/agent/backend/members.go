package backend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// Members lists who takes part and who is kept out, this site first, then by
// name and ID.
func (b *Backend) Members(ctx context.Context) (view.Members, error) {
	var called names
	if err := b.agent.AskBroker(ctx, func(m *broker.Machine) { called = b.namesNow(m) }); err != nil {
		return view.Members{}, err
	}
	m := view.Members{
		Domain: b.cfg.P2P.Domain, DomainKey: b.members.Key(), Holder: b.members.Holds(),
		Anyone: b.cfg.P2P.AcceptAnyone,
		Sites:  b.memberRows(called), Invites: []view.OpenInvitation{},
	}
	if all := b.members.Roster().Successions(); len(all) > 0 {
		m.Rotations = len(all)
		m.Rotated = view.At(time.UnixMilli(all[len(all)-1].MadeMS))
	}
	for _, i := range b.members.Invites() {
		m.Invites = append(m.Invites, view.OpenInvitation{
			ID: i.ID, Name: i.Name, Created: view.At(i.Created), Expires: view.At(i.Expires),
			Left: i.Left,
		})
	}
	return m, nil
}

func (b *Backend) memberRows(called names) []view.MemberRow {
	rows := make(map[grid.SiteID]view.MemberRow)
	for _, e := range b.members.Entries() {
		rows[e.Site] = view.MemberRow{Site: e.Site, Name: e.Name, Since: view.At(e.Since), Note: e.Note}
	}
	for _, p := range b.members.Waiting() {
		if _, known := rows[p.Site]; !known {
			rows[p.Site] = pendingRow(p)
		}
	}
	present := make(map[grid.SiteID]bool)
	for _, p := range b.mesh.Peers() {
		present[p.Site] = true
	}
	listed := b.listed()
	self := b.mesh.Self()
	for _, site := range slices.Concat(
		slices.Collect(maps.Keys(present)), slices.Collect(maps.Keys(listed)), []grid.SiteID{self},
	) {
		if _, known := rows[site]; !known {
			rows[site] = view.MemberRow{Site: site}
		}
	}
	list := make([]view.MemberRow, 0, len(rows))
	for site, row := range rows {
		row.Member, row.Connected = b.mesh.Judge(site) == grid.ReasonNone, present[site] || site == self
		if standing := b.standing(site, listed); standing != "anyone" || row.Member {
			row.Standing = standing
		}
		if name := called[site]; name != "" {
			row.Name = name
		}
		list = append(list, row)
	}
	slices.SortFunc(list, func(x, y view.MemberRow) int {
		if x.Site == self || y.Site == self {
			return cmp.Compare(order(x.Site == self), order(y.Site == self))
		}
		return cmp.Or(strings.Compare(x.Name, y.Name), strings.Compare(string(x.Site), string(y.Site)))
	})
	return list
}

// pendingRow is a site that waits to be admitted.
func pendingRow(p member.Pending) view.MemberRow {
	note := "came with invitation " + p.Invite.ID
	if p.Invite.Name != "" {
		note += " (" + p.Invite.Name + ")"
	}
	return view.MemberRow{
		Site: p.Site, Name: p.Name, Since: view.At(p.Since), Standing: "pending", Note: note,
	}
}

// order is 0 for what comes first.
func order(first bool) int {
	if first {
		return 0
	}
	return 1
}

// listed are the sites of the configuration's lists.
func (b *Backend) listed() map[grid.SiteID]bool {
	listed := make(map[grid.SiteID]bool)
	for _, site := range b.cfg.P2P.Allow {
		if id, err := p2p.Canonical(site); err == nil {
			listed[id] = true
		}
	}
	return listed
}

// standing says in a word why a site takes part or not.
func (b *Backend) standing(site grid.SiteID, listed map[grid.SiteID]bool) string {
	standing := b.members.Standing(site)
	switch {
	case site == b.mesh.Self():
		return "self"
	case standing == member.BannedHere && !b.bannedByRoster(site):
		return "banned-here"
	case standing == member.BannedHere:
		return "banned"
	case listed[site]:
		return "listed"
	case standing == member.AdmittedHere:
		return "admitted"
	case standing == member.Banned:
		return "banned"
	case standing == member.Admitted:
		return "roster"
	default:
		return "anyone"
	}
}

func (b *Backend) bannedByRoster(site grid.SiteID) bool {
	record, known := b.members.Roster().Get(site)
	return known && record.Kind == protocol.MemberBan
}

// find is the site that a text means: an ID, or the name of a known site.
func (b *Backend) find(ctx context.Context, peer string) (view.MemberRow, error) {
	members, err := b.Members(ctx)
	if err != nil {
		return view.MemberRow{}, err
	}
	id, invalid := p2p.Canonical(grid.SiteID(peer))
	var found []view.MemberRow
	for _, row := range members.Sites {
		if row.Site == id && invalid == nil || row.Name == peer {
			found = append(found, row)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return view.MemberRow{}, fmt.Errorf("%w: %d sites are called %s: %s; "+
			"give the ID of the one you mean",
			view.ErrConflict, len(found), peer, namesakes(found))
	case invalid == nil:
		return view.MemberRow{Site: id}, nil
	default:
		return view.MemberRow{}, fmt.Errorf(
			"%w: no site is called %q here; siteagent members lists them, or give an ID", view.ErrNotFound,
			peer,
		)
	}
}

// namesakes tells sites of one name apart.
func namesakes(rows []view.MemberRow) string {
	var texts []string
	for _, row := range rows {
		text := string(row.Site)
		switch {
		case row.Standing == "self":
			text += " (this site)"
		case strings.HasPrefix(row.Standing, "banned"):
			text += " (banned)"
		case row.Connected:
			text += " (connected)"
		default:
			text += " (away)"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, " and ")
}

// Admit makes a site a member, and takes back a ban.
func (b *Backend) Admit(ctx context.Context, peer, note string) (view.MemberRow, error) {
	return b.decide(ctx, peer, note, b.members.Admit)
}

// Ban keeps a site out: its connections are closed, its jobs here stopped, and own tasks at it
// moved when their leases have ended. The open invitations by which it came are revoked, unless
// keep says otherwise: it could come back with them under another key.
func (b *Backend) Ban(
	ctx context.Context, peer, note string, keep bool,
) (view.MemberRow, error) {
	var revoked []member.Invite
	row, err := b.decide(ctx, peer, note,
		func(site grid.SiteID, name, note string) (*protocol.MemberRecord, error) {
			if !keep { // before the ban, so that there is no moment in between
				closed, problem := b.members.RevokeOf(site)
				if problem != nil {
					return nil, problem
				}
				revoked = closed
			}
			return b.members.Ban(site, name, note)
		})
	row.Revoked = inviteRows(revoked, b.invitedNames(ctx))
	return row, err
}

func (b *Backend) decide(ctx context.Context, peer, note string,
	do func(site grid.SiteID, name, note string) (*protocol.MemberRecord, error),
) (view.MemberRow, error) {
	row, err := b.find(ctx, peer)
	if err != nil {
		return row, err
	}
	record, err := do(row.Site, row.Name, note)
	if err != nil {
		return row, memberError(err)
	}
	b.agent.Decided(record)
	return b.find(ctx, string(row.Site))
}

// memberError names an error in the words of the API.
func memberError(err error) error {
	switch {
	case errors.Is(err, member.ErrNoKey):
		return fmt.Errorf("%w: %w", view.ErrDenied, err)
	case errors.Is(err, member.ErrNoInvite):
		return fmt.Errorf("%w: %w", view.ErrNotFound, err)
	case errors.Is(err, member.ErrTooMany), errors.Is(err, member.ErrSeveralInvite):
		return fmt.Errorf("%w: %w", view.ErrConflict, err)
	default:
		return err
	}
}

// Listen listens for other sites on further addresses, until the agent ends.
func (b *Backend) Listen(ctx context.Context, addrs []string) error {
	err := b.mesh.Listen(ctx, addrs)
	if errors.As(err, new(p2p.PortTakenError)) || errors.Is(err, p2p.ErrNoInterface) {
		return fmt.Errorf("%w: %w", view.ErrConflict, err)
	}
	return err
}

// maxWaitingNoticed are the sites that wait and are named in the status; siteagent members lists
// all of them.
const maxWaitingNoticed = 4

// waitingNotices says who waits to be admitted.
func waitingNotices(waiting []member.Pending) []view.Notice {
	var notices []view.Notice
	for _, p := range waiting[:min(len(waiting), maxWaitingNoticed)] {
		notices = append(notices, view.Notice{
			Text:   cmp.Or(p.Name, string(p.Site)) + " waits to be admitted to the domain",
			Cause:  pendingRow(p).Note,
			Action: fmt.Sprintf("siteagent admit %s, or siteagent ban with the same ID", p.Site),
		})
	}
	if more := len(waiting) - len(notices); more > 0 {
		notices = append(notices, view.Notice{
			Text:   fmt.Sprintf("%d more sites wait to be admitted", more),
			Action: "siteagent members lists them",
		})
	}
	return notices
}

// fillMembers adds what the roster says to the agent's status.
func (b *Backend) fillMembers(s *view.AgentStatus, called names) {
	for _, row := range b.memberRows(called) {
		if row.Member {
			s.Members++
		} else if strings.HasPrefix(row.Standing, "banned") {
			s.Banned++
		}
	}
	s.OpenInvites = len(b.members.Invites())
	s.Notices = append(s.Notices, waitingNotices(b.members.Waiting())...)
	for _, problem := range b.members.Problems() {
		s.Notices = append(s.Notices, view.Notice{Text: problem})
	}
	s.Notices = append(s.Notices, contestNotices(b.members.Contests())...)
	if b.members.Standing(b.mesh.Self()) == member.Banned {
		s.Notices = append(s.Notices, view.Notice{
			Text: "this site is banned from the domain", Cause: "the domain's key says so",
			Action: "ask the site that invited this one to run siteagent admit " + string(b.mesh.Self()),
		})
	}
}
