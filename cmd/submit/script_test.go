package main

import (
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/scripttest"
)

// TestScripts runs every verb against real agents.
func TestScripts(t *testing.T) {
	t.Parallel()
	scripttest.Run(t, "testdata/script")
}
