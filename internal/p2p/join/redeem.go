package join

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	libp2pquic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// ErrTurnedAway says that the inviter let this site not even ask.
var ErrTurnedAway = errors.New("the inviter turned this site away: " +
	"no invitation is open there any more, this site is banned, or too many join at this moment")

// ErrNotReached says that none of the inviter's addresses answers.
var ErrNotReached = errors.New("the inviter does not answer")

// Invitation sets up Redeem. All fields but Again are required.
type Invitation struct {
	Identity wire.Identity        // of the newcomer
	Addrs    []string             // of the inviter, multiaddrs that end in /p2p/ID
	Request  protocol.JoinRequest // what to say; Knows is set by Redeem
	Again    bool                 // the caller asks again itself: ErrTurnedAway is returned immediately
}

// Welcome holds the inviter's roster, as it says behind an admission.
type Welcome struct {
	Successions []protocol.Succession // of the domain's key, all from the first one
	Records     []protocol.MemberRecord
}

// Redeem connects to the inviter as the newcomer and redeems the invitation. It
// tries again until the context ends, unless the inviter answers, or is not reached
// within some seconds. Nothing of the answer is verified but that the inviter gave it. The error is ErrTurnedAway, ErrNotReached
// with the attempts of each address, or what went wrong when the inviter was asked: then
// it may have admitted this site, and the same identity can ask again.
func Redeem(
	ctx context.Context, in Invitation,
) (protocol.JoinAnswer, Welcome, error) {
	var addrs []peer.AddrInfo
	for _, text := range in.Addrs {
		info, err := peer.AddrInfoFromString(text)
		if err != nil {
			return protocol.JoinAnswer{}, Welcome{}, fmt.Errorf("address %q: %w", text, err)
		}
		addrs = append(addrs, *info)
	}
	inviter, err := oneOf(addrs)
	if err != nil {
		return protocol.JoinAnswer{}, Welcome{}, err
	}
	h, err := libp2p.New(libp2p.Identity(in.Identity.Key()), libp2p.NoListenAddrs,
		libp2p.EnableRelay(), libp2p.Ping(false), libp2p.UserAgent("mrsmesh"), libp2p.DisableMetrics(),
		libp2p.Transport(tcp.NewTCPTransport, tcp.DisableReuseport()),
		libp2p.Transport(libp2pquic.NewTransport))
	if err != nil {
		return protocol.JoinAnswer{}, Welcome{}, fmt.Errorf("redeem: %w", err)
	}
	defer func() { _ = h.Close() }() // it only asked
	in.Request.Knows = protocol.JoinRefusals
	wait := wire.Backoff{Low: 300 * time.Millisecond, High: 2 * time.Second}
	var first error // not to reach the inviter: later ones only say that it is too early to dial again
	for began := time.Now(); ; {
		answer, told, err := redeemOnce(ctx, h, inviter, in.Request)
		if err == nil {
			return answer, told, nil
		}
		if in.Again && errors.Is(err, ErrTurnedAway) {
			return protocol.JoinAnswer{}, Welcome{}, err
		}
		if errors.Is(err, ErrNotReached) {
			if first = cmp.Or(first, err); time.Since(began) >= reachFor {
				return protocol.JoinAnswer{}, Welcome{}, first
			}
		}
		if !wire.Pause(ctx, wait.Next(false), nil) {
			return protocol.JoinAnswer{}, Welcome{}, fmt.Errorf("redeem: %w", err)
		}
	}
}

// oneOf merges the addresses of one peer.
func oneOf(addrs []peer.AddrInfo) (peer.AddrInfo, error) {
	var one peer.AddrInfo
	for _, a := range addrs {
		if one.ID != "" && one.ID != a.ID {
			return one, errors.New("redeem: the addresses are of two sites")
		}
		one.ID, one.Addrs = a.ID, append(one.Addrs, a.Addrs...)
	}
	if one.ID == "" {
		return one, errors.New("redeem: no address")
	}
	return one, nil
}

const (
	redeemTry = 10 * time.Second // one attempt at most
	reachTry  = 5 * time.Second  // of that, to connect
	reachFor  = 3 * time.Second  // no further attempts if none connected by then
)

