package batch

import "github.com/mrsmesh/mrsmesh/pkg/workload"

// fcfs starts the head of the queue while it fits. The queue is a range of the log.
type fcfs struct {
	jobs   []workload.Job
	free   int
	head   int32
	starts []int32
}

func (s *fcfs) pass(_ workload.Seconds, ended []int32, submitted int32) []int32 {
	for _, j := range ended {
		s.free += s.jobs[j].Procs
	}
	s.starts = s.starts[:0]
	for s.head < submitted && s.jobs[s.head].Procs <= s.free {
		s.free -= s.jobs[s.head].Procs
		s.starts = append(s.starts, s.head)
		s.head++
	}
	return s.starts
}
