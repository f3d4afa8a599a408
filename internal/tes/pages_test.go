package tes_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mrsmesh/mrsmesh/internal/tes"
	"github.com/mrsmesh/mrsmesh/internal/view"
)

// A page ends early where its tasks are large; the next one goes on behind the last.
func TestLargePages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		defer d.end()
		large := []any{task{"path": "/x", "content": strings.Repeat("x", 3<<20)}}
		made := map[string]bool{}
		for range 3 {
			made[d.create(t, runs("true", "inputs", large))] = true
		}
		sizes, next := []int{}, ""
		for {
			var page tes.TesListTasksResponse
			_, text := d.ask(t, http.MethodGet, "/tasks?view=FULL&page_token="+next, nil)
			if err := json.Unmarshal(text, &page); err != nil {
				t.Fatal(err)
			}
			for _, one := range page.Tasks {
				delete(made, *one.Id)
			}
			sizes = append(sizes, len(page.Tasks))
			if page.NextPageToken == nil {
				break
			}
			next = *page.NextPageToken
		}
		if len(made) != 0 || !slices.Equal(sizes, []int{2, 1}) {
			t.Errorf("pages of %v tasks, %d are left out", sizes, len(made))
		}
	})
}

// Records take no more than they may: the oldest that have ended go, and where none has, no more
// tasks are taken.
func TestSpaceForRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 100 << 10
		d := newDesk(t, func(c *tes.Config) { c.Bytes = 3 * size })
		defer d.end()
		text := strings.Repeat("x", size)
		large := runs("true", "inputs", []any{task{"path": "/x", "content": text}})
		first := d.create(t, large)
		d.done(t)
		d.want(t, first, tes.COMPLETE)
		var open []string
		for range 3 { // the first one goes when there are three
			open = append(open, d.create(t, large))
		}
		status, _ := d.ask(t, http.MethodGet, "/tasks/"+first, nil)
		if status != http.StatusNotFound {
			t.Errorf("the oldest task: %d", status)
		}
		d.end() // it is counted again
		d.start(t)
		_, refusal := d.ask(t, http.MethodPost, "/tasks", large)
		if !strings.Contains(string(refusal), view.ErrBusy.Error()) {
			t.Errorf("one more: %s", refusal)
		}
		d.cancel(t, open[0])
		d.want(t, open[0], tes.CANCELED)
		d.want(t, d.create(t, large), tes.QUEUED)
	})
}

// A thousand tasks are listed, each once, while others are added and one of them comes to its end.
func TestAThousandTasksAreListedWhileOthersAreAdded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		defer d.end()
		seen, last := make(map[string]int), ""
		for range 1000 {
			last = d.create(t, runs("true"))
			seen[last] = 0
		}
		next := ""
		for {
			var page tes.TesListTasksResponse
			_, text := d.ask(t, http.MethodGet, "/tasks?page_size=128&page_token="+next, nil)
			if err := json.Unmarshal(text, &page); err != nil {
				t.Fatal(err)
			}
			for _, one := range page.Tasks {
				seen[*one.Id]++
			}
			for range 16 {
				d.create(t, runs("true"))
			}
			if next == "" {
				d.cancel(t, last)
			}
			if page.NextPageToken == nil {
				break
			}
			next = *page.NextPageToken
		}
		for id, times := range seen {
			if times != 1 {
				t.Errorf("task %s is listed %d times", id, times)
			}
		}
	})
}
