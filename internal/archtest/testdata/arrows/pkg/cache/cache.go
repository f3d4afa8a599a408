// Package cache uses no library of others.
package cache

import (
	_ "google.golang.org/protobuf/proto" // want "confined to pkg/protocol"

	_ "github.com/mrsmesh/mrsmesh/pkg/grid"
)
