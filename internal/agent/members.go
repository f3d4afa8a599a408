package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/p2p"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// bans are what the machines were told last. It is safe for concurrent use.
type bans struct {
	mu   sync.Mutex
	told []grid.SiteID // guarded by mu
}

// tellBans tells the machines who is banned, if that changed.
func (a *Agent) tellBans() {
	if !a.awake() {
		return
	}
	a.bans.mu.Lock()
	defer a.bans.mu.Unlock()
	var banned []grid.SiteID
	for _, e := range a.members.Entries() {
		if a.mesh.Judge(e.Site) == grid.ReasonBanned {
			banned = append(banned, e.Site)
		}
	}
	if slices.Equal(banned, a.bans.told) {
		return
	}
	a.bans.told = banned
	a.site.tell(step.BansChanged{Banned: banned})
	a.broker.tell(step.BansChanged{Banned: banned})
}

// openMembers reads who takes part. The roster is this domain's.
func (a *Agent) openMembers() error {
	self, err := a.cfg.P2P.Site()
	if err != nil {
		return err
	}
	a.members, err = member.Open(member.Config{
		Dir: a.cfg.StateDir, Domain: a.cfg.P2P.Domain, Self: self, Name: a.cfg.Name, Key: a.cfg.DomainKey,
	})
	if err != nil {
		return err
	}
	for _, problem := range a.members.Problems() {
		a.log.Warn("a file about members is not usable", "problem", problem)
	}
	return nil
}

// Members lists who takes part and who is kept out, this site first, then by
// name and ID.
func (a *Agent) Members(ctx context.Context) (view.Members, error) {
	var called names
	if err := a.broker.ask(ctx, func() { called = a.namesNow() }); err != nil {
		return view.Members{}, err
	}
	m := view.Members{
		Domain: a.cfg.P2P.Domain, DomainKey: a.members.Key(), Holder: a.members.Holds(), Anyone: a.cfg.P2P.AcceptAnyone,
		Sites: a.memberRows(called), Invites: []view.OpenInvitation{},
	}
	for _, i := range a.members.Invites() {
		m.Invites = append(m.Invites, view.OpenInvitation{
			ID: i.ID, Created: view.At(i.Created), Expires: view.At(i.Expires), Left: i.Left,
		})
	}
	return m, nil
}

