package broker

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"strings"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// submit takes a job: it is durable before the user gets its ID.
func (m *Machine) submit(in step.Submit) {
	j, err := m.accept(in.Job)
	if err != nil {
		m.emit(step.Reply{Command: in.Command, Err: err})
		return
	}
	j.noWait = in.NoWait
	m.saveJob(j)
	m.emit(step.Hold{Job: j.id, CIDs: inputsOf(j.job)})
	m.emit(step.Reply{Command: in.Command, Job: j.id})
	m.report(step.LevelInfo, "job_submitted", j.attemptOfJob(), m.cfg.Self)
	m.announce(j)
}

// probe asks for offers and places nothing. It is answered when the round
// closes, and kept for `why` until the record expires.
func (m *Machine) probe(in step.Probe) {
	j, err := m.accept(in.Job)
	if err != nil {
		m.emit(step.Reply{Command: in.Command, Err: err})
		return
	}
	j.probe, j.command = true, in.Command
	m.announce(j)
}

func (m *Machine) accept(spec grid.Job) (*job, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	if len(m.jobs) >= m.cfg.MaxJobs {
		return nil, step.ErrTooManyJob
	}
	m.counter++
	m.persist(factCounter, "jobs", counterFact{Jobs: m.counter})
	id := newJobID(m.cfg.Self, m.incarnation, m.counter)
	j := newJob(id, spec, m.now)
	m.describe(j)
	m.jobs[id] = j
	return j, nil
}

// describe derives what the announcements say.
func (m *Machine) describe(j *job) {
	j.req = j.job.Requirement(m.cfg.Self, m.cfg.Capability, m.potential())
	j.digest = protocol.DigestOf(j.req)
}

// newJobID names a job for ever: no two counters of one incarnation and no two
// incarnations of one submitter are equal.
func newJobID(self grid.SiteID, incarnation, counter uint64) grid.JobID {
	text := binary.BigEndian.AppendUint64([]byte(self), incarnation)
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(text, counter))
	return grid.JobID(strings.ToLower(base32.StdEncoding.EncodeToString(sum[:10])))
}

// cancel calls a job off: what waits ends now, what runs is told to stop.
func (m *Machine) cancel(in step.CancelJob) {
	j, ok := m.jobs[in.Job]
	if !ok || j.probe {
		m.emit(step.Reply{Command: in.Command, Job: in.Job, Err: step.ErrNoSuchJob})
		return
	}
	if j.open > 0 {
		m.withdraw(j, grid.PhaseCancelled, "cancelled by its submitter")
		m.report(step.LevelInfo, "job_cancelled", j.attemptOfJob(), m.cfg.Self)
	}
	m.emit(step.Reply{Command: in.Command, Job: in.Job})
}

// withdraw ends all open tasks of a job in one phase.
func (m *Machine) withdraw(j *job, phase grid.Phase, outcome string) {
	told := make(map[grid.SiteID]bool)
	for i := range j.tasks {
		t := &j.tasks[i]
		if t.phase.Ended() {
			continue
		}
		if t.active() || t.phase == grid.PhaseCollecting {
			m.stopTimer(timerLease, j.attempt(uint32(i)).String())
			t.log(outcome, m.now)
			if !told[t.site] {
				told[t.site] = true
				m.send(t.site, protocol.Cancel{Job: j.id})
			}
		}
		m.endTask(j, uint32(i), phase)
	}
	m.jobEnded(j, protocol.ClearWithdrawn)
}

// forget drops the record of a job that has ended.
func (m *Machine) forget(in step.ForgetJob) {
	j, ok := m.jobs[in.Job]
	switch {
	case !ok:
		m.emit(step.Reply{Command: in.Command, Job: in.Job, Err: step.ErrNoSuchJob})
	case j.open > 0:
		m.emit(step.Reply{Command: in.Command, Job: in.Job, Err: step.ErrNotEnded})
	default:
		m.drop(j)
		m.emit(step.Reply{Command: in.Command, Job: in.Job})
	}
}

func (m *Machine) drop(j *job) {
	if j.open > 0 && !j.probe {
		return
	}
	m.stopTimer(timerForget, string(j.id))
	delete(m.jobs, j.id)
	if j.probe {
		return
	}
	m.emit(step.Hold{Job: j.id, CIDs: j.data(), Release: true})
	m.persistRemoval(factJob, string(j.id))
	for i := range j.tasks {
		m.persistRemoval(factTask, j.taskID(uint32(i)).String())
	}
}

func (j *job) attemptOfJob() grid.AttemptID {
	return grid.AttemptID{Task: grid.TaskID{Job: j.id}}
}

// inputsOf lists all data that the job needs.
func inputsOf(spec grid.Job) []grid.CID {
	var cids []grid.CID
	if spec.Spec.Module.CID != "" {
		cids = append(cids, spec.Spec.Module.CID)
	}
	for _, in := range spec.Spec.Inputs {
		cids = append(cids, in.CID)
	}
	for _, item := range spec.Items {
		for _, in := range item.Inputs {
			cids = append(cids, in.CID)
		}
	}
	return cids
}

// data lists all that the job needs, and what its tasks have left.
func (j *job) data() []grid.CID {
	cids := inputsOf(j.job)
	for i := range j.tasks {
		if exit := j.tasks[i].exit; exit != nil {
			cids = append(cids, exit.CIDs()...)
		}
	}
	return cids
}

const probeKept = 10 * time.Minute
