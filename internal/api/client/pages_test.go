package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/api/client"
	"github.com/mrsmesh/mrsmesh/internal/view"
)

// paged are the lists that come a page at a time, each read whole, as the IDs of its rows.
var paged = map[string]func(ctx context.Context, c *client.Client) ([]string, error){
	"/sites": func(ctx context.Context, c *client.Client) ([]string, error) {
		rows, err := c.Sites(ctx)
		return idsOf(rows, func(r view.SiteRow) string { return string(r.ID) }), err
	},
	"/members": func(ctx context.Context, c *client.Client) ([]string, error) {
		all, err := c.Members(ctx)
		return idsOf(all.Sites, func(r view.MemberRow) string { return string(r.Site) }), err
	},
	"/fleet": func(ctx context.Context, c *client.Client) ([]string, error) {
		rows, err := c.Fleet(ctx)
		return idsOf(rows, func(r view.FleetRow) string { return string(r.Site) }), err
	},
	"/invites": func(ctx context.Context, c *client.Client) ([]string, error) {
		rows, err := c.Invites(ctx)
		return idsOf(rows, func(r view.InviteRow) string { return r.ID }), err
	},
	"/reservations": func(ctx context.Context, c *client.Client) ([]string, error) {
		rows, err := c.Reservations(ctx)
		return idsOf(rows, func(r view.Reservation) string { return string(r.ID) }), err
	},
}

func idsOf[T any](rows []T, id func(T) string) []string {
	var ids []string
	for _, row := range rows {
		ids = append(ids, id(row))
	}
	return ids
}

// numbers are IDs from one number up to another, without it.
func numbers(from, to int) []string {
	var ids []string
	for i := from; i < to; i++ {
		ids = append(ids, fmt.Sprint(i))
	}
	return ids
}

// writeRows answers with rows of these IDs, under each name that an ID has somewhere.
func writeRows(w http.ResponseWriter, r *http.Request, ids []string) {
	rows := make([]string, len(ids))
	for i, id := range ids {
		rows[i] = fmt.Sprintf(`{"id":%q,"site":%q}`, id, id)
	}
	text := "[" + strings.Join(rows, ",") + "]"
	if strings.HasSuffix(r.URL.Path, "/members") {
		text = `{"domain":"d","sites":` + text + "}"
	}
	_, _ = io.WriteString(w, text)
}

// TestListsComeWhole reads lists of several sizes: each is asked for page by page.
func TestListsComeWhole(t *testing.T) {
	t.Parallel()
	for path, read := range paged {
		for have, asked := range map[int][]string{
			0:    {"limit=1000"},
			999:  {"limit=1000"},
			1000: {"limit=1000", "after=999&limit=1000"},
			2500: {"limit=1000", "after=999&limit=1000", "after=1999&limit=1000"},
		} {
			agent, address := play(t, func(w http.ResponseWriter, r *http.Request) {
				from := 0
				if after := r.FormValue("after"); after != "" {
					_, _ = fmt.Sscan(after, &from)
					from++
				}
				writeRows(w, r, numbers(from, min(from+1000, have)))
			})
			ids, err := read(t.Context(), connect(t, address, token))
			if err != nil || !slices.Equal(ids, numbers(0, have)) {
				t.Errorf("%s of %d rows gives %d, %v", path, have, len(ids), err)
			}
			for i := range asked {
				asked[i] = "GET " + path + "?" + asked[i]
			}
			if diff := cmp.Diff(asked, agent.take()); diff != "" {
				t.Errorf("%s of %d rows: requests (-want +got):\n%s", path, have, diff)
			}
		}
	}
}

// TestAListThatChangesIsReadAnew lets the last row of a page be gone before the next page is asked
// for, several times.
func TestAListThatChangesIsReadAnew(t *testing.T) {
	t.Parallel()
	for path, read := range paged {
		for gone, want := range map[int]int{0: 2, 1: 4, 2: 6, 3: 6} {
			left := gone
			agent, address := play(t, func(w http.ResponseWriter, r *http.Request) {
				after := r.FormValue("after")
				switch {
				case after == "":
					writeRows(w, r, numbers(0, 1000))
				case left > 0:
					left--
					w.Header().Set("Content-Type", "application/problem+json")
					always(http.StatusNotFound, `{"status":404,"field":"after"}`)(w, r)
				default:
					writeRows(w, r, numbers(1000, 1003))
				}
			})
			ids, err := read(t.Context(), connect(t, address, token))
			switch {
			case gone < 3 && (err != nil || !slices.Equal(ids, numbers(0, 1003))):
				t.Errorf("%s that changes %d times gives %d rows, %v", path, gone, len(ids), err)
			case gone == 3 && (!errors.Is(err, view.ErrNotFound) || len(ids) != 0):
				t.Errorf("%s that always changes gives %d rows, %v", path, len(ids), err)
			}
			if asked := agent.take(); len(asked) != want {
				t.Errorf("%s that changes %d times: asked %v", path, gone, asked)
			}
		}
		agent, address := play(t, always(http.StatusNotFound, ""))
		_, err := read(t.Context(), connect(t, address, token))
		if asked := agent.take(); !errors.Is(err, view.ErrNotFound) || len(asked) != 1 {
			t.Errorf("%s of an agent that has it not: asked %v, %v", path, asked, err)
		}
	}
}

// TestAgentsWithoutPages give all rows with each answer.
func TestAgentsWithoutPages(t *testing.T) {
	t.Parallel()
	for path, read := range paged {
		for have, want := range map[int]int{3: 1, 1000: 2, 1001: 1, 2000: 1} {
			agent, address := play(t, func(w http.ResponseWriter, r *http.Request) {
				writeRows(w, r, numbers(0, have))
			})
			ids, err := read(t.Context(), connect(t, address, token))
			if asked := agent.take(); err != nil || !slices.Equal(ids, numbers(0, have)) ||
				len(asked) != want {
				t.Errorf("%s of %d rows gives %d, %v; asked %v", path, have, len(ids), err, asked)
			}
		}
	}
}

// TestAListWithoutAnEnd is given up.
func TestAListWithoutAnEnd(t *testing.T) {
	t.Parallel()
	next := 0
	_, address := play(t, func(w http.ResponseWriter, r *http.Request) {
		writeRows(w, r, numbers(next, next+1000))
		next += 1000
	})
	rows, err := connect(t, address, token).Invites(t.Context())
	if err == nil || !strings.Contains(err.Error(), "has no end") || rows != nil {
		t.Errorf("a list without an end gives %d rows, %v", len(rows), err)
	}
}
