package failing

import "container/heap"

// kind says what an event is.
type kind uint8

const (
	submitted kind = iota // a task comes
	changed               // a resource fails, or comes back
	worked                // a task has worked as long as it was to
	saved                 // a task has saved its state
)

// event is something that will happen.
type event struct {
	at       float64
	number   int // they were pushed in this order
	kind     kind
	task     *task
	resource *resource
}

// events is a heap, the next one first.
type events []event

func (e events) Len() int { return len(e) }

func (e events) Less(i, k int) bool {
	if e[i].at != e[k].at {
		return e[i].at < e[k].at
	}
	return e[i].number < e[k].number
}

func (e events) Swap(i, k int) { e[i], e[k] = e[k], e[i] }

// Push is for container/heap.
func (e *events) Push(x any) { *e = append(*e, x.(event)) } //nolint:forcetypeassert // by world.push

// Pop is for container/heap.
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// push adds an event, and returns its number, from 1.
func (w *world) push(e event) int {
	w.number++
	e.number = w.number
	heap.Push(&w.events, e)
	return e.number
}
