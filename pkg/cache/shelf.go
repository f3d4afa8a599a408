package cache

import (
	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// shelf is an order of eviction: placed jobs before waiting ones, and among each those
// not used for longest first.
type shelf struct {
	placed, waiting *simplelru.LRU[grid.JobID, struct{}]
}

// newShelf is an empty shelf; size, at least 1, is as many jobs as it will ever
// hold, so that the lists never evict by themselves.
func newShelf(size int) shelf {
	list := func() *simplelru.LRU[grid.JobID, struct{}] {
		l, err := simplelru.NewLRU[grid.JobID, struct{}](size, nil)
		if err != nil {
			panic(err) // only for a size below 1
		}
		return l
	}
	return shelf{placed: list(), waiting: list()}
}

func (s shelf) add(job grid.JobID, placed bool) {
	if placed {
		s.placed.Add(job, struct{}{})
	} else {
		s.waiting.Add(job, struct{}{})
	}
}

func (s shelf) remove(job grid.JobID) {
	s.placed.Remove(job)
	s.waiting.Remove(job)
}

func (s shelf) oldest() (grid.JobID, bool) {
	job, _, ok := s.placed.GetOldest()
	if !ok {
		job, _, ok = s.waiting.GetOldest()
	}
	return job, ok
}

// jobs is all of them in the order of eviction.
func (s shelf) jobs() []grid.JobID { return append(s.placed.Keys(), s.waiting.Keys()...) }

func (s shelf) len() int { return s.placed.Len() + s.waiting.Len() }
