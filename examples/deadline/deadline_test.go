package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/localmesh"
	"github.com/mrsmesh/mrsmesh/internal/view"
)

// told is a story that ended well.
func told(said *bytes.Buffer) *story {
	due := time.Unix(1_000_000, 0)
	s := &story{out: localmesh.NewScreen(said, false)}
	for i := range wanted {
		r := row{id: "j", due: due, answered: time.Second, by: "ben", ended: due.Add(-time.Second)}
		if i >= possible {
			r.refused, r.earliest, r.ended = true, view.At(due.Add(2*time.Second)), time.Time{}
		}
		s.rows = append(s.rows, r)
	}
	s.start = started{
		reservation: view.Reservation{
			ID: "r", Start: view.At(due), Places: []view.ReservedPlace{{SiteName: "cleo"}},
		},
		at: due.Add(20 * time.Millisecond), before: 3,
	}
	return s
}

func TestVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*story)
		ok    bool
	}{
		"all well":               {func(*story) {}, true},
		"one late":               {func(s *story) { s.rows[0].ended = s.rows[0].due.Add(1) }, false},
		"one refused too many":   {func(s *story) { s.rows[0].refused = true }, false},
		"refused late":           {func(s *story) { s.rows[9].answered = atOnce + 1 }, false},
		"no time named":          {func(s *story) { s.rows[9].earliest = view.Time{} }, false},
		"a time that would do":   {func(s *story) { s.rows[9].earliest = view.At(s.rows[9].due) }, false},
		"started late":           {func(s *story) { s.start.at = s.start.at.Add(startSlack) }, false},
		"started early":          {func(s *story) { s.start.at = s.start.at.Add(-startSlack) }, false},
		"nothing ran there else": {func(s *story) { s.start.before = 0 }, false},
	} {
		var said bytes.Buffer
		s := told(&said)
		c.spoil(s)
		s.showDeadlines()
		s.showReservation()
		err := s.verdict()
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		if got := strings.HasSuffix(
			said.String(), "\ndeadline: 7 kept, 4 refused immediately, 0 late\n",
		); got != c.ok {
			t.Errorf("%s: said\n%s", name, said.String())
		}
	}
}

func TestThePlanOfTheStory(t *testing.T) {
	if 2*estimate >= deadline || 3*estimate <= deadline {
		t.Errorf("two jobs of %s and no third one must fit before %s", estimate, deadline)
	}
	sites := gifts()[1:]
	for _, g := range sites {
		if g.Cores*1000 != need().MilliCPUs || g.GFLOPS*1000 != need().MFLOPS {
			t.Errorf("%+v has not exactly one place", g)
		}
	}
	if possible != 2*len(sites) {
		t.Errorf("%d sites run %d jobs in time, not %d", len(sites), 2*len(sites), possible)
	}
	if submitter := gifts()[0]; submitter.Memory<<20 >= need().MemoryBytes {
		t.Errorf("the submitter has capacity for jobs")
	}
}
