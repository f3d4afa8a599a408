// Package index looks at its sibling and into the shell.
package index

import (
	_ "github.com/cespare/xxhash/v2" // want "pkg/ takes no third-party code"
	_ "gonum.org/v1/gonum/mat"       // want "is confined to pkg/workload"
	_ "pgregory.net/rapid"           // want "for tests only"

	_ "github.com/mrsmesh/mrsmesh/internal/obs" // want "pkg/index may not import internal/obs"
	_ "github.com/mrsmesh/mrsmesh/pkg/cache"    // want "pkg/index may not import pkg/cache"
	_ "github.com/mrsmesh/mrsmesh/pkg/grid"
)
