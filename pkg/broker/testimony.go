package broker

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/fault"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Submitters tell each other what they have counted, so that one that is new does not have to fail
// at each bad site itself. What is said goes to each member by itself, without what is said about
// it: an accused site learns of its accusers from nobody. What is heard is never passed on, and is
// forgotten with a restart: its authors say it again to each member that comes.

// How often and how much is said and heard.
const (
	testifyEvery  = 5 * time.Minute     // what has changed is told so often at most
	testifySoon   = 10 * time.Second    // ... to one that has just come
	heedEvery     = time.Minute         // of one author no more is heard
	maxAuthors    = 256                 // whose word is remembered
	testimonyKept = 14 * 24 * time.Hour // after which it is worth a quarter at most
	weighEvery    = time.Second         // what all say is worked out so often at most
	weighAgain    = time.Minute         // ... and at least, as it fades
	sequenceBits  = 32                  // of a sequence count testimonies; above is the incarnation
)

// hearsay holds what others say of sites, and what of this one's own they were told.
type hearsay struct {
	by      map[grid.SiteID]heardTestimony
	counts  []fault.Shared // what it is worth, ascending by site
	weighed time.Time      // when that was worked out
	stale   bool           // something has changed since

	version  uint64    // of what there is to tell; 0: nothing
	called   bool      // there is a reason to tell it: somebody has accused a site
	due      time.Time // it will be told then; zero: nobody has to be told
	sequence uint64    // of the last testimony of this run
}

// heardTestimony is the last testimony of an author.
type heardTestimony struct {
	sequence uint64
	at       time.Time // when it was heard
	said     []protocol.Statement
}

// told says what of this site's testimonies a member has.
type told struct {
	version uint64
	at      time.Time
}

// changed takes it that there is more to tell, and that what others say may be worth another
// thing. As long as nobody has accused a site, nobody is told: of one that is accused, however,
// it matters who has seen nothing of the kind.
func (h *hearsay) changed(r *run, accuses bool) {
	h.stale = true
	h.version++
	if h.called = h.called || accuses; h.called {
		h.rouse(r, testifyEvery)
	}
}

// rouse lets others be told within some time.
func (h *hearsay) rouse(r *run, within time.Duration) {
	if at := r.now.Add(within); !r.cfg.OwnFaultsOnly && (h.due.IsZero() || at.Before(h.due)) {
		h.due = at
		r.setTimer(timerTestify, "", at)
	}
}

// welcomes lets a member be told that has just come.
func (p *peers) welcomes(other *member) {
	if other.told.version = 0; p.said.called {
		p.said.rouse(p.run, testifySoon)
	}
}

// resumeFaults takes up what earlier runs have counted.
func (p *peers) resumeFaults() {
	p.faults.Begin(p.now)
	if len(p.faults.Sites()) > 0 {
		p.said.changed(p.run, true)
	}
}

// onTestifyTimer tells the members that are there what they have not been told.
func (p *peers) onTestifyTimer() {
	p.said.due = timeZero
	for _, id := range p.connected() {
		other := p.all[id]
		if other.told.version == p.said.version {
			continue
		}
		if ago := p.now.Sub(other.told.at); !other.told.at.IsZero() && ago < heedEvery {
			p.said.rouse(p.run, heedEvery-ago)
			continue
		}
		other.told = told{p.said.version, p.now}
		if said := p.testimonyFor(id); len(said) > 0 {
			p.said.sequence++
			p.out.Send(id, protocol.Testimony{
				Author: p.cfg.Owner, Sequence: p.incarnation<<sequenceBits | p.said.sequence,
				IssuedMS: step.MS(p.wall()), Said: said,
			})
		}
	}
}

// testimonyFor lists what was counted here of all members but this site and the one that is told:
// the worst ones, if they are too many.
func (p *peers) testimonyFor(to grid.SiteID) []protocol.Statement {
	var said []protocol.Statement
	for _, id := range p.faults.Sites() {
		if _, known := p.all[id]; !known || id == to || id == p.cfg.Here {
			continue
		}
		r := p.faults.Record(id)
		if r.Tried == 0 { // all that was counted was taken back
			continue
		}
		s := protocol.Statement{
			About: id, Index: p.faults.Index(id, p.now), Tried: r.Tried, Over: p.now.Sub(r.First),
		}
		if r.Counts != (fault.Counts{}) {
			s.Causes = r.Counts[:]
		}
		said = append(said, s)
	}
	if len(said) > protocol.MaxStatements {
		slices.SortStableFunc(said, func(a, b protocol.Statement) int {
			return cmp.Or(cmp.Compare(b.Index, a.Index), cmp.Compare(b.Tried, a.Tried))
		})
		said = said[:protocol.MaxStatements]
		slices.SortFunc(said, func(a, b protocol.Statement) int {
			return cmp.Compare(a.About, b.About)
		})
	}
	return said
}

