// Program submit uses internal/store.
package main

import (
	"github.com/mrsmesh/mrsmesh/internal/store"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Main is exported without a reason.
func Main() { store.Print(nil) } // want "main.Main"

func main() {
	if grid.Limit > 1 {
		Main()
	}
}
