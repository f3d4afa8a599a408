// Package index uses some of pkg/grid.
package index

import "github.com/mrsmesh/mrsmesh/pkg/grid"

// Measurer is used by internal/store.
type Measurer interface{ Measure() int }

// Names is used by internal/store.
func Names(s *grid.Site) string { return string(s.Name()) }

// Unused is used by nobody.
func Unused() int { return grid.Pair[int](nil) } // want "index.Unused"
