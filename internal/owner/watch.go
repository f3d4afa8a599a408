package owner

import (
	"cmp"
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

// every is the pause between two looks: two of them that find the owner in need
// make the site yield, so that the owner waits less than two seconds.
const every = 300 * time.Millisecond

// Config says how the machine is watched.
type Config struct {
	Root  string      // where /proc and /sys are; "" = /
	Yield bool        // yield to the owner; else only Hours and Mains count
	Watch bool        // look at the machine without Yield, too, for Report alone
	Rules yield.Rules // how much is too much
	Hours yield.Hours // when the owner shares the machine
	Mains bool        // the owner shares it only while it does not run on battery
	Hook  []string    // program, with arguments, that is asked whether it is shared; empty = none
	Input bool        // the owner shares it only while nobody uses keyboard or mouse
	InUse yield.InUse // how much is given while somebody does
	Asks  bool        // whether somebody does is asked also if nothing else here needs that
	Heat  int         // degrees Celsius from which on processors are too hot; 0 = nobody asks
	// Unmetered: the owner shares it only while data costs nothing
	Unmetered bool
	Use       func() Use // what the agent and its jobs use; called from Run's goroutine
	// Ends is told when the hours end in which the owner shares the machine, as State has it, each
	// time that this is another time; nil = nobody is. It is called from Run's goroutine.
	Ends func(time.Time)
	// Given is told how much is given, and until when by Now as far as that is known, each time
	// that this is more or less; all before the first time. Outside of the hours it is told
	// nothing. nil and the goroutine: as Ends.
	Given func(g yield.Given, until time.Time)
	// Now is the time for Hours and for the looks; nil = time.Now.
	Now func() time.Time
}

// idle reports whether nothing but the machine's counters could make the site yield.
func (c Config) idle() bool {
	return c.Hours.Always() && !c.Mains && len(c.Hook) == 0 && !c.asksInput() &&
		c.Heat == 0 && !c.Unmetered
}

// asksInput reports whether it matters that somebody uses keyboard or mouse.
func (c Config) asksInput() bool { return c.Input || c.Asks || c.InUse.Limits() }

// State says whether the owner needs the machine.
type State struct {
	Reason grid.Reason // ReasonNone, ReasonOwnerBusy or ReasonOwnerHours
	Why    string      // for people; empty when the owner does not
	Ends   time.Time   // when the hours end in which it is shared, by Config.Now; zero: not known
	Given  yield.Given // how much is given; of the cores nothing outside of the hours
	Hook   string      // what is wrong with the owner's program, for people; empty: nothing
	Heat   string      // why it is not known how hot the processors are; empty: it is
	Input  string      // why it is not known whether keyboard or mouse are used; empty: it is
}

// Watcher watches the machine. Make it with New, and let it watch with Run.
type Watcher struct {
	changed chan struct{} // capacity 1: cfg was changed
	looked  chan struct{} // closed after the first look

	mu     sync.Mutex
	cfg    Config        // guarded by mu: Change changes it
	probe  *probe        // guarded by mu; nil = nothing is told, or nobody asked
	how    string        // guarded by mu
	state  State         // guarded by mu
	sample yield.Sample  // guarded by mu; the last one
	mean   yield.Sample  // guarded by mu; over the last seconds
	looks  int           // guarded by mu
	spent  time.Duration // guarded by mu; processor time for looking
	since  time.Time     // guarded by mu; when it began
}

// New makes a watcher. A system that reports nothing is not an error: Report says so.
func New(cfg Config) *Watcher {
	if cfg.Root == "" {
		cfg.Root = "/"
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	w := &Watcher{cfg: cfg, changed: make(chan struct{}, 1), looked: make(chan struct{})}
	w.open()
	return w
}

// open starts watching the machine, if that is wanted and not done yet.
func (w *Watcher) open() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.how = "off: owner.yield is false"
	if w.probe == nil && (w.cfg.Yield || w.cfg.Watch) {
		p, err := newProbe(w.cfg.Root)
		if err != nil {
			w.how = "off: " + err.Error()
			return
		}
		w.probe = p
	}
	switch {
	case w.probe == nil:
	case w.cfg.Yield:
		w.how = w.probe.how()
	default:
		w.how = w.probe.how() + "; jobs do not yield: owner.yield is false"
	}
}

// Change changes when the site yields, from the next look on: all but Root, Watch and the functions
// become those of to.
func (w *Watcher) Change(to Config) {
	w.mu.Lock()
	w.cfg.Yield, w.cfg.Rules, w.cfg.Hours = to.Yield, to.Rules, to.Hours
	w.cfg.Mains, w.cfg.Hook, w.cfg.Input = to.Mains, to.Hook, to.Input
	w.cfg.InUse, w.cfg.Asks = to.InUse, to.Asks
	w.cfg.Heat, w.cfg.Unmetered = to.Heat, to.Unmetered
	w.mu.Unlock()
	w.open()
	select {
	case w.changed <- struct{}{}:
	default: // it is told already
	}
}

// Looked is closed when Run has looked for the first time and told what it found.
func (w *Watcher) Looked() <-chan struct{} { return w.looked }

// now returns the present settings and probe.
func (w *Watcher) now() (Config, *probe) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cfg, w.probe
}

