package broker

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

func floodJob(count uint32) grid.Job {
	job := testJob(count)
	job.Flood = true
	return job
}

// flooded brings a job of one task to the queues of a, b and c; d offered, too.
func flooded(t *testing.T) (*bench, grid.JobID) {
	t.Helper()
	b := newBench(t, nil, "a", "b", "c", "d")
	id := b.submit(floodJob(1))
	b.offers(id, 1, "a", "b", "c", "d")
	b.refusal(id, self, false)
	return b, id
}

func (b *bench) accepts(id grid.JobID, tokens map[grid.SiteID]grid.Token) {
	b.Helper()
	for _, site := range slices.Sorted(maps.Keys(tokens)) {
		effects := b.hear(site, protocol.Accepted{
			Attempts: []grid.AttemptID{attemptOf(id, 0, tokens[site])}, Renewal: 1,
		})
		if to, _ := sent[protocol.Lease](effects); len(to) > 0 {
			b.Fatalf("%s got a lease before it asked whether it may start", site)
		}
	}
}

func (b *bench) asks(site grid.SiteID, id grid.JobID, token grid.Token) []step.Effect {
	b.Helper()
	return b.hear(site, protocol.MayStart{
		Attempts: []grid.AttemptID{attemptOf(id, 0, token)}, Renewal: 2,
	})
}

// Migol 6.2.2: "The job is dispatched to the top three sites from the candidate list
// - we call this approach Resource Manager Selective Flooding (RMSF). When one of
// these jobs gets active, all other jobs are cancelled. This approach avoids orphan
// jobs".
func TestSelectiveFlooding(t *testing.T) {
	b, id := flooded(t)
	to, awards := sent[protocol.Award](b.last)
	if !slices.Equal(to, []grid.SiteID{"a", "b", "c"}) {
		t.Fatalf("dispatched to %v, want the top three", to)
	}
	for i, msg := range awards {
		if !msg.AskFirst || msg.HasNext || msg.Tasks[0].Token != grid.Token(i+1) {
			t.Errorf("%s is sent %+v, want token %d, to ask first", to[i], msg, i+1)
		}
	}
	b.accepts(id, map[grid.SiteID]grid.Token{"a": 1, "b": 2, "c": 3})
	b.wantPhase(id, 0, grid.PhaseStaging)
	b.pass(time.Hour) // a queue may be long
	effects := b.asks("b", id, 2)
	if site, lease := one[protocol.Lease](t, effects); site != "b" || lease.Renewal != 2 ||
		lease.Attempts[0].Token != 2 {
		t.Errorf("%s got %+v, want b", site, lease)
	}
	cancelled, fences := sent[protocol.Fence](effects)
	if !slices.Equal(cancelled, []grid.SiteID{"a", "c"}) || fences[0].Below[0] != attemptOf(id, 0, 4) {
		t.Errorf("%v are told to stop %+v, want a and c below 4", cancelled, fences)
	}
	b.hear("b", protocol.Progress{Attempt: attemptOf(id, 0, 2), Phase: grid.PhaseRunning})
	b.wantPhase(id, 0, grid.PhaseRunning)
	if site, _ := one[protocol.Fence](t, b.asks("a", id, 1)); site != "a" {
		t.Error("who asks later is not told to stop")
	}
	b.hear("b", protocol.Exited{
		Attempt: attemptOf(id, 0, 2), Exit: grid.Exit{Cause: grid.CauseExited},
	})
	b.wantPhase(id, 0, grid.PhaseDone)
}

// Facts come before what they allow: the rivals' before the awards, the choice before
// the lease.
func TestRivalsAreDurableBeforeTheyAreSent(t *testing.T) {
	b, id := flooded(t)
	check := func(what string, isIt func(protocol.Message) bool) {
		t.Helper()
		fact, send := -1, -1
		for i, e := range b.last {
			switch e := e.(type) {
			case step.Persist:
				if e.Fact.Kind == factTask {
					fact = i
				}
			case step.Send:
				if send < 0 && isIt(e.Message) {
					send = i
				}
			}
		}
		if fact < 0 || send < 0 || fact > send {
			t.Errorf("%s: fact at %d, message at %d", what, fact, send)
		}
	}
	check("awards", func(m protocol.Message) bool { _, is := m.(protocol.Award); return is })
	b.asks("c", id, 3)
	check("lease", func(m protocol.Message) bool { _, is := m.(protocol.Lease); return is })
}

