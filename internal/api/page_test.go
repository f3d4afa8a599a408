package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// crowd has lists of so many rows, whose IDs fall.
type crowd struct {
	spy

	rows int // set before use
}

// list makes a row of each ID.
func list[T any](c *crowd, row func(id string) T) []T {
	all := make([]T, c.rows)
	for i := range all {
		all[i] = row(fmt.Sprintf("id%05d", c.rows-i))
	}
	return all
}

func (c *crowd) Sites(context.Context) ([]view.SiteRow, error) {
	return list(c, func(id string) view.SiteRow { return view.SiteRow{ID: grid.SiteID(id)} }), nil
}

func (c *crowd) Members(context.Context) (view.Members, error) {
	return view.Members{Domain: "home", Sites: list(c, func(id string) view.MemberRow {
		return view.MemberRow{Site: grid.SiteID(id)}
	})}, nil
}

func (c *crowd) Fleet(_ context.Context, q view.PageQuery) ([]view.FleetRow, error) {
	rows := list(c, func(id string) view.FleetRow { return view.FleetRow{Site: grid.SiteID(id)} })
	return view.Page(rows, q, func(row view.FleetRow) grid.SiteID { return row.Site })
}

func (c *crowd) Invites(context.Context) ([]view.InviteRow, error) {
	return list(c, func(id string) view.InviteRow { return view.InviteRow{ID: id} }), nil
}

func (c *crowd) Reservations(context.Context) ([]view.Reservation, error) {
	return list(c, func(id string) view.Reservation {
		return view.Reservation{ID: grid.JobID(id)}
	}), nil
}

func (c *crowd) Rounds(context.Context, grid.JobID) ([]view.OfferTable, error) {
	tables := make([]view.OfferTable, c.rows)
	for i := range tables {
		tables[i].Round = uint32(3 * (i + 1))
	}
	return tables, nil
}

// TestRoundsComePageByPage names the page's first row by the round before it.
func TestRoundsComePageByPage(t *testing.T) {
	t.Parallel()
	socket, _ := serve(t, &crowd{rows: 5}, nil)
	for query, want := range map[string]string{
		"": "[3 6 9 12 15]", "?limit=2": "[3 6]", "?limit=2&after=6": "[9 12]", "?after=15": "[]",
	} {
		answer, body := request{
			method: "GET", path: "/jobs/" + sampleID + "/rounds" + query,
		}.send(t, socket)
		var tables []view.OfferTable
		if err := json.Unmarshal([]byte(body), &tables); err != nil {
			t.Fatalf("GET rounds%s = %d %s: %v", query, answer.StatusCode, body, err)
		}
		rounds := make([]uint32, 0, len(tables))
		for _, table := range tables {
			rounds = append(rounds, table.Round)
		}
		if got := fmt.Sprint(rounds); got != want {
			t.Errorf("GET rounds%s gives %s, want %s", query, got, want)
		}
	}
}

// pagedLists are the lists that come a page at a time by after.
var pagedLists = []string{"/sites", "/members", "/fleet", "/invites", "/reservations"}

// pageOf asks for a page and gives the IDs of its rows.
func pageOf(t *testing.T, socket, path string) []string {
	t.Helper()
	answer, body := request{method: "GET", path: path}.send(t, socket)
	var rows []struct{ ID, Site string }
	var members struct{ Sites json.RawMessage }
	text := []byte(body)
	if body[0] == '{' && json.Unmarshal(text, &members) == nil {
		text = members.Sites
	}
	if err := json.Unmarshal(text, &rows); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("GET %s = %d %.200s %v", path, answer.StatusCode, body, err)
	}
	ids := make([]string, 0, len(rows))
	for _, row := range rows {
		ids = append(ids, row.ID+row.Site)
	}
	return ids
}

// TestListsComePageByPage walks each list with limits of all kinds: the pages, put together, are
// the list in its order.
func TestListsComePageByPage(t *testing.T) {
	t.Parallel()
	agent := &crowd{rows: 12}
	socket, _ := serve(t, agent, nil)
	want := list(agent, func(id string) string { return id })
	rapid.Check(t, func(draw *rapid.T) {
		path := rapid.SampledFrom(pagedLists).Draw(draw, "path")
		limit := rapid.IntRange(1, agent.rows+1).Draw(draw, "limit")
		var all []string
		for after := ""; ; after = all[len(all)-1] {
			page := pageOf(t, socket, fmt.Sprintf("%s?limit=%d&after=%s", path, limit, after))
			all = append(all, page...)
			if len(page) < limit {
				break
			}
		}
		if diff := cmp.Diff(want, all); diff != "" {
			draw.Errorf("%s in pages of %d (-list +pages):\n%s", path, limit, diff)
		}
	})
}

// TestBoundsOfPages asks for pages of no size, of a negative one and of one too large, and for one
// that follows a row that the list does not have.
func TestBoundsOfPages(t *testing.T) {
	t.Parallel()
	agent := &crowd{rows: 10_002}
	socket, _ := serve(t, agent, nil)
	all := list(agent, func(id string) string { return id })
	for _, path := range pagedLists {
		for query, want := range map[string][]string{
			"":                           all[:1000],
			"?after=":                    all[:1000],
			"?limit=0":                   all[:1],
			"?limit=-1":                  all[:1],
			"?limit=10000":               all[:10_000],
			"?limit=10001":               all[:10_000],
			"?limit=2&after=" + all[2]:   all[3:5],
			"?after=" + all[len(all)-1]:  {},
			"?limit=10001&after=id00003": {"id00002", "id00001"},
		} {
			if got := pageOf(t, socket, path+query); !slices.Equal(got, want) {
				t.Errorf("%s%s gives %d rows, want %d", path, query, len(got), len(want))
			}
		}
		answer, body := request{method: "GET", path: path + "?after=foreign"}.send(t, socket)
		want := `{"type":"about:blank","title":"Not Found","status":404,` +
			`"detail":"no row of the list has the ID \"foreign\" now","field":"after",` +
			`"remedy":"it may have left the list: begin anew without after"}` + "\n"
		if answer.StatusCode != http.StatusNotFound || body != want {
			t.Errorf("%s after a foreign ID = %d %s, want 404 %s",
				path, answer.StatusCode, body, want)
		}
	}
}
