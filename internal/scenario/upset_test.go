package scenario

import (
	"cmp"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/sim"
	"github.com/mrsmesh/mrsmesh/pkg/site"
)

// upset lets a trouble begin.
func (p *simulation) upset(at grid.SiteID, t Trouble) {
	w := p.w
	switch t.Word {
	case "deaf":
		w.Deafen(at)
	case "cut":
		w.Cut(at, grid.SiteID(t.To))
	case "part":
		w.Part(t.group(at))
	case "drift":
		w.Drift(at, t.Fast)
	case "set":
		w.StepClock(at, t.By)
	case "suspend":
		w.Suspend(at)
	case "stick":
		w.Stick(at, cmp.Or(t.By, -1))
	case "full":
		w.FillDisk(at)
	case "broken":
		w.BreakDisk(at)
	case "slow":
		w.SlowDisk(at, t.By)
	case "batch":
		w.Batch(at, t.By)
	case "twin":
		w.Twin(at)
	case "kill":
		w.Kill(at, t.By)
	case "power":
		w.PowerCut(at)
	case "lose", "restore":
		w.Crash(at)
	case "backup":
		w.Backup(at)
	case "liar":
		w.Lie(at, sim.Lie(t.How))
	case "tune":
		w.Retune(at, func(_ *site.Config, b *broker.Config) { b.Lease = t.By })
	}
}

// settle lets a trouble end.
func (p *simulation) settle(at grid.SiteID, t Trouble) {
	w := p.w
	switch t.Word {
	case "deaf":
		w.Undeafen(at)
	case "cut":
		w.Mend(at, grid.SiteID(t.To))
	case "part":
		w.Join(t.group(at))
	case "drift":
		w.Drift(at, 0)
	case "suspend":
		w.Wake(at)
	case "stick":
		w.Stick(at, 0)
	case "full":
		w.FreeDisk(at)
	case "broken":
		w.MendDisk(at)
	case "slow":
		w.SlowDisk(at, 0)
	case "batch":
		w.Batch(at, 0)
	case "twin":
		w.EndTwin(at)
	case "liar":
		w.Repent(at)
	case "lose":
		w.LoseDisk(at)
	case "restore":
		w.RestoreBackup(at)
	}
	if slices.Contains([]string{"broken", "kill", "power", "lose", "restore"}, t.Word) {
		w.Restart(at)
	}
}

// count counts a trouble that begins, if the site that it meets is up.
func (p *simulation) count(a Action) {
	word, at := a.Kind.String(), a.Event.Site
	if a.Kind == Upset {
		word = a.Event.Trouble.Word
	}
	begins := a.Kind == a.Event.Kind && a.Kind != Submit && a.Kind != Cancel
	if !begins || p.w.Site(grid.SiteID(at)) == nil {
		return
	}
	p.backups[at] = p.backups[at] || word == "backup"
	if word == "restore" && !p.backups[at] { // there is nothing to restore
		word = "crash"
	}
	p.troubles[word]++
}

func (t Trouble) group(at grid.SiteID) []grid.SiteID {
	group := []grid.SiteID{at}
	for _, name := range t.With {
		group = append(group, grid.SiteID(name))
	}
	return group
}

// consult asks the oracle if the scenario expects something of it.
func (p *simulation) consult(cfg *sim.Config) {
	wanted := slices.ContainsFunc(p.s.Expect, func(e Expectation) bool { return e.Measure == "flaws" })
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
func (p *simulation) swear(s Submission, id grid.JobID) {
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
		if s.Unattended == grid.UnattendedFinish && e.Trouble.forgetful() {
			truth.Patience = patience
		}
	}
	p.oracle.Submitted(p.w, id, truth)
}

// patience is the time that a submitter waits that was given an earlier state: a long lease in
// which it grants nothing, and one more for what it has heard of.
const patience = 2*8*time.Hour + 20*time.Minute

// forgetful reports whether a trouble leaves a site without the latest of its state, or with
// two of them.
func (t Trouble) forgetful() bool {
	return slices.Contains([]string{"lose", "restore", "twin"}, t.Word)
}

// well is when the last trouble is over.
func (s Scenario) well() time.Duration {
	last := time.Duration(0)
	for _, e := range s.Events {
		last = max(last, e.At+e.For)
		if e.For == 0 && (e.Kind == Crash || e.Trouble.Word == "liar") {
			last = s.Run.For
		}
	}
	return last
}
