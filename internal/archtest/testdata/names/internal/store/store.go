// Package store uses pkg/index.
package store

import (
	"fmt"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/index"
)

// Print is used by cmd/submit.
func Print(m index.Measurer) {
	fmt.Println(index.Names(&grid.Site{}), m)
}
