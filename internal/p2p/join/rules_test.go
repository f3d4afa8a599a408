package join

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// link is a connection from an address.
type link struct {
	network.Conn
	id        string
	direction network.Direction
	from      ma.Multiaddr
	peer      peer.ID
	closed    bool
}

func (l *link) ID() string { return l.id }
func (l *link) Stat() network.ConnStats {
	return network.ConnStats{Stats: network.Stats{Direction: l.direction}}
}
func (l *link) RemotePeer() peer.ID           { return l.peer }
func (l *link) RemoteMultiaddr() ma.Multiaddr { return l.from }
func (l *link) Close() error                  { l.closed = true; return nil }
func (l *link) IsClosed() bool                { return l.closed }

// hall is a lobby whose clock a test turns.
type hall struct {
	*Lobby
	t     *testing.T
	open  bool // the mesh is
	holds int
	later []func()
	links int
	cfg   Config
}

func newHall(t *testing.T, guests int, invited bool) *hall {
	t.Helper()
	members, err := member.Open(member.Config{Domain: "lab", Self: "self"})
	if err != nil {
		t.Fatal(err)
	}
	if invited {
		if _, _, err := members.Invite(member.Terms{Span: time.Hour, Uses: 1}); err != nil {
			t.Fatal(err)
		}
	}
	h := &hall{t: t, open: true}
	h.cfg = Config{
		Members: members, Guests: guests, Stay: time.Minute, Counts: wire.NewCounters(nil),
		Judge: func(grid.SiteID) grid.Reason { return grid.ReasonNotMember },
		Hold:  func() (func(), bool) { h.holds++; return func() { h.holds-- }, h.open },
		After: func(d time.Duration, f func()) {
			if d != time.Minute {
				t.Errorf("a guest stays for %s", d)
			}
			h.later = append(h.later, f)
		},
	}
	h.Lobby = New(h.cfg)
	return h
}

// from is a new connection of a stranger from an address.
func (h *hall) from(address string) *link {
	h.t.Helper()
	h.links++
	from, err := ma.NewMultiaddr(address)
	if err != nil {
		h.t.Fatal(err)
	}
	return &link{
		id: fmt.Sprint(h.links), direction: network.DirInbound, from: from, peer: peer.ID("guest"),
	}
}

// Strangers come in by their own connection, while they are invited and the mesh is open.
func TestWhoComesIn(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*hall, *link)
		want   bool
	}{
		"a stranger":        {func(*hall, *link) {}, true},
		"one that we dial":  {func(_ *hall, l *link) { l.direction = network.DirOutbound }, false},
		"the mesh is ended": {func(h *hall, _ *link) { h.open = false }, false},
		"one that is banned": {func(h *hall, _ *link) {
			h.Lobby.cfg.Judge = func(grid.SiteID) grid.Reason { return grid.ReasonBanned }
		}, false},
		"nobody is invited": {func(h *hall, _ *link) { *h = *newHall(h.t, 8, false) }, false},
	} {
		h := newHall(t, 8, true)
		l := h.from("/ip4/10.0.0.1/tcp/1")
		c.change(h, l)
		if got := h.Enter(l); got != c.want || h.Has(l) != c.want || len(h.later) > 0 != c.want {
			t.Errorf("%s: in: %t, there: %t", name, got, h.Has(l))
		}
		if h.open && h.holds != 0 {
			t.Errorf("%s: the mesh is held %d times", name, h.holds)
		}
	}
	h := newHall(t, 8, true)
	l := h.from("/ip4/10.0.0.1/tcp/1")
	if h.Has(l) {
		t.Error("one that did not come in is there")
	}
	h.Enter(l)
	h.later[0]()
	if h.Has(l) || !l.closed {
		t.Error("a guest stays forever")
	}
}

