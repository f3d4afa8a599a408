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

// onSubmit takes a job: it is durable before the user gets its ID.
func (m *Machine) onSubmit(in step.Submit) {
	if id, err := m.jobs.made(in); id != "" || err != nil {
		m.out.Emit(step.Reply{Command: in.Command, Job: id, Err: err})
		return
	}
	j, err := m.accept(newJobID(m.run, m.counter+1), in.Job, in.Done, in.Ordered)
	if err = cmp.Or(err, needsKey(in.Job)); err != nil {
		m.out.Emit(step.Reply{Command: in.Command, Err: err})
		return
	}
	m.countJob()
	m.jobs.all[j.id] = j
	j.noWait, j.ordered = in.NoWait, in.Ordered
	m.border.watch(j)
	m.jobs.name(j, in.Key)
	m.saveJob(j)
	m.out.Emit(step.Hold{Job: j.id, CIDs: inputsOf(j.spec)})
	m.out.Emit(step.Reply{Command: in.Command, Job: j.id})
	m.report(step.LevelInfo, eventJobSubmitted, j.about(), m.cfg.Here)
	m.jobs.depend(j)
	m.watchWindow(j)
	if !m.jobs.isBlocked(j) {
		m.herald.announce(j)
	}
}

// accept makes a job with a name of what was submitted, if it can be one; done are the jobs that
// the history has as done.
func (m *Machine) accept(
	id grid.JobID, spec grid.Job, done []grid.JobID, by step.Ordered,
) (*job, error) {
	if err := cmp.Or(spec.Validate(), checkOrdered(by)); err != nil {
		return nil, err
	}
	if m.full {
		return nil, step.ErrNoSpace
	}
	err := cmp.Or(
		checkWindow(spec.Spec.Window, m.wall()),
		m.jobs.checkBinding(spec.Spec), m.jobs.checkAfter(spec.After, done),
		m.jobs.checkTakes(spec), checkKey(spec, by),
	)
	if err != nil {
		return nil, err
	}
	if m.jobs.open()+m.probes.open() >= m.cfg.MaxJobs {
		return nil, step.ErrTooManyJob
	}
	j := makeJob(id, spec, m.now, &m.cfg)
	j.traits.moveWindow(spec.Spec.Window, m.ahead)
	m.jobs.stand(j, true)
	m.herald.describe(j)
	if err := j.measure(&m.cfg); err != nil {
		return nil, err
	}
	m.jobs.stand(j, false)
	if _, err := m.jobs.gather(j); err != nil {
		return nil, err
	}
	m.herald.describe(j)
	return j, nil
}

// checkOrdered refuses an order whose names are too long.
func checkOrdered(o step.Ordered) error {
	if len(o.Ref) > step.MaxRef || len(o.Name) > maxOrderedName {
		return fmt.Errorf("%w: order: its names take %d and %d bytes, want at most %d and %d",
			grid.ErrInvalid, len(o.Ref), len(o.Name), step.MaxRef, maxOrderedName)
	}
	return nil
}

const maxOrderedName = 64

// checkWindow refuses a job whose window is over already.
func checkWindow(w grid.Window, now time.Time) error {
	for _, f := range []struct {
		field string
		at    time.Time
	}{{"start", w.At}, {"deadline", w.Deadline}} {
		if !f.at.IsZero() && !f.at.After(now) {
			return fmt.Errorf("%w: %s: %s is over, it is %s; name a later time",
				grid.ErrInvalid, f.field, f.at.Format(time.RFC3339), now.Format(time.RFC3339))
		}
	}
	return nil
}

