package site

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// player turns bytes into inputs for one machine: a small world of three
// submitters, four jobs and four tasks, in which messages come late, twice, from
// the wrong sites or broken, and a driver that mostly does what it was asked. The
// rig verifies Check and the facts after every step; the player keeps a model of
// the leases of its own.
type player struct {
	*rig
	data  []byte
	hash  uint64
	runs  uint64
	tasks []any // what the driver was asked and has not answered yet

	asked  map[uint64]request                // lease requests that the site sent
	latest map[grid.AttemptID]uint64         // of these, the last for an attempt's lease
	leased map[grid.AttemptID]time.Time      // end of the lease that the site may assume
	stage  map[grid.AttemptID]bool           // accepted in this run
	offers map[grid.JobID]grid.Offer         // last offer
	digest map[grid.JobID]protocol.Digest    // last requirement
	specs  map[grid.JobID]func(s *grid.Spec) // last spec
	seq    uint32
}

// next is a number below n.
func (p *player) next(n int) int {
	if len(p.data) == 0 {
		return 0
	}
	b := p.data[0]
	p.data = p.data[1:]
	return int(b) % n
}

func pick[T any](p *player, list ...T) T { return list[p.next(len(list))] }

// play runs all of the bytes and returns the hash of all effects.
func play(t tester, data []byte) uint64 {
	p := &player{data: data, runs: 1}
	p.rig = unbooted(t, func(c *Config) {
		c.HoldAll = p.next(2) == 1
		c.CacheEntries, c.MaxAttempts = pick(p, 8, 16, 4_096), pick(p, 8, 32, 16_384)
		c.MaxRuntime = pick(p, 0, time.Hour)
		c.FrozenLimit, c.ResultHold = time.Minute, 10*time.Minute
	})
	p.offers, p.digest = map[grid.JobID]grid.Offer{}, map[grid.JobID]protocol.Digest{}
	p.specs = map[grid.JobID]func(*grid.Spec){}
	p.reset()
	p.give(step.Boot{Incarnation: p.runs})
	for len(p.data) > 0 {
		p.turn()
	}
	return p.hash
}

// reset forgets what an agent's death ends.
func (p *player) reset() {
	p.tasks, p.asked, p.latest = nil, map[uint64]request{}, map[grid.AttemptID]uint64{}
	p.leased, p.stage = map[grid.AttemptID]time.Time{}, map[grid.AttemptID]bool{}
}

func (p *player) turn() {
	switch p.next(12) {
	case 0, 1:
		p.announce()
	case 2, 3:
		p.award()
	case 4, 5:
		p.grant()
	case 6, 7, 8:
		p.driver()
	case 9:
		p.order()
	case 10:
		p.pass()
	default:
		p.rare()
	}
}

// give steps the machine and looks at what it does.
func (p *player) give(in step.Input) {
	if m, ok := in.(step.MessageReceived); ok && m.Message != nil && m.Message.Validate() == nil {
		p.learn(m)
	}
	effects := p.step(in)
	p.hash = step.HashEffects(p.hash, effects)
	p.look(effects)
	if m, ok := in.(step.MessageReceived); ok {
		p.shortCuts(m)
	}
}

// shortCuts is the property of what spares a site a quote: it offers nothing when it is short of
// something, and no offer is nearer than the site would be with nothing on it.
func (p *player) shortCuts(in step.MessageReceived) {
	msg, is := in.Message.(protocol.Announce)
	if !is || msg.Validate() != nil {
		return
	}
	q, _, ok := p.m.quote(msg.Req, inquiry{job: msg.Job, submitter: in.From, count: msg.Count})
	if !ok {
		return
	}
	if reason := p.m.shortNow(msg.Req, in.From); reason != grid.ReasonNone {
		p.t.Fatalf("%s, and offers %+v", reason, q.place)
	}
	near := call{submitter: in.From, theta: q.parts.Distance}
	if near.theta > 0 && !p.m.mayBeNear(near, msg.Req) {
		p.t.Fatalf("an offer at %v is nearer than the site may be", q.parts.Distance)
	}
}

// learn keeps the model of the leases.
func (p *player) learn(in step.MessageReceived) {
	granted, ok := in.Message.(protocol.Lease)
	req := p.asked[granted.Renewal]
	if !ok || req.to != in.From {
		return
	}
	for _, id := range granted.Attempts {
		if who, _ := p.m.Submitter(id); who != in.From {
			continue
		}
		lasts := granted.Duration
		if p.latest[id] > granted.Renewal { // the submitter was told since what is left
			lasts = min(lasts, protocol.MaxLateLease)
		}
		if until := req.at.Add(lasts); until.After(p.leased[id]) {
			p.leased[id] = until
		}
	}
}

