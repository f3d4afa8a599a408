package standby

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// A small submitter: tasks, tokens, leases. It keeps the promise of pkg/broker and nothing
// else: no task is awarded again before the lease of its last attempt has ended, a margin
// included, and after a boot every lease is presumed as granted then.

// jobRules are its settings.
type jobRules struct {
	lease, margin time.Duration
	sites         int
	seed          uint64
	long          time.Duration // > 0: granted from the second lease of an attempt on
	rivals        bool          // two sites get each task; the first that asks runs it

	noLongFact bool // a safeguard off: long leases are not facts
}

// row is the fact of a task.
type row struct {
	Token  grid.Token    `json:"token"` // the newest
	Site   int           `json:"site"`
	Rival  int           `json:"rival"`  // the site of the token before; -1: none
	Winner grid.Token    `json:"winner"` // of the rivals; 0: nobody yet
	Done   bool          `json:"done"`
	Lease  time.Duration `json:"lease"` // a long one that was granted
}

const (
	factRow   = "task/1"
	tickTimer = "tick"
	tickEvery = 100 * time.Millisecond
	awardWait = time.Second
)

type jobs struct {
	rules  jobRules
	term   uint64
	rows   map[int]*row
	until  map[int]time.Time // no award of the task before
	grants map[int]int
	out    step.Out
	now    time.Time
}

func newJobs(rules jobRules, term uint64, facts []byte) *jobs {
	j := &jobs{
		rules: rules, term: term,
		rows: map[int]*row{}, until: map[int]time.Time{}, grants: map[int]int{},
	}
	rows, err := step.DecodeFacts(facts)
	if err != nil {
		panic(err)
	}
	for _, f := range rows {
		j.out.Facts().Apply(f)
		task, _ := strconv.Atoi(f.Key)
		r := new(row)
		if err := json.Unmarshal(f.Value, r); err != nil {
			panic(err)
		}
		j.rows[task] = r
	}
	return j
}

// idle reports whether all tasks have ended.
func (j *jobs) idle() bool {
	for _, r := range j.rows {
		if !r.Done {
			return false
		}
	}
	return true
}

// what can happen to it.
type (
	booted    struct{}
	submitted struct {
		task    int
		command uint64
	}
	ticked struct{}
	asked  struct { // by a site for a lease; first: with MayStart
		site    int
		task    int
		token   grid.Token
		renewal uint64
	}
	exited struct {
		site  int
		task  int
		token grid.Token
	}
)

// step takes one input.
func (j *jobs) step(now time.Time, in any) []step.Effect {
	j.now = now
	switch in := in.(type) {
	case booted:
		j.boot()
	case submitted:
		j.submit(in)
	case ticked:
		j.tick()
	case asked:
		j.ask(in)
	case exited:
		j.exit(in)
	}
	return j.out.Take()
}

func (j *jobs) boot() {
	for _, task := range j.tasks() {
		r := j.rows[task]
		lease := j.rules.lease
		if !j.rules.noLongFact {
			lease = max(lease, r.Lease)
		}
		if r.Token > 0 {
			j.until[task] = j.now.Add(lease + j.margin(lease))
		}
	}
	j.out.SetTimer(tickTimer, "", j.now)
}

func (j *jobs) tasks() []int { return slices.Sorted(maps.Keys(j.rows)) }

func (j *jobs) margin(lease time.Duration) time.Duration {
	leases := float64(lease) / float64(j.rules.lease)
	return max(j.rules.margin, time.Duration(leases*float64(j.rules.margin)))
}

func (j *jobs) submit(in submitted) {
	if j.rows[in.task] == nil {
		j.rows[in.task] = &row{Rival: -1}
		j.save(in.task)
	}
	j.out.Emit(step.Reply{Command: in.command})
}

func (j *jobs) tick() {
	for _, task := range j.tasks() {
		if !j.rows[task].Done && !j.now.Before(j.until[task]) {
			j.award(task)
		}
	}
	j.out.SetTimer(tickTimer, "", j.now.Add(tickEvery))
}

func (j *jobs) award(task int) {
	r := j.rows[task]
	r.Token++
	r.Lease, r.Winner, r.Rival = 0, 0, -1
	j.grants[task] = 0
	chance := step.NewRand(j.rules.seed+j.term, "award/"+strconv.Itoa(task), uint64(r.Token))
	r.Site = chance.IntN(j.rules.sites)
	if j.rules.rivals {
		r.Rival = r.Site
		r.Token++
		r.Site = (r.Rival + 1) % j.rules.sites
	}
	j.until[task] = j.now.Add(awardWait)
	j.save(task)
	if j.rules.rivals {
		j.out.Send(siteName(r.Rival), awardOf(task, r.Token-1))
	}
	j.out.Send(siteName(r.Site), awardOf(task, r.Token))
}

func awardOf(task int, token grid.Token) protocol.Award {
	return protocol.Award{
		Job: "j", Tasks: []protocol.AwardedTask{{Index: uint32(task), Token: token}},
	}
}

func attemptID(task int, token grid.Token) grid.AttemptID {
	return grid.AttemptID{Task: grid.TaskID{Job: "j", Index: uint32(task)}, Token: token}
}

// isOf reports whether an attempt is one that may get a lease, and makes it the winner of its
// rivals if there is none. After a boot none is made: one may hold a lease, and says so.
func (j *jobs) isOf(in asked, r *row) bool {
	if r.Rival < 0 {
		return r.Token == in.token && r.Site == in.site
	}
	rival := in.token == r.Token && in.site == r.Site || in.token == r.Token-1 && in.site == r.Rival
	if rival && r.Winner == 0 {
		r.Winner = in.token
		j.save(in.task)
	}
	return rival && r.Winner == in.token
}

func (j *jobs) ask(in asked) {
	r := j.rows[in.task]
	if r == nil {
		return
	}
	if r.Done || !j.isOf(in, r) {
		j.fence(in.site, in.task, in.token)
		return
	}
	lease := j.rules.lease
	if j.grants[in.task]++; j.rules.long > 0 && j.grants[in.task] > 1 {
		lease = j.rules.long
		if r.Lease != lease {
			r.Lease = lease
			j.save(in.task)
		}
	}
	if end := j.now.Add(lease + j.margin(lease)); end.After(j.until[in.task]) {
		j.until[in.task] = end
	}
	j.out.Send(siteName(in.site), protocol.Lease{
		Renewal: in.renewal, Duration: lease,
		Attempts: []grid.AttemptID{attemptID(in.task, in.token)},
	})
}

func (j *jobs) fence(site, task int, token grid.Token) {
	j.out.Send(siteName(site), protocol.Fence{Below: []grid.AttemptID{attemptID(task, token+1)}})
}

func (j *jobs) exit(in exited) {
	r := j.rows[in.task]
	if r == nil {
		return
	}
	isOf := in.token == r.Token || r.Rival >= 0 && in.token == r.Token-1
	if !isOf || r.Winner != 0 && r.Winner != in.token {
		j.fence(in.site, in.task, in.token)
		return
	}
	if !r.Done {
		r.Done = true
		j.save(in.task)
	}
	j.out.Send(siteName(in.site), protocol.ExitAck{
		Attempts: []grid.AttemptID{attemptID(in.task, in.token)},
	})
}

func (j *jobs) save(task int) {
	j.out.Persist(step.NewFact(factRow, strconv.Itoa(task), *j.rows[task]))
}

func siteName(site int) grid.SiteID { return grid.SiteID(strconv.Itoa(site)) }
