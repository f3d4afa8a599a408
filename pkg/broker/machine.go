package broker

import (
	"math/rand/v2"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Machine is the submitter's machine. It implements step.Machine; its other
// methods only read.
type Machine struct {
	*run
	jobs    *jobs
	probes  probes
	peers   *peers
	herald  herald
	rights  rights
	awards  awardTable
	looks   looks
	counter uint64 // of jobs, ever
}

// run is what one run of the broker is told once, and the Step under way. Its parts share
// it.
type run struct {
	cfg         Config
	rng         *rand.Rand // draws have an order: one more, or earlier, moves every later pause
	incarnation uint64     // the number of this run
	bootedAt    time.Time
	now         time.Time // of the Step under way
	out         step.Out  // of the Step under way, and the facts of all
}

var _ step.Machine = (*Machine)(nil)

// The machine's timers.
const (
	timerRound   = "round"   // a round's TTL is over; ID is the job
	timerExplain = "explain" // half the TTL passed without an offer; ID is the job
	timerAgain   = "again"   // announce a waiting job again; ID is the job
	timerReunion = "reunion" // frozen attempts had the time to come back; ID is the job
	timerAward   = "award"   // an award was not answered; ID is its first attempt
	timerLease   = "lease"   // the last lease of an attempt has ended; ID is the attempt
	timerCollect = "collect" // fetch outputs again; ID is the attempt
	timerHold    = "hold"    // sites had the time to make their offers firm; ID is the job
	timerRivals  = "rivals"  // whether the sites that queue a task are there; ID is the task
	timerWindow  = "window"  // what waits is too late now; ID is the job
	timerForget  = "forget"  // an ended job has been kept long enough; ID is the job
)

// New returns a broker that knows of no job. The configuration must be valid.
func New(cfg Config) *Machine {
	if cfg.Here == "" {
		cfg.Here = cfg.Owner
	}
	r := &run{cfg: cfg, rng: step.NewRand(cfg.Seed, "broker/"+string(cfg.Owner), 0)}
	m := &Machine{
		run: r, jobs: newJobs(), probes: make(probes), peers: newPeers(r),
		awards: make(awardTable),
	}
	m.herald, m.rights = herald{run: r, peers: m.peers, jobs: m.jobs}, rights{run: r, jobs: m.jobs}
	m.looks.jobs = m.jobs
	return m
}

// Step implements step.Machine.
//
//nolint:cyclop,funlen // the one list of all that can happen; each line is one handler
func (m *Machine) Step(now time.Time, in step.Input) []step.Effect {
	m.now = now
	switch in := in.(type) {
	case step.Boot:
		m.onBoot(in)
	case step.Submit:
		m.onSubmit(in)
	case step.Probe:
		m.onProbe(in)
	case step.CancelJob:
		m.onCancel(in)
	case step.ForgetJob:
		m.onForget(in)
	case step.PeerSeen:
		m.onPeerSeen(in)
	case step.PeerGone:
		m.onPeerGone(in)
	case step.BansChanged:
		m.onBans(in)
	case step.BandwidthMeasured:
		m.peers.onBandwidth(in)
	case step.CapacityChanged:
		m.onCapacity(in)
	case step.Collected:
		m.onCollected(in)

	case step.MessageReceived:
		from := in.From
		if !m.heeded(from, in.Message) {
			break
		}
		switch msg := in.Message.(type) {
		case protocol.NeedRequirements:
			m.onNeedRequirements(from, msg)
		case protocol.Bid:
			m.onBid(from, msg)
		case protocol.Refuse:
			m.onRefuse(from, msg)
		case protocol.Vacancy:
			m.onVacancy(from, msg)
		case protocol.Accepted:
			m.onRenew(from, msg.Renewal, msg.Attempts)
		case protocol.Declined:
			m.onDeclined(from, msg)
		case protocol.Renew:
			m.onRenew(from, msg.Renewal, msg.Attempts)
		case protocol.MayStart:
			m.onMayStart(from, msg)
		case protocol.Progress:
			m.onProgress(from, msg)
		case protocol.Exited:
			m.onExited(from, msg)
		default: // the other messages are the site machine's
		}

	case step.TimerFired:
		switch name, id := in.Key.Name, in.Key.ID; name {
		case timerRound:
			m.withEnquiry(id, m.closeRound)
		case timerExplain:
			m.withEnquiry(id, m.herald.onExplainTimer)
		case timerAgain, timerReunion:
			m.jobs.with(id, m.announceInTurn)
		case timerHold:
			m.jobs.with(id, m.onHoldTimer)
		case timerWindow:
			m.jobs.with(id, m.onWindowTimer)
		case timerForget:
			m.onForgetTimer(grid.JobID(id))
		case timerRivals:
			m.onRivalsTimer(id)
		case timerAward:
			withAttempt(id, m.onAwardTimer)
		case timerLease:
			withAttempt(id, m.onLeaseTimer)
		case timerCollect:
			withAttempt(id, m.onCollectTimer)
		}

	default: // the other inputs are the site machine's
	}
	m.drainLooks()
	return m.out.Take()
}

// with does something with the job that a timer names, if it is still there.
func (l *jobs) with(id string, do func(*job)) {
	if j, known := l.all[grid.JobID(id)]; known {
		do(j)
	}
}

// withEnquiry does the same with a job or a probe.
func (m *Machine) withEnquiry(id string, do func(*job)) {
	if j, known := m.enquiry(grid.JobID(id)); known {
		do(j)
	}
}

func withAttempt(id string, do func(grid.AttemptID)) {
	if attempt, err := grid.ParseAttemptID(id); err == nil {
		do(attempt)
	}
}

// heeded reports whether a message is to be handled: it is valid, and not from a banned
// site. Whoever says it is there.
func (m *Machine) heeded(from grid.SiteID, msg protocol.Message) bool {
	if msg == nil || !m.valid(from, msg) || m.peers.banned.Has(from) { // it was on its way
		return false
	}
	m.heard(from)
	return true
}

// onCapacity takes what this site can do now: it is what data is fetched from.
func (r *run) onCapacity(in step.CapacityChanged) {
	if r.valid(r.cfg.Here, in.Capability) {
		r.cfg.Capability = in.Capability
	}
}

// valid reports whether something that came from a site keeps to its ranges. It
// is checked here again, so that a driver's mistake cannot break the machine.
func (r *run) valid(from grid.SiteID, what interface{ Validate() error }) bool {
	err := from.Validate()
	if err == nil {
		err = what.Validate()
	}
	if err != nil {
		r.out.Report(step.LevelWarn, eventInvalid, step.Report{
			Site: from, Reason: grid.ReasonInvalid, Text: err.Error(),
		})
	}
	return err == nil
}

func (r *run) report(level step.Level, event string, attempt grid.AttemptID, site grid.SiteID) {
	r.out.Report(level, event, step.Report{Attempt: attempt, Site: site})
}

// reportRefused counts a message that asked for something its sender may not
// ask for or that makes no sense now.
func (r *run) reportRefused(event string, from grid.SiteID, attempt grid.AttemptID, reason grid.Reason) {
	r.out.Report(step.LevelWarn, event, step.Report{Attempt: attempt, Site: from, Reason: reason})
}

func (r *run) setTimer(name, id string, at time.Time) { r.out.SetTimer(name, id, at) }

func (r *run) stopTimer(name, id string) { r.out.StopTimer(name, id) }
