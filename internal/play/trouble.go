package play

import (
	"cmp"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/scenario"
	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/sim"
	"github.com/mrsmesh/mrsmesh/pkg/site"
)

// change lets a trouble begin or end at a site.
type change func(w *sim.World, at grid.SiteID, t scenario.Trouble)

// alone is a change that needs to know of nothing but its site.
func alone(do func(*sim.World, grid.SiteID)) change {
	return func(w *sim.World, at grid.SiteID, _ scenario.Trouble) { do(w, at) }
}

// upsets say how the troubles begin.
func upsets() map[string]change {
	return map[string]change{
		"deaf": alone((*sim.World).Deafen), "suspend": alone((*sim.World).Suspend),
		"full": alone((*sim.World).FillDisk), "broken": alone((*sim.World).BreakDisk),
		"twin": alone((*sim.World).Twin), "power": alone((*sim.World).PowerCut),
		"lose": alone((*sim.World).Crash), "restore": alone((*sim.World).Crash),
		"backup": alone((*sim.World).Backup),
		"cut":    func(w *sim.World, at grid.SiteID, t scenario.Trouble) { w.Cut(at, grid.SiteID(t.To)) },
		"part":   func(w *sim.World, at grid.SiteID, t scenario.Trouble) { w.Part(group(at, t)) },
		"drift":  func(w *sim.World, at grid.SiteID, t scenario.Trouble) { w.Drift(at, t.Fast) },
		"set":    func(w *sim.World, at grid.SiteID, t scenario.Trouble) { w.StepClock(at, t.By) },
		"stick": func(w *sim.World, at grid.SiteID, t scenario.Trouble) {
			w.Stick(at, cmp.Or(t.By, -1))
		},
		"slow":  func(w *sim.World, at grid.SiteID, t scenario.Trouble) { w.SlowDisk(at, t.By) },
		"batch": func(w *sim.World, at grid.SiteID, t scenario.Trouble) { w.Batch(at, t.By) },
		"kill":  func(w *sim.World, at grid.SiteID, t scenario.Trouble) { w.Kill(at, t.By) },
		"liar":  func(w *sim.World, at grid.SiteID, t scenario.Trouble) { w.Lie(at, sim.Lie(t.How)) },
		"tune": func(w *sim.World, at grid.SiteID, t scenario.Trouble) {
			w.Retune(at, func(_ *site.Config, b *broker.Config) { b.Lease = t.By })
		},
	}
}

// settlements say how the troubles end that last.
func settlements() map[string]change {
	return map[string]change{
		"deaf": alone((*sim.World).Undeafen), "suspend": alone((*sim.World).Wake),
		"full": alone((*sim.World).FreeDisk), "twin": alone((*sim.World).EndTwin),
		"liar":  alone((*sim.World).Repent),
		"cut":   func(w *sim.World, at grid.SiteID, t scenario.Trouble) { w.Mend(at, grid.SiteID(t.To)) },
		"part":  func(w *sim.World, at grid.SiteID, t scenario.Trouble) { w.Join(group(at, t)) },
		"drift": alone(func(w *sim.World, at grid.SiteID) { w.Drift(at, 0) }),
		"stick": alone(func(w *sim.World, at grid.SiteID) { w.Stick(at, 0) }),
		"slow":  alone(func(w *sim.World, at grid.SiteID) { w.SlowDisk(at, 0) }),
		"batch": alone(func(w *sim.World, at grid.SiteID) { w.Batch(at, 0) }),
		"kill":  alone((*sim.World).Restart), "power": alone((*sim.World).Restart),
		"broken":  restartAfter((*sim.World).MendDisk),
		"lose":    restartAfter((*sim.World).LoseDisk),
		"restore": restartAfter((*sim.World).RestoreBackup),
	}
}

func restartAfter(do func(*sim.World, grid.SiteID)) change {
	return alone(func(w *sim.World, at grid.SiteID) {
		do(w, at)
		w.Restart(at)
	})
}

// count counts a trouble that begins, if the site that it meets is up.
func (p *simulation) count(a scenario.Action) {
	word, at := a.Kind.String(), a.Event.Site
	if a.Kind == scenario.Upset {
		word = a.Event.Trouble.Word
	}
	begins := a.Kind == a.Event.Kind && !a.Kind.OfJob()
	if !begins || p.w.Site(grid.SiteID(at)) == nil {
		return
	}
	p.backups[at] = p.backups[at] || word == "backup"
	if word == "restore" && !p.backups[at] { // there is nothing to restore
		word = "crash"
	}
	p.troubles[word]++
}

// group are a site and those that are cut off together with it.
func group(at grid.SiteID, t scenario.Trouble) []grid.SiteID {
	all := []grid.SiteID{at}
	for _, name := range t.With {
		all = append(all, grid.SiteID(name))
	}
	return all
}

// consult asks the oracle if the scenario expects something of it.
func (p *simulation) consult(cfg *sim.Config) {
	wanted := slices.ContainsFunc(p.s.Expect, func(e scenario.Expectation) bool {
		return e.Measure == "flaws"
	})
	if !wanted {
		return
	}
	p.oracle = sim.NewOracle()
	watch := p.oracle.Watch
	if other := cfg.Watch; other != nil {
		watch = func(s sim.Sight) { other(s); p.oracle.Watch(s) }
	}
	cfg.Watch = watch
}

// begin is the scenario's beginning as a user at a site reckons it.
func (p *simulation) begin(by string) time.Time {
	return p.w.Clock(grid.SiteID(by)).Add(-p.w.Elapsed())
}

// swear tells the oracle of a job.
func (p *simulation) swear(s scenario.Submission, id grid.JobID) {
	if p.oracle == nil {
		return
	}
	truth := sim.Truth{
		Run: s.Lasts(), Start: s.Start, Deadline: s.Deadline, Reserves: s.Reserve,
		MayRefuse: s.Start > 0 || s.Deadline > 0 || s.Split != grid.SplitNone || s.Reservation != "",
	}
	if s.Unattended == grid.UnattendedFinish {
		truth.Lease = broker.Default("").LongLease
	}
	for _, name := range s.Needs() {
		truth.After = append(truth.After, p.ids[name])
	}
	for _, e := range p.s.Events {
		lost := e.Trouble.Word == "lose" || e.Trouble.Word == "restore"
		truth.Mortal = truth.Mortal || lost && e.Site == s.By
		truth.Hangs = truth.Hangs || e.Trouble.Word == "stick"
		if s.Unattended == grid.UnattendedFinish && forgets(e.Trouble) {
			truth.Patience = patience
		}
	}
	p.oracle.Submitted(p.w, id, truth)
}

// patience is the time that a submitter waits that was given an earlier state: a long lease in
// which it grants nothing, and one more for what it has heard of.
const patience = 2*8*time.Hour + 20*time.Minute

// forgets reports whether a trouble leaves a site without the latest of its state, or with
// two of them.
func forgets(t scenario.Trouble) bool {
	return slices.Contains([]string{"lose", "restore", "twin"}, t.Word)
}

// wellFrom is when the last trouble is over.
func wellFrom(s scenario.Scenario) time.Duration {
	last := time.Duration(0)
	for _, e := range s.Events {
		last = max(last, e.At+e.For)
		if e.For == 0 && (e.Kind == scenario.Crash || e.Trouble.Word == "liar") {
			last = s.Run.For
		}
	}
	return last
}
