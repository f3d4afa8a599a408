package broker

import (
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// The kinds of facts, with the version of their format.
const (
	factCounter = "counter/1" // key "jobs": how many jobs were ever submitted
	factJob     = "job/1"     // key JobID: a submission
	factTask    = "task/1"    // key TaskID: a task that was awarded or has ended
	factFault   = "fault/1"   // key SiteID: the site's faults and breaches
	factMember  = "member/1"  // key SiteID: what was seen of a member
	factGrants  = "grants/1"  // keys below: what a restart has to presume of all tasks
)

// FactGroup is a kind of fact that is not the machine's: the driver of the group that keeps the
// machine's facts has it in the same table. Restore passes it over.
const FactGroup = "group/1"

type counterFact struct {
	Jobs uint64 `json:"jobs"`
}

// countJob counts a job, whose ID follows from the number.
func (r *run) countJob() {
	r.counter++
	r.persist(factCounter, "jobs", counterFact{Jobs: r.counter})
}

// The keys of factGrants.
const (
	grantsLongest = "longest" // the longest promise that has no note of its own
	grantsUnknown = "unknown" // tasks may run in attempts that this state does not know of
)

type grantsFact struct {
	LongestMS int64 `json:"longest_ms"`
}

type jobFact struct {
	Job         grid.Job `json:"job"`
	NoWait      bool     `json:"no_wait,omitempty"`
	SubmittedMS int64    `json:"submitted_ms"`
	EndedMS     int64    `json:"ended_ms,omitempty"`
	Key         string   `json:"key,omitempty"` // of the request that made it
	Held        bool     `json:"held,omitempty"`
	// Taken are the inputs that came of what the job takes, by number of the Take; null: not yet.
	Taken [][]grid.Input `json:"taken,omitempty"`
	// Ordered is for whom it runs here; nil: for this site's own user.
	Ordered *step.Ordered `json:"ordered,omitempty"`
}

type taskFact struct {
	Phase      grid.Phase    `json:"phase"`
	Token      grid.Token    `json:"token"`
	Site       grid.SiteID   `json:"site"`
	Distance   float64       `json:"distance"`
	AwardedMS  int64         `json:"awarded_ms,omitempty"`
	LeaseEndMS int64         `json:"lease_end_ms,omitempty"` // read only: by the wall clock
	Grant      *grantFact    `json:"grant,omitempty"`        // only of long leases
	Line       uint64        `json:"line,omitempty"`
	Silent     bool          `json:"silent,omitempty"`
	Blamed     bool          `json:"blamed,omitempty"`
	Failures   int           `json:"failures,omitempty"`
	Reruns     uint32        `json:"reruns,omitempty"`
	Exit       *grid.Exit    `json:"exit,omitempty"`
	Failed     []grid.SiteID `json:"failed,omitempty"`
	Tries      []Try         `json:"tries,omitempty"`
	Rivals     []rivalFact   `json:"rivals,omitempty"`
	Top        grid.Token    `json:"top,omitempty"` // where it is above Token
	Accepted   bool          `json:"accepted,omitempty"`
	Kept       float64       `json:"kept,omitempty"`
	StartsMS   int64         `json:"starts_ms,omitempty"` // only of promised jobs
	ByMS       int64         `json:"by_ms,omitempty"`     // stint.by, if it was quoted a wait
	Pledge     *pledgeFact   `json:"pledge,omitempty"`
	Saved      []savedFact   `json:"saved,omitempty"` // the latest first
	Move       *moveFact     `json:"move,omitempty"`  // while it is to move
	copyFact
}

// grantFact is the value of longGrant.
type grantFact struct {
	PromisedMS int64  `json:"promised_ms"`
	AtMS       int64  `json:"at_ms"`
	Clock      string `json:"clock,omitempty"`
}

type rivalFact struct {
	Token    grid.Token  `json:"token"`
	Site     grid.SiteID `json:"site"`
	Offer    uint64      `json:"offer"`
	Quoted   float64     `json:"quoted"`
	Distance float64     `json:"distance"`
}

func (r *run) persist(kind, key string, value any) {
	r.out.Persist(step.NewFact(kind, key, value))
}

func (r *run) persistRemoval(kind, key string) {
	r.out.Persist(step.Fact{Kind: kind, Key: key})
}

func (r *run) saveJob(j *job) {
	f := jobFact{
		Job: j.asked, NoWait: j.noWait,
		SubmittedMS: r.wallMS(j.submitted), EndedMS: r.wallMS(j.ended),
		Key: j.key, Held: j.held, Taken: j.got,
	}
	if j.ordered.Foreign() {
		f.Ordered = &j.ordered
	}
	r.persist(factJob, string(j.id), f)
}

// saveTask may come several times for a task in one Step: what is sent in between relies
// on it.
func (r *run) saveTask(j *job, index uint32) {
	t := &j.tasks[index]
	f := taskFact{
		Phase: t.phase, Token: t.token, Site: t.site, Distance: t.distance,
		AwardedMS: r.wallMS(t.awardedAt), Line: t.line,
		Silent: t.silent, Blamed: t.blamed, Failures: t.failures, Reruns: t.reruns, Exit: t.exit,
		Failed:   t.failed,
		Tries:    triesOnWall(t.tries, r.ahead),
		Accepted: t.accepted, Kept: t.kept, Pledge: t.fact(), Saved: r.savedFacts(&t.savings),
		Move:     t.moving.fact(),
		copyFact: t.copyFact(),
	}
	if j.traits.promise {
		f.StartsMS = r.wallMS(t.startsAt)
	}
	if t.by.After(t.awardedAt) {
		f.ByMS = r.wallMS(t.by)
	}
	if t.long.promised > 0 && !t.leaseEnd.IsZero() {
		f.Grant = &grantFact{
			PromisedMS: roundUp(t.long.promised), AtMS: roundUp(t.long.at.at),
			Clock: t.long.at.of,
		}
	}
	for _, o := range t.rivals {
		f.Rivals = append(f.Rivals, rivalFact{
			Token: o.token, Site: o.site, Offer: o.offer, Quoted: o.quoted, Distance: o.distance,
		})
	}
	if t.top > t.token {
		f.Top = t.top
	}
	r.persist(factTask, j.taskID(index).String(), f)
}
