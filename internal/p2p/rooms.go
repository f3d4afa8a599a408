package p2p

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/mrsmesh/mrsmesh/internal/p2p/death"
	"github.com/mrsmesh/mrsmesh/internal/p2p/gossip"
	"github.com/mrsmesh/mrsmesh/internal/p2p/join"
	"github.com/mrsmesh/mrsmesh/internal/p2p/relay"
	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// What others see of the rooms below.
type (
	// Identity is a site's key pair.
	Identity = wire.Identity
	// NAT says how a site behind a translating router meets the others.
	NAT = relay.NAT
	// RelayRole is a site's part in reaching machines behind such routers.
	RelayRole = relay.Role
	// Reachability says whether sites elsewhere can dial this one.
	Reachability = relay.Reachability
	// Invitation sets up Redeem.
	Invitation = join.Invitation
	// Welcome is its result.
	Welcome = join.Welcome
	// DeathNote says of one attempt whom to tell when it is dead.
	DeathNote = death.Note
)

// ArgTellDeaths is the hidden argument with which an executable runs itself again to tell
// of deaths: main calls TellDeaths then, before anything else.
const ArgTellDeaths = death.Arg

// TellDeaths tells what death notes say; see death.Main.
func TellDeaths(args []string) int { return death.Main(args) }

// CountIn is the family of counters of messages handed to OnMessage, by type.
const CountIn = wire.CountIn

// What Redeem fails with.
var (
	// ErrTurnedAway says that the inviter let this site not even ask.
	ErrTurnedAway = join.ErrTurnedAway
	// ErrNotReached says that none of the inviter's addresses answers.
	ErrNotReached = join.ErrNotReached
)

// LoadIdentity reads the identity in the file, or makes one there; see
// wire.LoadIdentity.
func LoadIdentity(file string) (Identity, error) { return wire.LoadIdentity(file) }

// NewIdentity makes an identity that is nowhere on disk.
func NewIdentity() (Identity, error) { return wire.NewIdentity() }

// SignedBy reports whether a site's key has signed a text.
func SignedBy(site grid.SiteID, text, signature []byte) bool {
	return wire.SignedBy(site, text, signature)
}

// DomainSite is the name that a domain with this key has where a site's name is asked for.
func DomainSite(key grid.DomainKey) (grid.SiteID, error) { return wire.DomainSite(key) }

// KeyOf is the ed25519 key that a site's name holds. The error says that it holds none.
func KeyOf(site grid.SiteID) ([]byte, error) { return wire.KeyOf(site) }

// Redeem connects to the inviter as a newcomer and redeems an invitation; see
// join.Redeem.
func Redeem(ctx context.Context, in Invitation) (protocol.JoinAnswer, Welcome, error) {
	return join.Redeem(ctx, in)
}

// gossipConfig sets up the domain's gossip.
func (m *Mesh) gossipConfig() gossip.Config {
	l := m.cfg.Limits
	return gossip.Config{
		Host: m.host, Key: m.key, Self: m.self, Domain: m.cfg.Domain,
		Incarnation: m.cfg.Incarnation, Now: m.cfg.Now,
		Limits: gossip.Limits{
			Messages: l.GossipMessages, Bytes: l.GossipBytes,
			SubmitterRate: l.SubmitterRate, SubmitterBurst: l.SubmitterBurst, Submitters: l.Submitters,
		},
		Counts: m.counts,
		Wide:   m.cfg.Preset == PresetWAN, Quick: m.cfg.Preset == PresetTest, Unscored: m.cfg.unscored,
		Allowed: m.allowsSite, LateOwn: m.guard.lateOwn, OnMessage: m.overheard,
		Account: gossipAccount{m.guard},
	}
}

// gossipAccount is the guard as gossip sees it.
type gossipAccount struct{ g *guard }

// Wait implements gossip.Account.
func (a gossipAccount) Wait(ctx context.Context, from peer.ID, work time.Duration) bool {
	return a.g.gossipWork(ctx, from, work)
}

// Done implements gossip.Account.
func (a gossipAccount) Done(from peer.ID, work time.Duration) { a.g.gossiped(from, work) }

// Excess implements gossip.Account.
func (a gossipAccount) Excess(from peer.ID) { a.g.excess(from) }

// overheard takes a message from gossip.
func (m *Mesh) overheard(by grid.SiteID, message protocol.Message) {
	said := message
	if on, is := message.(protocol.OnBehalf); is {
		said = on.Message // its addresses are those of who says it
	}
	if a, ok := said.(protocol.Announce); ok && by != m.self {
		if id, err := wire.PeerOf(by); err == nil {
			m.hint(id, a.Addrs)
		}
	}
	m.handlers.OnMessage(by, message)
}

