// Package protocol alone opens the door to the wire format.
package protocol

import (
	_ "google.golang.org/protobuf/proto"

	_ "github.com/mrsmesh/mrsmesh/pkg/grid"
	_ "github.com/mrsmesh/mrsmesh/pkg/protocol/wirepb"
)
