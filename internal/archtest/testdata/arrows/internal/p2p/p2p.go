// Package p2p may use libp2p, but no database.
package p2p

import (
	_ "github.com/libp2p/go-libp2p"
	_ "github.com/libp2p/go-libp2p-pubsub" // want "confined to internal/p2p/gossip"
	_ "github.com/multiformats/go-multiaddr"
	_ "go.etcd.io/bbolt" // want "confined to internal/store"

	_ "github.com/mrsmesh/mrsmesh/internal/store" // want "internal/p2p may not import internal/store"
	_ "github.com/mrsmesh/mrsmesh/pkg/protocol"
)
