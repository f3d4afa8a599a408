package cache

// number tells the shelves apart on which an entry may stand.
type number uint8

const (
	ofAll    number = iota
	ofOwner         // one for each submitter
	ofOthers        // all but the site's own
	shelves
)

// shelf is an order of eviction: placed jobs before waiting ones, and among each those
// not used for longest first. What stands on it are the entries themselves, which hold their
// places: a site that hears of every job of a large mesh has many.
type shelf[V any] struct {
	number          number
	placed, waiting row[V]
}

// row is entries one behind the other.
type row[V any] struct {
	first, last *kept[V]
	n           int
}

// place holds the neighbours of an entry in a row.
type place[V any] struct{ before, behind *kept[V] }

func newShelf[V any](n number) *shelf[V] { return &shelf[V]{number: n} }

func (s *shelf[V]) row(placed bool) *row[V] {
	if placed {
		return &s.placed
	}
	return &s.waiting
}

// oldest is the entry to be evicted first, nil on an empty shelf.
func (s *shelf[V]) oldest() *kept[V] {
	if s.placed.first != nil {
		return s.placed.first
	}
	return s.waiting.first
}

func (s *shelf[V]) len() int { return s.placed.n + s.waiting.n }

// add puts an entry behind all others of its kind.
func (s *shelf[V]) add(e *kept[V]) {
	r := s.row(e.Placed)
	e.places[s.number] = place[V]{before: r.last}
	if r.last != nil {
		r.last.places[s.number].behind = e
	} else {
		r.first = e
	}
	r.last = e
	r.n++
}

// remove takes an entry from the shelf.
func (s *shelf[V]) remove(e *kept[V]) {
	r, at := s.row(e.Placed), e.places[s.number]
	if at.before != nil {
		at.before.places[s.number].behind = at.behind
	} else {
		r.first = at.behind
	}
	if at.behind != nil {
		at.behind.places[s.number].before = at.before
	} else {
		r.last = at.before
	}
	e.places[s.number] = place[V]{}
	r.n--
}