func (a *Agent) memberRows(called names) []view.MemberRow {
	rows := make(map[grid.SiteID]view.MemberRow)
	for _, e := range a.members.Entries() {
		rows[e.Site] = view.MemberRow{Site: e.Site, Name: e.Name, Since: view.At(e.Since), Note: e.Note}
	}
	present := make(map[grid.SiteID]bool)
	for _, p := range a.mesh.Peers() {
		present[p.Site] = true
	}
	listed := a.listed()
	self := a.mesh.Self()
	for _, site := range slices.Concat(slices.Collect(maps.Keys(present)), slices.Collect(maps.Keys(listed)), []grid.SiteID{self}) {
		if _, known := rows[site]; !known {
			rows[site] = view.MemberRow{Site: site}
		}
	}
	list := make([]view.MemberRow, 0, len(rows))
	for site, row := range rows {
		row.Member, row.Connected = a.mesh.Judge(site) == grid.ReasonNone, present[site] || site == self
		row.Standing = a.standing(site, listed)
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

// order is 0 for what comes first.
func order(first bool) int {
	if first {
		return 0
	}
	return 1
}

// listed are the sites of the configuration's lists.
func (a *Agent) listed() map[grid.SiteID]bool {
	listed := make(map[grid.SiteID]bool)
	for _, site := range a.cfg.P2P.Allow {
		if id, err := p2p.Canonical(site); err == nil {
			listed[id] = true
		}
	}
	return listed
}

// standing says in a word why a site takes part or not.
func (a *Agent) standing(site grid.SiteID, listed map[grid.SiteID]bool) string {
	standing := a.members.Standing(site)
	switch {
	case site == a.mesh.Self():
		return "self"
	case standing == member.BannedHere && !a.bannedByRoster(site):
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

func (a *Agent) bannedByRoster(site grid.SiteID) bool {
	record, known := a.members.Roster().Get(site)
	return known && record.Kind == protocol.MemberBan
}

// find is the site that a text means: an ID, or the name of a known site.
func (a *Agent) find(ctx context.Context, peer string) (view.MemberRow, error) {
	members, err := a.Members(ctx)
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
		return view.MemberRow{}, fmt.Errorf("%w: %d sites are called %q; give the ID", view.ErrConflict, len(found), peer)
	case invalid == nil:
		return view.MemberRow{Site: id}, nil
	default:
		return view.MemberRow{}, fmt.Errorf("%w: no site is called %q here; siteagent members lists them, or give an ID", view.ErrNotFound, peer)
	}
}

// Admit makes a site a member, and takes back a ban.
func (a *Agent) Admit(ctx context.Context, peer, note string) (view.MemberRow, error) {
	return a.decide(ctx, peer, note, a.members.Admit)
}

// Ban keeps a site out: its connections are closed, its jobs here stopped, and
// own tasks at it moved when their leases have ended.
func (a *Agent) Ban(ctx context.Context, peer, note string) (view.MemberRow, error) {
	return a.decide(ctx, peer, note, a.members.Ban)
}

func (a *Agent) decide(ctx context.Context, peer, note string,
	do func(site grid.SiteID, name, note string) (*protocol.MemberRecord, error),
) (view.MemberRow, error) {
	row, err := a.find(ctx, peer)
	if err != nil {
		return row, err
	}
	record, err := do(row.Site, row.Name, note)
	if err != nil {
		return row, memberError(err)
	}
	if record != nil {
		a.mesh.Share([]protocol.MemberRecord{*record})
	} else {
		a.mesh.Review()
	}
	a.tellBans()
	return a.find(ctx, string(row.Site))
}

// memberError names an error in the words of the API.
func memberError(err error) error {
	switch {
	case errors.Is(err, member.ErrNoKey):
		return fmt.Errorf("%w: %w", view.ErrDenied, err)
	case errors.Is(err, member.ErrTooMany):
		return fmt.Errorf("%w: %w", view.ErrConflict, err)
	default:
		return err
	}
}

// maxInviteAddrs is how many addresses an invitation names.
const maxInviteAddrs = protocol.MaxJoinAddrs

// Invite makes an invitation that so many sites may redeem for so long. Where
// anyone is accepted it only says where the domain is.
func (a *Agent) Invite(_ context.Context, span time.Duration, uses int) (view.Invitation, error) {
	addrs, notices := a.inviteAddrs()
	if len(addrs) == 0 {
		return view.Invitation{}, fmt.Errorf("%w: this site has no address that others could dial; give it one under listen", view.ErrConflict)
	}
	token := member.Token{Domain: a.cfg.P2P.Domain, Inviter: a.mesh.Self(), Addrs: addrs, Expires: time.Now().Add(span)}
	open := a.cfg.P2P.AcceptAnyone && a.members.Key() == ""
	if !open {
		secret, made, err := a.members.Invite(span, uses)
		if err != nil {
			return view.Invitation{}, memberError(err)
		}
		token.Key, token.Secret, token.Expires = a.members.Key(), secret, made.Expires
		notices = append(notices, a.listNotice(token.Key)...)
	}
	text, err := token.Text()
	if err != nil {
		return view.Invitation{}, fmt.Errorf("write the token: %w", err)
	}
	return view.Invitation{
		Token: text, Domain: token.Domain, Open: open, Expires: view.At(token.Expires.Truncate(time.Second)), Uses: uses, Notices: notices,
	}, nil
}

// listNotice says that sites which know this one by their lists alone will not
// know who is invited.
func (a *Agent) listNotice(key grid.DomainKey) []view.Notice {
	if len(a.listed()) == 0 {
		return nil
	}
	return []view.Notice{{
		Text: "sites that were listed by hand do not hear of who is invited", Cause: "they do not know the domain's key",
		Action: "give each of them domain-key: " + string(key) + " and restart it",
	}}
}

// inviteAddrs lists where strangers may dial this site, the likeliest to work
// first.
func (a *Agent) inviteAddrs() ([]string, []view.Notice) {
	suffix := "/p2p/" + string(a.mesh.Self())
	var addrs []string
	far := 0
	for _, addr := range a.mesh.Addrs() {
		addrs = append(addrs, strings.TrimSuffix(addr, suffix))
		if !isLoopback(addr) {
			far++
		}
	}
	slices.SortStableFunc(addrs, func(x, y string) int { return cmp.Compare(order(!isLoopback(x)), order(!isLoopback(y))) })
	notices := []view.Notice{}
	if far == 0 {
		notices = append(notices, view.Notice{
			Text: "only sites on this machine can use this invitation", Cause: "the site listens on loopback addresses alone",
			Action: "give it others under listen, such as /ip4/0.0.0.0/tcp/4801, restart it and invite again",
		})
	}
	return addrs[:min(len(addrs), maxInviteAddrs)], notices
}

func isLoopback(addr string) bool {
	return strings.HasPrefix(addr, "/ip4/127.") || strings.HasPrefix(addr, "/ip6/::1/")
}

// fillMembers adds what the roster says to the agent's status.
func (a *Agent) fillMembers(s *view.AgentStatus, called names) {
	for _, row := range a.memberRows(called) {
		if row.Member {
			s.Members++
		} else if strings.HasPrefix(row.Standing, "banned") {
			s.Banned++
		}
	}
	s.OpenInvites = len(a.members.Invites())
	for _, problem := range a.members.Problems() {
		s.Notices = append(s.Notices, view.Notice{Text: problem})
	}
	if a.members.Standing(a.mesh.Self()) == member.Banned {
		s.Notices = append(s.Notices, view.Notice{
			Text: "this site is banned from the domain", Cause: "the domain's key says so",
			Action: "ask the site that invited this one to run siteagent admit " + string(a.mesh.Self()),
		})
	}
}
