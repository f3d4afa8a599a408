package broker

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// source draws the numbers that decide what happens.
type source interface {
	n(limit int) int
}

// bytesSource reads them from a fuzzer's bytes, 0 when these are used up.
type bytesSource struct{ left []byte }

func (s *bytesSource) n(limit int) int {
	if len(s.left) == 0 {
		return 0
	}
	b := s.left[0]
	s.left = s.left[1:]
	return int(b) % limit
}

type rapidSource struct{ t *rapid.T }

func (s rapidSource) n(limit int) int { return rapid.IntRange(0, limit-1).Draw(s.t, "n") }

var sites = []grid.SiteID{"a", "b", "c", self, "stranger", ""}

func (r *rig) act(s source) {
	from := sites[s.n(len(sites))]
	switch s.n(16) {
	case 9:
		r.move(s)
	case 0:
		r.do(step.Submit{Command: 1, Job: r.drawJob(s), NoWait: s.n(4) == 0})
	case 1:
		seen := step.PeerSeen{Site: from, Capability: grid.Capability{DownBps: int64(s.n(3)) - 1}}
		if s.n(4) == 0 {
			seen.Domain, seen.Beside = "campus", s.n(2) == 0
		}
		r.do(seen)
	case 2:
		r.do(step.PeerGone{Site: from, Refusing: s.n(2) == 0})
	case 3:
		r.pass(time.Duration(s.n(256)) * 20 * time.Millisecond)
	case 4:
		r.restart()
	case 5:
		r.do([]step.Input{
			step.CancelJob{Job: r.drawID(s)},
			step.ForgetJob{Job: r.drawID(s)},
			step.Probe{Command: 2, Job: r.drawJob(s)},
			step.CapacityChanged{Capability: grid.Capability{UpBps: -1}},
			step.ClockStepped{},
			nil,
			step.BansChanged{Banned: []grid.SiteID{from}},
			step.BansChanged{},
			step.Archived{Jobs: r.leaving},
			step.HoldJob{Job: r.drawID(s)},
			step.HoldJob{Job: r.drawID(s), Release: true},
		}[s.n(11)])
	case 6:
		problem := []string{"", "unreachable"}[s.n(2)]
		r.do(step.Collected{Attempt: r.drawAttempt(s), Problem: problem})
	case 7:
		r.do(step.TimerFired{Key: r.drawTimer(s)})
	case 8:
		r.died(from, r.drawAttempt(s))
	default:
		r.hear(from, r.drawMessage(s))
	}
}

func (r *rig) restart() { r.start() }

// died: the site's certificate names an attempt, which may be its own and have a lease.
func (r *rig) died(site grid.SiteID, id grid.AttemptID) {
	if id.Validate() != nil {
		return // none that the network brings
	}
	r.released(id, site)
	r.do(step.AttemptsDied{Site: site, Attempts: []grid.AttemptID{id}})
}

func (r *rig) hear(from grid.SiteID, msg protocol.Message) {
	if exited, is := msg.(protocol.Exited); is && exited.Validate() == nil {
		r.released(exited.Attempt, from)
	}
	if renew, is := msg.(protocol.Renew); is && renew.Validate() == nil {
		r.told(renew, from)
	}
	r.do(step.MessageReceived{From: from, Message: msg})
}

// told takes a site's own word for the leases that it has: it may end, or shorten, a promise.
func (r *rig) told(msg protocol.Renew, by grid.SiteID) {
	named := slices.Clone(msg.Attempts)
	if msg.List != nil {
		named = append(named, msg.List.Also...)
		for id := range r.granted {
			if msg.List.Holds(id) && !slices.Contains(named, id) {
				r.released(id, by)
			}
		}
	}
	for i, left := range msg.Left {
		if p, has := r.granted[msg.Attempts[i]]; has && p.to == by {
			if end := r.now.Add(max(left, protocol.MaxLateLease)); end.Before(p.end) {
				p.end = end
			}
			r.granted[msg.Attempts[i]] = p
		}
	}
}

// pass lets time go by and fires what is due.
func (r *rig) pass(d time.Duration) {
	end := r.now.Add(d)
	for range 1000 {
		next, at := r.next(func(step.TimerKey) bool { return true })
		if at.IsZero() || at.After(end) {
			r.now = end
			return
		}
		if at.After(r.now) {
			r.now = at
		}
		delete(r.timers, next)
		r.do(step.TimerFired{Key: next})
	}
	r.t.Fatalf("a thousand timers within %s", d)
}

