package broker

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// strategyOf picks the way in which a job is placed. A split job may have a window, too;
// grid refuses flooding with either.
func strategyOf(job grid.Job, t traits) strategy {
	switch {
	case t.whole:
		return &together{
			promised: newPromised(), mode: job.Split, commBytes: job.CommBytes,
			rooms: make(map[grid.SiteID]uint32),
		}
	case t.promise:
		p := newPromised()
		return &p
	case job.Flood:
		return &rivals{}
	default:
		return &nearest{}
	}
}

// makeJob makes the record of a job.
func makeJob(id grid.JobID, spec grid.Job, now time.Time, cfg *Config) *job {
	j := newJob(id, spec, now, cfg)
	j.how = strategyOf(spec, j.traits)
	return j
}