// Run looks at the machine until the context ends and tells each change, the
// first look's result included when the owner needs the machine.
func (w *Watcher) Run(ctx context.Context, tell func(State)) {
	defer w.close()
	runtime.LockOSThread() // so that what looking costs can be told
	defer runtime.UnlockOSThread()
	var before look
	var ends time.Time
	given := yield.InUse{}.While(false, 100)
	cfg, p := w.now()
	judge, source, others := yield.New(cfg.Rules), newPower(cfg.Root), newAsked(cfg.Root)
	defer others.stop()
	tick := time.NewTicker(every)
	defer tick.Stop()
	w.mu.Lock()
	w.since = cfg.Now()
	w.mu.Unlock()
	others.use(ctx, cfg)
	others.await(ctx)
	looked := sync.OnceFunc(func() { close(w.looked) })
	for {
		others.use(ctx, cfg)
		began := processorTime()
		state, sample, this := judgeNow(cfg, p, judge, before)
		if cfg.Mains && state.Reason != grid.ReasonOwnerHours && source.onBattery(cfg.Now()) {
			state.Reason, state.Why = grid.ReasonOwnerBusy, yield.WhyBattery
		}
		state = others.judge(state, cfg)
		before = this
		if w.note(state, sample, processorTime()-began) {
			tell(state)
		}
		if !state.Ends.Equal(ends) && cfg.Ends != nil {
			cfg.Ends(state.Ends)
		}
		ends = state.Ends
		given = cfg.tellGiven(given, state.Given)
		looked()
		due := tick.C
		if p == nil && cfg.idle() {
			due = nil // there is nothing to watch until Change
		}
		select {
		case <-due:
		case <-w.changed:
			cfg, p = w.now()
			judge, before = yield.New(cfg.Rules), look{}
		case <-ctx.Done():
			return
		}
	}
}

// tellGiven tells what is given if it is other than before, and returns what was told last. While
// it is less because of keyboard or mouse, nobody knows for how long.
func (c Config) tellGiven(before, now yield.Given) yield.Given {
	if now.Cores == 0 || now == before || c.Given == nil {
		return before
	}
	until := time.Time{}
	if !now.ByUse {
		until = c.Hours.ShareUntil(c.Now())
	}
	c.Given(now, until)
	return now
}

// look holds what one look found.
type look struct {
	counts counts
	use    Use
}

// judgeNow looks at the machine and the clock, and says whether the owner needs it.
func judgeNow(cfg Config, p *probe, judge *yield.Judge, before look) (State, yield.Sample, look) {
	now := cfg.Now()
	var state State
	var sample yield.Sample
	var this look
	if p != nil {
		this = look{counts: p.read(now), use: cfg.Use()}
		if !before.counts.at.IsZero() {
			sample = difference(p.cores, before.counts, this.counts, before.use, this.use)
			if verdict := judge.Look(sample); verdict.Busy && cfg.Yield {
				state = State{Reason: grid.ReasonOwnerBusy, Why: verdict.Why}
			}
		}
	}
	share := cfg.Hours.Share(now)
	if share == 0 {
		state = State{Reason: grid.ReasonOwnerHours, Why: "shared " + cfg.Hours.String()}
	}
	state.Ends, state.Given.Cores = cfg.Hours.Ends(now), share
	return state, sample, this
}

func (w *Watcher) close() {
	if _, p := w.now(); p != nil {
		p.close()
	}
}

// note keeps what was seen for Report and says whether the reason changed.
func (w *Watcher) note(s State, sample yield.Sample, spent time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	changed := s.Reason != w.state.Reason
	w.state, w.sample, w.mean = s, sample, blend(w.mean, sample)
	w.looks++
	w.spent += max(spent, 0)
	return changed
}

// Report tells what the watcher does and found.
type Report struct {
	How    string       // what is watched, or why nothing is
	State  State        // now
	Sample yield.Sample // the last one; unknown before the second look
	Mean   yield.Sample // of those of some ten seconds
	Looks  int
	Blind  bool    // nothing is looked at: Sample and Mean stay unknown
	Cost   float64 // of looking: the part of one processor, 0 to 1
}

// Report tells how the machine is watched and what was seen last.
func (w *Watcher) Report() Report {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := Report{
		How: w.how, State: w.state, Sample: w.sample, Mean: w.mean, Looks: w.looks, Blind: w.probe == nil,
	}
	if passed := w.cfg.Now().Sub(w.since); !w.since.IsZero() && passed > 0 {
		r.Cost = w.spent.Seconds() / passed.Seconds()
	}
	return r
}

// Glance looks at the machine for a time and says whether one more core of work
// would be in its owner's way; the text says how. Where the system tells nothing
// it would not.
func Glance(
	ctx context.Context, root string, rules yield.Rules, span time.Duration,
) (busy bool, why string) {
	p, err := newProbe(cmp.Or(root, "/"))
	if err != nil {
		return false, ""
	}
	defer p.close()
	look := func() (counts, Use) {
		self, known := SelfTime()
		return p.read(time.Now()), Use{CPU: self, Known: known}
	}
	before, used := look()
	select {
	case <-time.After(span):
	case <-ctx.Done():
		return false, ""
	}
	now, use := look()
	return InTheWay(difference(p.cores, before, now, used, use), rules)
}

// InTheWay says whether one more core of work would be in the owner's way.
func InTheWay(s yield.Sample, rules yield.Rules) (busy bool, why string) {
	rules.Looks = 1
	s.Jobs++
	s.Live = true
	verdict := yield.New(rules).Look(s)
	return verdict.Busy, verdict.Why
}