func TestRivalsThatAreLost(t *testing.T) {
	type way = func(*bench, grid.JobID, grid.SiteID, grid.Token) []step.Effect
	exited := func(cause grid.ExitCause) way {
		return func(b *bench, id grid.JobID, site grid.SiteID, token grid.Token) []step.Effect {
			b.hear(site, protocol.Exited{Attempt: attemptOf(id, 0, token), Exit: grid.Exit{Cause: cause}})
			if to, _ := one[protocol.ExitAck](b.T, b.last); to != site {
				b.Errorf("the end at %s was acknowledged to %s", site, to)
			}
			return b.last
		}
	}
	for name, lose := range map[string]way{
		"dead": func(b *bench, _ grid.JobID, site grid.SiteID, _ grid.Token) []step.Effect {
			return b.do(step.PeerGone{Site: site, Refusing: true})
		},
		"away": func(b *bench, _ grid.JobID, site grid.SiteID, _ grid.Token) []step.Effect {
			b.do(step.PeerGone{Site: site})
			return b.pass(9 * time.Second)
		},
		"declined": func(b *bench, id grid.JobID, site grid.SiteID, token grid.Token) []step.Effect {
			return b.hear(site, protocol.Declined{
				Attempts: []grid.AttemptID{attemptOf(id, 0, token)},
				Refusal:  grid.Refusal{Reason: grid.ReasonCPUs},
			})
		},
		"stopped":    exited(grid.CauseStopped),
		"no data":    exited(grid.CauseData),
		"ended well": exited(grid.CauseExited), // without ever having held a lease: not believed
	} {
		t.Run(name, func(t *testing.T) {
			b, id := flooded(t)
			tokens := map[grid.SiteID]grid.Token{"a": 1, "b": 2, "c": 3}
			if name != "declined" {
				b.accepts(id, tokens)
			}
			var effects []step.Effect
			for i, site := range []grid.SiteID{"a", "c", "b"} {
				if state, _ := b.m.Job(id); len(state.Tasks[0].Rivals) != 3-i {
					t.Fatalf("%d queue it, want %d", len(state.Tasks[0].Rivals), 3-i)
				}
				if to, _ := sent[protocol.Award](effects); i > 0 && len(to) > 0 {
					t.Fatalf("awarded to %v while others queue it", to)
				}
				effects = lose(b, id, site, tokens[site])
			}
			to, award := one[protocol.Award](t, effects)
			if to != "d" || award.Tasks[0].Token != 4 {
				t.Errorf("placed at %s with token %d, want d with 4", to, award.Tasks[0].Token)
			}
			if site, _ := one[protocol.Fence](t, b.asks("b", id, 2)); site != "b" {
				t.Error("one that was given up is not told to stop")
			}
		})
	}
}

func TestUnansweredRivalsAreMissed(t *testing.T) {
	b, id := flooded(t)
	b.accepts(id, map[grid.SiteID]grid.Token{"b": 2})
	b.pass(b.m.cfg.AwardWindow)
	state, _ := b.m.Job(id)
	if rivals := state.Tasks[0].Rivals; len(rivals) != 1 || rivals[0].Site != "b" {
		t.Fatalf("%+v queue it, want b", rivals)
	}
	if index := b.faultIndex("a"); index != 1 {
		t.Errorf("the fault index of who did not answer is %d, want 1", index)
	}
	late := protocol.Accepted{Attempts: []grid.AttemptID{attemptOf(id, 0, 1)}, Renewal: 1}
	if site, _ := one[protocol.Fence](t, b.hear("a", late)); site != "a" {
		t.Error("who answers too late is not told to stop")
	}
}

