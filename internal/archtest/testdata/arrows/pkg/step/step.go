// Package step wants the wire format.
package step

import (
	_ "github.com/mrsmesh/mrsmesh/pkg/protocol"
	_ "github.com/mrsmesh/mrsmesh/pkg/protocol/wirepb" // want "pkg/step may not import pkg/protocol/wirepb"
)
