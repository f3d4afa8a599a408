package batch

import "github.com/mrsmesh/mrsmesh/pkg/workload"

// ending is a job that runs, and when it ends.
type ending struct {
	at  workload.Seconds
	job int32
	seq int32 // how many jobs started before it
}

// before orders endings by time, and those of one instant by their starts.
func (e ending) before(f ending) bool { return e.at < f.at || e.at == f.at && e.seq < f.seq }

// endings is a binary heap of the jobs that run. It is written out because
// container/heap would call through an interface for each comparison.
type endings []ending

func (h *endings) next() workload.Seconds {
	if len(*h) == 0 {
		return never
	}
	return (*h)[0].at
}

func (h *endings) push(e ending) {
	*h = append(*h, e)
	heap := *h
	i := len(heap) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !e.before(heap[parent]) {
			break
		}
		heap[i] = heap[parent]
		i = parent
	}
	heap[i] = e
}

func (h *endings) pop() int32 {
	heap := *h
	first, last := heap[0].job, heap[len(heap)-1]
	heap = heap[:len(heap)-1]
	*h = heap
	i := 0
	for {
		child := 2*i + 1
		if child >= len(heap) {
			break
		}
		if child+1 < len(heap) && heap[child+1].before(heap[child]) {
			child++
		}
		if !heap[child].before(last) {
			break
		}
		heap[i] = heap[child]
		i = child
	}
	if len(heap) > 0 {
		heap[i] = last
	}
	return first
}