func (p *player) look(effects []step.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case step.Send:
			p.hear(e)
		case step.Stage:
			p.stage[e.Attempt] = true
			p.tasks = append(p.tasks, e)
		case step.StartAttempt:
			p.mayRun(e.Attempt, e.LeaseUntil)
			p.tasks = append(p.tasks, e)
		case step.ExtendLease:
			p.mayRun(e.Attempt, e.LeaseUntil)
		case step.StopAttempt:
			p.tasks = append(p.tasks, e)
		case step.Discard:
			delete(p.leased, e.Attempt)
			delete(p.stage, e.Attempt)
		}
	}
}

func (p *player) hear(e step.Send) {
	switch msg := e.Message.(type) {
	case protocol.Accepted:
		p.ask(e.To, msg.Renewal, msg.Attempts)
	case protocol.MayStart:
		p.ask(e.To, msg.Renewal, msg.Attempts)
	case protocol.Renew:
		p.ask(e.To, msg.Renewal, msg.Attempts)
	case protocol.Bid:
		p.offers[msg.Job] = msg.Offer
	}
}

// ask notes a request for leases.
func (p *player) ask(to grid.SiteID, renewal uint64, attempts []grid.AttemptID) {
	p.asked[renewal] = request{to: to, at: p.now}
	for _, id := range attempts {
		p.latest[id] = renewal
	}
}

// mayRun is the safety property: an attempt that runs was accepted, and runs exactly as
// long as its submitter promised.
func (p *player) mayRun(id grid.AttemptID, until time.Time) {
	p.t.Helper()
	if !p.stage[id] || !until.After(p.now) || !until.Equal(p.leased[id]) {
		p.t.Fatalf("%s may run until %s; accepted %v, leased until %s, now %s",
			id, until, p.stage[id], p.leased[id], p.now)
	}
}

func (p *player) site() grid.SiteID { return pick(p, alice, bob, self) }
func (p *player) job() grid.JobID   { return pick(p, job1, job2, job3, "dddddddddddddddd") }
func (p *player) task() grid.TaskID { return grid.TaskID{Job: p.job(), Index: uint32(p.next(4))} }
func (p *player) token() grid.Token { return grid.Token(p.next(5) + 1) }
func (p *player) span() time.Duration {
	return pick(p, 0, time.Millisecond, 20*time.Millisecond, time.Second, 3*time.Second, time.Minute,
		2*time.Hour)
}

// attempt is one that the site has, or any.
func (p *player) attempt() grid.AttemptID {
	if list := p.m.roster.sorted(); len(list) > 0 && p.next(4) > 0 {
		return list[p.next(len(list))].id
	}
	return grid.AttemptID{Task: p.task(), Token: p.token()}
}

func (p *player) announce() {
	need := grid.Resources{
		MilliCPUs: int64(p.next(6)) * 1_000, MemoryBytes: int64(p.next(3)) << 30,
		MFLOPS: int64(p.next(3)) * 1_500,
	}
	need.NetBps = int64(p.next(4)) * 10e6
	kind := pick(p, grid.MapThesis, grid.MapSeconds)
	runtime := pick(p, time.Second, time.Minute, 3*time.Hour)
	window := grid.Window{}
	switch p.next(6) {
	case 0:
		window.NotBefore = p.now.Add(p.span())
	case 1:
		window.Deadline = p.now.Add(p.span())
	}
	change := func(s *grid.Spec) { s.Need, s.Map, s.Runtime, s.Window = need, kind, runtime, window }
	job, from := p.job(), p.site()
	p.seq++
	a := announcement(job, from, change)
	a.Seq, a.Count, a.Explain = p.seq-uint32(p.next(3)), uint32(p.next(5)), p.next(2) == 0
	a.Sample, a.Theta = pick(p, 1, 1, 0.5, math.NaN()), pick(p, 0, 0.1)
	p.specs[job], p.digest[job] = change, protocol.DigestOf(a.Req)
	switch p.next(4) {
	case 0:
		p.say(from, protocol.Requirements{Announce: a})
	case 1:
		p.say(from, protocol.Reannounce{
			Job: job, Seq: a.Seq, Submitter: from, Digest: p.digest[job], Count: a.Count, TTL: time.Second,
		})
	default:
		p.say(from, a)
	}
}

