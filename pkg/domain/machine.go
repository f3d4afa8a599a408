package domain

import (
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// The machine's timers.
const (
	timerGrace = "grace" // a site has had the time to come back; ID is the site
	timerJudge = "judge" // it is time to work out anew what leaves failed sites
)

// bootGrace is the time, from its boot, in which sites come that are there.
const bootGrace = 10 * time.Second

// Machine is the controller of a domain. It implements step.Machine; its other methods only read.
//
// It takes Boot, whose incarnation is its term, PeerSeen, PeerGone, BansChanged, ClockStepped, the
// timers that it has set, and the messages of protocol.ForController. After a Boot its driver tells
// it of all peers that are there.
type Machine struct {
	cfg     Config
	now     time.Time // of the Step under way
	ahead   time.Duration
	term    uint64   // 0: it has not booted
	numbers uint64   // of the Remaps of this term
	out     step.Out // of the Step under way, and the facts of all
	banned  step.Bans
	sites   sites
	accounts
	judging time.Time     // when the timer fires; zero: it is not set
	before  time.Duration // the remapping interval of the last judgement
}

var _ step.Machine = (*Machine)(nil)

// New returns a controller that knows of no booking. Errors are grid.ErrInvalid.
func New(cfg Config) (*Machine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Machine{
		cfg: cfg, out: step.Out{Level: cfg.Reports}, sites: make(sites), accounts: make(accounts),
	}, nil
}

// Step implements step.Machine.
func (m *Machine) Step(now time.Time, in step.Input) []step.Effect {
	if now.After(m.now) {
		m.now = now
	}
	boot, isBoot := in.(step.Boot)
	switch {
	case isBoot && m.term != 0:
		m.out.Report(step.LevelWarn, eventBootedTwice, step.Report{})
	case isBoot:
		m.boot(boot)
	case m.term == 0:
		m.unexpected("", fmt.Sprintf("%T before a boot", in))
	default:
		m.dispatch(in)
	}
	return m.out.Take()
}

// boot takes up what an earlier term has left. Every site that it has known may be gone.
func (m *Machine) boot(in step.Boot) {
	m.term = max(in.Incarnation, 1)
	for _, s := range m.sites.all() {
		s.gone = m.now
		if s.failed.IsZero() {
			m.await(s, max(bootGrace, m.cfg.Grace))
		}
	}
	if m.anythingLost() || m.anythingAway() {
		m.judging = m.now.Add(bootGrace)
		m.out.SetTimer(timerJudge, "", m.judging)
	}
}

func (m *Machine) dispatch(in step.Input) {
	switch in := in.(type) {
	case step.MessageReceived:
		m.onMessage(in)
	case step.TimerFired:
		m.onTimer(in.Key)
	case step.PeerSeen:
		m.onPeerSeen(in)
	case step.PeerGone:
		m.onPeerGone(in.Site)
	case step.BansChanged:
		m.onBans(in)
	case step.ClockStepped:
		m.ahead += in.By
	default:
		m.unexpected("", fmt.Sprintf("%T", in))
	}
}

func (m *Machine) onMessage(in step.MessageReceived) {
	err := in.From.Validate()
	if err == nil && in.Message == nil {
		err = fmt.Errorf("%w: no message", grid.ErrInvalid)
	}
	if err == nil {
		err = in.Message.Validate()
	}
	if err != nil {
		m.out.Report(step.LevelWarn, eventInvalid, step.Report{
			Site: in.From, Reason: grid.ReasonInvalid, Text: err.Error(),
		})
		return
	}
	if m.banned.Has(in.From) {
		return
	}
	switch msg := in.Message.(type) {
	case protocol.Bookings:
		m.onBookings(in.From, msg)
	case protocol.Favours:
		m.onFavours(in.From, msg)
	case protocol.Remapped:
		m.onRemapped(in.From, msg)
	default:
		m.unexpected(in.From, fmt.Sprintf("%T", msg))
	}
}

func (m *Machine) onTimer(key step.TimerKey) {
	switch key.Name {
	case timerGrace:
		m.onGraceTimer(grid.SiteID(key.ID))
	case timerJudge:
		if !m.judging.IsZero() && !m.judging.After(m.now) {
			m.judgeNow()
		}
	default:
		m.unexpected("", "timer "+key.Name)
	}
}

func (m *Machine) unexpected(from grid.SiteID, what string) {
	m.out.Report(step.LevelDebug, eventUnexpected, step.Report{Site: from, Text: what})
}
