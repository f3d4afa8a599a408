package gossip

import (
	"context"
	"errors"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	lp "github.com/libp2p/go-libp2p/core/protocol"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// About how much work gossipsub and the check have with what a peer says, by a core of today.
const (
	workRead    = time.Microsecond // for each piece that is read
	workPerKiB  = time.Microsecond
	workEntry   = 14 * time.Microsecond // for each message, until it turns out to be of no use
	workControl = 2 * time.Microsecond  // for each of gossipsub's own: subscriptions, what it has
)

// errEnded says that nothing more is read because the topic has ended.
var errEnded = errors.New("the topic has ended")

// Account bounds what others may cost. Its methods are called concurrently.
type Account interface {
	// Wait waits until so much more work may be done for what a peer says. It reports false when
	// ctx ends first.
	Wait(ctx context.Context, from peer.ID, work time.Duration) bool
	// Done notes work that was done; what the peer says next waits for it.
	Done(from peer.ID, work time.Duration)
	// Excess notes that a peer brought a message of its own beyond what a submitter may say.
	Excess(from peer.ID)
}

// pacedHost is the host as gossipsub sees it: what comes on its streams is read as fast as the
// account allows, and the rest waits at the peer.
type pacedHost struct {
	host.Host
	ctx     context.Context //nolint:containedctx // that of the topic, which has no other way here
	account Account
}

// SetStreamHandler implements host.Host.
func (h pacedHost) SetStreamHandler(kind lp.ID, handler network.StreamHandler) {
	h.Host.SetStreamHandler(kind, h.paced(handler))
}

// SetStreamHandlerMatch implements host.Host.
func (h pacedHost) SetStreamHandlerMatch(
	kind lp.ID, match func(lp.ID) bool, handler network.StreamHandler,
) {
	h.Host.SetStreamHandlerMatch(kind, match, h.paced(handler))
}

func (h pacedHost) paced(handler network.StreamHandler) network.StreamHandler {
	return func(s network.Stream) { handler(&pacedStream{s, h}) }
}

// pacedStream is a stream on which a peer gossips.
type pacedStream struct {
	network.Stream
	host pacedHost
}

// Read implements network.Stream.
func (s *pacedStream) Read(b []byte) (int, error) {
	n, err := s.Stream.Read(b)
	work := workRead + time.Duration(n)*workPerKiB/1024
	if !s.host.account.Wait(s.host.ctx, s.Conn().RemotePeer(), work) && err == nil {
		return n, errEnded
	}
	return n, err
}

// weigh notes what it costs to look at all that a peer says in a row.
func (g *Topic) weigh(from peer.ID, rpc *pubsub.RPC) error {
	c := rpc.GetControl()
	own := len(rpc.GetSubscriptions()) + len(c.GetGraft()) + len(c.GetPrune())
	for _, have := range c.GetIhave() {
		own += 1 + len(have.GetMessageIDs())
	}
	for _, want := range c.GetIwant() {
		own += 1 + len(want.GetMessageIDs())
	}
	for _, not := range c.GetIdontwant() {
		own += 1 + len(not.GetMessageIDs())
	}
	g.cfg.Account.Done(from,
		time.Duration(len(rpc.GetPublish()))*workEntry+time.Duration(own)*workControl)
	return nil
}

// excess notes that a site said more than a submitter may, if it was that site that brought it:
// another one may pass on what it has not counted yet.
func (g *Topic) excess(signer grid.SiteID, from peer.ID) {
	if signer == wire.SiteOf(from) {
		g.cfg.Account.Excess(from)
	}
}
