package p2p

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/mrsmesh/mrsmesh/internal/p2p/death"
	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// maxDeathBytes bounds one message of a death stream.
const maxDeathBytes = 4 << 10

// serveDeaths takes a member's word that its agent has died. The connection says whose word
// it is: it is held by the owner of the site's key.
func (m *Mesh) serveDeaths(ctx context.Context, stream network.Stream) {
	id := stream.Conn().RemotePeer()
	if m.lobby.Has(stream.Conn()) || !m.Allowed(id) || !m.enter() {
		_ = stream.Reset()
		return
	}
	defer m.wg.Done()
	stop := context.AfterFunc(ctx, func() { _ = stream.Reset() })
	defer stop()
	taken := false
	defer func() {
		if !taken {
			_ = stream.Reset()
		}
	}()
	leave, ok := m.guard.openStream(id)
	if !ok {
		m.counts.Inc(wire.CountDropped, queueStreams)
		return
	}
	defer leave()
	if stream.SetDeadline(time.Now().Add(m.cfg.Timing.Hello)) != nil {
		return
	}
	attempts, err := readDeaths(stream)
	if err != nil {
		m.unusable(wire.SiteOf(id), err)
		return
	}
	m.log.Info("a site's agent has died", "peer", wire.SiteOf(id), "attempts", len(attempts))
	if tell := m.handlers.OnAttemptsDied; tell != nil && len(attempts) > 0 {
		tell(wire.SiteOf(id), attempts)
	}
	taken = stream.Close() == nil // a reset could overtake it
}

// readDeaths reads which attempts have died. The stream's deadline is set by the caller.
func readDeaths(stream wire.Stream) (attempts []grid.AttemptID, err error) {
	in := wire.NewTimedReader(stream)
	for range death.MaxAttempts + 1 { // and the end of them
		message, err := in.Next(maxDeathBytes)
		if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return attempts, nil
		}
		if err != nil {
			return nil, err
		}
		exited, ok := message.(protocol.Exited)
		if !ok || exited.Exit.Cause != grid.CauseSiteRestart {
			return nil, fmt.Errorf("%w: %s among deaths", protocol.ErrMalformed, wire.NameOf(message))
		}
		attempts = append(attempts, exited.Attempt)
	}
	return nil, fmt.Errorf("%w: too many deaths", protocol.ErrTooLarge)
}

// Ways lists addresses at which a member is reached now, or was a moment ago, for a process
// that tells it of this site's death.
func (m *Mesh) Ways(site grid.SiteID) []string {
	r := m.lookup(site)
	if r == nil {
		return nil
	}
	addrs := slices.Clone(m.host.Peerstore().Addrs(r.id))
	if conns := m.host.Network().ConnsToPeer(r.id); len(conns) > 0 {
		addrs = m.addrsOf(r, conns[0])
	}
	return textsOf(addrs[:min(len(addrs), death.MaxAddrs)])
}

func textsOf(addrs []ma.Multiaddr) []string {
	texts := make([]string, 0, len(addrs))
	for _, a := range addrs {
		texts = append(texts, a.String())
	}
	return texts
}