// A broker that was restarted repeats the awards, because it cannot know who has
// received them, and goes on with the first that asks.
func TestRivalsOutliveARestart(t *testing.T) {
	b, id := flooded(t)
	b.accepts(id, map[grid.SiteID]grid.Token{"a": 1, "b": 2, "c": 3})
	facts := b.m.Snapshot()
	b.m, b.timers = New(b.m.cfg), make(map[step.TimerKey]time.Time)
	if err := b.m.Restore(facts); err != nil {
		t.Fatal(err)
	}
	b.do(step.Boot{Incarnation: 2})
	for i, site := range []grid.SiteID{"a", "b"} {
		b.do(step.PeerSeen{Site: site})
		to, award := one[protocol.Award](t, b.last)
		if to != site || !award.AskFirst || award.Tasks[0].Token != grid.Token(i+1) {
			t.Errorf("%s is sent %+v", to, award)
		}
	}
	b.accepts(id, map[grid.SiteID]grid.Token{"a": 1, "b": 2})
	b.pass(b.m.cfg.BootGrace + rivalCheck)
	if state, _ := b.m.Job(id); len(state.Tasks[0].Rivals) != 2 {
		t.Errorf("%+v queue it, want a and b: c did not come back", state.Tasks[0].Rivals)
	}
	if site, _ := one[protocol.Lease](t, b.asks("b", id, 2)); site != "b" {
		t.Error("b may not start")
	}
}

func TestRivalsAreCancelledEverywhere(t *testing.T) {
	b, id := flooded(t)
	to, _ := sent[protocol.Cancel](b.do(step.CancelJob{Command: 2, Job: id}))
	if !slices.Equal(to, []grid.SiteID{"a", "b", "c"}) {
		t.Errorf("cancelled at %v, want a, b and c", to)
	}
}

func TestOneOfferIsNoFlood(t *testing.T) {
	b := newBench(t, nil, "a")
	id := b.submit(floodJob(2))
	b.refusal(id, self, false)
	b.offers(id, 2, "a")
	if _, award := one[protocol.Award](t, b.last); award.AskFirst || len(award.Tasks) != 2 {
		t.Errorf("sent %+v, want a plain award of both", award)
	}
}

// queue is a scripted site that queues rivals.
type queue struct {
	has    map[grid.AttemptID]bool      // asks first
	asked  map[uint64]time.Time         // when it asked
	leased map[grid.AttemptID]time.Time // until when it may run
	last   uint64
}

// parcel is a message under way.
type parcel struct {
	from, to grid.SiteID
	msg      protocol.Message
}

// lossy is a broker, three scripted sites and a network that loses, doubles, delays
// and reorders what they say.
type lossy struct {
	*rig
	queues map[grid.SiteID]*queue
	way    []parcel
}

func (l *lossy) carry(e step.Send) {
	if l.queues[e.To] != nil {
		l.way = append(l.way, parcel{self, e.To, e.Message})
	}
}

func (l *lossy) say(from grid.SiteID, msg protocol.Message) {
	l.way = append(l.way, parcel{from, self, msg})
}

func (l *lossy) deliver(p parcel) {
	if p.to == self {
		l.do(step.MessageReceived{From: p.from, Message: p.msg})
		return
	}
	q := l.queues[p.to]
	switch msg := p.msg.(type) {
	case protocol.Announce:
		l.say(p.to, protocol.Bid{Job: msg.Job, Seq: msg.Seq, Offer: offer(uint64(len(q.asked)+1), 1, 1)})
	case protocol.Reannounce:
		l.say(p.to, protocol.Bid{Job: msg.Job, Seq: msg.Seq, Offer: offer(uint64(len(q.asked)+1), 1, 1)})
	case protocol.Award:
		id := grid.AttemptID{
			Task: grid.TaskID{Job: msg.Job, Index: msg.Tasks[0].Index}, Token: msg.Tasks[0].Token,
		}
		if msg.AskFirst {
			q.has[id] = true
		}
		l.request(p.to, q, func(n uint64) protocol.Message {
			return protocol.Accepted{Attempts: []grid.AttemptID{id}, Renewal: n}
		})
	case protocol.Fence:
		for _, below := range msg.Below {
			maps.DeleteFunc(q.has, func(id grid.AttemptID, _ bool) bool {
				return id.Task == below.Task && id.Token < below.Token
			})
			maps.DeleteFunc(q.leased, func(id grid.AttemptID, _ time.Time) bool {
				return id.Task == below.Task && id.Token < below.Token
			})
		}
	case protocol.Lease:
		for _, id := range msg.Attempts {
			if at, asked := q.asked[msg.Renewal]; asked && at.Add(msg.Duration).After(l.now) &&
				at.Add(msg.Duration).After(q.leased[id]) {
				q.leased[id] = at.Add(msg.Duration)
			}
		}
	}
}

