package site

import (
	"fmt"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/cache"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/plan"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Machine decides for one site. It has one owner and implements step.Machine.
type Machine struct {
	cfg    Config
	now    time.Time // of the current Step
	out    step.Out  // of the current Step, and the facts of all
	booted bool

	capability grid.Capability // the owner's ceilings: what they exclude can never run here
	left       grid.Capability // what others leave of it now, and so what is offered
	owner      owner
	risk       risk
	vouching   vouching // whose work is run

	plan       planning // offers and commitments
	cache      *cache.Cache[*announced]
	roster     *roster // the attempts
	submitters submitters
	vacancy    vacancy

	links  links
	clocks clocks
	books  books                        // what the controller of the domain is told
	held   map[grid.DataDigest]struct{} // data that is here
	banned step.Bans
}

var _ step.Machine = (*Machine)(nil)

// New makes a machine. The configuration must be valid; New panics on one that
// is not, because nothing could be decided with it.
func New(cfg Config) *Machine {
	if err := cfg.Validate(); err != nil {
		panic(fmt.Sprintf("new site machine: %v", err))
	}
	requirements, err := cache.New[*announced](cfg.CacheEntries, cfg.Self)
	if err != nil { // the size was validated
		panic(fmt.Sprintf("new site machine: %v", err))
	}
	return &Machine{
		cfg: cfg, out: step.Out{Level: cfg.Reports},
		capability: cfg.Capability, left: cfg.Capability,
		plan: planning{Planner: newPlan(cfg, cfg.Capability.Total, 0)}, cache: requirements,
		roster: newRoster(), submitters: newSubmitters(), vouching: newVouching(cfg.Signers),
		links: links{peers: make(map[grid.SiteID]*peer)}, held: make(map[grid.DataDigest]struct{}),
	}
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
		m.boot(boot)
	case !m.booted:
		m.out.Report(step.LevelWarn, eventNotBooted, step.Report{Text: fmt.Sprintf("%T", in)})
	default:
		m.advance()
		m.dispatch(in)
		m.advance() // what became free may start what waited for it
		m.settleShare()
	}
	m.armPlan()
	return m.out.Take()
}

// boot starts to work. What was under way when the agent died has died with it;
// the submitters are told until they acknowledge it. What was promised for later is
// kept.
func (m *Machine) boot(in step.Boot) {
	m.booted, m.risk.since, m.clocks.lasting = true, m.now, in.Clock
	m.rereadPlaces()
	m.rereadEnds()
	m.submitters.lines.put(m.cfg.Self, in.Line)
	m.submitters.requests.begin(in.Incarnation)
	m.books.number = in.Incarnation << 32
	m.plan.Planner = plan.Restore(
		planConfig(m.cfg, m.capability.Total, in.Incarnation), m.now, m.keptPromises())
	m.setOutage()
	for _, a := range m.roster.sorted() {
		m.raiseToken(a.id.Task, a.id.Token)
		switch c, kept := m.plan.Commitment(a.id); {
		case a.phase == phaseExited:
			a.repeat, a.heldFrom = firstExitRepeat, m.now
			m.sendExited(a)
		case kept:
			m.takeUp(a, c)
		case a.reserves():
			m.end(a, grid.Exit{Cause: grid.CauseExited, Text: "its time is over"})
		default:
			m.out.Report(step.LevelWarn, eventRestartDetected, about(a.id, a.submitter))
			m.end(a, grid.Exit{Cause: grid.CauseSiteRestart, Text: "the site's agent was restarted"})
		}
	}
	if m.owner.paused.on {
		m.armPause()
	}
}

