package gossip

import (
	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/peer"
	lp "github.com/libp2p/go-libp2p/core/protocol"

	"github.com/mrsmesh/mrsmesh/internal/p2p/wire"
)

// Queues of gossipsub, labels of wire.CountDropped.
const (
	queueGossipOut = "gossip_out"   // sent faster than peers take it
	queueValidate  = "gossip_check" // received faster than checked
)

// tracer hears from gossipsub what it does not tell otherwise: what it drops in its own queues,
// and to whom it has a stream.
type tracer struct{ g *Topic }

// OnNewOutboundStream notes that what is said goes to the peer from now on.
func (t tracer) OnNewOutboundStream(id peer.ID, _ lp.ID) { t.g.noteStream(id, true) }

// OnClosedOutboundStream notes that nothing goes to the peer any more.
func (t tracer) OnClosedOutboundStream(id peer.ID) { t.g.noteStream(id, false) }

// DropRPC counts messages that did not fit into the queue to a peer.
func (t tracer) DropRPC(rpc *pubsub.RPC, _ peer.ID) {
	t.g.cfg.Counts.Add(wire.CountDropped, queueGossipOut, uint64(len(rpc.GetPublish())))
}

// RejectMessage counts messages that nobody had time to check.
func (t tracer) RejectMessage(_ *pubsub.Message, reason string) {
	if reason == pubsub.RejectValidationQueueFull || reason == pubsub.RejectValidationThrottled {
		t.g.cfg.Counts.Inc(wire.CountDropped, queueValidate)
	}
}

// UndeliverableMessage counts checked messages that the handler was too slow
// for.
func (t tracer) UndeliverableMessage(m *pubsub.Message) {
	t.g.release(len(m.GetData()))
	t.g.cfg.Counts.Inc(wire.CountDropped, queueGossip)
}

// The rest of what a tracer is told is of no interest.

// Join does nothing.
func (tracer) Join(string) {}

// Leave does nothing.
func (tracer) Leave(string) {}

// Graft does nothing.
func (tracer) Graft(peer.ID, string) {}

// Prune does nothing.
func (tracer) Prune(peer.ID, string) {}

// ValidateMessage does nothing.
func (tracer) ValidateMessage(*pubsub.Message) {}

// DeliverMessage does nothing.
func (tracer) DeliverMessage(*pubsub.Message) {}

// DuplicateMessage does nothing.
func (tracer) DuplicateMessage(*pubsub.Message) {}

// ThrottlePeer does nothing.
func (tracer) ThrottlePeer(peer.ID) {}

// RecvRPC does nothing.
func (tracer) RecvRPC(*pubsub.RPC) {}

// SendRPC does nothing.
func (tracer) SendRPC(*pubsub.RPC, peer.ID) {}
