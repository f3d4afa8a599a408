package agent

import (
	"context"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/owner"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
	"github.com/mrsmesh/mrsmesh/pkg/yield"
)

// Owner says when a site yields to its owner's own work.
type Owner struct {
	Yield    bool          // suspend running jobs while the owner uses the machine
	Rules    yield.Rules   // what counts as that; zero: yield.DefaultRules
	Hours    yield.Hours   // when the machine is shared; zero: always
	Mains    bool          // it is shared only while it does not run on battery
	Hook     []string      // program that is asked whether it is shared; empty: none
	Input    bool          // it is shared only while nobody uses keyboard or mouse
	Remote   []grid.SiteID // who may look at this site, pause it and end that pause
	Patience time.Duration // an attempt suspended for longer moves; 0 = the machine's default
	// MoveAfter is the same for one that can go on elsewhere from a checkpoint, if another site
	// offers; 0 = the machine's default.
	MoveAfter time.Duration
	FreeDisk  int64  // bytes of the disk that stay free where the state is
	Root      string // where the machine's proc and sys are; "" = /
}

// watchOwner watches whether the owner needs the machine, and tells the site: for the first time
// before it returns, so that nothing is offered in hours that are the owner's.
func (a *Agent) watchOwner() {
	cfg := a.watching(a.cfg.Owner)
	cfg.Root, cfg.Watch = a.cfg.Owner.Root, a.cfg.Host.Every > 0
	cfg.Use, cfg.Ends, cfg.Share = a.work.use, a.tellReturns, a.tellShare
	a.owner = owner.New(cfg)
	a.spawn(func() {
		a.owner.Run(a.ctx, func(s owner.State) {
			a.tellOwner(s)
			a.noteOwner(s.Reason != grid.ReasonNone)
		})
	})
	select {
	case <-a.owner.Looked():
	case <-a.ctx.Done():
	}
}

// watching says when the site yields, by the owner's terms that are in force.
func (a *Agent) watching(o Owner) owner.Config {
	return owner.Config{
		Yield: o.Yield, Rules: a.rules(), Hours: o.Hours, Mains: o.Mains, Hook: o.Hook,
		Input: o.Input,
	}
}

// tellOwner tells the site what its owner needs.
func (a *Agent) tellOwner(s owner.State) {
	if s.Reason == grid.ReasonNone {
		a.site.tell(step.OwnerAway{})
		return
	}
	a.site.tell(step.OwnerBusy{Reason: s.Reason, Text: s.Why})
}

// tellReturns tells the site when the hours end in which its owner shares the machine; zero: that
// is not known.
func (a *Agent) tellReturns(ends time.Time) {
	var at time.Time
	if !ends.IsZero() {
		at = a.clock.now().Add(ends.Sub(a.clock.real()))
	}
	a.site.tell(step.OwnerReturns{At: at})
}

// tellShare tells the site what part of the cores its owner gives at this time of the week.
func (a *Agent) tellShare(percent int, until time.Time) {
	in := step.ShareChanged{Percent: int64(percent)}
	if !until.IsZero() {
		in.Until = a.clock.now().Add(until.Sub(a.clock.real()))
	}
	a.site.tell(in)
}

// rules say how much of the owner's own work is too much.
func (a *Agent) rules() yield.Rules {
	rules := a.Terms().Owner.Rules
	if rules == (yield.Rules{}) {
		return yield.DefaultRules()
	}
	return rules
}

// Wall describes how a ceiling is enforced, and a way to try it.
type Wall struct {
	View view.Wall
	// Try runs something that wants more against it and says what was seen; nil = it
	// is not tried. It has the directory for itself.
	Try func(ctx context.Context, dir string) (string, error)
}

// tryWalls tries all walls that can be tried, one after the other.
func (a *Agent) tryWalls() {
	for i, w := range a.cfg.Walls {
		if w.Try == nil {
			continue
		}
		seen, err := a.tryWall(w)
		if a.ctx.Err() != nil {
			return
		}
		shown := w.View
		shown.Tried, shown.Seen, shown.Fault = true, seen, ""
		if err != nil {
			shown.Fault = err.Error()
			a.log.Warn("a ceiling may not hold", "ceiling", shown.Ceiling, "kind", shown.Kind, "error", err)
		}
		a.tried.Lock()
		a.shown[i] = shown
		a.tried.Unlock()
	}
}

func (a *Agent) tryWall(w Wall) (string, error) {
	dir, remove, err := a.work.scratch()
	if err != nil {
		return "", err
	}
	defer remove()
	return w.Try(a.ctx, dir)
}

// walls are how the ceilings are enforced, as far as it was tried by now.
func (a *Agent) walls() []view.Wall {
	a.tried.Lock()
	defer a.tried.Unlock()
	return slices.Clone(a.shown)
}
