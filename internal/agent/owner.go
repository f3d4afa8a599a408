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
	Heat     int           // degrees Celsius from which on processors are too hot; 0: nobody asks
	Input    bool          // it is shared only while nobody uses keyboard or mouse
	InUse    InUse         // how much is given while somebody does
	Remote   []grid.SiteID // who may look at this site, pause it and end that pause
	Patience time.Duration // an attempt suspended for longer moves; 0 = the machine's default
	// MoveAfter is the same for one that can go on elsewhere from a checkpoint, if another site
	// offers; 0 = the machine's default.
	MoveAfter time.Duration
	FreeDisk  int64  // bytes of the disk that stay free where the state is
	Root      string // where the machine's proc and sys are; "" = /
	Unmetered bool   // it is shared only while data costs nothing
}

// InUse limits what is given while somebody uses keyboard or mouse.
type InUse struct {
	yield.InUse
	UploadBps   int64 // cap on data, if it is lower than that of other times; 0 = the same
	DownloadBps int64 // likewise
}

// limits reports whether that is less than at other times.
func (u InUse) limits() bool { return u.Limits() || u.UploadBps != 0 || u.DownloadBps != 0 }

// watchOwner watches whether the owner needs the machine, and tells the site: for the first time
// before it returns, so that nothing is offered in hours that are the owner's.
func (a *Agent) watchOwner() {
	cfg := a.watching(a.cfg.Owner)
	cfg.Root, cfg.Watch = a.cfg.Owner.Root, a.cfg.Host.Every > 0
	cfg.Use, cfg.Ends, cfg.Given = a.work.use, a.tellReturns, a.tellGiven
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
		Input: o.Input, InUse: o.InUse.InUse, Asks: o.InUse.limits(),
		Heat: o.Heat, Unmetered: o.Unmetered,
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

// tellGiven tells the site what part of its ceilings the owner gives now, and caps the data.
func (a *Agent) tellGiven(g yield.Given, until time.Time) {
	in := step.ShareChanged{
		Percent: int64(g.Cores), Memory: int64(g.Memory) % 100, InUse: g.ByUse,
	}
	if !until.IsZero() {
		in.Until = a.clock.now().Add(until.Sub(a.clock.real()))
	}
	a.inForce.mu.Lock()
	a.inForce.inUse = g.InUse
	a.inForce.mu.Unlock()
	a.capData()
	a.site.tell(in)
}

// capData caps the data by the terms in force, and by whether somebody uses the machine.
func (a *Agent) capData() {
	a.inForce.mu.Lock()
	defer a.inForce.mu.Unlock() // so that of two that meet the later terms stay
	a.data.Cap(a.inForce.terms.caps(a.inForce.inUse))
}

// caps are those on data towards others and from them, while somebody uses the machine or not.
func (t Terms) caps(inUse bool) (up, down int64) {
	if !inUse {
		return t.UploadBps, t.DownloadBps
	}
	u := t.Owner.InUse
	return lower(t.UploadBps, u.UploadBps), lower(t.DownloadBps, u.DownloadBps)
}

// lower is the lower of two caps, of which 0 is none.
func lower(a, b int64) int64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
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
