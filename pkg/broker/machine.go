package broker

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/fault"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Machine is the submitter's machine. It implements step.Machine; its other
// methods only read.
type Machine struct {
	cfg         Config
	rng         *rand.Rand
	incarnation uint64
	counter     uint64 // of jobs, ever
	bootedAt    time.Time
	cutOff      bool      // the last round that asked everybody was answered by nobody
	reunion     time.Time // until then frozen attempts are given time to come back
	jobs        map[grid.JobID]*job
	members     map[grid.SiteID]*member
	banned      step.Bans
	awards      map[grid.AttemptID]award // awaiting an answer, by their first attempt
	faults      fault.Ledger
	dependants  map[grid.JobID][]grid.JobID // by the job that they name: as one before them, or as their reservation
	ranked      int                         // jobs with a priority
	looks       looks

	now time.Time // of the Step under way
	out step.Out  // of the Step under way, and the facts of all
}

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
	timerWindow  = "window"  // what waits is too late now; ID is the job
	timerForget  = "forget"  // an ended job has been kept long enough; ID is the job
)

// New returns a broker that knows of no job. The configuration must be valid.
func New(cfg Config) *Machine {
	return &Machine{
		cfg: cfg, rng: step.NewRand(cfg.Seed, "broker/"+string(cfg.Self), 0),
		jobs: make(map[grid.JobID]*job), members: make(map[grid.SiteID]*member),
		awards: make(map[grid.AttemptID]award), dependants: make(map[grid.JobID][]grid.JobID),
	}
}

// Step implements step.Machine.
func (m *Machine) Step(now time.Time, in step.Input) []step.Effect {
	m.now = now
	switch in := in.(type) {
	case step.Boot:
		m.boot(in)
	case step.MessageReceived:
		m.message(in.From, in.Message)
	case step.TimerFired:
		m.timer(in.Key)
	case step.PeerSeen:
		m.peerSeen(in)
	case step.PeerGone:
		m.peerGone(in)
	case step.BandwidthMeasured:
		m.bandwidth(in)
	case step.Collected:
		m.collected(in)
	case step.CapacityChanged:
		if m.valid(m.cfg.Self, in.Capability) {
			m.cfg.Capability = in.Capability
		}
	case step.BansChanged:
		m.bansChanged(in)
	case step.Submit, step.Probe, step.CancelJob, step.ForgetJob:
		m.command(in)
	default: // the other inputs are the site machine's
	}
	m.drainLooks()
	return m.out.Take()
}

func (m *Machine) command(in step.Input) {
	switch in := in.(type) {
	case step.Submit:
		m.submit(in)
	case step.Probe:
		m.probe(in)
	case step.CancelJob:
		m.cancel(in)
	case step.ForgetJob:
		m.forget(in)
	}
}

// valid reports whether something that came from a site keeps to its ranges. It
// is checked here again, so that a driver's mistake cannot break the machine.
func (m *Machine) valid(from grid.SiteID, what interface{ Validate() error }) bool {
	err := from.Validate()
	if err == nil {
		err = what.Validate()
	}
	if err != nil {
		m.out.Emit(step.Report{
			Event: "invalid", Level: step.LevelWarn, Site: from, Reason: grid.ReasonInvalid, Text: err.Error(),
		})
	}
	return err == nil
}

func (m *Machine) message(from grid.SiteID, msg protocol.Message) {
	if msg == nil || !m.valid(from, msg) {
		return
	}
	if m.banned.Has(from) { // it was on its way
		return
	}
	m.heard(from)
	switch msg := msg.(type) {
	case protocol.NeedRequirements:
		m.needRequirements(from, msg)
	case protocol.Bid:
		m.bid(from, msg)
	case protocol.Refuse:
		m.refuse(from, msg)
	case protocol.Vacancy:
		m.vacancy(from, msg)
	case protocol.Accepted:
		m.renew(from, msg.Renewal, msg.Attempts)
	case protocol.Declined:
		m.declined(from, msg)
	case protocol.Renew:
		m.renew(from, msg.Renewal, msg.Attempts)
	case protocol.MayStart:
		m.mayStart(from, msg)
	case protocol.Progress:
		m.progress(from, msg)
	case protocol.Exited:
		m.exited(from, msg)
	default: // the other messages are the site machine's
	}
}

