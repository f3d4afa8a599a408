package native_test

import (
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func TestWallsHold(t *testing.T) {
	eachWay(t, ways(), func(t *testing.T, adapter lrm.Adapter) {
		for _, wall := range adapter.Probe(t.Context()).Walls {
			seen, err := lrm.Try(t.Context(), adapter, grid.KindCommand, *wall.Trial, t.TempDir())
			t.Logf("%s: %s: %s", wall.Ceiling, wall.How, seen)
			if err != nil || seen == "" {
				t.Errorf("%s: %v", wall.Ceiling, err)
			}
		}
	})
}