// All places are given but the last quarter to one host, and to those of one host with wrong
// secrets only some. A guest that behaved leaves its place, another one keeps it.
func TestThePlacesOfTheLobby(t *testing.T) {
	h := newHall(t, 8, true)
	var last *link
	for i := range 7 {
		last = h.from("/ip4/10.0.0.1/tcp/1")
		if got, want := h.Enter(last), i < 6; got != want {
			t.Errorf("guest %d of one host comes in: %t", i, got)
		}
	}
	for i := range 3 {
		if got, want := h.Enter(h.from(fmt.Sprintf("/ip4/10.0.0.%d/tcp/1", i+2))), i < 2; got != want {
			t.Errorf("guest %d of others comes in: %t", i, got)
		}
	}
	if got := h.cfg.Counts.Get(wire.CountJoins, "crowded"); got != 2 {
		t.Errorf("%d are counted as too many, want 2", got)
	}
	first := &link{id: "1"}
	h.Left(first)
	if h.Has(first) || !h.Enter(h.from("/ip4/10.0.0.9/tcp/1")) {
		t.Error("a guest that behaved does not leave its place")
	}
	h = newHall(t, 100, true)
	for i := range maxWrong + 1 {
		l := h.from("/ip6/2001:db8::1/tcp/1")
		if got, want := h.Enter(l), i < maxWrong; got != want {
			t.Errorf("after %d wrong secrets: in: %t", i, got)
		}
		h.Blame(l)
		if h.Left(l); h.Has(l) != (i < maxWrong) {
			t.Errorf("guest %d with a wrong secret is there: %t", i, h.Has(l))
		}
	}
	if h.Enter(h.from("/ip6/2001:db8:0:ff::2/tcp/1")) {
		t.Error("another address of the same network comes in")
	}
	if !h.Enter(h.from("/ip6/2001:db8:0:100::2/tcp/1")) || !h.Enter(h.from("/ip4/10.0.0.1/tcp/1")) {
		t.Error("another network does not come in")
	}
	a, b := hostOf(h.from("/dns4/x/tcp/1").from), hostOf(h.from("/ip4/1.2.3.4/tcp/1").from)
	if a.IsValid() || b.String() != "1.2.3.4/32" {
		t.Errorf("hosts %s and %s", a, b)
	}
	for address, want := range map[string]string{
		"/ip6/::ffff:1.2.3.4/tcp/1": "1.2.3.4/32", "/ip6/2001:db8:1:2ff::1/tcp/1": "2001:db8:1:200::/56",
	} {
		if got := hostOf(h.from(address).from).String(); got != want {
			t.Errorf("the host of %s is %s, want %s", address, got, want)
		}
	}
}

// said is a stream on which messages come.
func said(t *testing.T, messages ...protocol.Message) []byte {
	t.Helper()
	var raw []byte
	for _, m := range messages {
		var err error
		if raw, err = protocol.AppendFrame(raw, m); err != nil {
			t.Fatal(err)
		}
	}
	return raw
}

// An answer comes first, then records until the one with the digest, or the end between two
// messages; anything else is no answer, and there is an end to it.
func TestAnAnswerIsRead(t *testing.T) {
	record := protocol.MemberRecord{
		Domain: "lab", Site: "12D3KooWx", Kind: protocol.MemberAdmit, SerialMS: 1,
		Signature: make([]byte, protocol.SignatureBytes),
	}
	answer := protocol.JoinAnswer{Admit: &record}
	part := protocol.Roster{Records: []protocol.MemberRecord{record}, Answer: true}
	last := protocol.Roster{Records: []protocol.MemberRecord{record}, Digest: protocol.Digest{1}}
	many := []protocol.Message{answer}
	for range maxRosterParts {
		many = append(many, part)
	}
	for name, c := range map[string]struct {
		raw     []byte
		records int
		want    error
	}{
		"alone":           {said(t, answer), 0, nil},
		"with records":    {said(t, answer, part, part), 2, nil},
		"to the digest":   {said(t, answer, part, last, part), 2, nil},
		"nothing":         {nil, 0, io.EOF},
		"no answer":       {said(t, part), 0, protocol.ErrMalformed},
		"an answer again": {said(t, answer, answer), 0, protocol.ErrMalformed},
		"cut off":         {said(t, answer, part)[:len(said(t, answer))+5], 0, io.ErrUnexpectedEOF},
		"too many":        {said(t, many...), 0, protocol.ErrTooLarge},
		"as many as may be": {
			said(t, append(many[:maxRosterParts:maxRosterParts], last)...), maxRosterParts, nil,
		},
	} {
		got, records, err := readAnswer(&pieces{Reader: bytes.NewReader(c.raw)})
		if !errors.Is(err, c.want) || len(records.Records) != c.records ||
			err == nil && (got.Admit == nil || got.Admit.Site != record.Site) {
			t.Errorf("%s: %+v with %d records, %v, want %d, %v",
				name, got, len(records.Records), err, c.records, c.want)
		}
	}
}

