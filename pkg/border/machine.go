package border

import (
	"fmt"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// The machine's timers.
const (
	timerErrand  = "errand"  // a task at a neighbour needs a repetition; ID is its attempt
	timerGuest   = "guest"   // an order here does; ID is its name, see guestName
	timerFavours = "favours" // the controller is to be told of them
	timerRenew   = "renew"   // leases of a neighbour's orders are to be asked for; ID is the domain
)

// countBits is the part of a number that counts within a run; above it is the run's own number.
const countBits = 32

// Machine is the border of a gateway. It implements step.Machine; its other methods only read.
//
// It takes Boot, LinksChanged, NeighbourSeen and NeighbourGone, BorderReceived, MessageReceived
// with To set, or of the controller, Controller, PeerSeen, PeerGone and CapacityChanged (for the
// capacity of its domain), Staged and Collected of what it has asked for, Replied, OrderNews,
// Signed, and the timers that it has set.
// After a Boot its driver tells it of all links, neighbours and peers that are there.
//
// What it stages, collects and discards is kept under the attempts of the domain that ordered; its
// driver keeps that apart from what the other machines of the site keep under the same ones.
type Machine struct {
	cfg      Config
	now      time.Time // of the Step under way
	ahead    time.Duration
	booted   bool
	bootedAt time.Time
	restored int      // rows that an earlier run has left, whose limits may have been others
	last     uint64   // number that was given out; the run's own number is a part of it
	out      step.Out // of the Step under way, and the facts of all
	banned   step.Bans
	near     neighbours
	favours  favours
	outer
	inner
}

var _ step.Machine = (*Machine)(nil)

// New returns a border that knows no link. Errors are grid.ErrInvalid.
func New(cfg Config) (*Machine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Machine{
		cfg: cfg, out: step.Out{Level: cfg.Reports}, near: newNeighbours(),
		favours: newFavours(), outer: newOuter(), inner: newInner(),
	}, nil
}

// number is one that is never used twice, over all runs.
func (m *Machine) number() uint64 {
	m.last++
	return m.last
}

// Step implements step.Machine.
func (m *Machine) Step(now time.Time, in step.Input) []step.Effect {
	if now.After(m.now) {
		m.now = now
	}
	boot, isBoot := in.(step.Boot)
	switch {
	case isBoot && m.booted:
		m.out.Report(step.LevelWarn, eventBootedTwice, step.Report{})
	case isBoot:
		m.booted, m.last = true, boot.Incarnation<<countBits
		m.resume()
	case !m.booted:
		m.unexpected("", fmt.Sprintf("%T before a boot", in))
	default:
		m.dispatch(in)
	}
	return m.out.Take()
}

//nolint:cyclop // the one list of all that can happen; each line is one handler
func (m *Machine) dispatch(in step.Input) {
	switch in := in.(type) {
	case step.BorderReceived:
		m.onBorder(in)
	case step.MessageReceived:
		m.onMessage(in)
	case step.TimerFired:
		m.onTimer(in.Key)
	case step.LinksChanged:
		m.onLinks(in)
	case step.NeighbourSeen:
		m.onNeighbourSeen(in)
	case step.NeighbourGone:
		m.onNeighbourGone(in)
	case step.Replied:
		m.onReplied(in)
	case step.OrderNews:
		m.onNews(in)
	case step.Staged:
		m.onStaged(in)
	case step.Collected:
		m.onCollected(in)
	case step.Signed:
		m.onSigned(in)
	case step.PeerSeen:
		m.onPeerSeen(in)
	case step.PeerGone:
		m.near.set(in.Site, 0)
		m.abandon(in.Site)
	case step.CapacityChanged:
		m.forgetRefused()
		m.near.set(m.cfg.Here, max(in.Capability.Total.MilliCPUs, 0))
	case step.Controller:
		m.onController(in)
	case step.BansChanged:
		m.banned.Change(in, m.cfg.Here)
	case step.ClockStepped:
		m.ahead += in.By
	default:
		m.unexpected("", fmt.Sprintf("%T", in))
	}
}

// isValid reports whether a message can be handled; else it is counted.
func (m *Machine) isValid(from grid.SiteID, msg protocol.Message) bool {
	err := from.Validate()
	if err == nil && msg == nil {
		err = fmt.Errorf("%w: no message", grid.ErrInvalid)
	}
	if err == nil {
		err = msg.Validate()
	}
	if err != nil {
		m.out.Report(step.LevelWarn, eventInvalid, step.Report{
			Site: from, Reason: grid.ReasonInvalid, Text: err.Error(),
		})
	}
	return err == nil
}

// onBorder takes what a neighbour's gateway says.
func (m *Machine) onBorder(in step.BorderReceived) {
	if !m.isValid(in.Domain, in.Message) {
		return
	}
	switch msg := in.Message.(type) {
	case protocol.BorderQuery:
		m.onQuery(in.Domain, msg)
	case protocol.BorderOrder:
		m.onOrder(in.Domain, msg)
	case protocol.BorderLease:
		m.onBorderLease(in.Domain, msg)
	case protocol.BorderFence:
		m.onBorderFence(in.Domain, msg)
	case protocol.BorderReceipt:
		m.onReceipt(in.Domain, msg)
	case protocol.BorderAnswer:
		m.onAnswer(in.Domain, msg)
	case protocol.BorderRenew:
		m.onBorderRenew(in.Domain, msg)
	case protocol.BorderDeclined:
		m.onBorderDeclined(in.Domain, msg)
	case protocol.BorderState:
		m.onState(in.Domain, msg)
	case protocol.BorderEnd:
		m.onEnd(in.Domain, msg)
	default:
		m.unexpected(in.Domain, fmt.Sprintf("%T", msg))
	}
}

// onMessage takes what members of this domain say.
func (m *Machine) onMessage(in step.MessageReceived) {
	if !m.isValid(in.From, in.Message) || m.banned.Has(in.From) {
		return
	}
	if noted, is := in.Message.(protocol.FavoursNoted); is {
		m.onNoted(in.From, noted)
		return
	}
	m.onSubmitter(in)
}

// onSubmitter takes what a submitter of this domain says to a neighbour.
func (m *Machine) onSubmitter(in step.MessageReceived) {
	to := in.To
	switch msg := in.Message.(type) {
	case protocol.Announce:
		m.onAnnounce(in.From, to, msg)
	case protocol.Requirements:
		m.onAnnounce(in.From, to, msg.Announce)
	case protocol.Reannounce: // nothing is remembered of earlier ones
		m.sendAs(to, in.From, protocol.NeedRequirements{Job: msg.Job, Seq: msg.Seq})
	case protocol.HoldOffer:
		m.refuseJob(in.From, to, msg.Job, msg.Seq, grid.ReasonStays)
	case protocol.Award:
		m.onAward(in.From, to, msg)
	case protocol.Lease:
		m.onLease(in.From, to, msg)
	case protocol.Fence:
		m.onFence(in.From, to, msg.Below)
	case protocol.Cancel:
		m.onCancel(in.From, to, msg.Job)
	case protocol.ExitAck:
		m.onExitAck(in.From, to, msg)
	case protocol.Clear:
		if key := (query{job: msg.Job, domain: to}); m.queries[key].submitter == in.From {
			delete(m.queries, key)
		}
	default:
		m.unexpected(in.From, fmt.Sprintf("%T", msg))
	}
}

func (m *Machine) onTimer(key step.TimerKey) {
	switch key.Name {
	case timerErrand:
		if id, err := grid.ParseAttemptID(key.ID); err == nil && m.errands.get(id, "") != nil {
			m.wakeErrand(m.errands.get(id, ""))
		}
	case timerGuest:
		if g := m.guest(key.ID); g != nil {
			m.wakeGuest(g)
		}
	case timerFavours:
		m.tellFavours()
	case timerRenew:
		m.onRenewTimer(grid.SiteID(key.ID))
	default:
		m.unexpected("", "timer "+key.Name)
	}
}

func (m *Machine) unexpected(from grid.SiteID, what string) {
	m.out.Report(step.LevelDebug, eventUnexpected, step.Report{
		Site: from, Text: strings.TrimPrefix(what, "protocol."),
	})
}

func (m *Machine) sendAs(as, to grid.SiteID, msg protocol.Message) {
	m.out.Emit(step.SendAs{As: as, To: to, Message: msg})
}

// sendBorder sends a message to a neighbour; it is lost while that one cannot be reached.
func (m *Machine) sendBorder(domain grid.SiteID, msg protocol.Message) {
	if l := m.near.links[domain]; l != nil && l.connected {
		m.out.Emit(step.SendBorder{Domain: domain, Message: msg})
	}
}
