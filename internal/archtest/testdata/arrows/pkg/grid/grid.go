// Package grid stands lowest and looks up.
package grid

import (
	_ "strings"

	_ "github.com/mrsmesh/mrsmesh/pkg/index" // want "pkg/grid may not import pkg/index"
)
