package agent_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

// TestOnlyTheSitesOfAPageAreAsked looks at a fleet of two, a site at a time.
func TestOnlyTheSitesOfAPageAreAsked(t *testing.T) {
	t.Parallel()
	here, there := pair(t)
	refused := func() int64 {
		s, err := there.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s.Counters["steering_denied"]
	}
	q := view.PageQuery{Limit: 1}
	rows, err := here.Fleet(t.Context(), q)
	if err != nil || len(rows) != 1 || !rows[0].Self || rows[0].Status == nil || refused() != 0 {
		t.Fatalf("the first page is %+v, %v; the other site refused %d times", rows, err, refused())
	}
	q.After = string(rows[0].Site)
	rows, err = here.Fleet(t.Context(), q)
	if err != nil || len(rows) != 1 || rows[0].Site != there.Self() || refused() != 1 ||
		!strings.Contains(rows[0].Trouble, "its owner does not allow it") {
		t.Fatalf("the second page is %+v, %v; that site refused %d times", rows, err, refused())
	}
	q.After = string(there.Self())
	if rows, err = here.Fleet(t.Context(), q); err != nil || len(rows) != 0 || refused() != 1 {
		t.Errorf("behind the last site come %+v, %v", rows, err)
	}
	q.After = "12D3KooWforeign"
	if _, err = here.Fleet(t.Context(), q); !errors.Is(err, view.ErrNotFound) {
		t.Errorf("behind a foreign site: %v", err)
	}
}
