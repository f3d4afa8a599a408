package gossip

import (
	"context"
	"fmt"
	"sync"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/peer"
)

// channel is a topic of pubsub that this site is on, and who else is. It is safe for concurrent
// use once it was joined.
type channel struct {
	topic *pubsub.Topic
	sub   *pubsub.Subscription
	peers *pubsub.TopicEventHandler

	mu sync.Mutex
	on map[peer.ID]bool // guarded by mu
}

// join subscribes to the topic of that name, with room for so many messages.
func (c *channel) join(ps *pubsub.PubSub, name string, messages int) (err error) {
	c.on = make(map[peer.ID]bool)
	if c.topic, err = ps.Join(name); err != nil {
		return fmt.Errorf("join topic: %w", err)
	}
	if c.sub, err = c.topic.Subscribe(pubsub.WithBufferSize(messages)); err != nil {
		return fmt.Errorf("subscribe to topic: %w", err)
	}
	if c.peers, err = c.topic.EventHandler(); err != nil {
		return fmt.Errorf("watch topic: %w", err)
	}
	return nil
}

// follow keeps count of the peers on the topic.
func (c *channel) follow(ctx context.Context) {
	for {
		event, err := c.peers.NextPeerEvent(ctx)
		if err != nil {
			return
		}
		c.mu.Lock()
		if event.Type == pubsub.PeerJoin {
			c.on[event.Peer] = true
		} else {
			delete(c.on, event.Peer)
		}
		c.mu.Unlock()
	}
}

// holds reports whether the peer is on the topic.
func (c *channel) holds(id peer.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.on[id]
}

func (c *channel) close() {
	c.peers.Cancel()
	c.sub.Cancel()
}
