//go:build windows

// Package store hides its breaches behind a build constraint.
package store

import (
	_ "github.com/libp2p/go-libp2p/core/peer" // want "confined to internal/p2p"
	_ "go.etcd.io/bbolt"

	_ "github.com/mrsmesh/mrsmesh/pkg/protocol/wirepb" // want "may not import pkg/protocol/wirepb"
	_ "github.com/mrsmesh/mrsmesh/pkg/site"            // want "internal/store may not import pkg/site"
)