func (r *rig) drawJob(s source) grid.Job {
	j := testJob(uint32(s.n(4)))
	r.drawPlace(s, &j)
	switch s.n(12) {
	case 6, 7:
		j.Flood = true
	case 8, 9, 10, 11:
		j.Split, j.CommBytes = grid.Split(s.n(4)), int64(s.n(3))
		if j.Split == grid.SplitNever {
			j.Count = min(j.Count, 2) // what the good sites can take
		}
	case 0:
		j.Spec.Unattended = grid.UnattendedFinish
	case 1:
		j.Spec.Map = grid.MapSeconds
	case 2:
		for range j.Count {
			j.Items = append(j.Items, grid.Item{Value: string([]byte{byte(s.n(256))})})
		}
	case 3:
		j.Retries = uint32(s.n(3))
	case 4:
		j.MaxFailures = uint32(s.n(3))
	}
	if r.copies > 0 {
		j.Redundancy = r.drawCopies(s)
	}
	if j.Spec.Kind != grid.KindReservation && s.n(2) == 0 {
		j.Spec.Outputs = []grid.Output{{Path: leftPath, To: "x"}}
	}
	return j
}

// leftPath is the output of drawn jobs.
const leftPath = "/out/{{index}}"

// leftBy is the output of a task of such a job.
func leftBy(index uint32) []grid.Produced {
	return []grid.Produced{{Path: fmt.Sprintf("/out/%d", index), CID: "bleft", Bytes: 5}}
}

// drawCopies draws how often tasks run; some jobs cannot have that.
func (r *rig) drawCopies(s source) grid.Redundancy {
	return []grid.Redundancy{
		{Replicas: 2},
		{Auto: true},
		{Verify: .5},
		{Replicas: 2, Agreement: 2},
		{Replicas: 3, Agreement: 2},
		{},
	}[s.n(r.copies)]
}

// drawPlace draws when and where a job may run.
func (r *rig) drawPlace(s source, j *grid.Job) {
	ahead := r.now.Add(time.Duration(s.n(256)-2) * 250 * time.Millisecond)
	switch s.n(8) {
	case 0:
		j.Spec.Window.At = ahead
	case 1:
		j.Spec.Window.Deadline = ahead
	case 2:
		j.Spec.Kind, j.Spec.Module, j.Spec.Window.At = grid.KindReservation, grid.Input{}, ahead
	case 3:
		j.Spec.Reservation = r.drawID(s)
	case 4:
		j.After = []grid.JobID{r.drawID(s), r.drawID(s)}
		if s.n(2) == 0 {
			j.Takes = []grid.Take{{
				Path: "/in/x", Job: j.After[0], Output: leftPath, Each: s.n(2) == 0,
			}}
		}
	case 6:
		j.Held = s.n(2) == 0
	case 5:
		j.Spec.Priority = s.n(5) - 2
	}
}

func (r *rig) drawID(s source) grid.JobID {
	if len(r.jobs) == 0 || s.n(8) == 0 {
		return "aaaaaaaaaaaaaaaa"
	}
	return r.jobs[len(r.jobs)-1-s.n(min(len(r.jobs), 6))]
}

func (r *rig) drawAttempt(s source) grid.AttemptID {
	id := attemptOf(r.drawID(s), uint32(s.n(5)), 0)
	if r.copies > 0 {
		id.Task.Index += uint32(s.n(8))
	}
	if j, ok := r.m.enquiry(id.Task.Job); ok && id.Task.Index < uint32(len(j.tasks)) {
		t := j.tasks[id.Task.Index]
		id.Token = t.token
		if n := len(t.rivals); n > 0 {
			id.Token = t.rivals[s.n(n)].token
		}
	}
	if s.n(6) == 0 {
		id.Token += grid.Token(s.n(3)) - 1
	}
	return id
}

func (r *rig) drawTimer(s source) step.TimerKey {
	name := []string{
		timerRound, timerExplain, timerAgain, timerForget, timerAward, timerLease, timerCollect,
		timerRivals, "else", timerHold, timerWindow, timerMove,
	}[s.n(12)]
	key := step.TimerKey{Name: name, ID: string(r.drawID(s))}
	switch attempt := r.drawAttempt(s); {
	case name == timerRivals:
		key.ID = attempt.Task.String()
	case s.n(2) == 0:
		key.ID = attempt.String()
	}
	return key
}

func (r *rig) drawOffer(s source) grid.Offer {
	o := offer(uint64(s.n(40)), float64(s.n(12))/4, uint32(s.n(4)))
	switch s.n(12) {
	case 2, 3, 4, 5:
		o.Firm = true
	case 0:
		o.Parts.Distance = math.NaN()
	case 1:
		o.Validity = -1
	}
	return o
}