// The addresses are of one site, all of them.
func TestAddressesOfTheInviter(t *testing.T) {
	a, b := ma.StringCast("/ip4/1.2.3.4/tcp/1"), ma.StringCast("/ip4/1.2.3.5/tcp/1")
	one, err := oneOf([]peer.AddrInfo{
		{ID: "x", Addrs: []ma.Multiaddr{a}}, {ID: "x", Addrs: []ma.Multiaddr{b}},
	})
	if err != nil || one.ID != "x" || len(one.Addrs) != 2 || !one.Addrs[0].Equal(a) {
		t.Errorf("%+v, %v", one, err)
	}
	if _, err := oneOf(nil); err == nil || err.Error() != "redeem: no address" {
		t.Errorf("no address: %v", err)
	}
	if _, err := oneOf([]peer.AddrInfo{{ID: "x"}, {ID: "y"}}); err == nil {
		t.Error("the addresses of two sites are taken for one")
	}
	if _, _, err := Redeem(t.Context(), Invitation{Addrs: []string{"nonsense"}}); err == nil {
		t.Error("an address of no site is dialled")
	}
	var l lastConn
	if l.shut() {
		t.Error("what never was is shut")
	}
	conn := &link{}
	l.Connected(nil, conn)
	if l.shut() {
		t.Error("what is open is shut")
	}
	conn.closed = true
	if !l.shut() {
		t.Error("what is closed is open")
	}
}

// call is the stream of a stranger.
type call struct {
	network.Stream
	conn            network.Conn
	in              io.Reader
	out             bytes.Buffer
	read, write     time.Time // deadlines
	reset, finished int
	deaf            bool // nothing can be written
}

func (c *call) Conn() network.Conn                 { return c.conn }
func (c *call) Read(b []byte) (int, error)         { return c.in.Read(b) }
func (c *call) Reset() error                       { c.reset++; return nil }
func (c *call) CloseWrite() error                  { c.finished++; return nil }
func (c *call) SetReadDeadline(t time.Time) error  { c.read = t; return nil }
func (c *call) SetWriteDeadline(t time.Time) error { c.write = t; return nil }

func (c *call) Write(b []byte) (int, error) {
	if c.deaf {
		return 0, io.ErrClosedPipe
	}
	return c.out.Write(b)
}

