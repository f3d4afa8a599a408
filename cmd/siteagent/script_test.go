package main

import (
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/scripttest"
)

// TestScripts runs what the owner of a machine types.
func TestScripts(t *testing.T) {
	t.Parallel()
	scripttest.Run(t, "testdata/script")
}

// TestReaderThatGoesIsNoError is `siteagent | head` with a reader that went before.
func TestReaderThatGoesIsNoError(t *testing.T) {
	scripttest.NobodyReads(t, main, exitNoReader, "siteagent", "--help")
}
