package cache

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

func hour(int) time.Duration { return time.Hour }

func newCache(t testing.TB, size int) *Cache[int] {
	t.Helper()
	c, err := New[int](size, "")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func put(t testing.TB, c *Cache[int], now int, job grid.JobID, submitter grid.SiteID) {
	t.Helper()
	if err := c.Put(at(now), job, submitter, now, time.Hour); err != nil {
		t.Fatal(err)
	}
}

func jobs(c *Cache[int], now int) string {
	text := ""
	for _, e := range c.Entries(at(now)) {
		text += string(e.Job)
	}
	return text
}

func TestPlacedEntriesGoFirst(t *testing.T) {
	c := newCache(t, 3)
	put(t, c, 0, "a", "s1")
	put(t, c, 1, "b", "s2")
	put(t, c, 2, "c", "s3")
	if !c.SetPlaced(at(3), "c", hour) {
		t.Fatal("c is not cached")
	}
	put(t, c, 4, "d", "s4")
	if got := jobs(c, 4); got != "abd" {
		t.Errorf("entries = %s, want abd: the placed one goes before older ones that wait", got)
	}
	if _, ok := c.Get(at(5), "a"); !ok {
		t.Error("a is gone")
	}
	put(t, c, 6, "e", "s5")
	if got := jobs(c, 6); got != "dae" {
		t.Errorf("entries = %s, want dae: b was not used for longest", got)
	}
	want := Stats{Hits: 1, Evictions: 2}
	if got := c.Stats(); got != want {
		t.Errorf("stats = %+v, want %+v", got, want)
	}
}

func TestFloodEvictsTheFloodersOwn(t *testing.T) {
	c := newCache(t, 16) // a quota of 2
	for i, job := range []grid.JobID{"a", "b", "c"} {
		put(t, c, i, job, grid.SiteID(fmt.Sprintf("s%d", i)))
	}
	for i := range 100 {
		put(t, c, 10+i, grid.JobID(fmt.Sprintf("f%d", i)), "flooder")
	}
	if got := jobs(c, 200); got != "abcf98f99" {
		t.Errorf("entries = %s, want abcf98f99", got)
	}
	c.SetPlaced(at(201), "f99", hour)
	put(t, c, 202, "g", "flooder")
	if got := jobs(c, 203); got != "abcf98g" {
		t.Errorf("entries = %s, want abcf98g: of its own too the placed one goes first", got)
	}
}

func TestTheSitesOwnEntriesStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(2, 40).Draw(t, "size")
		c, err := New[int](size, "self")
		if err != nil {
			t.Fatal(err)
		}
		own := rapid.IntRange(1, size/2).Draw(t, "own jobs")
		for i := range own {
			if err := c.Put(start, grid.JobID(fmt.Sprint("own", i)), "self", i, time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		for i := range rapid.IntRange(0, 4*size).Draw(t, "jobs of others") {
			submitter := grid.SiteID(fmt.Sprint("s", rapid.IntRange(0, 20).Draw(t, "submitter")))
			if err := c.Put(start, grid.JobID(fmt.Sprint("job", i)), submitter, i, time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		for i := range own {
			if _, ok := c.Peek(start, grid.JobID(fmt.Sprint("own", i))); !ok {
				t.Fatalf("of %d own jobs in %d places job %d was evicted by others", own, size, i)
			}
		}
		if c.Len() > size {
			t.Fatalf("%d entries in %d places", c.Len(), size)
		}
	})
}

func TestTimeToLive(t *testing.T) {
	c := newCache(t, 8)
	for i, job := range []grid.JobID{"a", "b", "c"} {
		if err := c.Put(at(0), job, grid.SiteID("s"+job), i, time.Duration(i+1)*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := c.Get(start.Add(time.Second-1), "a"); !ok {
		t.Error("a is gone before its time")
	}
	if _, ok := c.Get(at(1), "a"); ok {
		t.Error("a is there at the instant it expires")
	}
	if got := c.Waiting(at(1)); !slices.Equal(got, []grid.JobID{"b", "c"}) {
		t.Errorf("waiting = %v", got)
	}
	if n := c.expire(at(2)); n != 1 || c.Len() != 1 {
		t.Errorf("Expire = %d, %d left, want 1 and 1", n, c.Len())
	}
	if c.SetPlaced(at(3), "c", hour) || c.Remove("c") {
		t.Error("c is still there")
	}
	if want := (Stats{Hits: 1, Misses: 1, Expirations: 3}); c.Stats() != want {
		t.Errorf("stats = %+v, want %+v", c.Stats(), want)
	}
}

func TestPutRefusals(t *testing.T) {
	c := newCache(t, 8)
	put(t, c, 0, "a", "owner")
	if err := c.Put(at(1), "a", "thief", 9, time.Hour); !errors.Is(err, errSubmitter) {
		t.Errorf("Put by somebody else: error = %v, want ErrSubmitter", err)
	}
	if e, _ := c.Peek(at(1), "a"); e.Value != 0 || e.Submitter != "owner" {
		t.Errorf("the entry changed: %+v", e)
	}
	if err := c.Put(at(1), "b", "owner", 9, 0); !errors.Is(err, errTTL) {
		t.Errorf("Put without time to live: error = %v, want ErrTTL", err)
	}
	if err := c.Put(at(4000), "a", "heir", 9, time.Hour); err != nil {
		t.Errorf("Put after the old entry's time: %v", err)
	}
	if _, ok := c.Peek(at(4000), "b"); ok {
		t.Error("Peek found what was never put")
	}
	if _, err := New[int](0, ""); err == nil {
		t.Error("New(0) gave no error")
	}
}

// A nanosecond is a time to live, and nothing of a submitter stays when its last entry goes.
func TestNothingStaysOfAnEntry(t *testing.T) {
	c := newCache(t, 8)
	for _, job := range []grid.JobID{"a", "b"} {
		if err := c.Put(at(0), job, "s", 1, 1); err != nil {
			t.Fatalf("a time to live of 1 ns: %v", err)
		}
	}
	c.Remove("a")
	if len(c.owners) != 1 {
		t.Errorf("%d submitters, want the one whose entry is left", len(c.owners))
	}
	if _, ok := c.Get(at(0).Add(1), "b"); ok || c.Len() != 0 || len(c.owners) != 0 {
		t.Errorf("%d entries and %d submitters are left", c.Len(), len(c.owners))
	}
}

func TestPutAgainMakesItWait(t *testing.T) {
	c := newCache(t, 8)
	put(t, c, 0, "a", "s")
	c.SetPlaced(at(1), "a", hour)
	put(t, c, 2, "a", "s")
	want := Entry[int]{Job: "a", Submitter: "s", Value: 2, Expires: at(2).Add(time.Hour)}
	if got, _ := c.Get(at(3), "a"); got != want {
		t.Errorf("entry = %+v, want %+v", got, want)
	}
}

// twin is the dumb cache: a list in the order of last use.
type twin struct {
	size int
	self grid.SiteID // may hold half, and is evicted by nobody else
	list []Entry[int]
}

func (w *twin) find(now time.Time, job grid.JobID) int {
	w.list = slices.DeleteFunc(w.list, func(e Entry[int]) bool {
		return e.Job == job && !now.Before(e.Expires)
	})
	return slices.IndexFunc(w.list, func(e Entry[int]) bool { return e.Job == job })
}

func (w *twin) put(now time.Time, e Entry[int]) bool {
	if i := w.find(now, e.Job); i >= 0 {
		if w.list[i].Submitter != e.Submitter {
			return false
		}
		w.list = slices.Delete(w.list, i, i+1)
	} else {
		w.dropPlaced(now)
	}
	own := 0
	for _, o := range w.list {
		if o.Submitter == e.Submitter {
			own++
		}
	}
	quota := max(w.size/8, 1)
	if e.Submitter == w.self {
		quota = max(w.size/2, 1)
	}
	isOther := func(o Entry[int]) bool { return o.Submitter != w.self }
	switch {
	case own >= quota:
		w.evict(func(o Entry[int]) bool { return o.Submitter == e.Submitter })
	case len(w.list) < w.size:
	case slices.ContainsFunc(w.list, isOther):
		w.evict(isOther)
	default:
		w.evict(func(Entry[int]) bool { return true })
	}
	w.list = append(w.list, e)
	return true
}

func (w *twin) dropPlaced(now time.Time) {
	for {
		i := slices.IndexFunc(w.list, func(e Entry[int]) bool { return e.Placed })
		if i < 0 || now.Before(w.list[i].Expires) {
			return
		}
		w.list = slices.Delete(w.list, i, i+1)
	}
}

func (w *twin) evict(candidate func(Entry[int]) bool) {
	i := slices.IndexFunc(w.list, func(e Entry[int]) bool { return e.Placed && candidate(e) })
	if i < 0 {
		i = slices.IndexFunc(w.list, candidate)
	}
	w.list = slices.Delete(w.list, i, i+1)
}

func (w *twin) entries(now time.Time) []Entry[int] {
	kept := []Entry[int]{}
	for _, placed := range []bool{true, false} {
		for _, e := range w.list {
			if e.Placed == placed && now.Before(e.Expires) {
				kept = append(kept, e)
			}
		}
	}
	return kept
}

func TestCacheAgainstItsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 20).Draw(t, "size")
		c, err := New[int](size, "x")
		if err != nil {
			t.Fatal(err)
		}
		w, now := &twin{size: size, self: "x"}, start
		for step := range rapid.IntRange(0, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "pause")) * time.Second)
			job := grid.JobID(rapid.StringMatching(`[a-h]`).Draw(t, "job"))
			i := w.find(now, job)
			switch rapid.IntRange(0, 4).Draw(t, "action") {
			case 0, 1:
				e := Entry[int]{
					Job: job, Submitter: grid.SiteID(rapid.StringMatching(`[x-z]`).Draw(t, "submitter")),
					Value: step,
				}
				ttl := time.Duration(rapid.IntRange(1, 30).Draw(t, "ttl")) * time.Second
				e.Expires = now.Add(ttl)
				if err := c.Put(now, job, e.Submitter, step, ttl); w.put(now, e) != (err == nil) {
					t.Fatalf("Put: %v", err)
				}
			case 2:
				e, ok := c.Get(now, job)
				if ok != (i >= 0) || ok && e != w.list[i] {
					t.Fatalf("Get(%s) = %+v, %v", job, e, ok)
				}
				if ok {
					w.list = append(slices.Delete(w.list, i, i+1), e)
				}
			case 3:
				keep := time.Duration(rapid.IntRange(0, 30).Draw(t, "keep")) * time.Second
				if c.SetPlaced(now, job, func(int) time.Duration { return keep }) != (i >= 0) {
					t.Fatalf("SetPlaced(%s): want %v", job, i >= 0)
				}
				if i >= 0 {
					e := w.list[i]
					e.Placed = true
					if until := now.Add(keep); until.Before(e.Expires) {
						e.Expires = until
					}
					w.list = append(slices.Delete(w.list, i, i+1), e)
				}
			case 4:
				if rapid.Bool().Draw(t, "remove") {
					c.Remove(job)
					w.list = slices.DeleteFunc(w.list, func(e Entry[int]) bool { return e.Job == job })
				} else {
					c.expire(now)
					w.list = slices.DeleteFunc(w.list, func(e Entry[int]) bool { return !now.Before(e.Expires) })
				}
			}
			if c.Len() > size || c.Len() != len(w.list) {
				t.Fatalf("%d entries, the twin has %d, room for %d", c.Len(), len(w.list), size)
			}
		}
		if diff := cmp.Diff(w.entries(now), c.Entries(now)); diff != "" {
			t.Errorf("-twin +cache:\n%s", diff)
		}
	})
}

func BenchmarkPutFlood(b *testing.B) {
	c := newCache(b, defaultSize)
	ids := make([]grid.JobID, 10_000)
	for i := range ids {
		ids[i] = grid.JobID(fmt.Sprintf("job%d", i))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		put(b, c, 0, ids[i%len(ids)], "flooder")
	}
}
