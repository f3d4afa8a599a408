package agent_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mrsmesh/mrsmesh/internal/agent"
	"github.com/mrsmesh/mrsmesh/internal/play"
	"github.com/mrsmesh/mrsmesh/internal/scenario"
)

// What the agents of a story wrote down is shown as the simulator shows the story: who ran what,
// who was dead and when, what was decided and what was said. Of an agent whose journals are not
// given others tell.
func TestJournalsAreShown(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../testdata/scenarios/site-killed.txt")
	if err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var o scenario.Outcome
	synctest.Test(t, func(t *testing.T) { o = playVirtual(t, dir, s) })
	var dirs []string
	for _, site := range s.Sites {
		dirs = append(dirs, filepath.Join(dir, site.Name))
	}
	record, notes, err := play.ReadJournals(dirs, agent.NewMachine)
	if err != nil || len(notes) > 0 {
		t.Fatalf("%v, notes %q", err, notes)
	}
	shown := record.Text(true)
	for _, event := range []string{"started", "exited"} {
		if n := tasksOf(shown, event); n != o.Sites[event] {
			t.Errorf("%d tasks are shown as %s, and there were %d", n, event, o.Sites[event])
		}
	}
	for _, e := range s.Events {
		if e.Kind == scenario.Crash && !strings.Contains(lineOf(shown, e.Site), "x") {
			t.Errorf("it is not shown that %s was dead:\n%s", e.Site, shown)
		}
	}
	for _, want := range []string{" Award ", " Bid ", " Exited ", " job_ended ", "attempt_lost"} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q is not shown", want)
		}
	}
	if t.Failed() {
		t.Log(shown)
	}
	if _, _, err := play.ReadJournals([]string{dirs[0], dirs[0]}, agent.NewMachine); err == nil ||
		!strings.Contains(err.Error(), "it is of s0, of which another directory was given") {
		t.Errorf("a directory twice: %v", err)
	}
}

// lineOf is the line of time of a site.
func lineOf(shown, site string) string {
	return regexp.MustCompile(`(?m)^  ` + site + ` +\S+$`).FindString(shown)
}

// tasksOf counts the tasks of which a decision is shown.
func tasksOf(shown, event string) int {
	n := 0
	decisions := regexp.MustCompile(`(?m)^ +[\d.]+ (?:\+[\d.]+)? +\S+ +` + event + ` +\S+ ([\d,-]+) #`)
	for _, m := range decisions.FindAllStringSubmatch(shown, -1) {
		for part := range strings.SplitSeq(m[1], ",") {
			from, to, isRange := strings.Cut(part, "-")
			first, _ := strconv.Atoi(from) // digits, by the pattern
			last := first
			if isRange {
				last, _ = strconv.Atoi(to)
			}
			n += last - first + 1
		}
	}
	return n
}
