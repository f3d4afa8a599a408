package domain

import (
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// FactGroup is a kind of fact that is not the machine's: the driver of the group that keeps the
// machine's facts has it in the same table. Restore passes it over.
const FactGroup = "group/1"

// Machine is the controller of a domain. It implements step.Machine; its other methods only read.
//
// It takes Boot, whose incarnation is its term, PeerSeen, PeerGone, BansChanged, ClockStepped, the
// timers that it has set, and the messages of protocol.ForController. A driver tells it of all
// peers that are there after a Boot, those of its own site included.
type Machine struct {
	cfg    Config
	now    time.Time // of the Step under way
	term   uint64    // 0: it has not booted
	out    step.Out  // of the Step under way, and the facts of all
	banned step.Bans
}

var _ step.Machine = (*Machine)(nil)

// New returns a controller that knows of no booking. Errors are grid.ErrInvalid.
func New(cfg Config) (*Machine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Machine{cfg: cfg, out: step.Out{Level: cfg.Reports}}, nil
}

// Step implements step.Machine.
func (m *Machine) Step(now time.Time, in step.Input) []step.Effect {
	m.now = now
	switch in := in.(type) {
	case step.Boot:
		m.term = in.Incarnation
	case step.BansChanged:
		m.banned.Change(in, m.cfg.Here)
	}
	return m.out.Take()
}

// Check implements step.Machine.
func (m *Machine) Check() error { return nil }

// Snapshot implements step.Durable.
func (m *Machine) Snapshot() []byte { return m.out.Facts().Encode() }

// Restore implements step.Durable.
func (m *Machine) Restore(encoded []byte) error {
	facts, err := step.DecodeFacts(encoded)
	if err != nil {
		return err
	}
	for _, f := range facts {
		if f.Kind != FactGroup {
			return fmt.Errorf("restore %s %s: %w: this version does not know the fact",
				f.Kind, f.Key, grid.ErrInvalid)
		}
	}
	return nil
}
