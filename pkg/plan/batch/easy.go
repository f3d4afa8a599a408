package batch

import (
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/workload"
)

// easy starts the head of the queue while it fits. When it does not fit, others may
// overtake it, in order, if that does not delay the earliest start that the estimates
// of running jobs promise to the head: its shadow.
type easy struct {
	jobs    []workload.Job
	free    int
	due     []workload.Seconds // estimated end of each job that runs
	running []estimated        // ascending
	queue   []waiting
	joined  int32 // jobs[:joined] have joined the queue
	starts  []int32

	// Of the last look at the whole queue, valid until a job ends. Meanwhile nothing
	// changes for those that were looked at, because time only makes them end later:
	// only those that arrive have to be looked at.
	blocked bool
	shadow  workload.Seconds
	extra   int // processors that the head leaves free at its shadow
}

// estimated is a job that runs and its estimated end.
type estimated struct {
	at  workload.Seconds
	job int32
}

func (e estimated) compare(f estimated) int {
	switch {
	case e.at < f.at || e.at == f.at && e.job < f.job:
		return -1
	case e == f:
		return 0
	default:
		return 1
	}
}

// waiting holds the fields of a job that a look at the queue needs, side by side in memory.
type waiting struct {
	estimate workload.Seconds
	job      int32
	procs    int32
}

func (s *easy) pass(now workload.Seconds, ended []int32, submitted int32) []int32 {
	s.starts = s.starts[:0]
	from := len(s.queue)
	for ; s.joined < submitted; s.joined++ {
		j := &s.jobs[s.joined]
		s.queue = append(s.queue, waiting{j.Estimate, s.joined, int32(j.Procs)})
	}
	if s.end(now, ended) || !s.blocked {
		from = 1
		s.startHeads(now)
	}
	if s.blocked {
		s.backfill(now, from)
	}
	return s.starts
}

// end gives processors back, of what has ended and of what should have by its
// estimate, and reports whether it gave any.
func (s *easy) end(now workload.Seconds, ended []int32) bool {
	before := s.free
	for _, j := range ended {
		if s.due[j] > now {
			i, _ := slices.BinarySearchFunc(s.running, estimated{s.due[j], j}, estimated.compare)
			s.running = slices.Delete(s.running, i, i+1)
			s.free += s.jobs[j].Procs
		}
	}
	over := 0
	for over < len(s.running) && s.running[over].at <= now {
		s.free += s.jobs[s.running[over].job].Procs
		over++
	}
	s.running = slices.Delete(s.running, 0, over)
	return s.free > before
}

// startHeads starts heads while they fit and finds the shadow of the one that does not.
func (s *easy) startHeads(now workload.Seconds) {
	n := 0
	for n < len(s.queue) && int(s.queue[n].procs) <= s.free {
		s.start(s.queue[n], now)
		n++
	}
	s.queue = s.queue[n:]
	if s.blocked = len(s.queue) > 0; !s.blocked {
		return
	}
	head, free := int(s.queue[0].procs), s.free
	for i, e := range s.running {
		if free >= head && e.at > s.running[i-1].at {
			break
		}
		free += s.jobs[e.job].Procs
		s.shadow = e.at
	}
	s.extra = free - head
}

// backfill starts those in queue[from:] that fit now and do not delay the head: they
// end until its shadow, or leave it enough even then.
func (s *easy) backfill(now workload.Seconds, from int) {
	kept, i := from, from
	for ; i < len(s.queue) && s.free > 0; i++ {
		w := s.queue[i]
		procs := int(w.procs)
		switch inTime := now+w.estimate <= s.shadow; {
		case procs <= s.free && (inTime || procs <= s.extra):
			if !inTime {
				s.extra -= procs
			}
			s.start(w, now)
		case kept == i:
			kept++
		default:
			s.queue[kept] = w
			kept++
		}
	}
	if kept < i {
		kept += copy(s.queue[kept:], s.queue[i:])
		s.queue = s.queue[:kept]
	}
}

func (s *easy) start(w waiting, now workload.Seconds) {
	s.free -= int(w.procs)
	e := estimated{now + w.estimate, w.job}
	s.due[w.job] = e.at
	i, _ := slices.BinarySearchFunc(s.running, e, estimated.compare)
	s.running = slices.Insert(s.running, i, e)
	s.starts = append(s.starts, w.job)
}
