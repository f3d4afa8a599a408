package batch

import "github.com/mrsmesh/mrsmesh/pkg/workload"

// conservative gives each job the earliest place in the profile that delays none
// before it. When jobs end, most of them before their estimates, the profile is
// compressed: one after the other, in the order of their submission, those that wait
// take the earliest place that is free if they leave theirs.
//
// A place begins only where a job ends, so that nothing has to be done in between: the job
// that it was put behind ends there, or ends early, and then all jobs are placed anew.
type conservative struct {
	jobs    []workload.Job
	places  []workload.Seconds // where each job that runs or waits has its place
	profile profile
	joined  int32   // jobs[:joined] have got a place
	waiting []int32 // by submission
	starts  []int32
	first   workload.Seconds // the earliest place of those that wait
	freed   int              // see compress
}

func newConservative(jobs []workload.Job, procs int) *conservative {
	s := &conservative{jobs: jobs, places: make([]workload.Seconds, len(jobs)), first: never}
	s.profile.steps = []step{{0, procs}} // it begins with the first pass
	return s
}

func (s *conservative) pass(now workload.Seconds, ended []int32, submitted int32) []int32 {
	s.profile.advance(now)
	freed := 0
	for _, j := range ended {
		if end := s.places[j] + s.jobs[j].Estimate; end > now {
			freed = max(freed, s.profile.add(now, end, s.jobs[j].Procs))
		}
	}
	if len(ended) > 0 {
		s.compress(freed)
	}
	for ; s.joined < submitted; s.joined++ {
		s.join(s.joined)
	}
	s.starts = s.starts[:0]
	if s.first <= now {
		s.startDue(now)
	}
	return s.starts
}

// join gives a new job its place.
func (s *conservative) join(i int32) {
	j := &s.jobs[i]
	place := s.profile.earliest(j.Procs, j.Estimate, never)
	s.profile.add(place, place+j.Estimate, -j.Procs)
	s.places[i] = place
	s.waiting = append(s.waiting, i)
	s.first = min(s.first, place)
}

// compress moves those that wait to earlier places, after freed processors came free
// at most anywhere.
//
// Most of them cannot move, and most of those need not be looked at: a job that could
// not move when it was looked at last can move now only if somewhere more has come
// free since, and there as much as it wants. That capacity is from jobs that ended now,
// from jobs before it that moved in this compression, and from jobs behind it that moved in
// the last one.
func (s *conservative) compress(freed int) {
	before := max(freed, s.freed)
	s.freed, s.first = 0, never
	for _, i := range s.waiting {
		j, old := &s.jobs[i], s.places[i]
		place := old
		if j.Procs <= max(before, s.freed) {
			place = s.profile.earliest(j.Procs, j.Estimate, old)
		}
		if place < old {
			s.freed = max(s.freed, s.move(i, place))
		}
		s.first = min(s.first, place)
	}
}

// move gives a job another, earlier place, and tells the most that is free then in
// what it has left. Where the two overlap nothing changes.
func (s *conservative) move(i int32, place workload.Seconds) int {
	j, old := &s.jobs[i], s.places[i]
	s.places[i] = place
	s.profile.add(place, min(place+j.Estimate, old), -j.Procs)
	return s.profile.add(max(old, place+j.Estimate), old+j.Estimate, j.Procs)
}

// startDue starts those whose place begins now.
func (s *conservative) startDue(now workload.Seconds) {
	kept := s.waiting[:0]
	s.first = never
	for _, i := range s.waiting {
		if s.places[i] <= now {
			s.starts = append(s.starts, i)
			continue
		}
		s.first = min(s.first, s.places[i])
		kept = append(kept, i)
	}
	s.waiting = kept
}
