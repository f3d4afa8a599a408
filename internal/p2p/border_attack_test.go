package p2p

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mrsmesh/mrsmesh/internal/member"
	"github.com/mrsmesh/mrsmesh/internal/p2p/gate"
	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// impostor is a host with the identity of a linked domain's gateway, or another one, that does
// what it likes. The real gateway has ended.
type impostor struct {
	t     *testing.T
	north *capital
	seat  *seat         // of the gateway of south
	south *member.Links // with south's key
	reg   *member.Registry
	host  host.Host
}

// newImpostor links north and south, ends south, and comes back in its place; as says with
// which identity, nil: with its own.
func newImpostor(t *testing.T, as *Identity) *impostor {
	t.Helper()
	i := &impostor{t: t, north: capitalOf(t, "north", nil), seat: newSeat(t, "south")}
	i.seat.cfg.Domain = "south"
	south := i.seat.found(t, nil)
	if _, err := south.LinkWith(t.Context(), i.north.token(t, "")); err != nil {
		t.Fatal(err)
	}
	met(t, i.north, south)
	if err := south.Close(); err != nil {
		t.Fatal(err)
	}
	i.south, i.reg = south.links, south.cfg.Members
	eventually(t, "south is gone", func() bool { return !i.north.sees(t, south) })
	key := i.seat.id
	if as != nil {
		key = *as
	}
	h, err := libp2p.New(libp2p.Identity(key.Key()), libp2p.NoListenAddrs, libp2p.DisableMetrics())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	i.host = h
	return i
}

// dial opens a stream to the border of north; there is none where the connection is refused.
func (i *impostor) dial() (network.Stream, error) {
	i.t.Helper()
	north := i.north.Host()
	err := i.host.Connect(i.t.Context(), peer.AddrInfo{ID: north.ID(), Addrs: north.Addrs()})
	if err != nil {
		return nil, err
	}
	s, err := i.host.NewStream(i.t.Context(), north.ID(), gate.StreamID)
	if err == nil {
		i.t.Cleanup(func() { _ = s.Reset() })
		err = s.SetDeadline(time.Now().Add(patience))
	}
	return s, err
}

// prove says the opening, and a card made by a test; it returns the last answer.
func (i *impostor) prove(
	s network.Stream, made func(nonce []byte) member.Statement,
) (refusal string, err error) {
	i.t.Helper()
	return i.show(s, func(nonce []byte) map[string]any {
		return map[string]any{"card": made(nonce)}
	})
}

// show says the opening, and what a test makes of the other side's number.
func (i *impostor) show(
	s network.Stream, made func(nonce []byte) map[string]any,
) (refusal string, err error) {
	i.t.Helper()
	own := bytes.Repeat([]byte{7}, 32)
	opening := map[string]any{"from": i.south.Key(), "to": i.north.links.Key(), "nonce": own}
	if err = frameJSON(s, opening); err != nil {
		return "", err
	}
	var answer struct {
		Refusal string `json:"refusal"`
		Nonce   []byte `json:"nonce"`
	}
	if err = readJSON(s, &answer); err != nil || answer.Refusal != "" {
		return answer.Refusal, err
	}
	if err = frameJSON(s, made(answer.Nonce)); err != nil {
		return "", err
	}
	var verdict struct {
		Refusal string `json:"refusal"`
	}
	err = readJSON(s, &verdict)
	return verdict.Refusal, err
}

// card is an honest one, changed by a test.
func (i *impostor) card(by *member.Registry, nonce []byte, change map[string]any) member.Statement {
	i.t.Helper()
	self := wire.SiteOf(i.host.ID())
	c := map[string]any{
		"to": i.north.links.Key(), "speaker": self, "nonce": nonce,
		"gateways": []member.Gateway{{Site: self}},
	}
	maps.Copy(c, change)
	said, err := by.State("mrs/1/border-card", c)
	if err != nil {
		i.t.Fatal(err)
	}
	return said
}

