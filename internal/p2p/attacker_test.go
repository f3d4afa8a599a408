package p2p

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	lp "github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// attacker is a member that floods another one as fast as it can, and comes again when it is
// turned away.
type attacker struct {
	forge
	host   host.Host
	victim peer.AddrInfo
	hello  protocol.Hello
	said   int
	ahead  []byte // what attacks that need time to prepare send again and again
}

func newAttacker(tb testing.TB, victim peer.AddrInfo) *attacker {
	tb.Helper()
	f := newForge(tb)
	h, err := libp2p.New(libp2p.Identity(f.key), libp2p.NoListenAddrs, libp2p.DisableRelay(),
		libp2p.DisableMetrics(), libp2p.ResourceManager(&network.NullResourceManager{}))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = h.Close() })
	h.SetStreamHandler(protocol.StreamID, func(s network.Stream) {
		if _, err := readHello(wire.NewReader(s, patience)); err == nil {
			_ = writeHello(s, patience, validHello())
		}
	})
	return &attacker{forge: f, host: h, victim: victim, hello: validHello()}
}

// connect makes a connection unless there is one.
func (a *attacker) connect(ctx context.Context) error {
	if s, ok := a.host.Network().(*swarm.Swarm); ok {
		s.Backoff().Clear(a.victim.ID)
	}
	return a.host.Connect(ctx, a.victim)
}

// open opens a stream for messages that the victim has taken.
func (a *attacker) open(ctx context.Context) (network.Stream, error) {
	if err := a.connect(ctx); err != nil {
		return nil, err
	}
	s, err := a.host.NewStream(ctx, a.victim.ID, protocol.StreamID)
	if err != nil {
		return nil, err
	}
	if err = writeHello(s, patience, a.hello); err == nil {
		_, err = readHello(wire.NewReader(s, patience))
	}
	return s, errors.Join(err, s.SetDeadline(time.Time{}))
}

// floods are the kinds of attack. Each goes on until ctx ends or something fails.
var floods = map[string]func(context.Context, *attacker) error{
	"streams": func(ctx context.Context, a *attacker) error {
		return a.streams(ctx, "")
	},
	"message-streams": func(ctx context.Context, a *attacker) error {
		return a.streams(ctx, protocol.StreamID)
	},
	"log-streams": func(ctx context.Context, a *attacker) error {
		return a.streams(ctx, protocol.LogStreamID)
	},
	"connections": func(ctx context.Context, a *attacker) error {
		for ctx.Err() == nil {
			if err := a.connect(ctx); err != nil {
				return err
			}
			_ = a.host.Network().ClosePeer(a.victim.ID)
		}
		return nil
	},
	"orders": func(ctx context.Context, a *attacker) error {
		return a.messages(ctx, protocol.Cancel{Job: jobID(1)})
	},
	"searches": func(ctx context.Context, a *attacker) error {
		if a.ahead == nil {
			a.ahead = a.frames(10_000)
		}
		return a.write(ctx, a.ahead)
	},
	"testimonies": func(ctx context.Context, a *attacker) error {
		return a.messages(ctx, protocol.Testimony{
			Author: a.site, Sequence: 1, IssuedMS: time.Now().UnixMilli(),
			Signature: make([]byte, 64),
		})
	},
	"announcements": func(ctx context.Context, a *attacker) error {
		return a.gossip(ctx, func() []byte {
			a.said++
			e := a.envelope(announcement(a.site, a.said))
			e.Sequence += uint64(a.said)
			return a.sign(e)
		})
	},
	"announcements-again": func(ctx context.Context, a *attacker) error {
		again := a.announce(1)
		return a.gossip(ctx, func() []byte { return again })
	},
}

// streams opens streams and ends them.
func (a *attacker) streams(ctx context.Context, kind lp.ID) error {
	if err := a.connect(ctx); err != nil {
		return err
	}
	for ctx.Err() == nil {
		s, err := a.host.Network().NewStream(network.WithNoDial(ctx, "connected"), a.victim.ID)
		if err != nil {
			return err
		}
		if kind != "" {
			_, err = s.Write(negotiation(kind))
		}
		if err != nil {
			_ = s.Reset()
			return err
		}
		if err = s.CloseWrite(); err != nil {
			return err
		}
		go func() {
			_ = s.SetReadDeadline(time.Now().Add(time.Second))
			_, _ = s.Read(make([]byte, 64))
			_ = s.Reset()
		}()
	}
	return nil
}

// negotiation comes first on a stream of a kind.
func negotiation(kind lp.ID) []byte {
	var b []byte
	for _, line := range []string{"/multistream/1.0.0\n", string(kind) + "\n"} {
		b = append(binary.AppendUvarint(b, uint64(len(line))), line...)
	}
	return b
}

// messages says the message again and again.
func (a *attacker) messages(ctx context.Context, m protocol.Message) error {
	var many []byte
	for range 1000 {
		var err error
		if many, err = protocol.AppendFrame(many, m); err != nil {
			return err
		}
	}
	return a.write(ctx, many)
}

// frames are direct announcements of ever new jobs.
func (a *attacker) frames(n int) (many []byte) {
	for i := range n {
		many, _ = protocol.AppendFrame(many, announcement(a.site, i))
	}
	return many
}

// write says the same again and again.
func (a *attacker) write(ctx context.Context, many []byte) error {
	s, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = s.Reset() }()
	stop := context.AfterFunc(ctx, func() { _ = s.Reset() })
	defer stop()
	for ctx.Err() == nil {
		if _, err := s.Write(many); err != nil {
			return err
		}
	}
	return nil
}

// gossip says on the topic what next gives.
func (a *attacker) gossip(ctx context.Context, next func() []byte) error {
	if err := a.connect(ctx); err != nil {
		return err
	}
	s, err := a.host.NewStream(ctx, a.victim.ID, pubsub.GossipSubID_v12)
	if err != nil {
		return err
	}
	defer func() { _ = s.Reset() }()
	stop := context.AfterFunc(ctx, func() { _ = s.Reset() })
	defer stop()
	for ctx.Err() == nil {
		message := append(field(2, next()), field(4, []byte(protocol.Topic("lab")))...)
		raw := field(2, message) // a list of messages, in the encoding of gossipsub
		frame := append(binary.AppendUvarint(nil, uint64(len(raw))), raw...)
		if _, err := s.Write(frame); err != nil {
			return err
		}
	}
	return nil
}

// field is a field of a protocol buffer.
func field(number byte, value []byte) []byte {
	return append(binary.AppendUvarint([]byte{number<<3 | 2}, uint64(len(value))), value...)
}

// attack goes on until ctx ends, however often it is turned away.
func (a *attacker) attack(ctx context.Context, kind string) (turnedAway int) {
	for ctx.Err() == nil {
		if floods[kind](ctx, a) != nil {
			turnedAway++
		}
	}
	return turnedAway
}
