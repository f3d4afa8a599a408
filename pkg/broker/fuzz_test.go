package broker

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// rig drives a broker with whatever it is told, sense or nonsense, and checks
// after each step what must always hold.
type rig struct {
	t       interface{ Fatalf(string, ...any) }
	cfg     Config
	m       *Machine
	now     time.Time
	life    uint64
	facts   *step.Facts
	timers  map[step.TimerKey]time.Time
	jobs    []grid.JobID // submitted or probed, ended or not
	leaving []grid.JobID // given to the history last
	granted map[grid.AttemptID]promise
	awarded map[grid.TaskID]*awarded
	steps   int
	copies  int                 // of the ways to copy so many are drawn
	onSend  func(step.Send)     // nil: nobody listens
	onStep  func([]step.Effect) // nil: nobody listens
}

// awarded holds the attempt of a task, or its rivals, that one step awarded.
type awarded struct {
	sites  map[grid.Token]grid.SiteID
	last   grid.Token // the highest
	chosen grid.Token // the first that got a lease; 0 = none yet
	step   int
}

// promise is the latest lease of an attempt.
type promise struct {
	to  grid.SiteID
	end time.Time
}

func newRig(t interface{ Fatalf(string, ...any) }, tune func(*Config)) *rig {
	cfg := Default(self)
	cfg.MaxJobs, cfg.MaxTries = 6, 5
	cfg.MaxEnded = 2
	if tune != nil {
		tune(&cfg)
	}
	r := &rig{
		t: t, cfg: cfg, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), facts: step.NewFacts(),
		granted: make(map[grid.AttemptID]promise), awarded: make(map[grid.TaskID]*awarded),
	}
	r.start()
	return r
}

// start makes a machine of the facts alone.
func (r *rig) start() {
	r.m, r.leaving = New(r.cfg), nil
	r.timers = make(map[step.TimerKey]time.Time)
	if err := r.m.Restore(r.facts.Encode()); err != nil {
		r.t.Fatalf("restore: %v", err)
	}
	if !bytes.Equal(r.m.Snapshot(), r.facts.Encode()) {
		r.t.Fatalf("a restored machine has other facts than it was given")
	}
	r.life++
	r.do(step.Boot{Incarnation: r.life})
}

func (r *rig) do(in step.Input) []step.Effect {
	r.steps++
	effects := r.m.Step(r.now, in)
	for _, e := range effects {
		r.note(e)
	}
	if err := r.m.Check(); err != nil {
		r.t.Fatalf("after %+v: %v", in, err)
	}
	if !bytes.Equal(r.m.Snapshot(), r.facts.Encode()) {
		r.t.Fatalf("after %T: the snapshot is not the table of facts", in)
	}
	r.checkWakeUps(in)
	r.checkTasks(in)
	if r.onStep != nil {
		r.onStep(effects)
	}
	return effects
}

func (r *rig) note(e step.Effect) {
	switch e := e.(type) {
	case step.Persist:
		r.facts.Apply(e.Fact)
	case step.SetTimer:
		r.timers[e.Key] = e.At
	case step.StopTimer:
		delete(r.timers, e.Key)
	case step.Archive:
		r.leaving = nil
		for _, j := range e.Jobs {
			r.leaving = append(r.leaving, j.Job)
		}
	case step.Reply:
		if e.Err == nil && e.Job != "" {
			r.jobs = append(r.jobs, e.Job)
		}
	case step.Broadcast:
		r.encodable(e.Message)
	case step.Send:
		r.encodable(e.Message)
		r.noteSend(e)
		if r.onSend != nil {
			r.onSend(e)
		}
	}
}

func (r *rig) encodable(msg protocol.Message) {
	if _, err := protocol.Encode(msg); err != nil {
		r.t.Fatalf("sends what cannot be sent: %v: %+v", err, msg)
	}
}