func (i *impostor) honest(nonce []byte) member.Statement { return i.card(i.reg, nonce, nil) }

// A member of the other domain that is not its gateway is a stranger: it does not even come in.
func TestAMemberOfTheOtherDomainIsAStranger(t *testing.T) {
	other, err := NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	i := newImpostor(t, &other)
	s, err := i.dial()
	if err == nil { // TCP may tell later that the connection was gated
		_, err = i.prove(s, i.honest)
	}
	if err == nil {
		t.Error("it is heard")
	}
	eventually(t, "it is counted", func() bool {
		return i.north.Count(wire.CountRefused, "not_member")+
			i.north.Count(wire.CountBorder, "stranger") > 0
	})
	if len(i.north.Neighbours()) != 1 || i.north.Neighbours()[0].Connected {
		t.Error("it is the neighbour")
	}
}

// Only a card that the domain's key has made for this very conversation opens the border.
func TestCardsThatAreNoGood(t *testing.T) {
	i := newImpostor(t, nil)
	otherKey, err := member.Open(member.Config{Domain: "south", Self: i.seat.id.Site()})
	if err != nil {
		t.Fatal(err)
	}
	links, err := member.OpenLinks(otherKey)
	if err == nil {
		err = links.NeedKey()
	}
	if err != nil {
		t.Fatal(err)
	}
	var used member.Statement
	for _, c := range []struct {
		name string
		card func(nonce []byte) member.Statement
		want string
	}{
		{"another domain's key", func(n []byte) member.Statement {
			return i.card(otherKey, n, nil)
		}, "forged"},
		{"for another domain", func(n []byte) member.Statement {
			return i.card(i.reg, n, map[string]any{"to": links.Key()})
		}, "replayed"},
		{"of another speaker", func(n []byte) member.Statement {
			return i.card(i.reg, n, map[string]any{"speaker": "12D3KooWother"})
		}, "replayed"},
		{"with a gateway that is not the speaker", func(n []byte) member.Statement {
			others := []member.Gateway{{Site: "12D3KooWother"}}
			return i.card(i.reg, n, map[string]any{"gateways": others})
		}, "forged"},
		{"without gateways", func(n []byte) member.Statement {
			return i.card(i.reg, n, map[string]any{"gateways": []member.Gateway{}})
		}, "forged"},
		{"a good one", func(n []byte) member.Statement {
			used = i.card(i.reg, n, nil)
			return used
		}, ""},
		{"the same again", func([]byte) member.Statement { return used }, "replayed"},
	} {
		s, err := i.dial()
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		got, err := i.prove(s, c.card)
		if err != nil || got != c.want {
			t.Errorf("%s: %q, %v, want %q", c.name, got, err, c.want)
		}
		_ = s.Reset()
	}
	for _, why := range []string{"forged", "replayed"} {
		eventually(t, "all are counted as "+why, func() bool {
			return i.north.Count(wire.CountBorder, why) == 3
		})
	}
}

// through opens the border as an honest gateway would.
func (i *impostor) through() network.Stream {
	i.t.Helper()
	s, err := i.dial()
	if err != nil {
		i.t.Fatal(err)
	}
	refusal, err := i.prove(s, i.honest)
	if err != nil || refusal != "" {
		i.t.Fatalf("refused: %s, %v", refusal, err)
	}
	return s
}

