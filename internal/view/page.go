package view

import (
	"fmt"
	"net/http"
	"slices"
)

// PageQuery asks for a page of a list.
type PageQuery struct {
	After string // ID of the row before the page; empty: from the beginning
	Limit int    // at least 1
}

// Page is the part of a list that is asked for, whose rows have an ID each and an order that
// stays the same. If no row has the ID that the page is to follow, the error is a *Problem with
// status 404: to begin elsewhere would leave rows out without a sign of it.
func Page[T any, ID ~string](rows []T, q PageQuery, id func(T) ID) ([]T, error) {
	if q.After != "" {
		at := slices.IndexFunc(rows, func(row T) bool { return string(id(row)) == q.After })
		if at < 0 {
			return nil, &Problem{
				Status: http.StatusNotFound, Field: "after",
				Detail: fmt.Sprintf("no row of the list has the ID %q now", q.After),
				Remedy: "it may have left the list: begin anew without after",
			}
		}
		rows = rows[at+1:]
	}
	return rows[:min(q.Limit, len(rows))], nil
}
