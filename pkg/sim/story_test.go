package sim

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

var updateStories = flag.Bool("update", false, "write testdata/stories.txt anew")

// story is a trouble, and its effect on the jobs of a small mesh: which attempts run where and
// when, as testdata/stories.txt has it for people to read. The network is even, so that nothing
// in it hangs on how often anything is drawn.
type story struct {
	name   string
	change func(*Config) // nil: nothing
	happen func(w *World, victim grid.SiteID)
}

// When the job of a story is submitted, when its trouble begins, and when the story is over.
const (
	storyBegins  = 5 * time.Second
	storyTrouble = 10 * time.Second
	storyEnds    = 90 * time.Second
)

func TestStories(t *testing.T) {
	var text strings.Builder
	for _, s := range stories() {
		fmt.Fprintf(&text, "== %s\n%s\n", s.name, s.write(t))
	}
	file := filepath.Join("testdata", "stories.txt")
	if *updateStories {
		if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(before), "\n"),
		strings.Split(text.String(), "\n")); diff != "" {
		t.Errorf("the attempts do something else than before (-before +now);"+
			" if that is right: go test ./pkg/sim -run TestStories -update\n%s", diff)
	}
}

// write plays a story: s0 submits a job of three tasks that only the others can run, one each,
// and when they have run for a while the trouble begins at the site of the second.
func (s story) write(t *testing.T) string {
	t.Helper()
	var lines []string
	cfg := Config{
		Seed: 1, Sites: fleet(5), CheckFacts: true,
		Network: Network{Latency: 2 * time.Millisecond, Detect: 5 * time.Millisecond},
		Watch: func(s Sight) {
			line := fmt.Sprintf("%11s %s %s", s.At, s.Site, lineOf(s))
			stops := strings.Replace(line, " runs ", " stops ", 1)
			switch last := len(lines) - 1; {
			case lineOf(s) == "", s.At == 0: // all begin alike
			case s.Kind == SightRuns && last >= 0 && lines[last] == stops: // its lease was prolonged
				lines = lines[:last]
			default:
				lines = append(lines, line)
			}
		},
	}
	if s.change != nil {
		s.change(&cfg)
	}
	w := New(cfg)
	_ = w.Run(storyBegins)
	job := elsewhere(20 * time.Second)
	job.Count = 3
	id := mustSubmit(t, w, "s0", job)
	_ = w.Run(storyTrouble)
	state, _ := w.Broker("s0").Job(id)
	s.happen(w, state.Tasks[1].Site)
	if err := w.Run(storyEnds); err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	return strings.Join(append(lines, endOf(w)), "\n")
}

// lineOf tells of attempts and agents; messages and reports are left out.
func lineOf(s Sight) string {
	attempt := fmt.Sprintf("task %d token %d", s.Attempt.Task.Index, s.Attempt.Token)
	switch s.Kind {
	case SightRuns:
		return "runs " + attempt
	case SightFrozen:
		return "stops " + attempt
	case SightGone:
		return "ends " + attempt
	case SightUp:
		return "is up"
	case SightDown:
		return "is down"
	default:
		return ""
	}
}

// endOf tells how the submitter sees its jobs in the end, and what its clock shows.
func endOf(w *World) string {
	var text strings.Builder
	for n, submitted := range w.Trace().Submitted {
		state, known := w.Job("s0", submitted.Job)
		if !known {
			fmt.Fprintf(&text, "in the end job %d is not known\n", n)
		}
		for _, task := range state.Tasks {
			fmt.Fprintf(&text, "in the end task %d of job %d is %s at %s by token %d\n",
				task.ID.Index, n, task.Phase, task.Site, task.Token)
		}
	}
	fmt.Fprintf(&text, "in the end the clock of s0 shows %s, and %d attempts overlap\n",
		w.Clock("s0").Sub(Epoch()), w.Trace().overlaps())
	return text.String()
}
