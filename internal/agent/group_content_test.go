package agent

import (
	"slices"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// A member that could not keep something, a moment without connection included, is asked again
// soon, and ever more seldom when that stays so.
func TestAMemberThatCouldNotKeepIsAskedAgain(t *testing.T) {
	const site, job, cid = grid.SiteID("site"), grid.JobID("job"), grid.CID("data")
	c := newContent()
	c.jobs[job] = map[grid.CID]bool{cid: true}
	start := time.Unix(0, 0)
	asked := []time.Duration{}
	for now := start; now.Sub(start) < time.Hour; now = now.Add(time.Second) {
		if len(c.lacking(site, job, now, nil)) > 0 {
			asked = append(asked, now.Sub(start))
			note(c.refused, site, cid, c.refused[site][cid].next(now))
		}
	}
	want := []time.Duration{
		0, 10 * time.Second, 30 * time.Second, 70 * time.Second, 150 * time.Second,
		310 * time.Second, 630 * time.Second, 1230 * time.Second, 1830 * time.Second,
		2430 * time.Second, 3030 * time.Second,
	}
	if !slices.Equal(asked, want) {
		t.Errorf("asked after %v, want %v", asked, want)
	}
}

// What a member could not keep is asked for alone the next time, after what it was never asked for,
// so that one file that is too large does not keep the others away.
func TestOneTooLargeFileDoesNotKeepOthersAway(t *testing.T) {
	const site, job = grid.SiteID("site"), grid.JobID("job")
	c := newContent()
	c.jobs[job] = map[grid.CID]bool{"a": true, "b": true, "large": true}
	now := time.Unix(0, 0)
	refuse := func(cids ...grid.CID) {
		for _, cid := range cids {
			note(c.refused, site, cid, c.refused[site][cid].next(now))
		}
	}
	lacks := func(want ...grid.CID) {
		t.Helper()
		if got := c.lacking(site, job, now, nil); !slices.Equal(got, want) {
			t.Errorf("after %s it lacks %v, want %v", now.Sub(time.Unix(0, 0)), got, want)
		}
	}
	lacks("a", "b", "large")
	refuse("a", "b", "large") // with one answer for all
	lacks()
	now = now.Add(keepWithin)
	c.jobs[job]["new"] = true
	lacks("new")
	note(c.kept, site, "new", true)
	lacks("a")
	note(c.kept, site, "a", true)
	lacks("b")
	note(c.kept, site, "b", true)
	lacks("large")
	refuse("large")
	lacks()
	now = now.Add(2 * keepWithin)
	lacks("large")
}