func (l *lossy) request(site grid.SiteID, q *queue, ask func(uint64) protocol.Message) {
	q.last++
	q.asked[q.last] = l.now
	l.say(site, ask(q.last))
}

// askAny lets the turn of one of a site's attempts come, or renews a lease.
func (l *lossy) askAny(site grid.SiteID, s source) {
	q := l.queues[site]
	all := slices.SortedFunc(maps.Keys(q.has), func(a, b grid.AttemptID) int {
		return int(a.Token) - int(b.Token)
	})
	if len(all) == 0 {
		return
	}
	id := all[s.n(len(all))]
	l.request(site, q, func(n uint64) protocol.Message {
		if q.leased[id].After(l.now) {
			return protocol.Renew{Attempts: []grid.AttemptID{id}, Renewal: n}
		}
		return protocol.MayStart{Attempts: []grid.AttemptID{id}, Renewal: n}
	})
}

// check: never do two attempts of a task run at the same time.
func (l *lossy) check() {
	running := make(map[grid.TaskID]grid.AttemptID)
	for _, q := range l.queues {
		for id, until := range q.leased {
			if !until.After(l.now) {
				continue
			}
			if other, two := running[id.Task]; two && other != id {
				l.t.Fatalf("%s and %s run at the same time", other, id)
			}
			running[id.Task] = id
		}
	}
}

func (l *lossy) turn(s source) {
	site := []grid.SiteID{"a", "b", "c"}[s.n(3)]
	switch s.n(10) {
	case 0:
		l.restart()
		l.do(step.PeerSeen{Site: site})
	case 1:
		l.pass(time.Duration(s.n(50)) * 100 * time.Millisecond)
	case 2:
		l.do(step.PeerGone{Site: site})
	case 3:
		l.do(step.PeerSeen{Site: site})
	case 4, 5:
		l.askAny(site, s)
	default:
		if len(l.way) == 0 {
			return
		}
		i := s.n(min(len(l.way), 4))
		p := l.way[i]
		switch s.n(8) {
		case 0: // twice
		case 1: // lost
			l.way = slices.Delete(l.way, i, i+1)
			return
		default:
			l.way = slices.Delete(l.way, i, i+1)
		}
		l.deliver(p)
	}
}

// Whatever the network does and whenever the broker is restarted: at most one attempt
// of a task ever holds a lease at a time.
func TestOfRivalsOneStarts(t *testing.T) {
	started := 0
	rapid.Check(t, func(t *rapid.T) {
		l := &lossy{rig: newRig(t, nil), queues: make(map[grid.SiteID]*queue)}
		l.onSend = l.carry
		for _, site := range []grid.SiteID{"a", "b", "c"} {
			l.queues[site] = &queue{
				has: make(map[grid.AttemptID]bool), asked: make(map[uint64]time.Time),
				leased: make(map[grid.AttemptID]time.Time),
			}
			l.do(step.PeerSeen{Site: site})
		}
		l.do(step.Submit{Command: 1, Job: floodJob(1)})
		for _, site := range []grid.SiteID{"a", "b", "c"} { // gossip arrives
			l.deliver(parcel{self, site, protocol.Announce{Job: l.jobs[0], Seq: 1}})
		}
		for range rapid.IntRange(10, 150).Draw(t, "turns") {
			l.turn(rapidSource{t})
			l.check()
		}
		for _, q := range l.queues {
			started += len(q.leased)
		}
	})
	if started == 0 {
		t.Error("nothing was ever started: the check is blind")
	}
}
