package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// SetPolicy changes the order in which waiting entries move up, and which may overtake
// which, while the site runs. They get their places by it at the next Advance;
// conservative backfilling never moves anything later.
func (p *Planner) SetPolicy(policy grid.Policy, backfill grid.Backfill) {
	if policy == p.config.Policy && backfill == p.config.Backfill {
		return
	}
	p.config.Policy, p.config.Backfill = policy, backfill
	p.free(time.Time{})
}

// moveUp gives waiting entries earlier places where capacity came free. First promises,
// which are never put behind others; then suspended entries; then the others, by
// policy and backfilling. In a reservation, which is over when it is over, backfilling
// is conservative in any case.
func (p *Planner) moveUp(now time.Time) {
	if !p.dirty {
		return
	}
	freed := p.freed
	p.dirty = false
	for _, r := range p.inOrder() {
		p.settleLoans(r, now)
		switch {
		case len(r.movable) == 0:
			continue
		case r != p.site || p.config.Backfill == grid.BackfillConservative:
			p.reorder(r, now)
			p.compress(r, now, freed, false)
		default:
			p.compress(r, now, freed, true)
			p.arrange(r, now)
		}
		p.lend(r, now)
	}
}

// compress moves one after the other to the earliest place that is free if it leaves
// its own, until nobody moves: conservative backfilling, in which nobody moves later.
// Only what ends after capacity came free can gain from that.
func (p *Planner) compress(r *room, now, freed time.Time, guaranteed bool) {
	for {
		var list []*entry
		for _, e := range p.movers(r, guaranteed) {
			if e.End.After(freed) && !e.AwaitsData {
				list = append(list, e)
			}
		}
		moved := false
		for _, e := range list {
			old := e.Commitment
			if !p.moveEarlier(e, now) {
				continue
			}
			if from := later(old.next(), e.End); !moved || from.Before(freed) {
				freed = from
			}
			moved = true
		}
		if !moved {
			return
		}
	}
}

// movers returns the entries that may move up, in their order; of those without a promise
// all, or only the ones with a guaranteed latest start.
func (p *Planner) movers(r *room, guaranteed bool) []*entry {
	var strong []*entry
	for _, e := range r.movable {
		if e.promised() && !e.Late {
			strong = append(strong, e)
		}
	}
	p.byStrength(strong)
	queue := p.waiting(r)
	if guaranteed {
		queue = slices.DeleteFunc(queue, func(e *entry) bool { return e.LatestStart.IsZero() })
	}
	return slices.Concat(strong, r.standing(), queue)
}

// standing returns the suspended entries of a room that have no promise, first come first.
func (r *room) standing() []*entry {
	var list []*entry
	for _, e := range r.movable {
		if e.Suspended && !e.promised() {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b *entry) int {
		return cmp.Or(a.Made.Compare(b.Made), a.Attempt.Compare(b.Attempt))
	})
	return list
}

// moveEarlier moves an entry up if it can, and begins it if its time has come by that.
func (p *Planner) moveEarlier(e *entry, now time.Time) bool {
	was, need := e.next(), e.Give
	if e.Suspended {
		need = moving(need) // the rest it keeps
	}
	if _, some := e.room.line.EarliestFit(need, 1, e.floor(now), was.Add(-1)); !some {
		return false // not even for an instant
	}
	p.drop(e)
	at := p.find(e, e.floor(now), was.Add(-1))
	if !at.found {
		p.hold(e)
		return false
	}
	p.settleIn(e, at, now)
	return true
}

// arrange places waiting entries anew, except those with a latest start that was guaranteed
// by conservative backfilling or a firm offer. EASY: the first in the order gets the
// earliest place there is, and the others begin now if that delays neither it nor a
// promise; those that cannot are placed behind. Without backfilling no entry begins before
// one ahead of it.
func (p *Planner) arrange(r *room, now time.Time) {
	list := slices.DeleteFunc(p.waiting(r), func(e *entry) bool { return !e.LatestStart.IsZero() })
	for _, e := range list {
		p.drop(e)
		p.unfile(e)
	}
	if p.config.Backfill == grid.BackfillNone {
		from := now
		for _, e := range list {
			at := p.find(e, later(from, e.floor(now)), time.Time{})
			from = at.start
			p.settleIn(e, at, now)
		}
		return
	}
	var rest []*entry
	blocked := false
	for _, e := range list {
		at := p.find(e, e.floor(now), time.Time{})
		if blocked && at.start.After(now) {
			rest = append(rest, e)
			continue
		}
		blocked = blocked || at.start.After(now)
		p.settleIn(e, at, now)
	}
	for _, e := range rest {
		p.settleIn(e, p.find(e, e.floor(now), time.Time{}), now)
	}
}

// reorder puts commitments of one submitter right that wait in another order than that
// of their priorities: they leave their places and get others, the highest priority
// first. Nobody else's place is touched. Under conservative backfilling nothing else moves
// a commitment later, and this is the submitter's own choice about its own work.
func (p *Planner) reorder(r *room, now time.Time) {
	if p.prioritised == 0 || r != p.site {
		return
	}
	groups := map[grid.SiteID][]*entry{}
	var submitters []grid.SiteID
	for _, e := range p.waiting(r) {
		if groups[e.Submitter] == nil {
			submitters = append(submitters, e.Submitter)
		}
		groups[e.Submitter] = append(groups[e.Submitter], e)
	}
	for _, s := range submitters {
		if own := groups[s]; inverted(own) {
			for _, e := range own {
				p.drop(e)
				p.unfile(e)
			}
			for _, e := range own {
				p.settleIn(e, p.find(e, e.floor(now), time.Time{}), now)
			}
		}
	}
}

// inverted reports whether one of a lower priority has its place before one of a higher
// priority that comes first in the list.
func inverted(list []*entry) bool {
	var last time.Time
	for i, e := range list {
		if i > 0 && e.Priority < list[i-1].Priority {
			last = time.Time{}
			for _, before := range list[:i] {
				last = later(last, before.Start)
			}
		}
		if e.Start.Before(last) && e.Priority < list[0].Priority {
			return true
		}
	}
	return false
}
