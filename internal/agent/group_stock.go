package agent

import (
	"sync"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// stock counts what is kept for another owner's jobs. It is safe for concurrent use.
type stock struct {
	most int64 // bytes of all together; 0 = no bound

	mu   sync.Mutex
	sum  int64                             // guarded by mu; of all in jobs
	jobs map[grid.JobID]map[grid.CID]int64 // guarded by mu; bytes
}

// take counts so many bytes of some data, unless all would then be too much. Data of two jobs
// counts twice.
func (s *stock) take(job grid.JobID, cid grid.CID, bytes int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := s.sum + bytes - s.jobs[job][cid]
	if s.most > 0 && sum > s.most {
		return false
	}
	if s.jobs == nil {
		s.jobs = make(map[grid.JobID]map[grid.CID]int64)
	}
	if s.jobs[job] == nil {
		s.jobs[job] = make(map[grid.CID]int64)
	}
	s.jobs[job][cid], s.sum = bytes, sum
	return true
}

func (s *stock) drop(job grid.JobID, cid grid.CID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sum -= s.jobs[job][cid]
	delete(s.jobs[job], cid)
}

// release counts nothing of a job any more.
func (s *stock) release(job grid.JobID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, bytes := range s.jobs[job] {
		s.sum -= bytes
	}
	delete(s.jobs, job)
}