// What cannot be a message is counted; a frame that is too large ends the stream unread.
func TestWhatIsSaidAtTheBorderIsBounded(t *testing.T) {
	i := newImpostor(t, nil)
	s := i.through()
	nonsense := append(binary.BigEndian.AppendUint32(nil, 3), 1, 2, 3)
	if _, err := s.Write(nonsense); err != nil {
		t.Fatal(err)
	}
	frame, err := protocol.AppendFrame(nil, fence())
	if err == nil {
		_, err = s.Write(frame)
	}
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "what follows nonsense is heard", func() bool { return len(i.north.said()) == 1 })
	if got := i.north.Count(wire.CountInvalid, wire.CauseFormat); got != 1 {
		t.Errorf("%d are counted as invalid, want 1", got)
	}
	huge := binary.BigEndian.AppendUint32(nil, protocol.MaxMessageBytes+1)
	if _, err := s.Write(huge); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(make([]byte, 1)); err == nil {
		t.Error("the stream goes on")
	}
	eventually(t, "it is counted, and the neighbour gone", func() bool {
		return i.north.Count(wire.CountInvalid, "size") == 1 && !i.north.Neighbours()[0].Connected
	})
}

// A gateway that floods is read no faster than a member, and the rest waits in its own buffers.
func TestAFloodAtTheBorderIsPaced(t *testing.T) {
	i := newImpostor(t, nil)
	s := i.through()
	frame, err := protocol.AppendFrame(nil, fence())
	if err != nil {
		t.Fatal(err)
	}
	const more = messageBurst + 2*messageRate
	began := time.Now()
	written := make(chan error, 1)
	go func() {
		_, err := s.Write(bytes.Repeat(frame, more))
		written <- err
	}()
	eventually(t, "all are read", func() bool {
		return i.north.Count(CountIn, "BorderFence") == more
	})
	// What is above the burst takes its time at the rate; timers are exact to some part of it.
	if took, least := time.Since(began), time.Second; took < least {
		t.Errorf("%d messages in %s, want at least %s", more, took, least)
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
}

// Streams without end are no way in: they are counted, and each is judged by itself.
func TestManyStreamsAtTheBorder(t *testing.T) {
	i := newImpostor(t, nil)
	first, err := i.dial()
	if err != nil {
		t.Fatal(err)
	}
	for range bidStreams + 2 {
		if s, failed := i.dial(); failed == nil {
			_, _ = s.Write([]byte{0, 0, 0, 9}) // the rest never comes
		}
	}
	eventually(t, "those that are too many are refused", func() bool {
		return i.north.Count(wire.CountBorder, "stranger") > 0
	})
	_ = first.Reset()
	// Long before a frame would be read that says it is larger than any.
	s, err := i.dial()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = s.Write(binary.BigEndian.AppendUint32(nil, 1<<30))
	if _, err := s.Read(make([]byte, 1)); err == nil || errors.Is(err, network.ErrNoConn) {
		t.Errorf("an endless frame: %v", err)
	}
}

// Guesses of a token's secret hold their place in the lobby, as those of members do.
func TestGuessesOfALinkAreBounded(t *testing.T) {
	north, south := capitalOf(t, "north", nil), capitalOf(t, "south", nil)
	token := north.token(t, "")
	good := token.Secret
	for guess := range 6 {
		token.Secret = bytes.Clone(good)
		token.Secret[0] += byte(guess + 1)
		if _, err := south.LinkWith(t.Context(), token); err == nil {
			t.Fatal("a guess is good")
		}
	}
	if unknown := north.Count(wire.CountBorder, "unknown"); unknown > 4 || unknown == 0 {
		t.Errorf("%d guesses from one host were heard, want 1 to 4", unknown)
	}
	if north.Count(wire.CountJoins, "crowded") == 0 {
		t.Error("nobody is turned away")
	}
}

// frameJSON writes a value as gateways do before there are messages.
func frameJSON(s network.Stream, value any) error {
	body, err := json.Marshal(value)
	if err == nil {
		_, err = s.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
	}
	return err
}

// readJSON reads one.
func readJSON(s network.Stream, into any) error {
	var header [4]byte
	if _, err := io.ReadFull(s, header[:]); err != nil {
		return err
	}
	body := make([]byte, binary.BigEndian.Uint32(header[:]))
	if _, err := io.ReadFull(s, body); err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}
