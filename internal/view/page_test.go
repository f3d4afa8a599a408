package view_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func siteOf(row view.MemberRow) grid.SiteID { return row.Site }

// TestPagesAreTheWholeList walks lists whose order is not that of their IDs, page by page: put
// together, the pages are the list, and only the last is shorter than the limit.
func TestPagesAreTheWholeList(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfDistinct(rapid.StringMatching(`[a-z]{1,4}`), rapid.ID).Draw(t, "ids")
		limit := rapid.IntRange(1, len(ids)+2).Draw(t, "limit")
		var rows, all []view.MemberRow
		for _, id := range ids {
			rows = append(rows, view.MemberRow{Site: grid.SiteID(id)})
		}
		for q := (view.PageQuery{Limit: limit}); ; {
			page, err := view.Page(rows, q, siteOf)
			if want := min(limit, len(rows)-len(all)); err != nil || len(page) != want {
				t.Fatalf("Page(%+v) gives %d rows, %v, want %d", q, len(page), err, want)
			}
			all = append(all, page...)
			if len(page) < limit {
				break
			}
			q.After = string(page[limit-1].Site)
		}
		if diff := cmp.Diff(rows, all); diff != "" {
			t.Errorf("pages of %d (-list +pages):\n%s", limit, diff)
		}
	})
}

// TestNoPageFollowsARowThatIsGone refuses it by name, with what to do.
func TestNoPageFollowsARowThatIsGone(t *testing.T) {
	t.Parallel()
	rows := []view.MemberRow{{Site: "a"}, {Site: "b"}, {Site: "c"}}
	q := view.PageQuery{After: "b", Limit: 5}
	if page, err := view.Page(rows, q, siteOf); err != nil || len(page) != 1 {
		t.Fatalf("after b come %+v, %v", page, err)
	}
	page, err := view.Page(slices.Delete(rows, 1, 2), q, siteOf)
	problem, is := errors.AsType[*view.Problem](err)
	want := "{Type: Title: Status:404 Detail:no row of the list has the ID \"b\" now Field:after " +
		"Remedy:it may have left the list: begin anew without after}"
	if len(page) != 0 || !is || fmt.Sprintf("%+v", *problem) != want ||
		!errors.Is(err, view.ErrNotFound) {
		t.Errorf("after b, which is gone, come %+v, %+v, want %s", page, err, want)
	}
}