// noteSend checks the rules that keep a task from running twice: tokens only grow, no
// attempt is awarded while an earlier one holds a lease, and of rivals only one ever
// gets any.
func (r *rig) noteSend(e step.Send) {
	switch msg := e.Message.(type) {
	case protocol.Lease:
		for _, id := range msg.Attempts {
			r.noteLease(id, e.To)
			end := r.now.Add(msg.Duration)
			if old := r.granted[id]; old.end.Before(end) {
				r.granted[id] = promise{e.To, end}
			}
		}
	case protocol.Award:
		r.ready(msg)
		for _, t := range msg.Tasks {
			r.noteAward(grid.AttemptID{
				Task: grid.TaskID{Job: msg.Job, Index: t.Index}, Token: t.Token,
			}, e.To, msg.AskFirst)
		}
	}
}

// ready: what is awarded is not held, and has all that it takes of others.
func (r *rig) ready(msg protocol.Award) {
	j := r.m.jobs.all[msg.Job]
	if j.held || j.lacks() {
		r.t.Fatalf("%s is awarded while it is held, or before all that it takes is there", msg.Job)
	}
	for _, take := range j.asked.Takes {
		inputs := slices.Clone(msg.Spec.Inputs)
		for _, t := range msg.Tasks {
			inputs = append(inputs, t.Item.Inputs...)
		}
		if !slices.ContainsFunc(inputs, func(in grid.Input) bool {
			return in.CID == "bleft" && strings.HasPrefix(in.Path, take.Path)
		}) {
			r.t.Fatalf("%s is awarded without %s", msg.Job, take.Path)
		}
	}
}

func (r *rig) noteLease(id grid.AttemptID, to grid.SiteID) {
	a := r.awarded[id.Task]
	if a == nil || a.sites[id.Token] != to || a.chosen != 0 && a.chosen != id.Token {
		r.t.Fatalf("a lease for %s at %s, awarded was %+v", id, to, a)
	}
	a.chosen = id.Token
}

func (r *rig) noteAward(id grid.AttemptID, to grid.SiteID, rival bool) {
	a := r.awarded[id.Task]
	if a != nil && rival && a.chosen == 0 && a.sites[id.Token] == to {
		return // said again
	}
	if a != nil && id.Token <= a.last || a != nil && a.step == r.steps && !rival {
		r.t.Fatalf("%s is awarded to %s after %+v", id, to, a)
	}
	if a == nil || a.step != r.steps {
		r.noLease(id)
		a = &awarded{sites: make(map[grid.Token]grid.SiteID), step: r.steps}
		r.awarded[id.Task] = a
	}
	a.sites[id.Token], a.last = to, id.Token
}

// noLease: no earlier attempt of the task holds one, nor of any other part that is to
// start with it.
func (r *rig) noLease(id grid.AttemptID) {
	together := r.m.jobs.all[id.Task.Job].traits.whole
	for other, p := range r.granted {
		same := other.Task == id.Task || together && other.Task.Job == id.Task.Job
		if same && p.end.After(r.now) {
			r.t.Fatalf("%s is awarded while %s has a lease until %s at %s", id, other, p.end, p.to)
		}
	}
}

// released: the attempt has ended by its site's own word, or its site is dead,
// so its lease is no promise any more.
func (r *rig) released(id grid.AttemptID, by grid.SiteID) {
	if p, has := r.granted[id]; has && p.to == by {
		delete(r.granted, id)
	}
}

// checkTasks wants a task to be the same by itself and among the others.
func (r *rig) checkTasks(in step.Input) {
	for _, id := range r.m.enquiryIDs() {
		all, _ := r.m.Job(id)
		for i := range all.Tasks[:min(len(all.Tasks), 2)] {
			one, key, known := r.m.Task(all.Tasks[i].ID)
			if !known || key != all.Job.Encryption.Key || !reflect.DeepEqual(one, all.Tasks[i]) {
				r.t.Fatalf("after %+v: %+v is shown by itself as %+v", in, all.Tasks[i], one)
			}
		}
		if _, _, known := r.m.Task(grid.TaskID{Job: id, Index: all.Job.Count}); known {
			r.t.Fatalf("after %+v: job %s has one task too many", in, id)
		}
	}
}