// Broadcast says the message, an announcement or a clear, to the whole domain.
// This site's own handler gets it, too, and so do, on their streams, the admitted
// peers that are not yet on the topic. Nobody confirms it. It fails when the
// message cannot be encoded, and when the own handler is far behind.
func (m *Mesh) Broadcast(message protocol.Message) error {
	if err := m.gossip.Say(message); err != nil {
		return fmt.Errorf("broadcast %s: %w", wire.NameOf(message), err)
	}
	m.counts.Inc(wire.CountOut, wire.NameOf(message))
	for _, r := range m.all() {
		if _, present := r.admitted(); present && !m.gossip.Hears(r.id, message) {
			_ = m.Send(r.site, message) // what is lost is counted
		}
	}
	return nil
}

// relayConfig sets up this site's part in relaying.
func (m *Mesh) relayConfig() relay.Config {
	return relay.Config{
		Host: m.host, NAT: m.cfg.NAT, Puncher: m.puncher, Injected: m.cfg.Host != nil, Anyone: m.cfg.AcceptAnyone,
		Every: m.cfg.Timing.Relay, Named: addrsNamed,
		Slots: m.cfg.Limits.RelaySlots, Circuits: m.cfg.Limits.RelayCircuits, Peers: m.cfg.Limits.Peers,
		Members: relayMembers{m}, Doors: m.doors, Crosses: m.crosses,
		After: m.after, Counts: m.counts, Log: m.log,
	}
}

// relayMembers is the mesh as relays see it.
type relayMembers struct{ m *Mesh }

// Allowed implements relay.Members.
func (s relayMembers) Allowed(p peer.ID) bool { return s.m.Allowed(p) }

// Admitted implements relay.Members.
func (s relayMembers) Admitted(p peer.ID) bool {
	r := s.m.lookup(wire.SiteOf(p))
	if r == nil {
		return false
	}
	_, present := r.admitted()
	return present
}

// Present implements relay.Members.
func (s relayMembers) Present() []peer.ID {
	var ids []peer.ID
	for _, r := range s.m.all() {
		if _, present := r.admitted(); present {
			ids = append(ids, r.id)
		}
	}
	return ids
}

// DirectAddrs implements relay.Members.
func (s relayMembers) DirectAddrs(p peer.ID, conn network.Conn) []ma.Multiaddr {
	return s.m.directAddrs(p, conn)
}

// TellOwn implements relay.Members.
func (s relayMembers) TellOwn(addrs []ma.Multiaddr) {
	s.m.tellAll(s.m.host.ID(), addrs)
	s.m.gates.Moved()
}

// newLobby makes the place where strangers with an invitation wait.
func (m *Mesh) newLobby() *join.Lobby {
	return join.New(join.Config{
		Members: m.cfg.Members, Judge: m.judgeSite, Linking: m.awaits,
		Guests: m.cfg.Limits.Guests, Stay: m.cfg.Timing.Guest,
		Counts: m.counts, Log: m.log, After: m.after,
		Hold: func() (release func(), ok bool) { return m.wg.Done, m.enter() },
		Fill: m.introduce, Admitted: m.newcomer,
		Roster: func() []protocol.Roster { return rosterParts(m.cfg.Members.Roster(), true) },
	})
}

// awaits reports whether a stranger may come for an invitation to a link, which was made here or
// by the gateway whose deputy this site is.
func (m *Mesh) awaits() bool { return m.cfg.Links.Inviting() || m.cfg.Links.Ushers() }

// introduce tells a newcomer whom this site lists and where it is itself.
func (m *Mesh) introduce(newcomer grid.SiteID, answer *protocol.JoinAnswer) {
	for listed := range m.members {
		if listed != newcomer && m.judgeSite(listed) == grid.ReasonNone {
			answer.Listed = append(answer.Listed, listed)
		}
	}
	slices.Sort(answer.Listed)
	answer.Listed = answer.Listed[:min(len(answer.Listed), protocol.MaxListed)]
	for _, addr := range m.Addrs() {
		if len(answer.Addrs) < protocol.MaxJoinAddrs && len(addr) <= maxAddrText {
			answer.Addrs = append(answer.Addrs, addr)
		}
	}
}

// newcomer tells the members of one.
func (m *Mesh) newcomer(record protocol.MemberRecord) {
	m.flood(parts([]protocol.MemberRecord{record}, nil), nil)
	m.review()
	if m.handlers.OnMembers != nil {
		m.handlers.OnMembers()
	}
}
