package capacity

import (
	"errors"
	"fmt"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// tree holds the instants at which what is free changes, and by how much: a reservation
// is one change at its start and the opposite one at its end. What is free at an instant
// is the sum of all changes until then, so that one reservation touches two nodes,
// whatever the distance between them.
//
// It is a treap (C. Aragon and R. Seidel, "Randomized Search Trees", FOCS 1989):
// ordered by time from left to right and by a hash of the time from the root down, so
// that equal changes make equal trees whatever came before.
//
// Copies of a tree share nodes. A tree changes only nodes that it owns, and copies the
// others on its way down.
type tree struct {
	root  *node
	owner *owner
}

// owner is the identity of a tree. It is not empty, because all pointers to empty
// values may be the same.
type owner struct{ _ byte }

// node is one instant. The extremes are those of the sum of changes from the left edge
// of its subtree, taken after each change in it.
type node struct {
	at          int64 // nanoseconds since 1970
	change      grid.Resources
	sum         grid.Resources // of all changes in the subtree
	least, most grid.Resources
	left, right *node
	owner       *owner
}

// until is the sum of all changes up to an instant, which counts.
func (t *tree) until(at int64) (sum grid.Resources) {
	for n := t.root; n != nil; {
		if n.at > at {
			n = n.left
			continue
		}
		sum, n = n.here(sum), n.right
	}
	return sum
}

// next is the first change after an instant, never if there is none.
func (t *tree) next(after int64) int64 {
	found := int64(never)
	for n := t.root; n != nil; {
		if n.at > after {
			found, n = n.at, n.left
		} else {
			n = n.right
		}
	}
	return found
}

// add changes what is free from an instant on.
func (t *tree) add(at int64, change grid.Resources) { t.root = t.put(t.root, at, change) }

func (t *tree) put(n *node, at int64, change grid.Resources) *node {
	if n == nil {
		n = &node{at: at, change: change, owner: t.owner}
		n.pull()
		return n
	}
	if at == n.at {
		if change = n.change.Add(change); change.IsZero() {
			return t.merge(n.left, n.right)
		}
		n = t.own(n)
		n.change = change
		n.pull()
		return n
	}
	n = t.own(n)
	if at < n.at {
		n.left = t.put(n.left, at, change)
		if l := n.left; l != nil && l.above(n) { // only a new node rises, which is owned
			n.left, l.right = l.right, n
			n.pull()
			n = l
		}
	} else {
		n.right = t.put(n.right, at, change)
		if r := n.right; r != nil && r.above(n) {
			n.right, r.left = r.left, n
			n.pull()
			n = r
		}
	}
	n.pull()
	return n
}

// merge joins two trees of which the left one ends before the right one begins.
func (t *tree) merge(left, right *node) *node {
	switch {
	case left == nil:
		return right
	case right == nil:
		return left
	case left.above(right):
		left = t.own(left)
		left.right = t.merge(left.right, right)
		left.pull()
		return left
	default:
		right = t.own(right)
		right.left = t.merge(left, right.left)
		right.pull()
		return right
	}
}

// cut is the subtree without the changes up to an instant.
func (t *tree) cut(n *node, until int64) *node {
	for n != nil && n.at <= until {
		n = n.right
	}
	if n == nil {
		return nil
	}
	n = t.own(n)
	n.left = t.cut(n.left, until)
	n.pull()
	return n
}

// own is the node, or a copy of it, that the tree may change.
func (t *tree) own(n *node) *node {
	if n.owner == t.owner {
		return n
	}
	mine := *n
	mine.owner = t.owner
	return &mine
}

// check verifies order, sums and extremes, and that every node changes something.
func (t *tree) check() error {
	var err error
	before := int64(always)
	t.root.walk(func(n *node) {
		again := *n
		again.pull()
		switch {
		case err != nil:
		case n.at <= before:
			err = fmt.Errorf("the change at %d does not come after the one before it", n.at)
		case n.change.IsZero():
			err = fmt.Errorf("nothing changes at %d", n.at)
		case n.left != nil && n.left.above(n) || n.right != nil && n.right.above(n):
			err = fmt.Errorf("the change at %d stands too low", n.at)
		case again != *n:
			err = fmt.Errorf("the sums at %d are not those of its subtree", n.at)
		}
		before = n.at
	})
	if err == nil && before == never {
		err = errors.New("a change at the end of time")
	}
	return err
}

// pull works out what a node says of its subtree.
func (n *node) pull() {
	here := n.here(grid.Resources{})
	n.sum, n.least, n.most = here, here, here
	if l := n.left; l != nil {
		n.least, n.most = n.least.Min(l.least), larger(n.most, l.most)
	}
	if r := n.right; r != nil {
		n.sum = here.Add(r.sum)
		n.least, n.most = n.least.Min(here.Add(r.least)), larger(n.most, here.Add(r.most))
	}
}

// here is the sum after a node's change, given that before its subtree.
func (n *node) here(before grid.Resources) grid.Resources {
	if n.left != nil {
		before = before.Add(n.left.sum)
	}
	return before.Add(n.change)
}

// above reports whether a node is nearer to the root than another. No two times have the
// same hash (the finaliser of G. Steele et al., "Fast Splittable Pseudorandom Number
// Generators", OOPSLA 2014, is a bijection).
func (n *node) above(m *node) bool { return hash(n.at) > hash(m.at) }

func hash(at int64) uint64 {
	x := uint64(at) + 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// walk visits the subtree in the order of time.
func (n *node) walk(visit func(*node)) {
	for ; n != nil; n = n.right {
		n.left.walk(visit)
		visit(n)
	}
}

// extent holds the smallest and the largest values of a sum, field by field.
type extent struct{ least, most grid.Resources }

// widen takes the sums after the changes within (from, to) into an extent, given the
// sum before the subtree.
func (n *node) widen(e *extent, before grid.Resources, from, to int64) {
	for n != nil {
		switch {
		case n.at <= from:
			before, n = n.here(before), n.right
		case n.at >= to:
			n = n.left
		case from == always && to == never:
			e.least, e.most = e.least.Min(before.Add(n.least)), larger(e.most, before.Add(n.most))
			return
		default:
			n.left.widen(e, before, from, never)
			before = n.here(before)
			e.least, e.most = e.least.Min(before), larger(e.most, before)
			n, from = n.right, always
		}
	}
}

// may reports whether the query is answered somewhere in a subtree, given the sum
// before it. For a need of one thing, and for a shortage of anything, it is certain.
func (n *node) may(before grid.Resources, q query) bool {
	if n == nil {
		return false
	}
	if q.short {
		return q.answers(before.Add(n.least))
	}
	return q.answers(before.Add(n.most))
}

// first is the first change after an instant whose sum answers the query.
func (n *node) first(after int64, before grid.Resources, q query) (int64, bool) {
	if !n.may(before, q) {
		return 0, false
	}
	here := n.here(before)
	if n.at > after {
		if at, found := n.left.first(after, before, q); found {
			return at, true
		}
		if q.answers(here) {
			return n.at, true
		}
	}
	return n.right.first(after, here, q)
}

// larger is the larger of both, field by field.
func larger(r, s grid.Resources) grid.Resources {
	return grid.Resources{
		MilliCPUs: max(r.MilliCPUs, s.MilliCPUs), MemoryBytes: max(r.MemoryBytes, s.MemoryBytes),
		DiskBytes: max(r.DiskBytes, s.DiskBytes),
		MFLOPS:    max(r.MFLOPS, s.MFLOPS), NetBps: max(r.NetBps, s.NetBps),
	}
}
