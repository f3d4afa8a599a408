package sim

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/domain"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/site"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Epoch is the time at which every simulation begins.
func Epoch() time.Time { return time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC) }

// Network says what the links do to messages and data. The zero value is a
// perfect network without delay.
type Network struct {
	Latency   time.Duration // one way
	Spread    float64       // a pair's own latency is e^(Spread N) times that, N standard normal
	Jitter    time.Duration // added, uniform in [0, Jitter)
	Loss      float64       // probability that a message is lost
	Duplicate float64       // probability that it arrives twice
	Reorder   float64       // probability that it overtakes or is overtaken by up to 20 latencies
	Detect    time.Duration // from a crash to PeerGone at the others
	Silence   time.Duration // from a cut or a frozen host to PeerGone; 0 = 10 s

	// Rates holds the rate of data from a site to another, by their places in Config.Sites, in
	// bit/s and above 0; from a site to itself its disk. nil: as both sites declare.
	Rates [][]float64
	// Sharing says what transfers do that are on one way at the same time.
	Sharing Sharing
}

// SiteSpec is one simulated site.
type SiteSpec struct {
	ID         grid.SiteID
	Capability grid.Capability
	Skew       time.Duration // its clock minus the true time
	// WakeLag is the time that a sandbox runs on when its host wakes, before its lease counts.
	WakeLag time.Duration
	Owner   string // who owns it; empty: it is its owner's only one
	// Tune changes the configurations before the machines are made; may be nil.
	Tune func(*site.Config, *broker.Config)
}

// Config is a simulation.
type Config struct {
	Seed    uint64
	Sites   []SiteSpec
	Network Network
	Lags    Lags // what takes longer than Network says
	// Submitters are the sites that submit: others know these alone, as sites of a large mesh know
	// whom they have business with. nil: all sites know each other.
	Submitters []grid.SiteID
	// Run says how long a task really runs on a site and how it ends; nil: as
	// long as estimated, code 0, one output of 1 KiB.
	Run func(task grid.Task, estimate time.Duration, on SiteSpec) (time.Duration, grid.Exit)
	// Saves says which tasks' programs save their states; nil: none does.
	Saves func(task grid.Task) bool
	// Controllers are the sites that may be the domain's controller: the first one is, and when it
	// dies the first that is up becomes it, after Elects (0: 3 s). Domain changes its
	// configuration. No controllers: the domain has none.
	Controllers []grid.SiteID
	Elects      time.Duration
	// Deaf are sites that know nothing of controllers, as those of an earlier version.
	Deaf   []grid.SiteID
	Domain func(*domain.Config)
	// Realms parts the sites into several domains, each site in one. None: all are of one.
	Realms []Realm
	// NoWatchdog lets attempts run on when their lease has ended. UNSAFE, for
	// tests of the audit only.
	NoWatchdog bool
	// NoSyncFacts and NoSyncData let a power cut take the facts, and the data, that were
	// written within the last 5 s, also those that others were told of. UNSAFE, for tests of the
	// oracles only.
	NoSyncFacts, NoSyncData bool
	// Watch is told of everything that happens, in its order; it may change nothing. nil:
	// nobody watches, which costs nothing.
	Watch func(Sight)
	// NoRuns lets sites not tell the runs of another one apart, as if there were one machine of
	// each: UNSAFE, to see what it is good for.
	NoRuns bool
	// Fast leaves out what only checks and counts: messages go from machine to machine without
	// their wire format, nothing is hashed, so that Hash stays what it was in the beginning, and
	// Trace.Heard is empty. What the machines decide is the same.
	Fast bool
	// NoNotes leaves Trace.Notes empty, which grows with everything that happens.
	NoNotes bool
	// CheckFacts compares every machine's Snapshot with its facts after each step.
	CheckFacts bool
	// CheckEvery is after how many steps one is checked, by Check and CheckFacts;
	// 0 or 1 checks each. Checking a machine takes time in proportion to what it
	// knows.
	CheckEvery int
	// CheckQuiet is after how many quiet steps one is checked, if CheckEvery does not leave it
	// out: those that write and report nothing, such as the renewal of a lease; 0 or 1 checks
	// each.
	CheckQuiet int
}

