package sim

import (
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Submission is a job that was handed to a broker.
type Submission struct {
	Job     grid.JobID
	Site    grid.SiteID // whose broker
	Machine int         // that took it, as in Interval
	Count   uint32      // tasks
}

// Interval is a time during which an attempt really ran, in true time since
// the start; frozen time is left out.
type Interval struct {
	Attempt grid.AttemptID
	Site    grid.SiteID
	Machine int // 0: the site's own; from 1: another one with its identity
	From    time.Duration
	To      time.Duration // -1 while it runs
}

// Note is a decision that a machine reported.
type Note struct {
	At     time.Time
	Site   grid.SiteID
	Broker bool // its submitter's machine; otherwise its site's
	Report step.Report
}

// Trace is the record of an observer who sees everything.
type Trace struct {
	Submitted []Submission
	Intervals []Interval
	Sites     map[string]int // reports of the sites' machines by event
	Brokers   map[string]int // reports of the submitters' machines by event
	// Controllers counts reports of the domain's controllers by event.
	Controllers map[string]int
	Borders     map[string]int // reports of the gateways' borders by event
	Abroad      int            // messages of submitters to neighbouring domains
	// Ordered holds, for each job that another domain has ordered, the attempt there.
	Ordered map[grid.JobID]grid.AttemptID
	Sent    map[string]int      // messages by type, a broadcast once for each receiver
	Refused int                 // messages of a run that was not the newest of its site
	Heard   map[grid.SiteID]int // announcements by gossip that reached a site, each job once
	Notes   []Note              // reports of level info and above
	// Begun holds, for each attempt whose program saves its state, the run time of the task that
	// was in the state it began with.
	Begun map[grid.AttemptID]time.Duration

	open  map[place]int // in Intervals
	known map[heardJob]bool
}

type heardJob struct {
	site grid.SiteID
	job  grid.JobID
}

// place is an attempt at one of the machines that may have it.
type place struct {
	attempt grid.AttemptID
	site    grid.SiteID
	machine int
}

func newTrace() Trace {
	return Trace{
		Sites: make(map[string]int), Brokers: make(map[string]int), Sent: make(map[string]int),
		Controllers: make(map[string]int), Borders: make(map[string]int),
		Ordered: make(map[grid.JobID]grid.AttemptID),
		Heard:   make(map[grid.SiteID]int), open: make(map[place]int),
		known: make(map[heardJob]bool), Begun: make(map[grid.AttemptID]time.Duration),
	}
}

// Trace returns what was observed so far. It must not be changed.
func (w *World) Trace() *Trace { return &w.trace }

func (t *Trace) running(h *host, id grid.AttemptID, at time.Duration) {
	t.open[place{id, h.spec.ID, h.machine}] = len(t.Intervals)
	t.Intervals = append(t.Intervals,
		Interval{Attempt: id, Site: h.spec.ID, Machine: h.machine, From: at, To: -1})
}

func (t *Trace) stopped(h *host, id grid.AttemptID, at time.Duration) {
	where := place{id, h.spec.ID, h.machine}
	if i, open := t.open[where]; open {
		t.Intervals[i].To = at
		delete(t.open, where)
	}
}

func (t *Trace) report(h *host, of role, r step.Report) {
	events := t.Sites
	switch of {
	case roleBroker:
		events = t.Brokers
	case roleDomain:
		events = t.Controllers
	case roleBorder:
		events = t.Borders
	case roleSite:
	}
	events[r.Event]++
	if r.Level >= step.LevelInfo && !h.world.cfg.NoNotes {
		t.Notes = append(t.Notes, Note{
			At: h.world.now(), Site: h.spec.ID, Broker: of == roleBroker, Report: r,
		})
	}
}

// heard notes that an announcement has reached a site.
func (t *Trace) heard(site grid.SiteID, msg protocol.Message) {
	announce, is := msg.(protocol.Announce)
	if key := (heardJob{site, announce.Job}); is && !t.known[key] {
		t.known[key] = true
		t.Heard[site]++
	}
}

// overlaps counts the pairs of attempts of one task that ran at the same time:
// what leases and fencing are there to prevent.
func (t *Trace) overlaps() int {
	byTask := slices.Clone(t.Intervals)
	slices.SortStableFunc(byTask, func(a, b Interval) int {
		return a.Attempt.Task.Compare(b.Attempt.Task)
	})
	n := 0
	for i, a := range byTask {
		for _, b := range byTask[i+1:] {
			if b.Attempt.Task != a.Attempt.Task {
				break
			}
			if (a.Attempt != b.Attempt || a.Machine != b.Machine) && a.overlaps(b) {
				n++
			}
		}
	}
	return n
}

func (i Interval) overlaps(o Interval) bool {
	return (o.To < 0 || i.From < o.To) && (i.To < 0 || o.From < i.To)
}
