package p2p

import (
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	lp "github.com/libp2p/go-libp2p/core/protocol"
)

// metered counts the streams that peers open, before anything of them is read: those of whatever
// kind, and then, when its kind is known, those that are not for data.
type metered struct {
	network.ResourceManager
	m *Mesh
}

// OpenStream implements network.ResourceManager.
func (r metered) OpenStream(
	p peer.ID, dir network.Direction,
) (network.StreamManagementScope, error) {
	if dir == network.DirInbound && !r.m.guard.stream(p) {
		return nil, network.ErrResourceLimitExceeded
	}
	scope, err := r.ResourceManager.OpenStream(p, dir)
	if err != nil || dir != network.DirInbound {
		return scope, err
	}
	return meteredScope{scope, r.m, p}, nil
}

// meteredScope is a stream that a peer has opened.
type meteredScope struct {
	network.StreamManagementScope
	m  *Mesh
	id peer.ID
}

// SetProtocol implements network.StreamManagementScope.
func (s meteredScope) SetProtocol(kind lp.ID) error {
	if _, data := s.m.trading.Load(kind); !data && !s.m.guard.other(s.id) {
		return network.ErrResourceLimitExceeded
	}
	return s.StreamManagementScope.SetProtocol(kind)
}

// tradingHost is the mesh's host as the exchange of data sees it: the streams that it serves are
// for data, and what comes on them is noted.
type tradingHost struct {
	host.Host
	m *Mesh
}

// SetStreamHandler implements host.Host.
func (h tradingHost) SetStreamHandler(kind lp.ID, handler network.StreamHandler) {
	h.m.trading.Store(kind, true)
	h.Host.SetStreamHandler(kind, func(s network.Stream) {
		handler(tradedStream{s, h.m.guard.ledger(s.Conn().RemotePeer())})
	})
}

// tradedStream notes what is read.
type tradedStream struct {
	network.Stream
	account *ledger
}

// Read implements network.Stream.
func (s tradedStream) Read(b []byte) (int, error) {
	n, err := s.Stream.Read(b)
	s.account.brought(n)
	return n, err
}
