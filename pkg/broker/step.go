package broker

import (
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Step implements step.Machine.
//
//nolint:cyclop,funlen // the one list of all that can happen; each line is one handler
func (m *Machine) Step(now time.Time, in step.Input) []step.Effect {
	m.pause.step(m.now, now)
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
	case step.HoldJob:
		onHold(m, in)
	case step.MoveTasks:
		m.moves.onTasks(in)
	case step.ForgetJob:
		m.onForget(in)
	case step.Archived:
		m.archive.onArchived(in)
	case step.PeerSeen:
		m.onPeerSeen(in)
	case step.PeerGone:
		m.onPeerGone(in)
	case step.AttemptsDied:
		m.onAttemptsDied(in)
	case step.BansChanged:
		m.onBans(in)
	case step.BandwidthMeasured:
		m.peers.onBandwidth(in)
	case step.ClockStepped:
		m.onClockStepped(in)
	case step.Controller:
		m.remaps.onController(in)
	case step.CapacityChanged:
		m.onCapacity(in)
	case step.Collected:
		m.onCollected(in)
	case step.Pulled:
		m.takings.onPulled(in)
		m.moves.saved(in.Attempt)
	case step.SpaceChanged:
		m.onSpace(in)
	case step.Ceiling:
		m.border.onCeiling(in)

	case step.MessageReceived:
		from := in.From
		if !m.peers.heeded(from, in.Message, m.jobs) {
			break
		}
		switch msg := in.Message.(type) {
		case protocol.NeedRequirements:
			m.herald.onNeedRequirements(from, msg, m.enquiries)
		case protocol.Bid:
			m.onBid(from, msg)
		case protocol.Refuse:
			m.onRefuse(from, msg)
		case protocol.Vacancy:
			m.onVacancy(from, msg)
		case protocol.Accepted:
			m.onRequest(from, msg.Renewal, msg.Attempts)
		case protocol.Declined:
			m.onDeclined(from, msg)
		case protocol.Renew:
			m.onRenew(from, msg)
		case protocol.MayStart:
			m.onMayStart(from, msg)
		case protocol.Progress:
			m.onProgress(from, msg)
		case protocol.Checkpointed:
			m.takings.onCheckpointed(from, msg)
			m.moves.saved(msg.Attempt)
		case protocol.Movable:
			m.moves.onMovable(from, msg)
		case protocol.Testimony:
			m.peers.onTestimony(from, msg)
		case protocol.Remap:
			m.remaps.onRemap(from, msg)
			m.moves.onRemap(msg)
		case protocol.Exited:
			m.peers.growSpace(from)
			if !m.doubtsEnd(m.jobs, from, msg) {
				m.onExited(from, msg)
			}
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
			m.jobs.with(id, m.wakes(wakeHoldOver))
		case timerRest:
			m.jobs.with(id, m.wakes(wakeRest))
		case timerWindow:
			m.jobs.with(id, m.onWindowTimer)
		case timerForget:
			m.probes.onForgetTimer(grid.JobID(id))
		case timerPresumed:
			m.jobs.with(id, m.onPresumedTimer)
		case timerCovered:
			m.onCoveredTimer()
		case timerTestify:
			m.peers.onTestifyTimer()
		case timerRivals:
			m.onRivalsTimer(id)
		case timerAward:
			withAttempt(id, m.onAwardTimer)
		case timerLease:
			withAttempt(id, m.onLeaseTimer)
		case timerCollect:
			withAttempt(id, m.onCollectTimer)
		case timerMove:
			withAttempt(id, m.moves.onTimer)
		}

	default: // the other inputs are the site machine's
	}
	m.drainLooks()
	m.archive.giveSome()
	m.border.tell()
	return m.out.Take()
}

func withAttempt(id string, do func(grid.AttemptID)) {
	if attempt, err := grid.ParseAttemptID(id); err == nil {
		do(attempt)
	}
}
