package cache

import "container/list"

// shelf is an order of eviction: placed jobs before waiting ones, and among each those
// not used for longest first. What stands on it are the entries themselves.
type shelf struct{ placed, waiting *list.List }

func newShelf() shelf { return shelf{placed: list.New(), waiting: list.New()} }

func (s shelf) list(placed bool) *list.List {
	if placed {
		return s.placed
	}
	return s.waiting
}

// oldest is the entry to be evicted first, nil on an empty shelf.
func (s shelf) oldest() any {
	first := s.placed.Front()
	if first == nil {
		first = s.waiting.Front()
	}
	if first == nil {
		return nil
	}
	return first.Value
}

func (s shelf) len() int { return s.placed.Len() + s.waiting.Len() }
