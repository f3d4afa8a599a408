package border

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Machine is the border of a gateway. It implements step.Machine; its other methods only read.
//
// It takes Boot, LinksChanged, NeighbourSeen and NeighbourGone, BorderReceived, MessageReceived with
// To set, PeerSeen, PeerGone and CapacityChanged (for the capacity of its domain), Staged and
// Collected of what it has asked for, Replied, OrderNews, Signed, and the timers that it has set.
// After a Boot its driver tells it of all links, neighbours and peers that are there.
type Machine struct {
	cfg Config
	now time.Time // of the Step under way
	out step.Out  // of the Step under way, and the facts of all
}

var _ step.Machine = (*Machine)(nil)

// New returns a border that knows no link. Errors are grid.ErrInvalid.
func New(cfg Config) (*Machine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Machine{cfg: cfg, out: step.Out{Level: cfg.Reports}}, nil
}

// Step implements step.Machine.
func (m *Machine) Step(now time.Time, _ step.Input) []step.Effect {
	if now.After(m.now) {
		m.now = now
	}
	return m.out.Take()
}

// Check implements step.Machine.
func (m *Machine) Check() error { return nil }
