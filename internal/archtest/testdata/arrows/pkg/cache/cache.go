// Package cache may use the one library.
package cache

import (
	_ "github.com/hashicorp/golang-lru/v2/simplelru"
	_ "google.golang.org/protobuf/proto" // want "confined to pkg/protocol"

	_ "github.com/mrsmesh/mrsmesh/pkg/grid"
)
