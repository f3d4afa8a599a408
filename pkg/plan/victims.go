package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/capacity"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// victim is an entry that yields to a promise whose time has come.
type victim struct {
	entry *entry
	gain  grid.Resources
	left  time.Duration // of its run
	at    time.Time     // where a promise goes on; zero = where there is capacity
	stop  bool          // it ends: memory or disk is missing, or it allows nothing else
}

// makeRoom suspends those with the most slack until an entry, whose place is among
// what is taken, has capacity: best effort first, then deadline commitments which can
// wait and still be in time. If cores are not what is short, or that is not enough, it
// ends best effort. It changes nothing if all that would not do. OpenCCS, section
// "Conclusion and Future Work": "running best-effort jobs can be displaced by
// SLA-bound jobs that are affected by the resource outage", and "suspending the
// execution of running jobs with respect to their SLA, thus freeing allocated resources
// for restarting outage affected jobs".
func (p *Planner) makeRoom(e *entry, l *lifted) bool {
	lack := p.lack(e, l.now)
	chosen := p.chooseToSuspend(e, l, moving(lack))
	rest := without(lack, chosen)
	if !rest.IsZero() {
		if !e.promised() && !e.insists {
			return false
		}
		chosen = append(chosen, chooseToStop(e, l, chosen, rest)...)
		if !without(lack, chosen).IsZero() {
			return false
		}
	}
	for i := 0; i < len(chosen); i++ { // one chosen for too little at first may stay
		if spared := slices.Delete(slices.Clone(chosen), i, i+1); without(lack, spared).IsZero() {
			chosen, i = spared, i-1
		}
	}
	for _, v := range chosen {
		p.giveUp(v, l)
	}
	return true
}

// giveUp does what was chosen.
func (p *Planner) giveUp(v victim, l *lifted) {
	switch {
	case v.stop && v.entry.Suspended:
		l.goOn(p, v.entry)
		l.entries = slices.DeleteFunc(l.entries, func(e *entry) bool { return e == v.entry })
		v.entry.Stopped, v.entry.Suspended, v.entry.Left = true, false, 0
		p.changes.Stopped = append(p.changes.Stopped, v.entry.Commitment)
	case v.stop:
		p.stop(v.entry)
	case v.at.IsZero():
		p.suspend(v.entry, l, v.left)
	default:
		p.change(v.entry, func() {
			v.entry.Suspended, v.entry.Left, v.entry.End = true, v.left, v.at.Add(v.left)
		})
		p.strained = true
		p.changes.Suspended = append(p.changes.Suspended, v.entry.Commitment)
	}
}

// without returns the lack that remains once the chosen are suspended.
func without(lack grid.Resources, chosen []victim) grid.Resources {
	for _, v := range chosen {
		lack = larger(lack.Sub(v.gain), grid.Resources{})
	}
	return lack
}

// helps reports whether a gain is of what is missing.
func helps(gain, lack grid.Resources) bool { return !gain.Min(lack).IsZero() }

// chooseToSuspend returns the entries to suspend until nothing that moves is missing, or
// all that can be suspended.
func (p *Planner) chooseToSuspend(e *entry, l *lifted, lack grid.Resources) []victim {
	var chosen []victim
	var trial *capacity.Timeline
	for _, v := range victims(e, l.now) {
		gain := moving(v.Give)
		if !helps(gain, lack) {
			continue
		}
		if trial == nil {
			trial = e.room.line.Clone()
		}
		w := victim{entry: v, gain: gain, left: v.End.Sub(l.now)}
		if v.promised() {
			after := trial.Clone()
			must(after.Release(v.Give, v.Start, v.End))
			fit, found := after.Earliest(capacity.Search{
				Need: v.Give, Duration: w.left, Window: grid.Window{NotBefore: l.now, Deadline: v.Deadline},
			})
			if !found || !enough(after.Free(l.now, fit.Start), still(v.Give)) {
				continue
			}
			w.at, trial = fit.Start, after
			must(trial.Force(v.Give, fit.Start, fit.Start.Add(w.left)))
			if fit.Start.After(l.now) {
				must(trial.Force(still(v.Give), l.now, fit.Start))
			}
		} else {
			must(trial.Release(v.Give, v.Start, v.End))
		}
		chosen, lack = append(chosen, w), larger(lack.Sub(gain), grid.Resources{})
	}
	return chosen
}

// victims returns the entries that may be suspended for another, the most slack first. One that
// waited for its inputs takes back only what it lent.
func victims(e *entry, now time.Time) []*entry {
	var list []*entry
	for _, v := range e.room.running {
		switch {
		case v == e, v.Overrun != grid.OverrunSuspend, v.Holds,
			!e.promised() && !e.insists && !v.Borrows, !v.End.After(now):
		case v.promised() && v.Class == ClassFixTime:
		default:
			list = append(list, v)
		}
	}
	slices.SortFunc(list, func(a, b *entry) int {
		return cmp.Or(sign(b.Borrows)-sign(a.Borrows), sign(a.promised())-sign(b.promised()),
			compareSlack(a, b), b.Start.Compare(a.Start), b.Attempt.Compare(a.Attempt))
	})
	return list
}

// compareSlack puts the promise first that can wait longest.
func compareSlack(a, b *entry) int {
	if !a.promised() || !b.promised() {
		return 0
	}
	return cmp.Compare(b.Deadline.Sub(b.End), a.Deadline.Sub(a.End))
}

// chooseToStop returns the best effort to end: suspended entries, or those chosen to be, if
// memory or disk is missing, then running ones.
func chooseToStop(e *entry, l *lifted, chosen []victim, lack grid.Resources) []victim {
	var list []victim
	for _, v := range chosen {
		if v.at.IsZero() {
			list = append(list, victim{entry: v.entry, gain: still(v.entry.Give)})
		}
	}
	for _, v := range l.entries {
		if v.Suspended {
			list = append(list, victim{entry: v, gain: still(v.Give)})
		}
	}
	running := slices.DeleteFunc(slices.Clone(e.room.running), func(v *entry) bool {
		return v == e || v.promised() || v.Holds ||
			slices.ContainsFunc(chosen, func(c victim) bool { return c.entry == v })
	})
	slices.SortFunc(running, func(a, b *entry) int {
		return cmp.Or(b.Start.Compare(a.Start), b.Attempt.Compare(a.Attempt))
	})
	for _, v := range running {
		list = append(list, victim{entry: v, gain: v.Give})
	}
	var stopped []victim
	for _, v := range list {
		if helps(v.gain, lack) {
			v.stop, lack = true, larger(lack.Sub(v.gain), grid.Resources{})
			stopped = append(stopped, v)
		}
	}
	return stopped
}