// A stranger with the secret is admitted: the members hear of it first, then the stranger does,
// with the roster, and comes back as a member. One without is told why not, and keeps a place as
// one that guessed.
func TestServingAStranger(t *testing.T) {
	good, err := wire.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	who, err := wire.PeerOf(good.Site())
	if err != nil {
		t.Fatal(err)
	}
	wrong := said(t, protocol.JoinRequest{Secret: make([]byte, protocol.SecretBytes), Name: "n"})
	for name, c := range map[string]struct {
		text    []byte // nil: with the secret
		change  func(*hall, *call)
		label   string
		refusal protocol.JoinRefusal
		blamed  bool
		closed  bool
		silent  bool
	}{
		"with the secret": {
			nil, func(*hall, *call) {}, "admitted", protocol.JoinAdmitted, false, true, false,
		},
		"with another": {
			wrong, func(*hall, *call) {}, "unknown", protocol.JoinUnknown, true, true, false,
		},
		"nonsense": {
			[]byte("nonsense"), func(*hall, *call) {}, "invalid", 0, true, false, true,
		},
		"another message": {
			said(t, protocol.Roster{}), func(*hall, *call) {}, "invalid", 0, true, false, true,
		},
		"that is deaf": {
			nil, func(_ *hall, s *call) { s.deaf = true }, "admitted", 0, false, false, true,
		},
		"after the end": {nil, func(h *hall, _ *call) {
			h.Lobby.cfg.Hold = func() (func(), bool) {
				return nil, false
			}
		}, "", 0, false, false, true},
	} {
		h := newHall(t, 8, true)
		secret, _, err := h.cfg.Members.Invite(member.Terms{Span: time.Hour, Uses: 1})
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		h.Lobby.cfg.Log = slog.New(slog.DiscardHandler)
		h.Lobby.cfg.Fill = func(site grid.SiteID, answer *protocol.JoinAnswer) {
			told = append(told, "fill "+string(site))
			answer.Addrs = []string{"/ip4/1.2.3.4/tcp/1/p2p/12D3KooWx"}
		}
		h.Lobby.cfg.Admitted = func(r protocol.MemberRecord) {
			told = append(told, "tell "+string(r.Site))
		}
		h.Lobby.cfg.Roster = func() []protocol.Roster {
			records := h.cfg.Members.Roster().Records()
			return []protocol.Roster{{Records: records, Digest: protocol.Digest{1}}}
		}
		l := h.from("/ip4/10.0.0.1/tcp/1")
		l.peer = who
		h.Enter(l)
		if c.text == nil {
			c.text = said(t, protocol.JoinRequest{Secret: secret, Name: "n"})
		}
		s := &call{conn: l, in: bytes.NewReader(c.text)}
		c.change(h, s)
		h.Serve(t.Context(), s)
		if s.reset != 1 || c.label != "" && h.cfg.Counts.Get(wire.CountJoins, c.label) != 1 {
			t.Errorf("%s: reset %d times, counted %v", name, s.reset, h.cfg.Counts.Labels(wire.CountJoins))
		}
		if g := h.guests[l.ID()]; g == nil || g.wrong != c.blamed || l.closed != c.closed {
			t.Errorf("%s: %+v, closed %t", name, g, l.closed)
		}
		if want := c.label == "admitted"; want != (len(told) == 2) ||
			want && (told[0] != "fill "+string(good.Site()) || told[1] != "tell "+string(good.Site())) {
			t.Errorf("%s: told %q", name, told)
		}
		if c.silent {
			if s.out.Len() != 0 || s.finished != 0 {
				t.Errorf("%s: it is answered", name)
			}
			continue
		}
		answer, records, err := readAnswer(&pieces{Reader: &s.out})
		if err != nil || answer.Refusal != c.refusal || s.finished != 1 ||
			(len(records.Records) == 2) != (c.refusal == protocol.JoinAdmitted) ||
			time.Until(s.read) > time.Minute || time.Until(s.write) < time.Second {
			t.Errorf("%s: %+v with %d records, %v", name, answer, len(records.Records), err)
		}
	}
	for why, want := range map[protocol.JoinRefusal]string{
		protocol.JoinExpired: "expired", protocol.JoinUsed: "used", protocol.JoinBanned: "banned",
		protocol.JoinFull: "full", protocol.JoinBroken: "broken", protocol.JoinRevoked: "revoked",
	} {
		if got := joinLabel(why); got != want {
			t.Errorf("%s is counted as %s", why, got)
		}
	}
}