// checkWakeUps wants that something will happen to each task that has not ended,
// whatever gets lost: there is a timer.
func (r *rig) checkWakeUps(in step.Input) {
	set := func(name, id string) bool {
		_, is := r.timers[step.TimerKey{Name: name, ID: id}]
		return is
	}
	for _, id := range r.m.enquiryIDs() {
		j := r.m.asked(id)
		if j.open == 0 {
			switch {
			case r.m.isProbe(id) && !set(timerForget, string(id)):
				r.t.Fatalf("after %+v: probe %s is answered and never forgotten", in, id)
			case !r.m.isProbe(id) && !slices.Contains(r.m.jobs.tail.ids, id):
				r.t.Fatalf("after %+v: job %s has ended and never leaves", in, id)
			}
			continue
		}
		switch {
		case j.round() != nil && !set(timerRound, string(id)):
			r.t.Fatalf("after %+v: the round of %s never ends", in, id)
		case j.holding() != nil && !set(timerHold, string(id)):
			r.t.Fatalf("after %+v: no timer ends the wait for sites that %s asked to hold", in, id)
		case j.held: // until somebody releases it
		case r.m.jobs.isBlocked(j) && !r.m.isProbe(id) &&
			!slices.ContainsFunc(r.m.jobs.awaits(j), func(id grid.JobID) bool {
				return r.m.jobs.all[id].open > 0
			}):
			r.t.Fatalf("after %+v: %s waits for jobs that have ended", in, id)
		case j.round() == nil && j.holding() == nil && !r.m.jobs.isBlocked(j) && len(j.waiting) > 0 &&
			!set(timerAgain, string(id)) && !set(timerPresumed, string(id)) &&
			!set(timerRest, string(id)):
			r.t.Fatalf("after %+v: job %s waits and is never announced again", in, id)
		}
		if r.m.isProbe(id) {
			continue
		}
		for i := range j.tasks {
			t, attempt := &j.tasks[i], j.attempt(uint32(i))
			switch {
			case set(timerPresumed, string(id)): // then it is looked after
			case len(t.rivals) > 0:
				if !set(timerRivals, attempt.Task.String()) {
					r.t.Fatalf("after %+v: nobody looks after the rivals of %s", in, attempt.Task)
				}
			case t.phase == grid.PhaseAwarded && t.leaseEnd.IsZero():
				if !r.awaited(attempt) {
					r.t.Fatalf("after %+v: the award of %s is never missed", in, attempt)
				}
			case t.active() && t.leaseEnd.IsZero() && j.traits.whole && j.any((*task).unanswered):
				// it has no lease before that of the last is answered, or missed
			case t.active() && !set(timerLease, attempt.String()):
				r.t.Fatalf("after %+v: %s is %s and its lease never ends", in, attempt, t.phase)
			case t.active() && t.moving.stage != moveNone && !t.over && !j.sought &&
				!set(timerMove, attempt.String()):
				r.t.Fatalf("after %+v: %s moves and nobody looks after that", in, attempt)
			}
		}
	}
}

func FuzzStep(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 1, 1, 1, 1, 1, 3, 0, 2, 1, 0, 8, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1})
	for n := range 8 {
		seed := make([]byte, 120)
		for i := range seed {
			seed[i] = byte(binary.BigEndian.Uint32([]byte{
				byte(i), byte(n), byte(i * n), byte(i >> 3),
			}) * 2654435761 >> 24)
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 512 {
			return
		}
		s := &bytesSource{data}
		r := newRig(t, func(c *Config) {
			c.ReplyTarget, c.Choice, c.ExplainUpTo = s.n(2), Choice(s.n(2)), s.n(3)
		})
		for len(s.left) > 0 {
			r.act(s)
		}
	})
}

// Whatever happens: no task is awarded while an earlier attempt holds a lease,
// tokens grow, everything that waits has a timer, and the facts are the state.
func TestAnythingMayHappen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRig(t, nil)
		r.copies = 6 * rapid.IntRange(0, 1).Draw(t, "copies")
		for _, s := range sites[:3] {
			r.do(step.PeerSeen{Site: s})
		}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			r.act(rapidSource{t})
		}
	})
}

// However a run has gone, when the mesh is well again every job comes to an end:
// all sites are there, offer, accept, and do what they are given.
func TestWellAgainEverythingEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRig(t, nil)
		r.do(step.PeerSeen{Site: "a"})
		r.do(step.Submit{Command: 1, Job: testJob(3)})
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			r.act(rapidSource{t})
		}
		r.behave()
		for _, id := range r.m.jobs.ids() {
			if j := r.m.jobs.all[id]; j.open > 0 {
				t.Fatalf("job %s has not ended: %+v", id, j.tasks)
			}
		}
	})
}