// World is a running simulation. It belongs to one goroutine.
type World struct {
	cfg        Config
	rng        *rand.Rand
	elapsed    time.Duration
	queue      eventQueue
	sequence   uint64
	hosts      map[grid.SiteID]*host
	twins      map[grid.SiteID]*host // second machines with the identity of a first one
	machines   int                   // second ones, ever
	lines      uint64                // of runs, ever
	cuts       map[link]bool         // ways on which nothing passes
	torn       map[fence]bool        // borders that nothing crosses
	ways       map[link]*way         // ways on which data are
	order      []grid.SiteID
	hash       uint64
	events     int
	steps      int
	messages   int
	failure    error
	office     office                       // of the domain's controller
	fastest    int64                        // millionths that any clock was ever wrong by
	estimates  map[grid.JobID]time.Duration // run times, as the awards say
	submitters map[grid.JobID]grid.SiteID
	trace      Trace
	commands   uint64
	replies    map[uint64]step.Reply
	states     map[grid.CID]state // of all checkpoints that were ever taken
}

// New builds the sites and lets them see each other.
func New(cfg Config) *World {
	w := &World{
		cfg: cfg, rng: step.NewRand(cfg.Seed, "sim", 0), hosts: make(map[grid.SiteID]*host),
		twins: make(map[grid.SiteID]*host), cuts: make(map[link]bool), ways: make(map[link]*way),
		hash: fnvOffset, estimates: make(map[grid.JobID]time.Duration),
		submitters: make(map[grid.JobID]grid.SiteID),
		replies:    make(map[uint64]step.Reply), trace: newTrace(),
		states: make(map[grid.CID]state), torn: make(map[fence]bool),
	}
	for _, spec := range cfg.Sites {
		w.hosts[spec.ID] = newHost(w, spec)
		w.hosts[spec.ID].place = len(w.order)
		w.order = append(w.order, spec.ID)
	}
	slices.Sort(w.order)
	for _, id := range w.order {
		w.hosts[id].start()
	}
	for _, id := range w.order {
		if w.submits(w.hosts[id]) {
			w.meet(w.hosts[id])
		}
	}
	w.elect()
	w.lookOver()
	return w
}

const fnvOffset = 14695981039346656037

// now is the true simulated time.
func (w *World) now() time.Time { return Epoch().Add(w.elapsed) }

// Elapsed is the true time since the start.
func (w *World) Elapsed() time.Duration { return w.elapsed }

// Hash is a digest of all inputs and effects so far.
func (w *World) Hash() uint64 { return w.hash }

// Messages counts the messages sent so far, a broadcast once for
// each receiver.
func (w *World) Messages() int { return w.messages }

// Events counts what has happened so far: messages that came, timers, ends of transfers and runs.
func (w *World) Events() int { return w.events }

// err is the first broken invariant, or nil.
func (w *World) err() error { return w.failure }

// At schedules what a test or scenario wants to happen.
func (w *World) At(at time.Duration, do func()) { w.schedule(at-w.elapsed, do) }

// Run lets the simulation go on until a time since the start, or until an
// invariant breaks.
func (w *World) Run(until time.Duration) error {
	for w.failure == nil && len(w.queue) > 0 && w.queue[0].at <= until {
		e := w.queue.pop()
		w.elapsed = e.at
		w.events++
		e.what.do()
	}
	w.elapsed = max(w.elapsed, until)
	return w.failure
}

// runUntil goes on until the condition holds, and reports whether it did before
// the time limit.
func (w *World) runUntil(limit time.Duration, done func() bool) bool {
	for !done() {
		if w.failure != nil || len(w.queue) == 0 || w.queue[0].at > limit {
			return false
		}
		if err := w.Run(w.queue[0].at); err != nil {
			return false
		}
	}
	return true
}

