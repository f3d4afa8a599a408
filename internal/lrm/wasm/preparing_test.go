package wasm_test

import (
	"slices"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
)

// TestFirstRunSaysThatItCompiles looks at the run with which the tests began: a program of
// megabytes, and nothing compiled yet.
func TestFirstRunSaysThatItCompiles(t *testing.T) {
	t.Parallel()
	want := []lrm.EventKind{lrm.Started, lrm.Preparing, lrm.Prepared}
	if !slices.Equal(coldRun, want) {
		t.Errorf("told %v, want %v", coldRun, want)
	}
}