func (m *Machine) timer(key step.TimerKey) {
	switch key.Name {
	case timerRound, timerExplain, timerAgain, timerReunion, timerHold, timerWindow, timerForget:
		j, ok := m.jobs[grid.JobID(key.ID)]
		if ok {
			m.jobTimer(key.Name, j)
		}
	case timerRivals:
		if id, err := grid.ParseTaskID(key.ID); err == nil {
			m.rivalsTimer(id)
		}
	case timerAward, timerLease, timerCollect:
		m.attemptTimer(key)
	}
}

func (m *Machine) jobTimer(name string, j *job) {
	switch name {
	case timerRound:
		m.closeRound(j)
	case timerExplain:
		m.explainRound(j)
	case timerAgain, timerReunion:
		m.announceInTurn(j)
	case timerHold:
		m.decide(j)
	case timerWindow:
		if !m.expire(j) {
			m.announceInTurn(j) // what may still come back is waited for
		}
	case timerForget:
		m.forgetInTime(j)
	}
}

func (m *Machine) attemptTimer(key step.TimerKey) {
	id, err := grid.ParseAttemptID(key.ID)
	if err != nil {
		return
	}
	switch key.Name {
	case timerAward:
		m.awardMissed(id)
	case timerLease:
		m.leaseEnded(id)
	case timerCollect:
		m.collectAgain(id)
	}
}

// boot takes up what an earlier run left: tasks that were awarded may still
// run, so their leases are presumed to have just been granted.
func (m *Machine) boot(in step.Boot) {
	m.incarnation, m.bootedAt = in.Incarnation, m.now
	m.rng = step.NewRand(m.cfg.Seed, "broker/"+string(m.cfg.Self), in.Incarnation)
	for _, id := range sortedSites(m.members) {
		if !m.members[id].known(m.now) {
			m.forgetMember(id)
		}
	}
	for _, id := range m.jobIDs() {
		j := m.jobs[id]
		if j.open == 0 {
			m.out.SetTimer(timerForget, string(id), m.now.Add(m.cfg.KeepEnded))
			continue
		}
		j.seq = uint32(in.Incarnation << seqBits) // it may wrap after 65,536 starts, and sites forget
		for i := range j.tasks {
			m.resumeTask(j, uint32(i))
		}
		m.watchWindow(j)
		m.resumeParts(j)
		if m.blocked(j) {
			m.follow(j)
		}
		if len(j.waiting) > 0 && !m.blocked(j) {
			m.out.SetTimer(timerAgain, string(id), m.now.Add(m.cfg.BackoffMin))
		}
	}
}

// seqBits is how many announcements of a job a run may make before the numbers
// of the next run follow. Sites ignore numbers that they have answered, so a run
// must not repeat those of an earlier one.
const seqBits = 16

func (m *Machine) resumeTask(j *job, index uint32) {
	t := &j.tasks[index]
	id := j.attempt(index)
	switch {
	case t.phase == grid.PhaseCollecting:
		m.startCollect(j, index)
	case len(t.rivals) > 0:
		m.resumeRivals(j, index)
	case t.active():
		lease := m.cfg.Lease
		if j.isReservation() {
			lease = m.cfg.ReservationLease // its site may have to start again, too
		}
		end := m.now.Add(lease + m.cfg.LeaseMargin)
		if t.leaseEnd.Before(end) {
			t.leaseEnd = end
		}
		m.out.SetTimer(timerLease, id.String(), t.leaseEnd)
	}
}

func (m *Machine) jobIDs() []grid.JobID { return slices.Sorted(maps.Keys(m.jobs)) }

func (m *Machine) report(level step.Level, event string, attempt grid.AttemptID, site grid.SiteID) {
	m.out.Emit(step.Report{Event: event, Level: level, Attempt: attempt, Site: site})
}

// refusedMessage counts a message that asked for something its sender may not
// ask for or that makes no sense now.
func (m *Machine) refusedMessage(event string, from grid.SiteID, attempt grid.AttemptID, reason grid.Reason) {
	m.out.Emit(step.Report{Event: event, Level: step.LevelWarn, Attempt: attempt, Site: from, Reason: reason})
}
