// Package lrmtest is a test that other packages run.
package lrmtest

import (
	_ "github.com/google/go-cmp/cmp"

	_ "github.com/mrsmesh/mrsmesh/internal/lrm"
)
