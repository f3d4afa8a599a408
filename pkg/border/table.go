package border

import (
	"cmp"
	"slices"
	"strings"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// row is an order under way, of either half.
type row interface {
	// id is its attempt, and its name where there may be several of one attempt.
	id() (grid.AttemptID, string)
}

func (e *errand) id() (grid.AttemptID, string) { return e.attempt, "" }

func (g *guest) id() (grid.AttemptID, string) { return g.attempt, g.name }

// table holds rows, ascending by attempt and name.
type table[R row] []R

func compareRow[R row](r R, id grid.AttemptID, name string) int {
	attempt, own := r.id()
	return cmp.Or(attempt.Compare(id), strings.Compare(own, name))
}

// find returns the place of a row, and whether it is there.
func (t table[R]) find(id grid.AttemptID, name string) (int, bool) {
	return slices.BinarySearchFunc(t, id, func(r R, id grid.AttemptID) int {
		return compareRow(r, id, name)
	})
}

// get returns a row; nil: it is not there.
func (t table[R]) get(id grid.AttemptID, name string) R {
	if at, has := t.find(id, name); has {
		return t[at]
	}
	var none R
	return none
}

func (t *table[R]) put(r R) {
	if at, has := t.find(r.id()); !has {
		*t = slices.Insert(*t, at, r)
	}
}

func (t *table[R]) remove(r R) {
	if at, has := t.find(r.id()); has {
		*t = slices.Delete(*t, at, at+1)
	}
}

// where lists some rows. The list stays as it is when the table changes.
func (t table[R]) where(is func(R) bool) []R {
	var some []R
	for _, r := range t {
		if is(r) {
			some = append(some, r)
		}
	}
	return some
}

// below lists the rows of a task whose tokens are lower, for all its neighbours and submitters.
func (t table[R]) below(id grid.AttemptID) []R {
	first, _ := t.find(grid.AttemptID{Task: id.Task}, "")
	last, _ := t.find(id, "")
	return slices.Clone(t[first:max(first, last)])
}

// attemptIn is the attempt in the name of an order.
func attemptIn(name string) grid.AttemptID {
	text, _, _ := strings.Cut(name, " ")
	id, _ := grid.ParseAttemptID(text) // none has the zero attempt
	return id
}
