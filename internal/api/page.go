package api

import "github.com/mrsmesh/mrsmesh/internal/view"

const (
	defaultPage = 1_000
	maxPage     = 10_000
)

// pageLimit gives the rows that a request wants at most, within what one answer may have.
func pageLimit(wanted *PageLimit) int {
	if wanted == nil {
		return defaultPage
	}
	return min(max(*wanted, 1), maxPage)
}

// pageQuery reads which page of a list a request wants.
func pageQuery(limit *PageLimit, after *PageAfter) view.PageQuery {
	q := view.PageQuery{Limit: pageLimit(limit)}
	given(&q.After, after)
	return q
}
