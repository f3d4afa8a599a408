package main

import (
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// completed are the words that a shell is offered when a person presses Tab.
func completed(t *testing.T, b *bench, args ...string) []string {
	t.Helper()
	exit, stdout, stderr := b.run(t, "", append([]string{"__completeNoDesc"}, args...)...)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if exit != 0 || lines[len(lines)-1] != ":4" { // no files
		t.Fatalf("%v = %d %q %s", args, exit, stdout, stderr)
	}
	return lines[:len(lines)-1]
}

// A shell completes jobs by their IDs and names, as far as the verb does something to them.
func TestComplete(t *testing.T) {
	b := newBench(t, ends(map[uint32]int{0: 0}))
	exit, id, stderr := b.run(
		t, "", "--parsable", "run", "-d", "--name", "census", "--wasm", b.path("w.wasm"),
	)
	if id = strings.TrimSpace(id); exit != 0 || grid.JobID(id).Validate() != nil {
		t.Fatalf("run = %d %q %s", exit, id, stderr)
	}
	for _, verb := range []string{
		"status", "logs", "why", "describe", "get", "migrate", "wait", "forget",
	} {
		if got := completed(t, b, verb, ""); !slices.Equal(got, []string{"census", id}) {
			t.Errorf("%s: %q", verb, got)
		}
		if got := completed(t, b, verb, id[:4]); !slices.Equal(got, []string{id}) {
			t.Errorf("%s %s: %q", verb, id[:4], got)
		}
	}
	for _, verb := range []string{"cancel", "hold", "release"} {
		if got := completed(t, b, verb, ""); len(got) != 0 {
			t.Errorf("%s offers a job that has ended: %q", verb, got)
		}
	}
	if got := completed(t, b, "logs", id, ""); len(got) != 0 {
		t.Errorf("logs takes one job and is offered a second: %q", got)
	}
	if got := completed(t, b, "wait", id, ""); !slices.Equal(got, []string{"census"}) {
		t.Errorf("wait offers what is named already: %q", got)
	}
}

// Without an agent, and with one that does not answer, a shell is offered nothing, and soon.
func TestCompleteWithoutAnAgent(t *testing.T) {
	dir := socketDir(t)
	silent := filepath.Join(dir, "silent")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", silent)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for _, socket := range []string{filepath.Join(dir, "none"), silent} {
		began := time.Now()
		if got := completed(t, &bench{socket: socket}, "logs", ""); len(got) != 0 {
			t.Errorf("%q", got)
		}
		if took := time.Since(began); took > 20*completeWithin {
			t.Errorf("a person waits %v", took)
		}
	}
}

// What a shell would read as more than a word is not offered.
func TestCompleteWords(t *testing.T) {
	var jobs []view.JobView
	for _, name := range []string{"plain", "two words", "$(reboot)", "-f", "a\nb", "plain"} {
		jobs = append(jobs, view.JobView{Name: name})
	}
	var words []string
	for _, c := range jobsLike(jobs, []string{""}, "") {
		word, _, _ := strings.Cut(c, "\t")
		words = append(words, word)
	}
	if !slices.Equal(words, []string{"plain"}) {
		t.Errorf("%q", words)
	}
}
