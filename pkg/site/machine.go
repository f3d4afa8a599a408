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
	cfg     Config
	now     time.Time // of the current Step
	out     step.Out  // of the current Step, and the facts of all
	booted  bool
	since   time.Time                 // when it booted; its age is an observation for z
	learned *step.AvailabilityLearned // of its availability; nil: nothing yet
	last    uint64                    // last number given to a request for leases

	capability grid.Capability // the owner's ceilings: what they exclude can never run here
	left       grid.Capability // what others leave of it now, and so what is offered
	potential  int64           // P of this site, bit/s
	paused     pause
	draining   bool
	owned      grid.Reason // why the owner has the machine to himself, ReasonNone = he has not

	plan        *plan.Planner // offers and commitments
	othersUntil time.Time     // until when the plan counts what others take as missing; zero: they take nothing
	planTimer   time.Time     // when the plan's timer fires; zero if it is not set
	queued      int           // commitments whose place in the plan has not come
	cache       *cache.Cache[grid.Requirement]
	bindings    *recent[grid.JobID, *binding]

	roster       *roster
	tokens       *recent[grid.TaskID, grid.Token]
	tenants      map[grid.SiteID]*tenant
	requests     *recent[uint64, request]
	vacancyAt    time.Time     // when the vacancy timer fires; zero if it is not set
	vacancyPause time.Duration // before those who were not told of room are told

	shareRefused bool // somebody was refused for having his share since the last vacancy

	peers map[grid.SiteID]*peer
	held  map[grid.CID]struct{}

	banned step.Bans
}

var _ step.Machine = (*Machine)(nil)

// New makes a machine. The configuration must be valid; New panics on one that
// is not, because nothing could be decided with it.
func New(cfg Config) *Machine {
	if err := cfg.Validate(); err != nil {
		panic(fmt.Sprintf("new site machine: %v", err))
	}
	requirements, err := cache.New[grid.Requirement](cfg.CacheEntries, cfg.Self)
	if err != nil { // the size was validated
		panic(fmt.Sprintf("new site machine: %v", err))
	}
	return &Machine{
		cfg: cfg, capability: cfg.Capability, left: cfg.Capability,
		plan: newPlan(cfg, cfg.Capability.Total, 0), cache: requirements,
		bindings: newRecent[grid.JobID, *binding](maxBindings),
		roster:   newRoster(), tokens: newRecent[grid.TaskID, grid.Token](maxTokens),
		tenants: make(map[grid.SiteID]*tenant), requests: newRecent[uint64, request](maxRequests),
		peers: make(map[grid.SiteID]*peer), held: make(map[grid.CID]struct{}),
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
	}
	m.armPlan()
	return m.out.Take()
}

// boot starts to work. What was under way when the agent died has died with it;
// the submitters are told until they acknowledge it. What was promised for later is
// kept.
func (m *Machine) boot(in step.Boot) {
	m.booted, m.since = true, m.now
	m.last = in.Incarnation << 32 // numbers of an earlier run are never used again
	m.plan = plan.Restore(planConfig(m.cfg, m.capability.Total, in.Incarnation), m.now, m.promised())
	m.takenByOthers()
	for _, a := range m.roster.sorted() {
		m.raiseToken(a.id.Task, a.id.Token)
		switch c, kept := m.plan.Commitment(a.id); {
		case a.phase == phaseExited:
			a.repeat = firstExitRepeat
			m.tellExit(a)
		case kept:
			m.takeUp(a, c)
		case a.reserves():
			m.end(a, grid.Exit{Cause: grid.CauseExited, Text: "its time is over"})
		default:
			m.out.Report(step.LevelWarn, eventRestartDetected, about(a.id, a.submitter))
			m.end(a, grid.Exit{Cause: grid.CauseSiteRestart, Text: "the site's agent was restarted"})
		}
	}
	if m.paused.on {
		m.armPause()
	}
}

// dispatch handles one input of a machine that has booted.
func (m *Machine) dispatch(in step.Input) {
	switch in := in.(type) {
	case step.MessageReceived:
		m.onMessage(in)
	case step.TimerFired:
		m.onTimer(in.Key)
	case step.AttemptStarted:
		m.onStarted(in)
	case step.AttemptFrozen:
		m.onFrozen(in)
	case step.AttemptResumed:
		m.onResumed(in)
	case step.AttemptExited:
		m.onExited(in)
	case step.StageProgress:
		m.onStageProgress(in)
	case step.Staged:
		m.onStaged(in)
	case step.Verified:
		m.onVerified(in)
	default:
		m.dispatchSite(in)
	}
}

// dispatchSite handles what is about the site rather than an attempt.
func (m *Machine) dispatchSite(in step.Input) {
	switch in := in.(type) {
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
	case step.ClockStepped: // now does not step, and nothing here reads the wall clock
	default:
		m.dispatchOwner(in)
	}
}

// dispatchOwner handles what the owner says and does.
func (m *Machine) dispatchOwner(in step.Input) {
	switch in := in.(type) {
	case step.Pause:
		m.onPause(in)
	case step.Resume:
		m.onResume()
	case step.Drain:
		m.onDrain(in)
	case step.OwnerBusy:
		m.onOwnerBusy(in)
	case step.OwnerAway:
		m.onOwnerAway()
	case step.PlanningChanged:
		m.onPlanning(in)
	case step.TermsChanged:
		m.onTerms(in)
	default:
		m.out.Report(step.LevelDebug, eventNotForSite, step.Report{Text: fmt.Sprintf("%T", in)})
	}
}

// heeded reports whether a message is to be handled, and says so if not. It is
// validated here again, so that a driver's mistake cannot break the plan.
func (m *Machine) heeded(in step.MessageReceived) bool {
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
	if !m.heeded(in) {
		return
	}
	switch msg := in.Message.(type) {
	case protocol.Announce:
		m.onAnnounce(in.From, msg)
	case protocol.Requirements:
		m.onAnnounce(in.From, msg.Announce)
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
	case protocol.ExitAck:
		m.onExitAck(in.From, msg)
	case protocol.Fence:
		m.onFence(in.From, msg)
	case protocol.Cancel:
		m.onCancel(in.From, msg)
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
	case timerExited:
		m.attemptTimer(key, m.onExitedTimer)
	case timerAsk:
		m.attemptTimer(key, m.onAskTimer)
	case timerRenew:
		m.onRenewTimer(grid.SiteID(key.ID))
	case timerVacancy:
		m.onVacancyTimer()
	case timerPause:
		m.onPauseTimer()
	case timerOwner:
		m.onOwnerTimer()
	case timerPlan: // every Step advances the plan
	default:
		m.out.Report(step.LevelDebug, eventStale, step.Report{Text: "timer " + key.Name})
	}
}
