package broker

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// submit takes a job: it is durable before the user gets its ID.
func (m *Machine) submit(in step.Submit) {
	j, err := m.accept(in.Job)
	if err != nil {
		m.out.Emit(step.Reply{Command: in.Command, Err: err})
		return
	}
	j.noWait = in.NoWait
	m.saveJob(j)
	m.out.Emit(step.Hold{Job: j.id, CIDs: inputsOf(j.job)})
	m.out.Emit(step.Reply{Command: in.Command, Job: j.id})
	m.report(step.LevelInfo, "job_submitted", j.attemptOfJob(), m.cfg.Self)
	m.depend(j)
	m.watchWindow(j)
	if !m.blocked(j) {
		m.announce(j)
	}
}

// probe asks for offers and places nothing. It is answered when the round
// closes, and kept for `why` until the record expires.
func (m *Machine) probe(in step.Probe) {
	j, err := m.accept(in.Job)
	if err != nil {
		m.out.Emit(step.Reply{Command: in.Command, Err: err})
		return
	}
	j.probe, j.command = true, in.Command
	m.announce(j)
}

func (m *Machine) accept(spec grid.Job) (*job, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	if err := cmp.Or(m.checkWindow(spec.Spec.Window), m.checkBinding(spec.Spec), m.checkAfter(spec.After)); err != nil {
		return nil, err
	}
	if len(m.jobs) >= m.cfg.MaxJobs {
		return nil, step.ErrTooManyJob
	}
	id := newJobID(m.cfg, m.incarnation, m.counter+1)
	j := newJob(id, spec, m.now)
	m.describe(j)
	if err := m.measure(j); err != nil {
		return nil, err
	}
	m.counter++
	m.persist(factCounter, "jobs", counterFact{Jobs: m.counter})
	m.jobs[id] = j
	return j, nil
}

// measure refuses a job that cannot be said: whose announcement, or whose award
// of a single task, is larger than a message may be.
func (m *Machine) measure(j *job) error {
	announce := m.announcement(j)
	announce.Seq = math.MaxUint32
	if _, err := protocol.Encode(announce); err != nil {
		return fmt.Errorf("%w: inputs: the announcement cannot be sent: %w; pack inputs into directories", grid.ErrInvalid, err)
	}
	award, err := protocol.Encode(protocol.Award{
		Job: j.id, OfferID: math.MaxUint64, Spec: j.job.Spec, Quoted: 1, RunnerUp: 1, HasNext: true,
		Tasks: []protocol.AwardedTask{{Index: grid.MaxTasks - 1, Token: math.MaxUint64}},
	})
	if err != nil {
		return fmt.Errorf("%w: the job cannot be sent: %w; pack inputs into directories", grid.ErrInvalid, err)
	}
	j.awardBase = len(award)
	for i, item := range j.job.Items {
		if size := j.awardBase + itemBytes(item); size > protocol.MaxMessageBytes {
			return fmt.Errorf("%w: item %d: the task takes %d bytes, want at most %d; pack its inputs into a directory",
				grid.ErrInvalid, i, size, protocol.MaxMessageBytes)
		}
		if !isText(item) {
			return fmt.Errorf("%w: item %d: its texts are not UTF-8", grid.ErrInvalid, i)
		}
	}
	return nil
}

func isText(item grid.Item) bool {
	return utf8.ValidString(item.Value) &&
		!slices.ContainsFunc(item.Inputs, func(in grid.Input) bool { return !utf8.ValidString(in.Path) })
}

// describe derives what the announcements say.
func (m *Machine) describe(j *job) {
	j.req = j.job.Requirement(m.cfg.Self, m.cfg.Capability, m.potential())
	j.digest = protocol.DigestOf(j.req)
}

// newJobID names a job for ever: no two counters of one incarnation and no two
// incarnations of one submitter are equal. The seed, which nobody else knows,
// keeps others from announcing the next name first, and so binding it to them.
func newJobID(c Config, incarnation, counter uint64) grid.JobID {
	text := binary.BigEndian.AppendUint64([]byte(c.Self), c.Seed)
	text = binary.BigEndian.AppendUint64(text, incarnation)
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(text, counter))
	return grid.JobID(strings.ToLower(base32.StdEncoding.EncodeToString(sum[:10])))
}

// cancel calls a job off: what waits ends now, what runs is told to stop.
func (m *Machine) cancel(in step.CancelJob) {
	j, ok := m.jobs[in.Job]
	if !ok || j.probe {
		m.out.Emit(step.Reply{Command: in.Command, Job: in.Job, Err: step.ErrNoSuchJob})
		return
	}
	if j.open > 0 {
		m.withdraw(j, grid.PhaseCancelled, "cancelled by its submitter")
		m.report(step.LevelInfo, "job_cancelled", j.attemptOfJob(), m.cfg.Self)
	}
	m.out.Emit(step.Reply{Command: in.Command, Job: in.Job})
}

// withdraw ends all open tasks of a job in one phase.
func (m *Machine) withdraw(j *job, phase grid.Phase, outcome string) {
	m.endTasks(j, phase, outcome, func(*task) bool { return true })
	m.jobEnded(j, protocol.ClearWithdrawn)
}

// endTasks ends some open tasks of a job in one phase; their sites are told.
func (m *Machine) endTasks(j *job, phase grid.Phase, outcome string, which func(*task) bool) {
	told := make(map[grid.SiteID]bool)
	keep := slices.ContainsFunc(j.tasks, func(t task) bool { return t.phase == grid.PhaseCollecting && !which(&t) })
	for i := range j.tasks {
		t := &j.tasks[i]
		if t.phase.Ended() || !which(t) {
			continue
		}
		if t.active() || t.phase == grid.PhaseCollecting {
			m.cancelRivals(j, uint32(i), told)
			m.out.StopTimer(timerLease, j.attempt(uint32(i)).String())
			t.log(outcome, m.now)
			switch {
			case keep: // the site still has outputs of others
				m.out.Send(t.site, protocol.Fence{Below: []grid.AttemptID{m.fenceOf(j.attempt(uint32(i)))}})
			case !told[t.site]:
				told[t.site] = true
				m.out.Send(t.site, protocol.Cancel{Job: j.id})
			}
		}
		m.endTask(j, uint32(i), phase)
	}
}

// forget drops the record of a job that has ended.
func (m *Machine) forget(in step.ForgetJob) {
	j, ok := m.jobs[in.Job]
	switch {
	case !ok:
		m.out.Emit(step.Reply{Command: in.Command, Job: in.Job, Err: step.ErrNoSuchJob})
	case j.open > 0:
		m.out.Emit(step.Reply{Command: in.Command, Job: in.Job, Err: step.ErrNotEnded})
	default:
		if by, awaited := m.awaitedBy(j); awaited {
			m.out.Emit(step.Reply{Command: in.Command, Job: in.Job, Err: fmt.Errorf("%w: job %s", step.ErrAwaited, by)})
			return
		}
		m.drop(j)
		m.out.Emit(step.Reply{Command: in.Command, Job: in.Job})
	}
}

func (m *Machine) drop(j *job) {
	if j.open > 0 && !j.probe {
		return
	}
	m.out.StopTimer(timerForget, string(j.id))
	delete(m.jobs, j.id)
	if j.probe {
		return
	}
	m.independ(j)
	m.out.Emit(step.Hold{Job: j.id, CIDs: j.data(), Release: true})
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
