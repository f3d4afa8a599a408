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

// dropTracer counts what gossipsub drops in its own queues, which it does not
// tell otherwise.
type dropTracer struct{ g *Topic }

// DropRPC counts messages that did not fit into the queue to a peer.
func (t dropTracer) DropRPC(rpc *pubsub.RPC, _ peer.ID) {
	t.g.cfg.Counts.Add(wire.CountDropped, queueGossipOut, uint64(len(rpc.GetPublish())))
}

// RejectMessage counts messages that nobody had time to check.
func (t dropTracer) RejectMessage(_ *pubsub.Message, reason string) {
	if reason == pubsub.RejectValidationQueueFull || reason == pubsub.RejectValidationThrottled {
		t.g.cfg.Counts.Inc(wire.CountDropped, queueValidate)
	}
}

// UndeliverableMessage counts checked messages that the handler was too slow
// for.
func (t dropTracer) UndeliverableMessage(m *pubsub.Message) {
	t.g.release(len(m.GetData()))
	t.g.cfg.Counts.Inc(wire.CountDropped, queueGossip)
}

// The rest of what a tracer is told is of no interest.

// OnNewOutboundStream does nothing.
func (dropTracer) OnNewOutboundStream(peer.ID, lp.ID) {}

// OnClosedOutboundStream does nothing.
func (dropTracer) OnClosedOutboundStream(peer.ID) {}

// Join does nothing.
func (dropTracer) Join(string) {}

// Leave does nothing.
func (dropTracer) Leave(string) {}

// Graft does nothing.
func (dropTracer) Graft(peer.ID, string) {}

// Prune does nothing.
func (dropTracer) Prune(peer.ID, string) {}

// ValidateMessage does nothing.
func (dropTracer) ValidateMessage(*pubsub.Message) {}

// DeliverMessage does nothing.
func (dropTracer) DeliverMessage(*pubsub.Message) {}

// DuplicateMessage does nothing.
func (dropTracer) DuplicateMessage(*pubsub.Message) {}

// ThrottlePeer does nothing.
func (dropTracer) ThrottlePeer(peer.ID) {}

// RecvRPC does nothing.
func (dropTracer) RecvRPC(*pubsub.RPC) {}

// SendRPC does nothing.
func (dropTracer) SendRPC(*pubsub.RPC, peer.ID) {}
