package store

import (
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func TestTwin(t *testing.T) {
	if grid.Twin() != 1 {
		t.Error("not one")
	}
}
