// Package audit may look at stores, not at the simulator.
package audit

import (
	_ "github.com/mrsmesh/mrsmesh/internal/store"
	_ "github.com/mrsmesh/mrsmesh/pkg/sim" // want "internal/audit may not import pkg/sim"
)
