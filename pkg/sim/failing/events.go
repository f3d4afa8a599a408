package failing

// kind says what an event is.
type kind uint8

const (
	changed kind = iota // a resource fails, or comes back
	asked               // a task asks whether to save its state
	saved               // a task has saved its state
	ended               // a task has done its work
)

// event is something that will happen.
type event struct {
	at     float64
	number int // they were pushed in this order
	which  int // task, or resource
	kind   kind
}

func (e event) before(o event) bool {
	if e.at != o.at {
		return e.at < o.at
	}
	return e.number < o.number
}

// events is a heap, the next one first.
type events []event

func (h *events) push(e event) {
	*h = append(*h, e)
	all := *h
	for at := len(all) - 1; at > 0; {
		up := (at - 1) / 2
		if !all[at].before(all[up]) {
			return
		}
		all[at], all[up] = all[up], all[at]
		at = up
	}
}

func (h *events) pop() event {
	all := *h
	next, last := all[0], len(all)-1
	all[0] = all[last]
	all = all[:last]
	*h = all
	for at := 0; ; {
		down := 2*at + 1
		if down+1 < last && all[down+1].before(all[down]) {
			down++
		}
		if down >= last || !all[down].before(all[at]) {
			return next
		}
		all[at], all[down] = all[down], all[at]
		at = down
	}
}

// push adds an event, and returns its number, from 1.
func (w *world) push(e event) int {
	w.number++
	e.number = w.number
	w.events.push(e)
	return e.number
}