// say sends a message; sometimes somebody else says it.
func (p *player) say(from grid.SiteID, msg protocol.Message) {
	if p.next(16) == 15 {
		from = p.site()
	}
	p.give(step.MessageReceived{From: from, Message: msg})
}

func (p *player) award() {
	job := p.job()
	change := p.specs[job]
	if change == nil {
		change = func(*grid.Spec) {}
	}
	offer := p.offers[job]
	offer.ID += uint64(p.next(2))
	a := award(job, offer, p.next(5), p.token(), change)
	a.HasNext, a.RunnerUp = p.next(2) == 0, pick(p, offer.Parts.Distance, 1e-9, math.Inf(1))
	a.AskFirst = p.next(4) == 3
	owner, _ := p.m.recallOwner(job)
	p.say(owner, a)
}

// grant answers a request for leases, perhaps an old one.
func (p *player) grant() {
	n := p.m.submitters.requests.last - uint64(p.next(4))
	id := p.attempt()
	from, _ := p.m.Submitter(id)
	list := []grid.AttemptID{id}
	others := p.m.roster.where(func(a *attempt) bool { return a.submitter == from && a.id != id })
	for _, a := range others {
		if p.next(2) == 0 {
			list = append(list, a.id)
		}
	}
	p.say(from, protocol.Lease{Renewal: n, Attempts: list, Duration: p.span()})
}

// driver answers what was asked first, or something that was not asked.
func (p *player) driver() {
	if len(p.tasks) == 0 || p.next(8) == 7 {
		p.unasked()
		return
	}
	at := p.next(len(p.tasks))
	asked := p.tasks[at]
	p.tasks = append(p.tasks[:at:at], p.tasks[at+1:]...)
	switch asked := asked.(type) {
	case step.Stage:
		p.give(step.Staged{Attempt: asked.Attempt, Problem: pick(p, "", "", "", "lost")})
	case step.StartAttempt:
		p.give(step.AttemptStarted{Attempt: asked.Attempt})
	case step.StopAttempt:
		p.give(step.AttemptExited{Attempt: asked.Attempt, Exit: grid.Exit{Cause: grid.CauseStopped}})
	}
}

func (p *player) unasked() {
	id := p.attempt()
	switch p.next(9) {
	case 7:
		p.give(step.CanSave{Attempt: id})
	case 8:
		n := uint64(p.next(4))
		p.give(step.Saved{Attempt: id, Checkpoint: taken(n), Problem: pick(p, "", "", "no space")})
	case 0:
		p.give(step.AttemptFrozen{Attempt: id})
	case 1:
		p.give(step.AttemptResumed{Attempt: id})
	case 2:
		p.give(step.StageProgress{Attempt: id, Done: int64(p.next(100)) - 1, Total: 99})
	case 3:
		p.give(step.AttemptStarted{Attempt: id})
	case 4:
		p.give(step.Staged{Attempt: id})
	default:
		n := p.next(9)
		p.give(step.AttemptExited{Attempt: id, Exit: grid.Exit{
			Cause: grid.ExitCause(p.next(14)), Text: string(p.data[:min(len(p.data), n)]),
			Outputs: []grid.Produced{{Path: pick(p, "/out", "x"), CID: "bout"}},
		}})
	}
}

// order plays an order of a submitter about its job.
func (p *player) order() {
	id := p.attempt()
	owner, _ := p.m.recallOwner(id.Task.Job)
	switch p.next(8) {
	case 6, 7:
		p.say(owner, protocol.Move{Attempt: id, Stop: p.next(2) == 0})
	case 0:
		p.say(owner, protocol.Fence{Below: []grid.AttemptID{id, {Task: p.task(), Token: p.token()}}})
	case 1:
		p.say(owner, protocol.Cancel{Job: id.Task.Job})
	case 2:
		p.say(owner, protocol.Clear{
			Job: id.Task.Job, Submitter: owner, Kind: protocol.ClearKind(p.next(4)),
		})
	default:
		p.say(owner, protocol.ExitAck{Attempts: []grid.AttemptID{id}})
	}
}

// pass lets time pass and fires what is due; sometimes timers come late.
func (p *player) pass() {
	end := p.now.Add(p.span())
	for range 300 {
		key, at, due := p.nextTimer(end)
		if !due {
			break
		}
		delete(p.timers, key)
		if at.After(p.now) {
			p.now = at
		}
		p.give(step.TimerFired{Key: key})
	}
	if end.After(p.now) {
		p.now = end
	}
}

