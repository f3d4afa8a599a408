package store

import (
	_ "github.com/libp2p/go-libp2p/core/peer"
	_ "github.com/tetratelabs/wazero" // want "confined to internal/lrm/wasm"

	_ "github.com/mrsmesh/mrsmesh/internal/store"
	_ "github.com/mrsmesh/mrsmesh/pkg/site"
)
