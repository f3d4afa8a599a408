package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

const (
	pageRows  = 1_000 // of a list, asked for at a time
	mostPages = 100   // of a list; an agent keeps fewer rows of each kind
	mostTries = 3     // of reading a list from its beginning to its end
)

// listed reads a whole list, page by page.
func listed[T any, ID ~string](
	ctx context.Context, c *Client, path string, id func(T) ID,
) ([]T, error) {
	return everyPage(func(query url.Values) ([]T, error) {
		return ask[[]T](ctx, c, call{method: http.MethodGet, path: path, query: query}, nil)
	}, id)
}

// everyPage reads a whole list by asking for its pages. It begins anew when the last row of a
// page has left the list before the next page was asked for.
func everyPage[T any, ID ~string](
	page func(query url.Values) ([]T, error), id func(T) ID,
) ([]T, error) {
	for try := 1; ; try++ {
		all, err := pageByPage(page, id)
		gone, is := errors.AsType[*view.Problem](err)
		if !is || gone.Status != http.StatusNotFound || gone.Field != "after" || try == mostTries {
			return all, err
		}
	}
}

func pageByPage[T any, ID ~string](
	page func(query url.Values) ([]T, error), id func(T) ID,
) ([]T, error) {
	all, query := []T{}, url.Values{"limit": {strconv.Itoa(pageRows)}}
	for range mostPages {
		rows, err := page(query)
		if err != nil {
			return nil, err
		}
		var last string
		if len(rows) > 0 {
			last = string(id(rows[len(rows)-1]))
		}
		if last != "" && last == query.Get("after") {
			return all, nil // the same again: an agent of before, which knows no pages
		}
		all = append(all, rows...)
		if len(rows) != pageRows {
			return all, nil
		}
		query.Set("after", last)
	}
	return nil, fmt.Errorf("read answers of agent: the list has no end: more than %d rows",
		len(all))
}