// ErrDown says that an agent is down, or died before it could answer.
var ErrDown = errors.New("the agent is down")

// Submit hands a job to a site's broker and returns the job's ID.
func (w *World) Submit(at grid.SiteID, job grid.Job) (grid.JobID, error) {
	return w.submit(at, step.Submit{Job: job})
}

// SubmitNow hands over a job that is refused if it has no place now.
func (w *World) SubmitNow(at grid.SiteID, job grid.Job) (grid.JobID, error) {
	return w.submit(at, step.Submit{Job: job, NoWait: true})
}

func (w *World) submit(at grid.SiteID, in step.Submit) (grid.JobID, error) {
	job := in.Job
	reply := w.command(at, func(n uint64) step.Input { in.Command = n; return in })
	if reply.Err != nil {
		return "", reply.Err
	}
	if reply.Job == "" {
		return "", fmt.Errorf("submit at %s: %w", at, ErrDown)
	}
	w.trace.Submitted = append(w.trace.Submitted, Submission{
		Job: reply.Job, Site: at, Machine: w.hosts[at].machine, Count: job.Count,
	})
	return reply.Job, nil
}

// Cancel calls a job off at its submitter.
func (w *World) Cancel(at grid.SiteID, job grid.JobID) error {
	return w.command(at, func(n uint64) step.Input { return step.CancelJob{Command: n, Job: job} }).Err
}

func (w *World) command(at grid.SiteID, input func(uint64) step.Input) step.Reply {
	w.commands++
	h := w.hosts[at]
	if h.asleep {
		return step.Reply{}
	}
	h.flush(roleBroker)
	h.command(input(w.commands))
	reply := w.replies[w.commands]
	delete(w.replies, w.commands)
	return reply
}

// Broker reads a site's broker; nil while the site is down.
func (w *World) Broker(id grid.SiteID) *broker.Machine { return w.hosts[id].broker }

// Job is a job as its submitter knows it, in its machine or in its history. It is not known
// while the submitter is down.
func (w *World) Job(at grid.SiteID, id grid.JobID) (broker.JobState, bool) {
	h := w.hosts[at]
	if h.broker == nil {
		return broker.JobState{}, false
	}
	if s, known := h.broker.Job(id); known {
		return s, true
	}
	past, known := h.disk.past[id]
	if !known {
		return broker.JobState{}, false
	}
	s, err := broker.ReadRecord(id, past.Record)
	if err != nil {
		w.fail(fmt.Errorf("job %s of the history: %w", id, err))
		return broker.JobState{}, false
	}
	return s, true
}

// Site reads a site's machine; nil while the site is down.
func (w *World) Site(id grid.SiteID) *site.Machine { return w.hosts[id].site }

// Input hands any input to a site's own machine, such as step.Pause.
func (w *World) Input(id grid.SiteID, in step.Input) { w.hosts[id].step(roleSite, in) }

// InputSubmitter hands any input to a site's submitter's machine, such as step.BandwidthMeasured.
func (w *World) InputSubmitter(id grid.SiteID, in step.Input) { w.hosts[id].step(roleBroker, in) }

func (w *World) schedule(after time.Duration, do func()) { w.put(after, thunk(do)) }

func (w *World) put(after time.Duration, what action) {
	w.sequence++
	w.queue.push(event{at: w.elapsed + max(0, after), sequence: w.sequence, what: what})
}

func (w *World) fail(err error) {
	if w.failure == nil {
		w.failure = fmt.Errorf("at %s: %w", w.elapsed, err)
	}
}

func (w *World) mix(parts ...string) {
	h := fnv.New64a()
	for _, p := range parts {
		_, _ = h.Write([]byte(p)) // a hash never fails
		_, _ = h.Write([]byte{0})
	}
	w.hash = (w.hash ^ h.Sum64()) * 1099511628211
}