func redeemOnce(
	ctx context.Context, h host.Host, inviter peer.AddrInfo, request protocol.JoinRequest,
) (protocol.JoinAnswer, Welcome, error) {
	ctx, cancel := context.WithTimeout(network.WithAllowLimitedConn(ctx, "join"), redeemTry)
	defer cancel()
	var last lastConn
	h.Network().Notify(&last)
	defer h.Network().StopNotify(&last)
	answer, told, err := exchange(ctx, h, inviter, request)
	if err != nil {
		if ctx.Err() == nil && last.shut() {
			err = ErrTurnedAway
		}
		_ = h.Network().ClosePeer(inviter.ID) // begin afresh
	}
	return answer, told, err
}

func exchange(
	ctx context.Context, h host.Host, inviter peer.AddrInfo, request protocol.JoinRequest,
) (answer protocol.JoinAnswer, told Welcome, err error) {
	reach, cancel := context.WithTimeout(ctx, reachTry)
	defer cancel()
	if err = h.Connect(reach, inviter); err != nil {
		return answer, Welcome{}, fmt.Errorf("%w: %w", ErrNotReached, err)
	}
	// A connection that the inviter has shut since is an answer, and no reason to dial again.
	connected := network.WithNoDial(ctx, "join")
	stream, err := h.NewStream(connected, inviter.ID, protocol.JoinStreamID)
	if err != nil {
		return answer, Welcome{}, fmt.Errorf("ask the inviter: %w", err)
	}
	defer func() { _ = stream.Reset() }()
	if until, ok := ctx.Deadline(); ok {
		if err = stream.SetDeadline(until); err != nil {
			return answer, Welcome{}, err
		}
	}
	frame, err := protocol.AppendFrame(nil, request)
	if err != nil {
		return answer, Welcome{}, err
	}
	if _, err = stream.Write(frame); err != nil {
		return answer, Welcome{}, fmt.Errorf("ask the inviter: %w", err)
	}
	answer, told, err = readAnswer(stream)
	if err != nil {
		return answer, Welcome{}, fmt.Errorf("read the inviter's answer: %w", err)
	}
	return answer, told, nil
}

// maxRosterParts limits the messages of records that are read.
const maxRosterParts = 64

// readAnswer reads an answer and the roster that may follow it. The stream's
// deadline is set by the caller.
func readAnswer(
	stream wire.Stream,
) (answer protocol.JoinAnswer, told Welcome, err error) {
	in := wire.NewTimedReader(stream)
	first, err := in.Next(protocol.MaxMessageBytes)
	if err != nil {
		return answer, Welcome{}, err
	}
	answer, ok := first.(protocol.JoinAnswer)
	if !ok {
		return answer, Welcome{}, fmt.Errorf("%w: it begins with %s",
			protocol.ErrMalformed, wire.NameOf(first))
	}
	for range maxRosterParts {
		message, err := in.Next(protocol.MaxMessageBytes)
		if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return answer, told, nil
		}
		if err != nil {
			return answer, Welcome{}, err
		}
		part, ok := message.(protocol.Roster)
		if !ok {
			return answer, Welcome{}, fmt.Errorf("%w: %s among the records",
				protocol.ErrMalformed, wire.NameOf(message))
		}
		told.Records = append(told.Records, part.Records...)
		if told.Successions == nil {
			told.Successions = part.Successions
		}
		if part.Digest != (protocol.Digest{}) {
			return answer, told, nil
		}
	}
	return answer, Welcome{}, fmt.Errorf("%w: too many records", protocol.ErrTooLarge)
}

// lastConn remembers the last connection: this site closes none while it asks.
type lastConn struct {
	network.NoopNotifiee
	mu   sync.Mutex
	conn network.Conn
}

// Connected implements network.Notifiee.
func (l *lastConn) Connected(_ network.Network, c network.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = c
}

// shut reports whether the peer closed the connection: it lets no stranger in,
// and says so with a code that a reset of the socket can overtake.
func (l *lastConn) shut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn != nil && l.conn.IsClosed()
}
