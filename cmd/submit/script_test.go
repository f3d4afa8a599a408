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

// TestReaderThatGoesIsNoError is `submit | head` with a reader that went before.
func TestReaderThatGoesIsNoError(t *testing.T) {
	scripttest.NobodyReads(t, main, exitNoReader, "submit", "--help")
}