// onTestimony takes what another submitter says, unless it may not say that.
func (p *peers) onTestimony(from grid.SiteID, msg protocol.Testimony) {
	if p.cfg.OwnFaultsOnly {
		return
	}
	if reason, text := p.unheard(from, msg); reason != grid.ReasonNone {
		p.out.Report(step.LevelWarn, eventTestimonyRefused, step.Report{
			Site: from, Reason: reason, Text: text,
		})
		return
	}
	_, known := p.said.by[from]
	if !known && len(p.said.by) >= maxAuthors {
		p.said.dropOldest()
	}
	said := slices.Clone(msg.Said)
	said = slices.DeleteFunc(said, func(s protocol.Statement) bool { return !p.isAbout(from, s) })
	if n := len(msg.Said) - len(said); n > 0 {
		p.out.Report(step.LevelDebug, eventStatementsIgnored, step.Report{
			Site: from, Value: float64(n), Text: "about the author, this site, or no member",
		})
	}
	p.said.by[from] = heardTestimony{sequence: msg.Sequence, at: p.now, said: said}
	p.said.stale = true
	p.said.weigh(p)
	accuses := func(s protocol.Statement) bool { return s.Index > 0 }
	if !p.said.called && p.said.version > 0 && slices.ContainsFunc(said, accuses) {
		p.said.called = true
		p.said.rouse(p.run, testifyEvery)
	}
}

// unheard says why a testimony is not heard at all.
func (p *peers) unheard(from grid.SiteID, msg protocol.Testimony) (grid.Reason, string) {
	_, member := p.all[from]
	last, heard := p.said.by[from]
	issued := time.UnixMilli(msg.IssuedMS)
	switch {
	case msg.Author != from:
		return grid.ReasonInvalid, "passes on what another site says"
	case !member:
		return grid.ReasonNotMember, "no member of this domain"
	case heard && msg.Sequence <= last.sequence:
		return grid.ReasonStale, "said before"
	case heard && p.now.Sub(last.at) < heedEvery:
		return grid.ReasonQuota, "said too often"
	case issued.After(p.wall().Add(protocol.MaxSkew)):
		return grid.ReasonClock, "issued in the future"
	case p.wall().Sub(issued) > testimonyKept:
		return grid.ReasonStale, "issued too long ago"
	default:
		return grid.ReasonNone, ""
	}
}

// isAbout reports whether a statement counts: about a member, but not about its author or this
// site.
func (p *peers) isAbout(author grid.SiteID, s protocol.Statement) bool {
	_, member := p.all[s.About]
	return member && s.About != author && s.About != p.cfg.Here
}

// dropOldest makes space for another author.
func (h *hearsay) dropOldest() {
	oldest := grid.SiteID("")
	for _, id := range sortedSites(h.by) {
		if oldest == "" || h.by[id].at.Before(h.by[oldest].at) {
			oldest = id
		}
	}
	delete(h.by, oldest)
}

// shared returns what others say of a site, as it counts now.
func (h *hearsay) shared(p *peers, site grid.SiteID) float64 {
	h.weigh(p)
	return h.of(site).Index
}

// of returns what others say of a site, as it counted when that was last worked out.
func (h *hearsay) of(site grid.SiteID) fault.Shared {
	at, found := slices.BinarySearchFunc(h.counts, site, func(s fault.Shared, id grid.SiteID) int {
		return cmp.Compare(s.Site, id)
	})
	if !found {
		return fault.Shared{}
	}
	return h.counts[at]
}

// weigh works out what others say, if it may have changed.
func (h *hearsay) weigh(p *peers) {
	if len(h.by) == 0 {
		h.counts = nil
		return
	}
	passed := p.now.Sub(h.weighed)
	if !h.weighed.IsZero() && (passed < weighEvery || !h.stale && passed < weighAgain) {
		return
	}
	h.weighed, h.stale = p.now, false
	maps.DeleteFunc(h.by, func(_ grid.SiteID, t heardTestimony) bool {
		return p.now.Sub(t.at) > testimonyKept
	})
	all := make([]fault.Testimony, 0, len(h.by))
	for _, by := range sortedSites(h.by) {
		one := fault.Testimony{By: by}
		for _, s := range h.by[by].said {
			one.Said = append(one.Said, fault.Statement{
				About: s.About,
				Index: fault.Decayed(s.Index, p.now.Sub(h.by[by].at), p.cfg.FaultHalfLife),
			})
		}
		all = append(all, one)
	}
	h.counts = fault.Weigh(all, func(site grid.SiteID) fault.Own {
		return fault.Own{Index: p.faults.Index(site, p.now), Tried: p.faults.Record(site).Tried > 0}
	})
}
