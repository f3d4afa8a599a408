package plan

import (
	"maps"
	"slices"

	"github.com/mrsmesh/mrsmesh/pkg/capacity"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Shares of the site have timelines of their own, on which a share's part of Total is
// free: one for all promises, one for those to others, and one for each submitter and
// project that takes something. What is bound to a reservation counts in none, for the
// reservation does.

// limitKind says whose share it is.
type limitKind uint8

const (
	limitPromises limitKind = iota // of all promises
	limitOthers                    // of promises to other submitters than the site itself
	limitSubmitter
	limitProject
	limitKinds
)

type limitKey struct {
	kind limitKind
	name string
}

type limit struct {
	line  *capacity.Timeline
	users int
}

// claim is whose share something is taken of.
type claim struct {
	submitter grid.SiteID
	project   string
	within    grid.AttemptID
	promise   bool
}

func claimOf(c *Commitment) claim {
	return claim{c.Submitter, c.Project, c.Within, c.Class != ClassVarTime}
}

func (o *Offer) claim() claim { return claim{o.Submitter, o.Project, o.Within, o.Firm} }

// percent is the part of Total that a kind of limit leaves, 0 for no limit.
func (p *Planner) percent(kind limitKind) int {
	percent := [limitKinds]int{
		p.config.Promised, p.config.Strangers, p.config.Submitter, p.config.Project,
	}[kind]
	if percent <= 0 || percent >= 100 {
		return 0
	}
	return percent
}

// keys is the limits that a claim counts in.
func (p *Planner) keys(c claim) []limitKey {
	var keys []limitKey
	if c.within != (grid.AttemptID{}) {
		return nil
	}
	add := func(counts bool, kind limitKind, name string) {
		if counts && p.percent(kind) > 0 {
			keys = append(keys, limitKey{kind, name})
		}
	}
	other := !p.isSelf(c.submitter)
	add(c.promise, limitPromises, "")
	add(c.promise && other, limitOthers, "")
	add(other, limitSubmitter, string(c.submitter))
	add(c.project != "", limitProject, c.project)
	return keys
}

func (p *Planner) isSelf(submitter grid.SiteID) bool {
	return p.config.Self != "" && submitter == p.config.Self
}

// limitLine is the timeline of a limit, an empty one if nobody takes of it.
func (p *Planner) limitLine(key limitKey) *capacity.Timeline {
	if l := p.limits[key]; l != nil {
		return l.line
	}
	return capacity.New(part(p.config.Total, p.percent(key.kind)))
}

func (p *Planner) takeLimits(c claim, s span) {
	if s.need.IsZero() || !s.start.Before(s.end) {
		return
	}
	for _, key := range p.keys(c) {
		l := p.limits[key]
		if l == nil {
			l = &limit{line: p.limitLine(key)}
			p.limits[key] = l
		}
		l.users++
		p.take(l.line, s)
	}
}

func (p *Planner) putLimits(c claim, s span) {
	if s.need.IsZero() || !s.start.Before(s.end) {
		return
	}
	for _, key := range p.keys(c) {
		l := p.limits[key]
		p.put(l.line, s)
		if l.users--; l.users == 0 {
			delete(p.limits, key)
		}
	}
}

// withinLimits reports the first limit that a claim would go beyond.
func (p *Planner) withinLimits(c claim, s span) error {
	for _, key := range p.keys(c) {
		switch {
		case enough(p.limitLine(key).Free(s.start, s.end), s.need):
		case key.kind == limitPromises || key.kind == limitOthers:
			return ErrFirm
		default:
			return errShare
		}
	}
	return nil
}

// resizeLimits gives every limit its part of the present ceilings.
func (p *Planner) resizeLimits() {
	keys := slices.SortedFunc(maps.Keys(p.limits), compareKeys)
	for _, key := range keys {
		p.limits[key].line.SetTotal(part(p.config.Total, p.percent(key.kind)))
	}
}

func compareKeys(a, b limitKey) int {
	if a.kind != b.kind {
		return int(a.kind) - int(b.kind)
	}
	switch {
	case a.name < b.name:
		return -1
	case a.name > b.name:
		return 1
	default:
		return 0
	}
}

// part is so many percent of what the owner gives.
func part(r grid.Resources, percent int) grid.Resources {
	of := func(v int64) int64 { return v/100*int64(percent) + v%100*int64(percent)/100 }
	return grid.Resources{
		MilliCPUs: of(r.MilliCPUs), MemoryBytes: of(r.MemoryBytes), DiskBytes: of(r.DiskBytes),
		MFLOPS: of(r.MFLOPS), NetBps: of(r.NetBps),
	}
}
