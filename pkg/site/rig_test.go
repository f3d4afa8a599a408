package site

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

const (
	self  = grid.SiteID("self")
	alice = grid.SiteID("alice")
	bob   = grid.SiteID("bob")
	job1  = grid.JobID("aaaaaaaaaaaaaaaa")
	job2  = grid.JobID("bbbbbbbbbbbbbbbb")
	job3  = grid.JobID("cccccccccccccccc")
	lease = 3 * time.Second
)

// epoch is when every test begins.
func epoch() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// tester is the part of *testing.T and *rapid.T that a rig needs.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// rig drives one machine by hand: it keeps time, timers and facts, and verifies
// after every step what must always hold.
type rig struct {
	t      tester
	m      *Machine
	now    time.Time
	timers map[step.TimerKey]time.Time
	facts  *step.Facts
	out    []step.Effect          // of the last step or advance
	tell   func(*rig, step.Input) // is told of each step, whose effects are in out; may be nil
}

// fourCores is a site of four cores and 4 GiB.
func fourCores() grid.Capability {
	return grid.Capability{
		Total: grid.Resources{
			MilliCPUs: 4_000, MemoryBytes: 4 << 30, DiskBytes: 40 << 30, MFLOPS: 8_000, NetBps: 20e6,
		},
		CoreMFLOPS: 2_000, DownBps: 100_000_000, UpBps: 20_000_000, OS: "linux", Arch: "amd64",
		Kinds: []grid.WorkKind{grid.KindWasm, grid.KindCommand},
	}
}

func newRig(t tester, change ...func(*Config)) *rig {
	t.Helper()
	r := unbooted(t, change...)
	r.step(step.Boot{Incarnation: 1})
	return r
}

func unbooted(t tester, change ...func(*Config)) *rig {
	t.Helper()
	cfg := Default(self, fourCores())
	for _, c := range change {
		c(&cfg)
	}
	return &rig{
		t: t, m: New(cfg), now: epoch(), timers: map[step.TimerKey]time.Time{}, facts: step.NewFacts(),
	}
}

// restart is a new machine with the facts of this one, in its next incarnation.
func (r *rig) restart(incarnation uint64) *rig {
	r.t.Helper()
	next := &rig{
		t: r.t, m: New(r.m.cfg), now: r.now, timers: map[step.TimerKey]time.Time{}, facts: r.facts,
		tell: r.tell,
	}
	if err := next.m.Restore(r.m.Snapshot()); err != nil {
		r.t.Fatalf("Restore: %v", err)
	}
	if !bytes.Equal(next.m.Snapshot(), r.m.Snapshot()) {
		r.t.Fatalf("Snapshot after Restore is %s, want %s", next.m.Snapshot(), r.m.Snapshot())
	}
	next.step(step.Boot{Incarnation: incarnation})
	return next
}

// step gives one input and returns the effects.
func (r *rig) step(in step.Input) []step.Effect {
	r.t.Helper()
	r.out = r.m.Step(r.now, in)
	if r.tell != nil {
		r.tell(r, in)
	}
	for _, e := range r.out {
		r.apply(e)
	}
	if err := r.m.Check(); err != nil {
		r.t.Fatalf("after %T %+v: %v", in, in, err)
	}
	if have, want := r.m.Snapshot(), r.facts.Encode(); !bytes.Equal(have, want) {
		r.t.Fatalf("after %T: Snapshot is %s, the facts persisted are %s", in, have, want)
	}
	return r.out
}

func (r *rig) apply(e step.Effect) {
	switch e := e.(type) {
	case step.SetTimer:
		r.timers[e.Key] = e.At
	case step.StopTimer:
		delete(r.timers, e.Key)
	case step.Persist:
		r.facts.Apply(e.Fact)
	case step.Send:
		if err := e.Message.Validate(); err != nil {
			r.t.Fatalf("sends an invalid message %+v: %v", e.Message, err)
		}
	}
}

// receive gives a message.
func (r *rig) receive(from grid.SiteID, msg protocol.Message) []step.Effect {
	r.t.Helper()
	return r.step(step.MessageReceived{From: from, Message: msg})
}

// advance lets time pass and fires the timers that are due, in order. It returns
// all effects.
func (r *rig) advance(d time.Duration) []step.Effect {
	r.t.Helper()
	end := r.now.Add(d)
	var all []step.Effect
	for range 100_000 {
		key, at, due := r.nextTimer(end)
		if !due {
			r.now = end
			r.out = all
			return all
		}
		delete(r.timers, key)
		if at.After(r.now) {
			r.now = at
		}
		all = append(all, r.step(step.TimerFired{Key: key})...)
	}
	r.t.Fatalf("the timers never end")
	return nil
}

func (r *rig) nextTimer(until time.Time) (key step.TimerKey, at time.Time, found bool) {
	for k, t := range r.timers {
		if t.After(until) {
			continue
		}
		if !found || t.Before(at) ||
			t.Equal(at) && cmp.Or(cmp.Compare(k.Name, key.Name), cmp.Compare(k.ID, key.ID)) < 0 {
			key, at, found = k, t, true
		}
	}
	return key, at, found
}

// only picks the effects of one type.
func only[E step.Effect](effects []step.Effect) []E {
	var list []E
	for _, e := range effects {
		if e, ok := e.(E); ok {
			list = append(list, e)
		}
	}
	return list
}

