package agent

import (
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/data"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// pins counts who needs which data, because one module may serve many jobs: the
// store knows only pinned or not. Data is pinned while it has an owner, or the history
// keeps it. What a release costs grows with the owner's data alone.
type pins struct {
	store *data.Store
	log   *slog.Logger
	kept  func(grid.CID) (bool, error) // whether the history keeps data

	mu      sync.Mutex
	owned   map[pinOwner]map[grid.CID]bool // guarded by mu
	owners  map[grid.CID][]pinOwner        // guarded by mu
	uploads map[grid.CID]time.Time         // guarded by mu; until when an upload waits for its job
	charges map[pinOwner][]charge          // guarded by mu; what counts for a submitter, by owner
}

// pinOwner is for what data is kept: a job, an attempt, or one that crosses a border.
type pinOwner string

func jobOwner(id grid.JobID) pinOwner         { return "job " + pinOwner(id) }
func attemptOwner(id grid.AttemptID) pinOwner { return pinOwner("attempt " + id.String()) }
func borderOwner(id grid.AttemptID) pinOwner  { return pinOwner("border " + id.String()) }

// charge is data that counts for a submitter while its owner has it.
type charge struct {
	tenant grid.SiteID
	cid    grid.CID
}

// uploadKept bounds how long uploaded data waits for the job that needs it.
const uploadKept = time.Hour

func newPins(
	store *data.Store, kept func(grid.CID) (bool, error), log *slog.Logger,
) *pins {
	return &pins{
		store: store, log: log, kept: kept,
		owned: make(map[pinOwner]map[grid.CID]bool), owners: make(map[grid.CID][]pinOwner),
		uploads: make(map[grid.CID]time.Time),
		charges: make(map[pinOwner][]charge),
	}
}

// upload keeps what a client has just uploaded until a time, even if another owner
// of the same data lets go of it before.
func (p *pins) upload(cid grid.CID, until time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(p.uploads, func(_ grid.CID, until time.Time) bool { return until.Before(now) })
	p.uploads[cid] = until
	return p.store.Pin(cid, until)
}

// hold notes an owner of data that is here, and pins it.
func (p *pins) hold(owner pinOwner, cids ...grid.CID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range cids {
		if p.owned[owner] == nil {
			p.owned[owner] = make(map[grid.CID]bool)
		}
		if !p.owned[owner][c] {
			p.owned[owner][c] = true
			p.owners[c] = append(p.owners[c], owner)
		}
		if err := p.store.Pin(c, time.Time{}); err != nil {
			p.log.Debug("data cannot be pinned", "cid", c, "owner", owner, "error", err)
		}
	}
}

// charged notes that an owner's data counts for a submitter, until the owner is
// released.
func (p *pins) charged(owner pinOwner, tenant grid.SiteID, cid grid.CID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.charges[owner] = append(p.charges[owner], charge{tenant, cid})
}

// release forgets an owner; data without any may be collected.
func (p *pins) release(owner pinOwner) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.charges[owner] {
		p.store.Discharge(c.tenant, c.cid)
	}
	delete(p.charges, owner)
	owned := p.owned[owner]
	delete(p.owned, owner)
	for c := range owned {
		p.part(owner, c)
	}
}

// part notes that an owner has some data no more; p.mu is held.
func (p *pins) part(owner pinOwner, c grid.CID) {
	p.owners[c] = slices.DeleteFunc(p.owners[c], func(o pinOwner) bool { return o == owner })
	if len(p.owners[c]) == 0 {
		delete(p.owners, c)
		p.unpin(c)
	}
}

// ownersOf lists for what some data is kept.
func (p *pins) ownersOf(c grid.CID) []pinOwner {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.owners[c])
}

// keepOnly lets an owner go of all that it does not need, and lists that.
func (p *pins) keepOnly(owner pinOwner, needed []grid.CID) (gone []grid.CID) {
	p.mu.Lock()
	owned := maps.Clone(p.owned[owner])
	p.mu.Unlock()
	for _, c := range needed {
		delete(owned, c)
	}
	gone = slices.Sorted(maps.Keys(owned))
	p.drop(owner, gone)
	return gone
}

// drop lets an owner go of some of its data.
func (p *pins) drop(owner pinOwner, cids []grid.CID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range cids {
		if !p.owned[owner][c] {
			continue
		}
		delete(p.owned[owner], c)
		p.charges[owner] = slices.DeleteFunc(p.charges[owner], func(due charge) bool {
			if due.cid == c {
				p.store.Discharge(due.tenant, c)
			}
			return due.cid == c
		})
		p.part(owner, c)
	}
	if len(p.owned[owner]) == 0 {
		delete(p.owned, owner)
	}
}

// letGo unpins what the history does not keep any more, unless it has an owner.
func (p *pins) letGo(cids []grid.CID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range cids {
		if len(p.owners[c]) == 0 {
			p.unpin(c)
		}
	}
}

// unpin lets go of data without an owner, immediately or when an upload of it has
// waited long enough. mu is held. What the history keeps stays, and what cannot be asked for.
func (p *pins) unpin(c grid.CID) {
	if kept, err := p.kept(c); kept || err != nil {
		return
	}
	err := p.store.Unpin(c)
	if until, waits := p.uploads[c]; waits && err == nil && until.After(time.Now()) {
		err = p.store.Pin(c, until)
	}
	if err != nil {
		p.log.Debug("data cannot be unpinned", "cid", c, "error", err)
	}
}

// sweep lets go of what an earlier run pinned and nobody owns any more.
func (p *pins) sweep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, root := range p.store.Roots() {
		if !root.Pinned || !root.PinnedUntil.IsZero() || len(p.owners[root.CID]) > 0 {
			continue
		}
		p.unpin(root.CID)
	}
}
