package index_test

import (
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/libp2p/go-libp2p" // want "confined to internal/p2p and internal/data"
	_ "pgregory.net/rapid"

	_ "github.com/mrsmesh/mrsmesh/pkg/index"
	_ "github.com/mrsmesh/mrsmesh/pkg/step" // want "pkg/index may not import pkg/step"
)