// sent picks the messages of one type that were sent to a site.
func sent[M protocol.Message](effects []step.Effect, to grid.SiteID) []M {
	var list []M
	for _, e := range only[step.Send](effects) {
		if msg, ok := e.Message.(M); ok && e.To == to {
			list = append(list, msg)
		}
	}
	return list
}

// one is the only message of a type that was sent to a site by the last step.
func one[M protocol.Message](r *rig, to grid.SiteID) M {
	r.t.Helper()
	list := sent[M](r.out, to)
	if len(list) != 1 {
		var m M
		r.t.Fatalf("sent %d %T to %s, want 1; effects: %+v", len(list), m, to, r.out)
	}
	return list[0]
}

// none fails if a message of that type was sent by the last step.
func none[M protocol.Message](r *rig) {
	r.t.Helper()
	for _, e := range only[step.Send](r.out) {
		if msg, ok := e.Message.(M); ok {
			r.t.Fatalf("sent %T to %s: %+v", msg, e.To, msg)
		}
	}
}

// events lists the events that the last step reported.
func (r *rig) events() []string {
	var list []string
	for _, e := range only[step.Report](r.out) {
		list = append(list, e.Event)
	}
	return list
}

// reported fails unless the last step reported the event.
func (r *rig) reported(event string) {
	r.t.Helper()
	if !slices.Contains(r.events(), event) {
		r.t.Fatalf("reported %v, want %s", r.events(), event)
	}
}

// spec is a task of one core for one minute.
func spec() grid.Spec {
	return grid.Spec{
		Name: "census", Kind: grid.KindWasm,
		Module:  grid.Input{Path: "/module.wasm", CID: "bmodule", Bytes: 1_000_000},
		Args:    []string{"--task", "{{index}}", "{{item}}"},
		Need:    grid.Resources{MilliCPUs: 1_000, MemoryBytes: 1 << 30, MFLOPS: 2_000},
		Runtime: time.Minute, Weights: grid.DefaultWeights(),
	}
}

// bandwidth asks for so much of the site's link, bit/s.
func bandwidth(bps int64) func(*grid.Spec) {
	return func(s *grid.Spec) { s.Need.NetBps = bps }
}

// announcement is the first announcement of the job with spec().
func announcement(
	job grid.JobID, submitter grid.SiteID, change ...func(*grid.Spec),
) protocol.Announce {
	s := spec()
	for _, c := range change {
		c(&s)
	}
	return protocol.Announce{
		Job: job, Seq: 1, Submitter: submitter, Count: 1, TTL: time.Second, Sample: 1,
		Req: grid.Job{Spec: s, Count: 1, TTL: time.Second}.Requirement(
			"", submitter, grid.Capability{UpBps: 10_000_000}, 0,
		),
	}
}

// award gives the tasks 0 to n-1, each with the token.
func award(
	job grid.JobID, offer grid.Offer, n int, token grid.Token, change ...func(*grid.Spec),
) protocol.Award {
	a := protocol.Award{Job: job, OfferID: offer.ID, Spec: spec(), Quoted: offer.Parts.Distance}
	for _, c := range change {
		c(&a.Spec)
	}
	for i := range n {
		a.Tasks = append(a.Tasks, protocol.AwardedTask{Index: uint32(i), Token: token})
	}
	return a
}

func attemptID(job grid.JobID, index uint32, token grid.Token) grid.AttemptID {
	return grid.AttemptID{Task: grid.TaskID{Job: job, Index: index}, Token: token}
}

// accepted announces and awards n tasks of a job, all of which the site takes.
func (r *rig) accepted(
	job grid.JobID, submitter grid.SiteID, n int, change ...func(*grid.Spec),
) []grid.AttemptID {
	r.t.Helper()
	a := announcement(job, submitter, change...)
	a.Count = uint32(n)
	r.receive(submitter, a)
	r.receive(submitter, award(job, one[protocol.Bid](r, submitter).Offer, n, 1, change...))
	got := one[protocol.Accepted](r, submitter).Attempts
	if len(got) != n {
		r.t.Fatalf("accepted %d of %d", len(got), n)
	}
	return got
}

// lease answers the last request for leases that was sent to the submitter.
func (r *rig) lease(
	submitter grid.SiteID, attempts []grid.AttemptID, d time.Duration,
) []step.Effect {
	r.t.Helper()
	return r.receive(submitter, protocol.Lease{
		Renewal: r.m.submitters.requests.last, Attempts: attempts, Duration: d,
	})
}

// running brings accepted attempts to their sandboxes.
func (r *rig) running(
	job grid.JobID, submitter grid.SiteID, n int, change ...func(*grid.Spec),
) []grid.AttemptID {
	r.t.Helper()
	list := r.accepted(job, submitter, n, change...)
	r.lease(submitter, list, lease)
	for _, id := range list {
		r.step(step.Staged{Attempt: id})
		if started := only[step.StartAttempt](r.out); len(started) != 1 || started[0].Attempt != id {
			r.t.Fatalf("StartAttempt %v, want %s", started, id)
		}
		r.step(step.AttemptStarted{Attempt: id})
	}
	return list
}

// exited lets an attempt end with code 0.
func (r *rig) exited(id grid.AttemptID) []step.Effect {
	r.t.Helper()
	return r.step(step.AttemptExited{Attempt: id, Exit: grid.Exit{
		Cause: grid.CauseExited, Outputs: []grid.Produced{{Path: "/out", CID: "bout", Bytes: 3}},
		Stdout: grid.Produced{CID: "bstdout", Bytes: 3},
	}})
}
