// Package gossip has its own library, and never looks up.
package gossip

import (
	_ "github.com/libp2p/go-libp2p-pubsub"

	_ "github.com/mrsmesh/mrsmesh/internal/p2p" // want "internal/p2p/gossip may not import internal/p2p"
)