func (p *player) rare() {
	switch p.next(18) {
	case 16:
		p.give(step.Controller{Site: p.site(), Term: uint64(p.next(2))})
	case 17:
		p.give(step.MessageReceived{From: p.m.books.controller.Site, Message: protocol.Booked{
			Term: 1, Number: p.m.books.number, Again: p.next(3) == 0,
		}})
	case 14:
		p.give(step.Pause{Leave: true, StopAt: p.now.Add(p.span())})
	case 15:
		p.give(step.OwnerReturns{At: p.now.Add(p.span())})
	case 13:
		if p.next(2) == 0 {
			p.give(step.ShareChanged{Percent: int64(1 + p.next(100)), Until: p.now.Add(time.Hour)})
			return
		}
		p.give(step.SpaceChanged{Full: p.next(2) == 0})
	case 10:
		p.give(step.OwnerBusy{Reason: grid.ReasonOwnerBusy + grid.Reason(p.next(3))})
	case 11:
		p.give(step.OwnerAway{})
	case 12:
		if p.next(2) == 0 {
			p.give(step.BansChanged{Banned: []grid.SiteID{p.site()}})
		} else {
			p.give(step.BansChanged{})
		}
	case 0:
		p.give(step.Pause{Until: p.now.Add(p.span())})
	case 1:
		p.give(step.Pause{})
	case 2, 3:
		p.give(step.Resume{})
	case 4:
		p.give(step.Drain{Now: p.next(2) == 0})
	case 5:
		c := fourCores()
		c.Total.MilliCPUs, c.Total.MFLOPS = int64(p.next(10)-1)*1_000, int64(p.next(5))*2_000
		changed := step.CapacityChanged{Capability: c}
		if p.next(3) == 0 {
			left := fourCores()
			left.Total.MilliCPUs, left.CoreMFLOPS = int64(p.next(7)-1)*1_000, int64(p.next(4)-1)*1_000
			changed.Left = &left
		}
		p.give(changed)
	case 6:
		p.give(step.PeerSeen{Site: p.site(), Capability: grid.Capability{DownBps: int64(p.next(3)) - 1}})
	case 7:
		p.give(step.HeldChanged{Added: []grid.CID{"bmodule"}})
	case 8:
		p.restartNow()
	default:
		p.give(pick[step.Input](
			p, step.Submit{}, step.MessageReceived{}, step.MessageReceived{From: alice},
			step.PeerGone{Site: alice}, step.BandwidthMeasured{Peer: bob, DownBps: -3},
			step.ClockStepped{By: time.Hour}, step.TimerFired{},
		))
	}
}

// restartNow kills the agent and starts it again with its facts.
func (p *player) restartNow() {
	p.runs++
	m := New(p.m.cfg)
	if err := m.Restore(p.m.Snapshot()); err != nil {
		p.t.Fatalf("Restore: %v", err)
	}
	if err := m.Check(); err != nil {
		p.t.Fatalf("after Restore: %v", err)
	}
	if !bytes.Equal(m.Snapshot(), p.m.Snapshot()) {
		p.t.Fatalf("Snapshot after Restore is %s, want %s", m.Snapshot(), p.m.Snapshot())
	}
	p.m, p.timers = m, map[step.TimerKey]time.Time{}
	p.reset()
	p.give(step.Boot{Incarnation: p.runs})
}

// Whatever happens: the invariants hold, the snapshot equals what was persisted,
// nothing runs without a lease, and nothing panics.
func TestAnySequenceKeepsTheInvariants(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		play(rt, rapid.SliceOfN(rapid.Byte(), 0, 600).Draw(rt, "inputs"))
	})
}

// Equal inputs give equal effects.
func TestDeterminism(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		data := make([]byte, 4_000)
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		if a, b := play(t, data), play(t, data); a != b {
			t.Fatalf("the same inputs give effects with the hashes %x and %x", a, b)
		}
	}
}

func FuzzStep(f *testing.F) {
	random := rand.New(rand.NewPCG(3, 4))
	for n := range 8 {
		data := make([]byte, 64<<n)
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		f.Add(data)
	}
	// A lease of two hours that answers a request which a later one has followed.
	f.Add([]byte("00100000000200000000\xdf10000000220000000022000007000000002000000000\"17000A110000"))
	f.Fuzz(func(t *testing.T, data []byte) {
		play(t, data[:min(len(data), 8_192)])
	})
}
