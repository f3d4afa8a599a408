package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/localmesh"
)

// good is a run in which every demand is met, and what it printed.
func good() (*soak, *bytes.Buffer) {
	l := look{
		rate: 10, rss: 60 << 20, list: 20 * time.Millisecond, answer: 5 * time.Millisecond,
		files: []map[string]int64{{"journal": 1 << 20, "identity.key": 68}},
	}
	said := &bytes.Buffer{}
	p := &localmesh.Place{Dir: filepath.Join(os.TempDir(), "mrs-soak-1234567890")}
	return &soak{
		out: localmesh.NewScreen(said, false), looks: []look{l, l, l}, held: 3000,
		mesh:  localmesh.New(p, "", "soak", gifts(), tune),
		count: counts{ended: 3000, done: 3000}, again: 300 * time.Millisecond,
	}, said
}

func TestEachDemandCanBeMissed(t *testing.T) {
	s, said := good()
	if err := s.judge(3000); err != nil || strings.Contains(said.String(), "MISSED") {
		t.Fatalf("a good run: %v\n%s", err, said)
	}
	for what, spoil := range map[string]func(*soak){
		"jobs refused":           func(s *soak) { s.count.refused++ },
		"jobs done":              func(s *soak) { s.count.done-- },
		"jobs listed afterwards": func(s *soak) { s.held-- },
		"RSS of the submitter":   func(s *soak) { s.looks[2].rss += s.looks[2].rss / 9 },
		"jobs/s":                 func(s *soak) { s.looks[2].rate *= .89 },
		"submit list":            func(s *soak) { s.looks[1].list = quickReply },
		"API":                    func(s *soak) { s.looks[1].answer = quickReply },
		"start afterwards":       func(s *soak) { s.again = quickStart },
		"largest journal":        func(s *soak) { s.looks[1].files[0]["journal"] = 1 << 30 },
		"largest others":         func(s *soak) { s.looks[1].files[0]["new"] = 9 << 20 },
	} {
		s, said := good()
		spoil(s)
		if err := s.judge(3000); !errors.Is(err, errMissed) {
			t.Errorf("%s: %v", what, err)
		}
		var missed []string
		for line := range strings.Lines(said.String()) {
			if strings.Contains(line, "MISSED") {
				missed = append(missed, line)
			}
		}
		if len(missed) != 1 || !strings.HasPrefix(missed[0], what) {
			t.Errorf("%s: missed are %q", what, missed)
		}
	}
}

func TestJobsWanted(t *testing.T) {
	for text, want := range map[string]int{
		"": defaultJobs, "2000": 2000, "1000": 0, "2500": 0, "x": 0,
	} {
		if got, err := jobsWanted(text); got != want || (err == nil) != (want > 0) {
			t.Errorf("SOAK_JOBS=%q: %d, %v, want %d", text, got, err, want)
		}
	}
}

func TestFilesAreSummedUp(t *testing.T) {
	dir := t.TempDir()
	for name, size := range map[string]int{"journal/a": 3, "journal/b": 4, "facts.db": 5} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := measureFiles(dir)
	if diff := cmp.Diff(map[string]int64{"journal": 7, "facts.db": 5}, got); err != nil || diff != "" {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
}
