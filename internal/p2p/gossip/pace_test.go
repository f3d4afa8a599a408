package gossip

import (
	"context"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// account lets all that peers say pass, and remembers what it cost.
type account struct {
	mu     sync.Mutex
	work   map[peer.ID]time.Duration // guarded by mu, as what follows
	excess map[peer.ID]int
	shut   bool // nothing more may be read
}

// Wait implements Account.
func (a *account) Wait(_ context.Context, from peer.ID, work time.Duration) bool {
	a.Done(from, work)
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.shut
}

// Done implements Account.
func (a *account) Done(from peer.ID, work time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.work == nil {
		a.work = make(map[peer.ID]time.Duration)
	}
	a.work[from] += work
}

// Excess implements Account.
func (a *account) Excess(from peer.ID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.excess == nil {
		a.excess = make(map[peer.ID]int)
	}
	a.excess[from]++
}