// dispatch handles one input of a machine that has booted.
func (m *Machine) dispatch(in step.Input) { //nolint:cyclop // the one list of inputs, one line each
	switch in := in.(type) {
	case step.MessageReceived:
		m.onMessage(in)
	case step.TimerFired:
		m.onTimer(in.Key)

	// What the driver says of an attempt.
	case step.Verified:
		m.onVerified(in)
	case step.StageProgress:
		m.onStageProgress(in)
	case step.Staged:
		m.onStaged(in)
	case step.CanSave:
		m.onCanSave(in)
	case step.Saved:
		m.onSaved(in)
	case step.AttemptStarted:
		m.onStarted(in)
	case step.AttemptFrozen:
		m.onFrozen(in)
	case step.AttemptResumed:
		m.onResumed(in)
	case step.AttemptExited:
		m.onExited(in)

	// What is around the site.
	case step.PeerSeen:
		m.onPeerSeen(in)
	case step.PeerGone:
		m.onPeerGone(in)
	case step.BandwidthMeasured:
		m.onBandwidth(in)
	case step.HeldChanged:
		m.onHeld(in)
	case step.CapacityChanged:
		m.onCapacity(in)
	case step.AvailabilityLearned:
		m.onAvailability(in)
	case step.BansChanged:
		m.onBans(in)
	case step.Controller:
		m.onController(in)
	case step.ClockStepped:
		m.onClockStepped(in)

	// What the owner says and does.
	case step.Pause:
		m.onPause(in)
	case step.Resume:
		m.onResume(in)
	case step.Drain:
		m.onDrain(in)
	case step.OwnerBusy:
		m.onOwnerBusy(in)
	case step.OwnerAway:
		m.onOwnerAway()
	case step.OwnerReturns:
		m.onOwnerReturns(in)
	case step.SpaceChanged:
		m.onSpace(in)
	case step.ShareChanged:
		m.onShare(in)
	case step.PlanningChanged:
		m.onPlanning(in)
	case step.TermsChanged:
		m.onTerms(in)

	default: // an input of the submitter's machine
		m.out.Report(step.LevelDebug, eventNotForSite, step.Report{Text: fmt.Sprintf("%T", in)})
	}
}

// admitMessage lets a message through, or reports why it is ignored. It is validated
// here again, so that a driver's mistake cannot break the plan.
func (m *Machine) admitMessage(in step.MessageReceived) bool {
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
		return false
	}
	banned := m.banned.Has(in.From)
	if banned { // it was on its way
		m.out.Report(step.LevelDebug, eventBanned, step.Report{
			Site: in.From, Reason: grid.ReasonBanned,
		})
	}
	return !banned
}

// onMessage handles one message.
func (m *Machine) onMessage(in step.MessageReceived) {
	if !m.admitMessage(in) {
		return
	}
	switch msg := in.Message.(type) {
	case protocol.Announce, protocol.Requirements:
		m.onAnnounce(in.From, msg)
	case protocol.Reannounce:
		m.onReannounce(in.From, msg)
	case protocol.Clear:
		m.onClear(in.From, msg)
	case protocol.HoldOffer:
		m.onHoldOffer(in.From, msg)
	case protocol.Award:
		m.onAward(in.From, msg)
	case protocol.Lease:
		m.onLease(in.From, msg)
	case protocol.Held:
		m.onCheckpointHeld(in.From, msg)
	case protocol.Move:
		m.onMove(in.From, msg)
	case protocol.ExitAck:
		m.onExitAck(in.From, msg)
	case protocol.Fence:
		m.onFence(in.From, msg)
	case protocol.Cancel:
		m.onCancel(in.From, msg)
	case protocol.Booked:
		m.onBooked(in.From, msg)
	default:
		m.out.Report(step.LevelDebug, eventNotForSite, step.Report{
			Site: in.From, Text: fmt.Sprintf("%T", msg),
		})
	}
}

func (m *Machine) onTimer(key step.TimerKey) {
	switch key.Name {
	case timerWatch:
		m.attemptTimer(key, m.onWatchTimer)
	case timerSave:
		m.attemptTimer(key, m.onSaveTimer)
	case timerExited:
		m.attemptTimer(key, m.onExitedTimer)
	case timerAsk:
		m.attemptTimer(key, m.onAskTimer)
	case timerRenew:
		m.onRenewTimer(grid.SiteID(key.ID))
	case timerVacancy, timerWatchers:
		m.onSpaceTimer(key.Name)
	case timerMove:
		m.attemptTimer(key, m.onMoveTimer)
	case timerReturns:
		m.reviewLeaving()
	case timerStopAt:
		m.onStopAtTimer()
	case timerPause:
		m.onPauseTimer()
	case timerOwner:
		m.onOwnerTimer()
	case timerBookings:
		m.onBookingsTimer()
	case timerPlan, timerShare: // every Step advances the plan, and settles the share
	default:
		m.out.Report(step.LevelDebug, eventStale, step.Report{Text: "timer " + key.Name})
	}
}
