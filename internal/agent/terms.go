package agent

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/hostinfo"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/avail"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Terms are what the owner may change while the agent runs. The fields mean what
// those of Config mean, which are the terms of the start.
type Terms struct {
	Owner       Owner                                   // Root stays that of the start
	Closed      []avail.Window                          // when the owner will want the machine back
	Capability  func(hostinfo.Measured) grid.Capability // kinds of work stay those of the start
	UploadBps   int64                                   // cap on data; 0 = none
	DownloadBps int64                                   // cap on data; 0 = none
	Walls       []view.Wall                             // of the caps: how they are enforced
	MaxRuntime  time.Duration                           // of attempts that start now; 0 = no limit
	Signers     []grid.Signer                           // whose work is run; none: any
	Priced      bool                                    // the owner names a price
	Price       float64                                 // of an hour of a core
	Policy      string                                  // of waiting attempts; empty = as it is
	Backfill    string                                  // who may overtake whom; empty = as it is
	Ahead       time.Duration                           // of promises to others; 0 = no limit
	Longest     time.Duration                           // longest reservation of others; 0 = no limit
}

// inForce are the terms that are in force.
type inForce struct {
	mu    sync.Mutex
	terms Terms // guarded by mu
	inUse bool  // guarded by mu; somebody uses the machine, and the terms ask for that
}

// Terms are those in force. Slices in them are not to be changed.
func (a *Agent) Terms() Terms {
	a.inForce.mu.Lock()
	defer a.inForce.mu.Unlock()
	return a.inForce.terms
}

// terms are those of the start.
func (c Config) terms() Terms {
	return Terms{
		Owner: c.Owner, Closed: c.Closed, Capability: c.Host.Capability,
		UploadBps: c.Data.UploadBps, DownloadBps: c.Data.DownloadBps,
		MaxRuntime: c.MaxRuntime, Signers: c.Signers, Priced: c.Priced, Price: c.Price,
		Policy: c.Planning.Policy, Backfill: c.Planning.Backfill,
		Ahead: c.Planning.Ahead, Longest: c.Planning.Longest,
	}
}

// Change puts new terms in force. Running jobs go on, and promises stay
// promised unless it does not fit into the ceilings any more. An error that is
// grid.ErrInvalid changes nothing.
func (a *Agent) Change(ctx context.Context, t Terms) error {
	if t.Capability != nil {
		if err := t.Capability(a.host.known()).Validate(); err != nil {
			return fmt.Errorf("what the site gives: %w", err)
		}
	}
	a.inForce.mu.Lock()
	before := a.inForce.terms
	t.Owner.Root = before.Owner.Root
	a.inForce.terms = t
	a.inForce.mu.Unlock()

	a.owner.Change(a.watching(t.Owner))
	a.capData()
	a.showWalls(t.Walls)
	if t.Capability != nil {
		a.give(t.Capability)
	}
	if t.Policy != before.Policy || t.Backfill != before.Backfill {
		now := Planning{Policy: t.Policy, Backfill: t.Backfill}.now()
		a.site.tell(step.PlanningChanged{Policy: now.Policy, Backfill: now.Backfill})
	}
	a.learn()
	return a.Order(ctx, step.TermsChanged{
		MaxRuntime: t.MaxRuntime, Patience: t.Owner.Patience, MoveAfter: t.Owner.MoveAfter,
		Ahead: t.Ahead, Longest: t.Longest, Priced: t.Priced, Price: t.Price,
		Signers: t.Signers,
	})
}

// give offers the mesh another capability from now on; what other programs leave of
// it is looked at without waiting.
func (a *Agent) give(capability func(hostinfo.Measured) grid.Capability) {
	a.host.turn.Lock()
	defer a.host.turn.Unlock()
	found := a.host.known()
	nominal := capability(found)
	if reflect.DeepEqual(nominal, a.host.ceilings()) {
		return
	}
	a.host.measure(nominal, found)
	a.tellBoth(step.CapacityChanged{Capability: nominal})
	a.mesh.Announce()
	select {
	case a.host.lookNow <- struct{}{}:
	default: // it is told already, or nobody looks
	}
}

// showWalls replaces what is told of the same ceilings.
func (a *Agent) showWalls(walls []view.Wall) {
	a.tried.Lock()
	defer a.tried.Unlock()
	for i, shown := range a.shown {
		for _, w := range walls {
			if w.Ceiling == shown.Ceiling && w.Kind == shown.Kind {
				a.shown[i] = w
			}
		}
	}
}