func (r *rig) drawMessage(s source) protocol.Message {
	id, seq := r.drawID(s), uint32(s.n(4))
	if j, ok := r.m.enquiry(id); ok && s.n(4) > 0 {
		seq = j.seq
	}
	refusal := grid.Refusal{Reason: grid.Reason(s.n(6)), Never: s.n(2) == 0}
	attempt := r.drawAttempt(s)
	switch s.n(14) {
	case 13:
		return protocol.Movable{
			Attempt: attempt, Reason: grid.Reason(s.n(3)), Saves: s.n(2) == 0, Begun: s.n(2) == 0,
			Next: uint64(s.n(3)),
		}
	case 11:
		return protocol.MayStart{Renewal: 3, Attempts: []grid.AttemptID{attempt, r.drawAttempt(s)}}
	case 12:
		return r.drawHeld(s)
	case 0, 1, 2:
		return protocol.Bid{Job: id, Seq: seq, Offer: r.drawOffer(s)}
	case 3:
		return protocol.Refuse{Job: id, Seq: seq, Refusal: refusal}
	case 4:
		return protocol.NeedRequirements{Job: id, Seq: seq}
	case 5:
		return protocol.Vacancy{Jobs: []grid.JobID{id}}
	case 6:
		return protocol.Accepted{Attempts: []grid.AttemptID{attempt, r.drawAttempt(s)}, Renewal: 1}
	case 7:
		m := protocol.Declined{Attempts: []grid.AttemptID{attempt}, Refusal: refusal}
		if s.n(2) == 0 {
			o := r.drawOffer(s)
			m.Quote = &o
		}
		return m
	case 8:
		return r.drawRenew(s, attempt)
	case 9:
		return protocol.Progress{
			Attempt: attempt, Phase: grid.Phase(s.n(12)), Done: int64(s.n(3)) - 1,
			StartsIn: time.Duration(s.n(4)) * time.Second,
		}
	default:
		return r.drawExit(s, attempt)
	}
}

// move lets tasks move, or a checkpoint of one count.
func (r *rig) move(s source) {
	at := r.drawAttempt(s)
	if s.n(2) == 0 {
		r.do(step.MoveTasks{Command: 3, Job: r.drawID(s), Anew: s.n(2) == 0})
		return
	}
	_, t := r.m.jobs.task(at.Task)
	if t == nil {
		return
	}
	c := checkpoint(t.latest() + uint64(s.n(2)))
	r.hear(t.site, protocol.Checkpointed{Attempt: at, Checkpoint: c})
	r.do(step.Pulled{Attempt: at, Number: c.Number, CID: c.CID})
}

// drawRenew asks for a lease, as versions do that say nothing else, and as they do that say
// what is left and what else is there.
func (r *rig) drawRenew(s source, attempt grid.AttemptID) protocol.Message {
	msg := protocol.Renew{Renewal: uint64(1 + s.n(6)), Attempts: []grid.AttemptID{attempt}}
	if s.n(3) > 0 {
		msg.Left = []time.Duration{time.Duration(s.n(3)) * time.Second}
	}
	if s.n(3) > 0 {
		msg.List = &protocol.Listing{Also: []grid.AttemptID{r.drawAttempt(s)}}
	}
	if msg.List != nil && s.n(3) == 0 {
		msg.List.After, msg.List.UpTo = r.drawAttempt(s), r.drawAttempt(s)
	}
	return msg
}

// drawHeld answers a request to hold, if there is one.
func (r *rig) drawHeld(s source) protocol.Message {
	for _, id := range r.m.enquiryIDs() {
		j := r.m.asked(id)
		if j.holding() == nil {
			continue
		}
		if s.n(3) == 0 {
			return protocol.Refuse{Job: id, Seq: j.seq, Refusal: grid.Refusal{Reason: grid.ReasonPromised}}
		}
		o := r.drawOffer(s)
		o.Firm = true
		return protocol.Bid{Job: id, Seq: j.seq, Offer: o}
	}
	return protocol.Vacancy{Jobs: []grid.JobID{r.drawID(s), r.drawID(s)}}
}

func (r *rig) drawExit(s source, attempt grid.AttemptID) protocol.Message {
	if s.n(8) == 0 {
		end := protocol.Clear{Job: attempt.Task.Job, Submitter: "a", Kind: 1}
		return []protocol.Message{nil, protocol.Cancel{}, end}[s.n(3)]
	}
	exit := grid.Exit{Cause: grid.ExitCause(s.n(13)), Code: s.n(3)}
	if s.n(2) == 0 {
		exit.Stdout = grid.Produced{Path: "/out", CID: "bout", Bytes: 3}
	}
	if s.n(2) == 0 {
		exit.Outputs = leftBy(attempt.Task.Index)
	}
	return protocol.Exited{Attempt: attempt, Exit: exit}
}

func (r *rig) awaited(id grid.AttemptID) bool {
	for first := range maps.Keys(r.m.awards) {
		if slices.Contains(r.m.awards[first].tasks, id) {
			_, set := r.timers[step.TimerKey{Name: timerAward, ID: first.String()}]
			return set
		}
	}
	return false
}
