// Package wasm looks at its sibling.
package wasm

import (
	_ "github.com/tetratelabs/wazero"

	_ "github.com/mrsmesh/mrsmesh/internal/lrm"
	_ "github.com/mrsmesh/mrsmesh/internal/lrm/fake" // want "may not import internal/lrm/fake"
)
