package join

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// inviter is a site that answers on the join stream as a test wants.
type inviter struct {
	host.Host
	mu    sync.Mutex
	asked []string // who asked for what
}

// newInviter answers the first streams with the given doings, in turn, and further ones with the
// last.
func newInviter(t *testing.T, doings ...func(network.Stream)) *inviter {
	t.Helper()
	h, err := libp2p.New(libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"), libp2p.DisableMetrics())
	if err != nil {
		t.Fatal(err)
	}
	in := &inviter{Host: h}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	h.SetStreamHandler(protocol.JoinStreamID, func(s network.Stream) {
		defer func() { _ = s.Reset() }() // it has said what it has to say
		request, err := readRequest(s)
		if err != nil {
			return
		}
		in.mu.Lock()
		in.asked = append(in.asked, fmt.Sprintf("%s %+v", s.Conn().RemotePeer(), request))
		do := doings[min(len(in.asked), len(doings))-1]
		in.mu.Unlock()
		do(s)
	})
	return in
}

func (in *inviter) heard() []string {
	in.mu.Lock()
	defer in.mu.Unlock()
	return append([]string(nil), in.asked...)
}

func (in *inviter) addrs() (all []string) {
	for _, a := range in.Addrs() {
		all = append(all, fmt.Sprintf("%s/p2p/%s", a, in.ID()))
	}
	return all
}

func newcomer(t *testing.T) (wire.Identity, protocol.JoinRequest) {
	t.Helper()
	id, err := wire.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	return id, protocol.JoinRequest{Secret: make([]byte, protocol.SecretBytes), Name: "new"}
}

func cutOff(s network.Stream) { _ = s.Reset() }
func babble(s network.Stream) { _, _ = s.Write([]byte("nonsense")) }
func slam(s network.Stream)   { _ = s.Conn().Close() }

// Who is cut off asks again in the same name, and takes the answer with the records behind it.
func TestRedeemAsksAgain(t *testing.T) {
	record := protocol.MemberRecord{
		Domain: "lab", Site: "12D3KooWx", Kind: protocol.MemberAdmit, SerialMS: 1,
		Signature: make([]byte, protocol.SignatureBytes),
	}
	want := protocol.JoinAnswer{Admit: &record, Addrs: []string{"/ip4/1.2.3.4/tcp/1/p2p/12D3KooWx"}}
	raw := said(t, want, protocol.Roster{
		Records: []protocol.MemberRecord{record}, Digest: protocol.Digest{1},
	})
	in := newInviter(t, cutOff, slam, func(s network.Stream) {
		if _, err := s.Write(raw); err != nil {
			t.Error("the answer is not taken", err)
		}
		_ = s.CloseWrite()             // who has read all may be gone
		_, _ = s.Read(make([]byte, 1)) // until it was read
	})
	id, request := newcomer(t)
	answer, records, err := Redeem(t.Context(), Invitation{
		Identity: id, Addrs: in.addrs(), Request: request,
	})
	diff := cmp.Diff(want, answer) + cmp.Diff([]protocol.MemberRecord{record}, records.Records)
	if diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	request.Knows = protocol.JoinRefusals
	one := fmt.Sprintf("%s %+v", id.Site(), request)
	if diff := cmp.Diff([]string{one, one, one}, in.heard()); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

// A connection that the inviter shuts says that it lets nobody in, a stream that it resets does
// not; and each failure begins afresh with another connection.
func TestRedeemOnce(t *testing.T) {
	for name, c := range map[string]struct {
		do     func(network.Stream)
		turned bool
		want   string
	}{
		"shut":     {slam, true, ErrTurnedAway.Error()},
		"reset":    {cutOff, false, "read the inviter's answer: "},
		"nonsense": {babble, false, "read the inviter's answer: "},
	} {
		in := newInviter(t, c.do)
		h, err := libp2p.New(libp2p.NoListenAddrs, libp2p.DisableMetrics())
		if err != nil {
			t.Fatal(err)
		}
		_, request := newcomer(t)
		at := peer.AddrInfo{ID: in.ID(), Addrs: in.Addrs()}
		answer, records, err := redeemOnce(t.Context(), h, at, request)
		if errors.Is(err, ErrTurnedAway) != c.turned || !strings.HasPrefix(fmt.Sprint(err), c.want) ||
			records.Records != nil || answer.Admit != nil {
			t.Errorf("%s: %+v with %d records, %v, want %s",
				name, answer, len(records.Records), err, c.want)
		}
		if h.Network().Connectedness(in.ID()) == network.Connected {
			t.Errorf("%s: the connection stays", name)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if _, _, err := redeemOnce(ended, h, at, request); !errors.Is(err, context.Canceled) ||
			errors.Is(err, ErrTurnedAway) {
			t.Errorf("%s, ended: %v", name, err)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
}

// An inviter that is not there is dialled for some seconds, or until the newcomer gives up; the
// error is that of the first attempt. Addresses of nobody or of two are not dialled at all.
func TestAnInviterThatIsNotThere(t *testing.T) {
	in := newInviter(t, cutOff)
	addrs := in.addrs()
	if err := in.Network().Close(); err != nil {
		t.Fatal(err)
	}
	id, request := newcomer(t)
	began := time.Now()
	_, _, err := Redeem(t.Context(), Invitation{Identity: id, Addrs: addrs, Request: request})
	if !errors.Is(err, ErrNotReached) || !strings.HasPrefix(err.Error(), ErrNotReached.Error()+": ") ||
		!strings.Contains(err.Error(), in.ID().String()) || time.Since(began) < reachFor {
		t.Errorf("nobody there: after %s: %v", time.Since(began), err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	_, _, err = Redeem(ended, Invitation{Identity: id, Addrs: addrs, Request: request})
	if !errors.Is(err, ErrNotReached) || !strings.HasPrefix(err.Error(), "redeem: ") {
		t.Errorf("ended: %v", err)
	}
	for want, addrs := range map[string][]string{
		"redeem: no address":                     nil,
		"redeem: the addresses are of two sites": append(newInviter(t, cutOff).addrs(), addrs...),
		`address "nonsense": `:                   {"nonsense"},
		`address "/ip4/127.0.0.1/tcp/1": `:       {"/ip4/127.0.0.1/tcp/1"},
	} {
		_, _, err := Redeem(t.Context(), Invitation{Identity: id, Addrs: addrs, Request: request})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v: %v, want %s", addrs, err, want)
		}
	}
}
