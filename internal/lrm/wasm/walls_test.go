package wasm_test

import (
	"path/filepath"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func TestWallsHold(t *testing.T) {
	t.Parallel()
	adapter := harness().New(t, filepath.Join(t.TempDir(), "runs"))
	for _, wall := range adapter.Probe(t.Context()).Walls {
		if wall.Trial == nil {
			continue
		}
		seen, err := lrm.Try(t.Context(), adapter, grid.KindWasm, *wall.Trial, t.TempDir())
		t.Logf("%s: %s: %s", wall.Ceiling, wall.How, seen)
		if err != nil || seen == "" {
			t.Errorf("%s: %v", wall.Ceiling, err)
		}
	}
}

// Without a limit the trial of memory goes through: the probe can fail.
func TestTrialNotices(t *testing.T) {
	t.Parallel()
	adapter := harness().New(t, filepath.Join(t.TempDir(), "runs"))
	for _, wall := range adapter.Probe(t.Context()).Walls {
		if wall.Ceiling == "memory" {
			trial := *wall.Trial
			trial.Want = grid.CauseDisk
			if seen, err := lrm.Try(t.Context(), adapter, grid.KindWasm, trial, t.TempDir()); err == nil {
				t.Errorf("a trial that ended otherwise than it must is fine: %s", seen)
			}
		}
	}
}