// behave plays good sites for some minutes.
func (r *rig) behave() {
	r.granted = make(map[grid.AttemptID]promise)
	good := []grid.SiteID{"a", "b", self}
	number := uint64(1 << 40)
	var inbox []step.Effect
	give := func(in step.Input) { inbox = append(inbox, r.do(in)...) }
	for _, s := range good[:2] {
		give(step.PeerSeen{Site: s})
	}
	for _, id := range r.m.jobs.ids() {
		give(step.HoldJob{Job: id, Release: true})
	}
	for _, id := range r.m.jobs.ids() { // what was to be collected before
		for i, t := range r.m.jobs.all[id].tasks {
			if t.phase == grid.PhaseCollecting {
				give(step.Collected{Attempt: r.m.jobs.all[id].attempt(uint32(i))})
			}
		}
	}
	for range 3000 {
		if len(inbox) == 0 {
			if !r.fireNext(give) {
				return
			}
			continue
		}
		e := inbox[0]
		inbox = inbox[1:]
		number++
		for _, s := range good {
			for _, in := range answer(s, e, number) {
				give(in)
			}
		}
	}
	r.t.Fatalf("no end after 3000 answers")
}

// next is the timer that is due first; the zero time if there is none. The order
// in which it looks is always the same, so that the same bytes take the same way.
func (r *rig) next(wanted func(step.TimerKey) bool) (first step.TimerKey, at time.Time) {
	keys := slices.SortedFunc(maps.Keys(r.timers), func(a, b step.TimerKey) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	for _, key := range keys {
		if t := r.timers[key]; wanted(key) && (at.IsZero() || t.Before(at)) {
			first, at = key, t
		}
	}
	return first, at
}

// fireNext fires the next timer; it reports false when only the forgetting of
// ended jobs is left.
func (r *rig) fireNext(give func(step.Input)) bool {
	next, at := r.next(func(key step.TimerKey) bool { return key.Name != timerForget })
	if at.IsZero() {
		return false
	}
	if at.After(r.now) {
		r.now = at
	}
	delete(r.timers, next)
	give(step.TimerFired{Key: next})
	return true
}

// answer is a good site's immediate answer to an effect.
func answer(site grid.SiteID, e step.Effect, number uint64) []step.Input {
	say := func(msg protocol.Message) step.Input {
		return step.MessageReceived{From: site, Message: msg}
	}
	var msg protocol.Message
	switch e := e.(type) {
	case step.Broadcast:
		msg = e.Message
	case step.Send:
		if e.To != site {
			return nil
		}
		msg = e.Message
	case step.Collect:
		if site == self {
			return []step.Input{step.Collected{Attempt: e.Attempt}}
		}
		return nil
	}
	switch msg := msg.(type) {
	case protocol.Announce:
		return []step.Input{say(protocol.Bid{Job: msg.Job, Seq: msg.Seq, Offer: offer(number, 1, 2)})}
	case protocol.Reannounce:
		return []step.Input{say(protocol.Bid{Job: msg.Job, Seq: msg.Seq, Offer: offer(number, 1, 2)})}
	case protocol.HoldOffer:
		o := offer(number, 1, max(2, msg.Tasks))
		o.Firm = true
		return []step.Input{say(protocol.Bid{Job: msg.Job, Seq: msg.Seq, Offer: o})}
	case protocol.Award:
		var inputs []step.Input
		for _, t := range msg.Tasks {
			id := grid.AttemptID{Task: grid.TaskID{Job: msg.Job, Index: t.Index}, Token: t.Token}
			inputs = append(inputs, say(protocol.Accepted{Attempts: []grid.AttemptID{id}, Renewal: 1}))
			if msg.AskFirst {
				inputs = append(inputs, say(protocol.MayStart{Attempts: []grid.AttemptID{id}, Renewal: 2}))
			}
			inputs = append(inputs, say(protocol.Exited{
				Attempt: id, Exit: grid.Exit{Cause: grid.CauseExited, Outputs: leftBy(t.Index)},
			}))
		}
		return inputs
	}
	return nil
}
