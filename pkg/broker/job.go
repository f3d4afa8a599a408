package broker

import (
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
)

// job is one submission.
type job struct {
	id        grid.JobID
	job       grid.Job
	submitted time.Time
	ended     time.Time
	noWait    bool
	probe     bool   // offers are asked for and nothing is placed
	command   uint64 // of the probe, to be answered when its round closes

	req       grid.Requirement
	digest    protocol.Digest
	seq       uint32 // of announcements
	announced bool   // by this run, so that most caches are warm
	gossiped  bool   // to everybody, so that sites have heard of it that are not known here
	awardBase int    // size of an award of one task without an item, bytes

	tasks   []task
	waiting []uint32 // tasks without a site, ascending
	open    int      // tasks that have not ended

	round   *round                     // the announcement under way, or nil
	offers  map[grid.SiteID]*candidate // that still stand: runner-ups stay here for failover
	answers map[grid.SiteID]Answer     // each site's last answer, for `why`; bounded
	vacant  map[grid.SiteID]bool       // sites that reported room while a round was on
	bid     bool                       // some site has offered at some time
	backoff time.Duration              // last pause before announcing again
	cleared bool                       // "placed" was said since the last announcement

	together time.Time              // before that, attempts of parts may run that were told to stop
	common   *common                // what the awards under way say to all parts, or nil
	asked    map[grid.SiteID]uint64 // the latest request for first leases of each site, until all parts are accepted

	hold    *holding               // sites are asked to make their offers firm, or nil
	taken   map[grid.SiteID]uint64 // the last firm offer of each site that was awarded
	hasty   int                    // announcements at once because nobody could hold what he had offered
	arrived bool                   // a site has just accepted a task, or come back with one
	empty   int                    // complete rounds in a row in which nobody offered
}

// task is one task of a job.
type task struct {
	phase        grid.Phase
	token        grid.Token  // of the latest attempt; 0 = none yet
	site         grid.SiteID // of the latest attempt
	leaseEnd     time.Time   // nothing else may be started before; zero: no lease was granted
	awardedAt    time.Time
	startedAt    time.Time   // first heard to run
	distance     float64     // of the latest award
	accepted     bool        // a site has promised it a place, some time; only of promised jobs
	kept         float64     // 1 - z of the latest award: how likely its promise is kept; only of promised jobs
	startsAt     time.Time   // staging: when its place in the site's plan begins, on this clock; zero: not known
	done         int64       // bytes staged
	total        int64       // bytes to stage
	standing     grid.Reason // frozen: why, as its site says
	exit         *grid.Exit
	silent       bool          // the latest attempt was given up because its site was silent
	failures     int           // attempts that a site did not bring to an end, those its owner stopped left out
	away         time.Time     // when its site had been silent for a lease; zero: that is not so, or the site is dead
	failed       []grid.SiteID // sites that failed it, latest last; at most maxFailed
	roundsFailed int           // awards since the last failure that found no site
	tries        []Try         // finished attempts; at most maxTries, latest last
	collectBy    time.Time     // when fetching the outputs is given up
	rivals       []rival       // its attempts while several sites queue it, ascending by token; the first stands for it
	top          grid.Token    // highest ever given out, where that is not the latest attempt's
}

// candidate is an offer that stands.
type candidate struct {
	offer   grid.Offer // with the distance on all axes, this submitter's own included
	quoted  float64    // the distance that the site said
	seq     uint32     // of the announcement that it answers
	left    uint32     // tasks it can still take
	at      time.Time
	expires time.Time
}

const (
	maxFailed  = 8
	maxTries   = 16
	maxAnswers = 256
)

func newJob(id grid.JobID, spec grid.Job, now time.Time) *job {
	j := &job{
		id: id, job: spec, submitted: now, tasks: make([]task, spec.Count), open: int(spec.Count),
		offers: make(map[grid.SiteID]*candidate), answers: make(map[grid.SiteID]Answer), vacant: make(map[grid.SiteID]bool),
		taken: make(map[grid.SiteID]uint64),
	}
	for i := range j.tasks {
		j.tasks[i].phase = grid.PhaseWaiting
		j.waiting = append(j.waiting, uint32(i))
	}
	return j
}

func (j *job) taskID(index uint32) grid.TaskID { return grid.TaskID{Job: j.id, Index: index} }

// attempt is the latest attempt of a task; its token is 0 when there was none.
func (j *job) attempt(index uint32) grid.AttemptID {
	return grid.AttemptID{Task: j.taskID(index), Token: j.tasks[index].token}
}

func (j *job) item(index uint32) grid.Item {
	if len(j.job.Items) == 0 {
		return grid.Item{}
	}
	return j.job.Items[index]
}

// active reports whether a site is believed to have the task.
func (t *task) active() bool { return t.phase >= grid.PhaseAwarded && t.phase <= grid.PhaseFrozen }

// wait puts a task back among those without a site.
func (j *job) wait(index uint32) {
	j.tasks[index].phase = grid.PhaseWaiting
	if at, found := slices.BinarySearch(j.waiting, index); !found {
		j.waiting = slices.Insert(j.waiting, at, index)
	}
}

// place takes a task from those without a site.
func (j *job) place(index uint32) {
	at, found := slices.BinarySearch(j.waiting, index)
	switch {
	case found && at == 0: // the usual case, and cheap however many wait
		j.waiting = j.waiting[1:]
	case found:
		j.waiting = slices.Delete(j.waiting, at, at+1)
	}
}

// remember notes a site that failed the task.
func (t *task) remember(site grid.SiteID) {
	t.failed = slices.DeleteFunc(t.failed, func(s grid.SiteID) bool { return s == site })
	t.failed = append(t.failed, site)
	if len(t.failed) > maxFailed {
		t.failed = slices.Delete(t.failed, 0, 1)
	}
}

// log notes how an attempt ended.
func (t *task) log(outcome string, now time.Time) {
	t.tries = append(t.tries, Try{
		Token: t.token, Site: t.site, Distance: t.distance, AwardedAt: t.awardedAt, StartedAt: t.startedAt,
		EndedAt: now, Outcome: outcome,
	})
	if len(t.tries) > maxTries {
		t.tries = slices.Delete(t.tries, 0, 1)
	}
}
