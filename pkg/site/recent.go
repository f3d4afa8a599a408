package site

// recent remembers the last entries that were written or looked up, at least
// limit/2 and at most limit of them. It keeps two generations: when the young
// one is full it becomes the old one, and what nobody asked for since is
// forgotten with the old one before it. No order is kept and none is needed, so
// it is deterministic and cheap.
type recent[K comparable, V any] struct {
	limit      int
	young, old map[K]V
}

func newRecent[K comparable, V any](limit int) *recent[K, V] {
	return &recent[K, V]{limit: limit, young: make(map[K]V)}
}

// put writes an entry.
func (r *recent[K, V]) put(key K, value V) {
	if _, known := r.young[key]; !known && len(r.young) >= max(r.limit/2, 1) {
		r.young, r.old = make(map[K]V), r.young
	}
	r.young[key] = value
	delete(r.old, key)
}

// recall reads an entry and makes it young again.
func (r *recent[K, V]) recall(key K) (V, bool) {
	if value, young := r.young[key]; young {
		return value, true
	}
	value, ok := r.old[key]
	if ok {
		r.put(key, value)
	}
	return value, ok
}

// len is the number of entries.
func (r *recent[K, V]) len() int { return len(r.young) + len(r.old) }
