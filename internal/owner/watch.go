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
// make the site yield, so that he waits for less than two seconds.
const every = 300 * time.Millisecond

// Config says how the machine is watched.
type Config struct {
	Root  string      // where /proc and /sys stand; "" = /
	Yield bool        // make way for the owner; else only Hours count
	Watch bool        // look at the machine without Yield, too, for Report alone
	Rules yield.Rules // how much is too much
	Hours yield.Hours // when the owner shares the machine
	Use   func() Use  // what the agent and its jobs use; called from Run's goroutine
	// Now is the time for Hours and for the looks; nil = time.Now.
	Now func() time.Time
}

// State is whether the owner needs the machine.
type State struct {
	Reason grid.Reason // ReasonNone, ReasonOwnerBusy or ReasonOwnerHours
	Why    string      // for people; empty when he does not
}

// Watcher watches the machine. Make it with New, and let it watch with Run.
type Watcher struct {
	cfg   Config
	probe *probe // nil = nothing is told, or nobody asked
	how   string

	mu     sync.Mutex
	state  State         // guarded by mu
	sample yield.Sample  // guarded by mu; the last one
	mean   yield.Sample  // guarded by mu; over the last seconds
	looks  int           // guarded by mu
	spent  time.Duration // guarded by mu; processor time for looking
	since  time.Time     // guarded by mu; when it began
}

// New makes a watcher. That the system tells nothing is no error: Report says so.
func New(cfg Config) *Watcher {
	if cfg.Root == "" {
		cfg.Root = "/"
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	w := &Watcher{cfg: cfg, how: "off: owner.yield is false"}
	if !cfg.Yield && !cfg.Watch {
		return w
	}
	p, err := newProbe(cfg.Root)
	switch {
	case err != nil:
		w.how = "off: " + err.Error()
	case cfg.Yield:
		w.probe, w.how = p, p.how()
	default:
		w.probe, w.how = p, p.how()+"; jobs do not make way: owner.yield is false"
	}
	return w
}

// Run looks at the machine until the context ends and tells each change, the
// first look's result included when the owner needs the machine.
func (w *Watcher) Run(ctx context.Context, tell func(State)) {
	if w.probe == nil && w.cfg.Hours.Always() {
		return
	}
	defer w.close()
	runtime.LockOSThread() // so that what looking costs can be told
	defer runtime.UnlockOSThread()
	judge := yield.New(w.cfg.Rules)
	var before counts
	var used Use
	tick := time.NewTicker(every)
	defer tick.Stop()
	w.mu.Lock()
	w.since = w.cfg.Now()
	w.mu.Unlock()
	for {
		began := processorTime()
		now := w.cfg.Now()
		state := State{}
		var sample yield.Sample
		if w.probe != nil {
			counted, use := w.probe.read(now), w.cfg.Use()
			if !before.at.IsZero() {
				sample = difference(w.probe.cores, before, counted, used, use)
				if verdict := judge.Look(sample); verdict.Busy && w.cfg.Yield {
					state = State{Reason: grid.ReasonOwnerBusy, Why: verdict.Why}
				}
			}
			before, used = counted, use
		}
		if !w.cfg.Hours.Open(now) {
			state = State{Reason: grid.ReasonOwnerHours, Why: "shared " + w.cfg.Hours.String()}
		}
		if w.note(state, sample, processorTime()-began) {
			tell(state)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (w *Watcher) close() {
	if w.probe != nil {
		w.probe.close()
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

// Report is what the watcher can say of itself.
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
	r := Report{How: w.how, State: w.state, Sample: w.sample, Mean: w.mean, Looks: w.looks, Blind: w.probe == nil}
	if passed := w.cfg.Now().Sub(w.since); !w.since.IsZero() && passed > 0 {
		r.Cost = w.spent.Seconds() / passed.Seconds()
	}
	return r
}

// Glance looks at the machine for a time and says whether one more core of work
// would be in its owner's way; the text says how. Where the system tells nothing
// it would not.
func Glance(ctx context.Context, root string, rules yield.Rules, span time.Duration) (busy bool, why string) {
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
