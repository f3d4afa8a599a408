package play

import (
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/scenario"
)

// bury writes a story into a file that TestGraveyard could play.
func bury(t *testing.T, name string, s scenario.Scenario) string {
	t.Helper()
	dir := filepath.Join(os.TempDir(), "mrsmesh-graveyard")
	path := filepath.Join(dir, fmt.Sprintf("%s-%d.txt", name, s.Run.Seed))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(s.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// played holds how the story of a seed went.
type played struct {
	scenario.Outcome

	story    scenario.Scenario
	troubles map[string]int
	err      error
}

// playAll plays the stories of a family, as many at a time as there are processors, and gives
// them back in the order of their seeds.
func playAll(name string, first, n uint64) iter.Seq[played] {
	turns := make(chan chan played, runtime.GOMAXPROCS(0)-1)
	stop := make(chan struct{})
	go func() {
		defer close(turns)
		for seed := first; seed < first+n; seed++ {
			turn := make(chan played, 1)
			select {
			case turns <- turn:
			case <-stop:
				return
			}
			go func() {
				p := played{story: tale(name, seed)}
				p.Outcome, p.troubles, p.err = judged(p.story)
				turn <- p
			}()
		}
	}()
	return func(yield func(played) bool) {
		defer close(stop)
		for turn := range turns {
			if !yield(<-turn) {
				return
			}
		}
	}
}

// census counts what stories were about and what was wrong with them.
type census struct {
	stories, jobs, tasks, messages, flawed int
	ends, troubles, flaws                  map[string]int
}

func newCensus() *census {
	return &census{
		ends: make(map[string]int), troubles: make(map[string]int), flaws: make(map[string]int),
	}
}

func (c *census) add(p played) {
	c.stories++
	c.jobs += len(p.Jobs)
	for _, j := range p.Jobs {
		c.tasks += j.Count
	}
	for _, end := range []string{"done", "failed", "refused", "cancelled"} {
		c.ends[end] += p.Total(end)
	}
	c.messages += p.Messages
	for word, n := range p.troubles {
		c.troubles[word] += n
	}
	if p.err == nil {
		return
	}
	c.flawed++
	for _, flaw := range p.Flaws {
		kind, _, _ := strings.Cut(flaw, ":")
		c.flaws[kind]++
	}
	if len(p.Flaws) == 0 {
		c.flaws["error"]++
	}
}

// String tells the figures in a few lines.
func (c *census) String() string {
	troubles := 0
	for _, n := range c.troubles {
		troubles += n
	}
	if len(c.flaws) == 0 {
		c.flaws["none"] = 0
	}
	return fmt.Sprintf("%d stories, %d jobs, %d tasks, %d messages, %d stories with flaws\n",
		c.stories, c.jobs, c.tasks, c.messages, c.flawed) +
		wrap("tasks: ", c.ends) + wrap("flaws: ", c.flaws) +
		wrap(fmt.Sprintf("%d troubles: ", troubles), c.troubles)
}

// Whatever trouble jobs of whatever family meet: none is lost, doubled, stuck, ended
// without cause, silently late or half done, and nothing is left of them. More of it, and
// what there was of which trouble, where it met a site that was up:
//
//	go test ./internal/play -run TestFamilies -family array -seeds 5000 -first 0 -v
func TestFamilies(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // a world is small and short-lived
	names := slices.Sorted(maps.Keys(families()))
	if *family != "" && !slices.Contains(names, *family) {
		t.Fatalf("-family %q: want one of %s", *family, strings.Join(names, " "))
	}
	for _, name := range names {
		if *family != "" && *family != name {
			continue
		}
		t.Run(name, func(t *testing.T) {
			sum := newCensus()
			for p := range playAll(name, *first, uint64(*seeds)) {
				if sum.add(p); p.err != nil {
					t.Errorf("seed %d: %v %v", p.story.Run.Seed, p.err, p.Flaws)
					if sum.flawed <= mostShrunk {
						shrinkAndBury(t, name, p.story)
					}
				}
			}
			t.Log(sum)
		})
	}
}

// mostShrunk bounds how many stories that fail are played again and again.
const mostShrunk = 3

func shrinkAndBury(t *testing.T, name string, s scenario.Scenario) {
	t.Helper()
	less := shrunk(s, flawed)
	o, _, err := judged(less)
	t.Errorf("seed %d: %v %s\nput %s into testdata/graveyard when it holds:\n%s",
		s.Run.Seed, err, strings.Join(o.Flaws, "\n"), bury(t, name, less), less)
}

// Stories that are played together go as they do alone, and come in the order of their seeds.
func TestStoriesPlayedTogetherGoAsAlone(t *testing.T) {
	seed := uint64(3)
	for p := range playAll("plain", seed, 6) {
		alone, _, err := judged(tale("plain", seed))
		if err != nil || p.err != nil || p.story.Run.Seed != seed || p.Hash != alone.Hash {
			t.Errorf("seed %d has hash %x, %v; want seed %d, %x, %v",
				p.story.Run.Seed, p.Hash, p.err, seed, alone.Hash, err)
		}
		seed++
	}
	if seed != 9 {
		t.Errorf("played up to seed %d, want 9", seed)
	}
}

// A trouble counts once, when it begins, and not where the site is down.
func TestOnlyTroublesThatMeetASiteCount(t *testing.T) {
	s, err := scenario.Parse(`sites n=3 cores=2 gflops=8 mem=4GiB domain=a
net latency=1ms
crash site=s0 at=1s for=10s
suspend site=s0 at=2s for=1s
restore site=s1 at=3s for=2s
backup site=s2 at=3s
restore site=s2 at=4s for=2s
deaf site=s0 at=20s for=2s
run for=1m seed=1
expect flaws=0
`)
	if err != nil {
		t.Fatal(err)
	}
	_, got, err := judged(s)
	want := map[string]int{"crash": 2, "backup": 1, "restore": 1, "deaf": 1}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