// measure refuses a job that cannot be said: whose announcement, or whose award
// of a single task, is larger than a message may be.
func (j *job) measure(cfg *Config) error {
	announce := j.announcement(cfg, j.submitted)
	announce.Seq = math.MaxUint32
	if _, err := protocol.Encode(announce); err != nil {
		return fmt.Errorf("%w: inputs: the announcement cannot be sent: %w; pack inputs into directories",
			grid.ErrInvalid, err)
	}
	var key []byte
	if j.traits.encrypted {
		key = make([]byte, grid.MaxWrappedKey)
	}
	award, err := protocol.Encode(protocol.Award{
		Job: j.id, OfferID: math.MaxUint64, Spec: j.spec.Spec, Quoted: 1, RunnerUp: 1, HasNext: true,
		Clock: j.submitted, Key: key,
		Tasks: []protocol.AwardedTask{{Index: grid.MaxTasks - 1, Token: math.MaxUint64}},
	})
	if err != nil {
		return fmt.Errorf("%w: the job cannot be sent: %w; pack inputs into directories",
			grid.ErrInvalid, err)
	}
	j.awardSize = len(award)
	for i, item := range j.spec.Items {
		if size := j.awardSize + itemBytes(item); size > protocol.MaxMessageBytes {
			return fmt.Errorf(
				"%w: item %d: the task takes %d bytes, want at most %d; pack its inputs into a directory",
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

// describe derives what the announcements say: the data's first source is this site.
func (h herald) describe(j *job) {
	j.req = j.spec.Requirement(h.cfg.Domain, h.cfg.Here, h.cfg.Capability, h.peers.potential())
	if more, has := j.savedSource(h.cfg.Domain, h.source()); has {
		j.req.Sources = append(j.req.Sources, more)
		probe := j.announcement(&h.cfg, h.now)
		probe.Seq = math.MaxUint32
		if _, err := protocol.Encode(probe); err != nil { // what cannot be said places no job
			j.req.Sources = j.req.Sources[:len(j.req.Sources)-1]
		}
	}
	j.digest = protocol.DigestOf(j.req)
}

// source is data of which this site is the first holder.
func (h herald) source() grid.DataSource {
	return grid.DataSource{
		Holders: []grid.SiteID{h.cfg.Here}, UploadBps: h.cfg.Capability.UpBps,
		PotentialBps: h.peers.potential(),
	}
}

// savedSource is the checkpoint that the first of the waiting tasks goes on from: it is nearer to
// the site that has taken it, and is fetched like all other data.
func (j *job) savedSource(
	domain grid.DomainID, src grid.DataSource,
) (grid.DataSource, bool) {
	for _, i := range j.waiting {
		if t := &j.tasks[i]; len(t.counted) > 0 {
			last := t.counted[0]
			src.Digest, src.Bytes = last.CID.Digest(domain), last.Bytes
			if last.site != src.Holders[0] {
				src.Holders = append(src.Holders, last.site)
			}
			return src, true
		}
	}
	return grid.DataSource{}, false
}

// newJobID names a job permanently: no two counters of one incarnation and no two
// runs of one owner give equal names. The seed, which nobody else knows,
// keeps others from announcing the next name first, and so binding it to them.
func newJobID(r *run, counter uint64) grid.JobID {
	text := binary.BigEndian.AppendUint64([]byte(r.cfg.Owner), r.cfg.Seed)
	text = binary.BigEndian.AppendUint64(text, r.incarnation)
	if r.nonce != 0 { // a state that is restored counts again from where it was saved
		text = binary.BigEndian.AppendUint64(text, r.nonce)
	}
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(text, counter))
	return grid.JobID(strings.ToLower(base32.StdEncoding.EncodeToString(sum[:10])))
}

// newProbeID names a probe. Nothing of one outlives this run, whose number is in the name, so that
// nothing has to be written down before it is used.
func newProbeID(r *run) grid.JobID {
	r.probed++
	return newJobID(r, firstProbe+r.probed)
}

// The numbers of probes begin with firstProbe. No job is ever given one of them.
const firstProbe = 1 << 63

// onProbe asks for offers and places nothing. It is answered when the round
// closes, and kept for `why` until the record expires.
func (m *Machine) onProbe(in step.Probe) {
	j, err := m.accept(newProbeID(m.run), in.Job, nil, in.Ordered)
	if err != nil {
		m.out.Emit(step.Reply{Command: in.Command, Err: err})
		return
	}
	j.traits.probe, j.how, j.ordered = true, &nearest{}, in.Ordered
	m.probes.makeRoom(m.run)
	m.probes[j.id] = &probe{job: j, command: in.Command}
	m.herald.announce(j)
}
