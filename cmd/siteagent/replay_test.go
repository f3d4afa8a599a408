package main

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/store"
)

// A journal of another build is named and left out: what it would decide says nothing
// about what that build decided. It is no failure either.
func TestReplayLeavesOutJournalsOfOtherBuilds(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, machine := range []string{"site", "broker"} {
		if _, err := s.Begin(store.Header{Machine: machine, Build: "v0.0.1+0123456789ab"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	if err := replay(&said, new(tableForm), dir, false); err != nil {
		t.Errorf("replay: %v", err)
	}
	const want = "site machine, start 1: written by build v0.0.1+0123456789ab, left out\n" +
		"broker machine, start 1: written by build v0.0.1+0123456789ab, left out\n"
	if said.String() != want {
		t.Errorf("it says\n%swant\n%s", said.String(), want)
	}
}
