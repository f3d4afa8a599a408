package p2p

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	coreprotocol "github.com/libp2p/go-libp2p/core/protocol"

	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// seat is a site's place on disk, so that it can be started again.
type seat struct {
	dir string
	id  Identity
	cfg Config

	patience time.Duration // with the inviter
	clock    func() time.Time
}

func newSeat(t *testing.T, name string) *seat {
	t.Helper()
	dir := t.TempDir()
	cfg := testConfig(t)
	cfg.KeyFile, cfg.AddressFile = filepath.Join(dir, "id"), filepath.Join(dir, "peers.json")
	cfg.Name, cfg.AcceptAnyone = name, false
	id, err := LoadIdentity(cfg.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	return &seat{dir: dir, id: id, cfg: cfg, patience: patience}
}

// start lets the site live with what is in its directory.
func (s *seat) start(t *testing.T, key grid.DomainKey) node {
	t.Helper()
	reg, err := member.Open(member.Config{
		Dir: s.dir, Domain: s.cfg.Domain, Self: s.id.Site(), Name: s.cfg.Name, Key: key,
		Now: s.clock,
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.cfg
	cfg.Members = reg
	return startSite(t, cfg)
}

func (n node) invite(t *testing.T, span time.Duration, uses int) []byte {
	t.Helper()
	secret, _, err := n.cfg.Members.Invite(member.Terms{Span: span, Uses: uses})
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// redeem asks at the inviter with a secret, and keeps what it learns.
func (s *seat) redeem(t *testing.T, at node, secret []byte) (protocol.JoinAnswer, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), max(s.patience, 500*time.Millisecond))
	defer cancel()
	answer, told, err := Redeem(ctx, Invitation{
		Identity: s.id, Addrs: at.Addrs(),
		Request: protocol.JoinRequest{Secret: secret, Name: s.cfg.Name},
	})
	if err != nil || answer.Refusal != protocol.JoinAdmitted {
		return answer, err
	}
	key := at.cfg.Members.Key()
	reg, err := member.Open(member.Config{
		Dir: s.dir, Domain: s.cfg.Domain, Self: s.id.Site(), Key: key,
	})
	if err != nil {
		t.Error(err)
		return answer, err
	}
	if _, err := reg.Follow(told.Successions); err != nil {
		t.Error(err)
	}
	if _, err := reg.Merge(append(told.Records, *answer.Admit)); err != nil {
		t.Error(err)
	}
	s.cfg.Bootstrap, s.cfg.Allow = at.Addrs(), []grid.SiteID{at.Self()}
	return answer, nil
}

// domain starts an inviter and n members that joined it, all connected.
func domain(t *testing.T, n int) (seats []*seat, nodes []node) {
	t.Helper()
	return domainOf(t, newSeat(t, "a"), n)
}

func domainOf(t *testing.T, first *seat, n int) (seats []*seat, nodes []node) {
	t.Helper()
	seats, nodes = []*seat{first}, []node{first.start(t, "")}
	secret := nodes[0].invite(t, time.Hour, n)
	for i := range n {
		s := newSeat(t, string(rune('b'+i)))
		if answer, err := s.redeem(t, nodes[0], secret); err != nil ||
			answer.Refusal != protocol.JoinAdmitted {
			t.Fatalf("redeem = %v, %v", answer.Refusal, err)
		}
		seats, nodes = append(seats, s), append(nodes, s.start(t, nodes[0].cfg.Members.Key()))
	}
	whole(t, nodes)
	return seats, nodes
}

func TestNewcomersMeetEveryMemberSoon(t *testing.T) {
	_, nodes := domain(t, 2)
	want := nodes[0].cfg.Members.Roster()
	for _, n := range nodes {
		if got := n.cfg.Members.Roster(); got.Digest() != want.Digest() || got.Len() != 3 {
			t.Errorf("%s knows %d records, want the 3 of the inviter", n.cfg.Name, got.Len())
		}
	}
	if got := nodes[0].Count(wire.CountJoins, "admitted"); got != 2 {
		t.Errorf("admitted = %d, want 2", got)
	}
	if err := nodes[2].Broadcast(announcement(nodes[2].Self(), 1)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a newcomer's announcement reaches the other", func() bool {
		return nodes[1].count() > 0
	})
}

func TestSecretsThatAreNoUseAreRefusedByName(t *testing.T) {
	a := newSeat(t, "a").start(t, "")
	b, c := newSeat(t, "b"), newSeat(t, "c")
	secret := a.invite(t, time.Hour, 1)
	wrong := bytes.Repeat([]byte{9}, protocol.SecretBytes)
	if answer, err := b.redeem(t, a, wrong); err != nil || answer.Refusal != protocol.JoinUnknown {
		t.Errorf("unknown secret: %v, %v", answer.Refusal, err)
	}
	if answer, err := b.redeem(t, a, secret); err != nil || answer.Refusal != protocol.JoinAdmitted {
		t.Fatalf("redeem: %v, %v", answer.Refusal, err)
	}
	if answer, err := c.redeem(t, a, secret); err != nil || answer.Refusal != protocol.JoinUsed {
		t.Errorf("used secret: %v, %v", answer.Refusal, err)
	}
	if answer, err := b.redeem(t, a, secret); err != nil || answer.Refusal != protocol.JoinAdmitted {
		t.Errorf("the same site asks again: %v, %v", answer.Refusal, err)
	}
	short := a.invite(t, time.Second, 1)
	eventually(t, "the invitation expires", func() bool { return len(a.cfg.Members.Invites()) == 0 })
	if answer, err := c.redeem(t, a, short); err != nil || answer.Refusal != protocol.JoinExpired {
		t.Errorf("expired secret: %v, %v", answer.Refusal, err)
	}
	if a.Judge(c.id.Site()) == grid.ReasonNone || a.Judge(b.id.Site()) != grid.ReasonNone {
		t.Error("who is allowed does not follow who was admitted")
	}
}

// A revoked secret is refused immediately, with the reason, and for an hour: then nothing is open,
// and strangers stay outside.
func TestARevokedSecretIsRefused(t *testing.T) {
	var later atomic.Int64
	s := newSeat(t, "a")
	s.clock = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	a := s.start(t, "")
	b, c := newSeat(t, "b"), newSeat(t, "c")
	secret := a.invite(t, time.Hour, 3)
	answer, err := b.redeem(t, a, secret)
	if err != nil || answer.Refusal != protocol.JoinAdmitted {
		t.Fatalf("redeem: %v, %v", answer.Refusal, err)
	}
	if _, err = a.cfg.Members.RevokeAll(); err != nil {
		t.Fatal(err)
	}
	fastest := time.Hour // of some: the machine may be busy with other tests
	for range 3 {
		began := time.Now()
		answer, err = c.redeem(t, a, secret)
		if err != nil || answer.Refusal != protocol.JoinRevoked {
			t.Errorf("revoked secret: %v, %v", answer.Refusal, err)
		}
		if fastest = min(fastest, time.Since(began)); fastest < time.Second {
			break
		}
	}
	if fastest >= time.Second {
		t.Errorf("that took %s, want less than 1 s", fastest)
	}
	if a.Judge(b.id.Site()) != grid.ReasonNone || a.Judge(c.id.Site()) == grid.ReasonNone ||
		a.Count(wire.CountJoins, "revoked") == 0 {
		t.Error("who is in does not follow who was admitted, or nothing is counted")
	}
	later.Store(int64(time.Hour))
	c.patience = 0
	c.isTurnedAway(t, a, secret)
}

// isTurnedAway waits until a redeem says so: in its short time a busy machine may not even
// connect.
func (s *seat) isTurnedAway(t *testing.T, at node, secret []byte) {
	t.Helper()
	eventually(t, "the site is turned away", func() bool {
		_, err := s.redeem(t, at, secret)
		return errors.Is(err, ErrTurnedAway)
	})
}

// maxWrong is the number of guesses that the lobby takes from one host.
const maxWrong = 4

func TestGuessesOfOneHostAreBounded(t *testing.T) {
	a := newSeat(t, "a").start(t, "")
	a.invite(t, time.Hour, 1)
	wrong := bytes.Repeat([]byte{9}, protocol.SecretBytes)
	for range maxWrong {
		if answer, err := newSeat(t, "x").redeem(t, a, wrong); err != nil ||
			answer.Refusal != protocol.JoinUnknown {
			t.Fatalf("%v, %v", answer.Refusal, err)
		}
	}
	late := newSeat(t, "x")
	late.patience = 0
	late.isTurnedAway(t, a, wrong)
	if a.Count(wire.CountJoins, "crowded") == 0 || a.Count(wire.CountJoins, "unknown") != maxWrong {
		t.Errorf(
			"crowded %d, unknown %d", a.Count(wire.CountJoins, "crowded"),
			a.Count(wire.CountJoins, "unknown"),
		)
	}
}

func TestWithoutAnInvitationStrangersStayOutside(t *testing.T) {
	a := newSeat(t, "a").start(t, "")
	x := newSeat(t, "x")
	x.patience = 0
	x.isTurnedAway(t, a, make([]byte, protocol.SecretBytes))
	if a.Count(wire.CountRefused, "not_member") == 0 {
		t.Error("the stranger is not counted")
	}
}

// TestAGuestGetsNothingButTheJoinStream opens what a member may open.
func TestAGuestGetsNothingButTheJoinStream(t *testing.T) {
	s := newSeat(t, "a")
	s.cfg.Timing.Guest = time.Second
	a := s.start(t, "")
	a.invite(t, time.Hour, 1)
	h, err := libp2p.New(libp2p.NoListenAddrs, libp2p.DisableMetrics())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := h.Connect(t.Context(), peer.AddrInfo{
		ID: a.Host().ID(), Addrs: a.Host().Addrs(),
	}); err != nil {
		t.Fatalf("a guest is not let in: %v", err)
	}
	for _, name := range []string{protocol.StreamID, protocol.LogStreamID, "/meshsub/1.3.0"} {
		stream, err := h.NewStream(t.Context(), a.Host().ID(), coreprotocol.ID(name))
		if err != nil {
			continue // refused immediately
		}
		_ = stream.SetDeadline(time.Now().Add(5 * time.Second))
		frame, err := protocol.AppendFrame(nil, validHello())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = stream.Write(frame)
		if n, err := stream.Read(make([]byte, 64)); err == nil || n > 0 {
			t.Errorf("%s answers a guest with %d bytes", name, n)
		}
	}
	eventually(t, "the guest is shown out", func() bool {
		return a.Host().Network().Connectedness(h.ID()) != network.Connected
	})
	if a.peers() != 0 || a.count() != 0 {
		t.Errorf("%d peers and %d messages came of a guest", a.peers(), a.count())
	}
}

func TestABanTakesEffectEverywhere(t *testing.T) {
	seats, nodes := domain(t, 2)
	a, b, c := nodes[0], nodes[1], nodes[2]
	record, err := a.cfg.Members.Ban(c.Self(), "", "misbehaved")
	if err != nil || record == nil {
		t.Fatalf("Ban = %v, %v", record, err)
	}
	began := time.Now()
	a.Share([]protocol.MemberRecord{*record})
	eventually(t, "both members are rid of it", func() bool {
		return a.peers() == 1 && b.peers() == 1 && c.peers() == 0
	})
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("that took %s, want less than 5 s", took)
	}
	for _, n := range []node{a, b} {
		if n.Judge(c.Self()) != grid.ReasonBanned {
			t.Errorf("%s judges it %s", n.cfg.Name, n.Judge(c.Self()))
		}
		if slices.Contains(n.book.ids(), c.Host().ID()) {
			t.Errorf("%s remembers its addresses", n.cfg.Name)
		}
		if n.Send(c.Self(), protocol.Cancel{Job: jobID(1)}) == nil {
			t.Errorf("%s sends to it", n.cfg.Name)
		}
	}
	eventually(t, "the banned one hears why", func() bool {
		return c.Count(wire.CountRefused, "banned") > 0
	})

	// Neither a restart of it nor one of a member changes that.
	for _, n := range []node{c, b} {
		if err = n.Close(); err != nil {
			t.Fatal(err)
		}
	}
	key := a.cfg.Members.Key()
	b2, c2 := seats[1].start(t, key), seats[2].start(t, key)
	eventually(t, "the member is back", func() bool { return b2.peers() == 1 && a.peers() == 1 })
	eventually(t, "the banned one is turned away", func() bool {
		return c2.Count(wire.CountRefused, "banned") > 0
	})
	if b2.Judge(c2.Self()) != grid.ReasonBanned || c2.peers() != 0 {
		t.Errorf("after a restart: %s, %d peers", b2.Judge(c2.Self()), c2.peers())
	}
	seats[2].patience = 0
	seats[2].isTurnedAway(t, a, a.invite(t, time.Hour, 1))

	// The owner may change their mind.
	record, err = a.cfg.Members.Admit(c.Self(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	a.Share([]protocol.MemberRecord{*record})
	whole(t, []node{a, b2, c2})
}

func TestTheOwnersBanBeatsEverything(t *testing.T) {
	_, nodes := domain(t, 1)
	a, b := nodes[0], nodes[1]
	record, err := b.cfg.Members.Ban(a.Self(), "", "") // whom b lists, and who holds the key
	if err != nil || record != nil {
		t.Fatalf("Ban = %v, %v; want no record without the key", record, err)
	}
	b.Review()
	eventually(t, "the inviter is gone", func() bool { return a.peers() == 0 && b.peers() == 0 })
	eventually(t, "it hears why", func() bool { return a.Count(wire.CountRefused, "banned") > 0 })
}

func TestForgedRecordsAreRefused(t *testing.T) {
	_, nodes := domain(t, 1)
	a, b := nodes[0], nodes[1]
	record, _ := a.cfg.Members.Roster().Get(b.Self())
	record.SerialMS++
	record.Kind = protocol.MemberBan
	if err := b.Send(a.Self(), protocol.Roster{Records: []protocol.MemberRecord{record}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the forgery is counted", func() bool {
		return a.Count(wire.CountRoster, "forged") == 1
	})
	if a.Judge(b.Self()) != grid.ReasonNone {
		t.Error("a forged ban is believed")
	}
}

// TestRostersMeetAfterAPartition changes the roster while a member is away.
func TestRostersMeetAfterAPartition(t *testing.T) {
	quick := newSeat(t, "a")
	quick.dir = "" // hundreds of records are not to wait for the disk
	seats, nodes := domainOf(t, quick, 2)
	if err := nodes[1].Close(); err != nil {
		t.Fatal(err)
	}
	var all []protocol.MemberRecord
	for i := range 300 { // more than one message holds
		record, err := nodes[0].cfg.Members.Admit(wire.SiteOf(newID(i)), "", "")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, *record)
	}
	nodes[0].Share(all)
	back := seats[1].start(t, nodes[0].cfg.Members.Key())
	eventually(t, "all know all", func() bool {
		want := nodes[0].cfg.Members.Roster().Digest()
		return back.cfg.Members.Roster().Digest() == want &&
			nodes[2].cfg.Members.Roster().Digest() == want
	})
}

// TestManyMayJoinAtOnce lets more sites of one host ask than there are places.
func TestManyMayJoinAtOnce(t *testing.T) {
	const many = 24
	a := newSeat(t, "a").start(t, "")
	secret := a.invite(t, time.Hour, many)
	var group sync.WaitGroup
	for range many {
		s := newSeat(t, "x")
		group.Go(func() {
			if answer, err := s.redeem(t, a, secret); err != nil || answer.Refusal != protocol.JoinAdmitted {
				t.Errorf("redeem = %s, %v", answer.Refusal, err)
			}
		})
	}
	group.Wait()
	if got := a.cfg.Members.Roster().Len(); got != many+1 {
		t.Errorf("the roster holds %d sites, want %d", got, many+1)
	}
}
