package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// byPolicy compares what waits: least first, then first come first served. A
// commitment without a deadline comes last where deadlines count.
func (p *Planner) byPolicy(a, b *entry) int {
	order := 0
	switch p.config.Policy {
	case grid.PolicySJF:
		order = cmp.Compare(a.length(), b.length())
	case grid.PolicyLJF:
		order = cmp.Compare(b.length(), a.length())
	case grid.PolicyEDF:
		order = compareTimes(a.Deadline, b.Deadline)
	case grid.PolicyLST:
		order = compareTimes(a.slackEnd(), b.slackEnd())
	case grid.PolicyFCFS:
	}
	return cmp.Or(order, a.Made.Compare(b.Made), a.Attempt.Compare(b.Attempt))
}

// slackEnd is the latest start that its deadline allows, with the run that is left.
func (c *Commitment) slackEnd() time.Time {
	if c.Deadline.IsZero() {
		return time.Time{}
	}
	return c.Deadline.Add(-c.length())
}

// compareTimes takes the zero time for the end of all times.
func compareTimes(a, b time.Time) int {
	if a.IsZero() || b.IsZero() {
		return sign(a.IsZero()) - sign(b.IsZero())
	}
	return a.Compare(b)
}

// byStrength sorts promises: what cannot move comes first.
func (p *Planner) byStrength(list []*entry) {
	slices.SortFunc(list, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.Class, b.Class), p.byPolicy(a, b))
	})
}

// waiting returns the entries that wait in a room without a promise, in the order in which
// they move up: that of the policy, in which the places of one submitter go to its
// commitments in the order of their priorities. So nobody's priorities change
// anything for others.
func (p *Planner) waiting(r *room) []*entry {
	var list []*entry
	for _, e := range r.movable {
		if e.waits() && !e.promised() && !e.Late {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, p.byPolicy)
	if p.prioritised > 0 {
		prioritise(list)
	}
	return list
}

// prioritise permutes the commitments of each submitter among themselves.
func prioritise(list []*entry) {
	places := map[grid.SiteID][]int{}
	var submitters []grid.SiteID
	for i, e := range list {
		if places[e.Submitter] == nil {
			submitters = append(submitters, e.Submitter)
		}
		places[e.Submitter] = append(places[e.Submitter], i)
	}
	for _, s := range submitters {
		own := make([]*entry, 0, len(places[s]))
		for _, i := range places[s] {
			own = append(own, list[i])
		}
		slices.SortStableFunc(own, func(a, b *entry) int { return cmp.Compare(b.Priority, a.Priority) })
		for n, i := range places[s] {
			list[i] = own[n]
		}
	}
}
