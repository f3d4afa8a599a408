package broker

import (
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// tail is the jobs that have ended and are still here, in the order of their ends: the latest
// ones, and those that the history does not hold yet.
type tail struct {
	ids     []grid.JobID
	tasks   int
	changed bool // since it was last looked at for jobs that can leave
	leaving bool // some were given to the history, which has not answered
}

// Bounds of what stays and what leaves. Several leave together, because the history writes
// them with one wait for the disk.
const (
	maxTailTasks = 4096 // of ended jobs that stay here
	batchJobs    = 16
)

func (l *tail) add(j *job) {
	if slices.Contains(l.ids, j.id) {
		return
	}
	l.ids, l.tasks, l.changed = append(l.ids, j.id), l.tasks+len(j.tasks), true
}

func (l *tail) remove(j *job) {
	if at := slices.Index(l.ids, j.id); at >= 0 {
		l.ids, l.tasks, l.changed = slices.Delete(l.ids, at, at+1), l.tasks-len(j.tasks), true
	}
}

// tooLong reports whether it is worth to give some jobs to the history, which keeps all but
// the latest few.
func (l *tail) tooLong(most int) bool {
	return len(l.ids) > most+min(most/4, batchJobs) || l.tasks > maxTailTasks && len(l.ids) > 0
}
