package site

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/avail"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// A burst of exits makes one message to each submitter, with what fits now, least
// recently announced first, and nothing that is placed.
func TestVacancy(t *testing.T) {
	r := newRig(t)
	list := r.running(job1, bob, 4)
	big := func(s *grid.Spec) { s.Need.MilliCPUs = 4_000; s.Need.MFLOPS = 0 }
	waiting := []grid.JobID{"daaaaaaaaaaaaaaa", "dbbbbbbbbbbbbbbb", "dccccccccccccccc"}
	for _, job := range waiting {
		r.receive(alice, announcement(job, alice))
	}
	r.receive(alice, protocol.Clear{Job: waiting[1], Submitter: alice, Kind: protocol.ClearPlaced})
	r.receive(self, announcement(job2, self))
	r.receive(alice, announcement(job3, alice, big))
	r.receive(bob, protocol.Clear{Job: job1, Submitter: bob, Kind: protocol.ClearPlaced})

	r.exited(list[0])
	none[protocol.Vacancy](r)
	due := r.timers[step.TimerKey{Name: timerVacancy}]
	r.advance(10 * time.Millisecond)
	r.exited(list[1])
	if got := r.timers[step.TimerKey{Name: timerVacancy}]; !got.Equal(due) {
		t.Errorf("a second exit puts the vacancy off from %s to %s", due, got)
	}
	r.advance(vacancyDelay)
	want := []grid.JobID{waiting[0], waiting[2]}
	if got := one[protocol.Vacancy](r, alice).Jobs; !slices.Equal(got, want) {
		t.Errorf("vacancy for %v, want %v", got, want)
	}
	if got, want := one[protocol.Vacancy](r, self).Jobs, []grid.JobID{job2}; !slices.Equal(got, want) {
		t.Errorf("vacancy for %v, want %v", got, want)
	}
	if got := sent[protocol.Vacancy](r.out, bob); len(got) != 0 {
		t.Errorf("bob, who waits for nothing, hears %v", got)
	}
}

// More capacity than before is told, for whatever reason it is free.
func TestWhatMakesAVacancy(t *testing.T) {
	more := fourCores()
	more.Total = more.Total.Add(more.Total)
	less := fourCores()
	less.Total.MemoryBytes = 3 << 30
	for _, tt := range []struct {
		name string
		in   step.Input
		want int
	}{
		{"resume", step.Resume{}, 1},
		{"more capacity", step.CapacityChanged{Capability: more}, 0}, // still paused
		{"less capacity", step.CapacityChanged{Capability: less}, 0},
	} {
		r := newRig(t)
		r.receive(alice, announcement(job1, alice))
		r.step(step.Pause{})
		r.step(tt.in)
		if got := len(sent[protocol.Vacancy](r.advance(time.Second), alice)); got != tt.want {
			t.Errorf("%s: %d vacancies, want %d", tt.name, got, tt.want)
		}
	}

	r := newRig(t)
	r.accepted(job2, bob, 4)
	r.receive(alice, announcement(job1, alice))
	r.step(step.CapacityChanged{Capability: more})
	if got := len(sent[protocol.Vacancy](r.advance(vacancyDelay), alice)); got != 1 {
		t.Errorf("more capacity: %d vacancies, want 1", got)
	}
}

func TestPauseEndsByItself(t *testing.T) {
	r := newRig(t)
	r.receive(alice, announcement(job1, alice))
	r.step(step.Pause{Until: r.now.Add(time.Hour)})
	if s := r.m.Status(); !s.Paused || !s.PausedUntil.Equal(r.now.Add(time.Hour)) {
		t.Errorf("status %+v", s)
	}
	if got := sent[protocol.Vacancy](r.advance(59*time.Minute), alice); len(got) != 0 {
		t.Errorf("paused, it says %v", got)
	}
	r.receive(alice, announcement(job2, alice))
	none[protocol.Bid](r)
	if got := sent[protocol.Vacancy](r.advance(2*time.Minute), alice); len(got) != 1 {
		t.Errorf("after the pause: %v", got)
	}
	if r.m.Status().Paused || len(r.facts.All()) != 0 {
		t.Errorf("still paused")
	}
}

func TestRunningAttemptsGoOnInAPause(t *testing.T) {
	r := newRig(t)
	id := r.running(job1, alice, 1)[0]
	r.step(step.Pause{})
	r.lease(alice, []grid.AttemptID{id}, 2*lease)
	if got := only[step.ExtendLease](r.out); len(got) != 1 {
		t.Errorf("extends %v", got)
	}
	r.exited(id)
	one[protocol.Exited](r, alice)
}

// Stopping now stops running attempts, and the submitters hear of it, so that the tasks
// move; stopping later lets them finish.
func TestDrain(t *testing.T) {
	for _, now := range []bool{false, true} {
		r := newRig(t)
		ids := []grid.AttemptID{r.running(job1, alice, 1)[0], r.accepted(job2, alice, 1)[0]}
		r.step(step.Drain{Now: now})
		stops := only[step.StopAttempt](r.out)
		if !now {
			if len(stops) != 0 {
				t.Errorf("stops %v", stops)
			}
			continue
		}
		if len(stops) != 2 {
			t.Fatalf("stops %v, want %v", stops, ids)
		}
		for _, id := range ids {
			r.step(step.AttemptExited{Attempt: id, Exit: grid.Exit{Cause: grid.CauseStopped}})
			if got := one[protocol.Exited](r, alice); got.Attempt != id ||
				got.Exit.Cause != grid.CauseStopped {
				t.Errorf("exited %+v", got)
			}
		}
		r.step(step.Resume{})
		if r.m.Status().Draining {
			t.Error("Resume does not call the drain off")
		}
	}
}

// A banned submitter loses its attempts here silently, and its messages are
// ignored until the ban is taken back; others notice nothing.
func TestBan(t *testing.T) {
	r := newRig(t)
	theirs := []grid.AttemptID{r.running(job1, alice, 1)[0], r.accepted(job2, alice, 1)[0]}
	r.step(step.BansChanged{Banned: []grid.SiteID{alice}})
	if got := only[step.StopAttempt](r.out); len(got) != len(theirs) {
		t.Fatalf("stops %v, want %v", got, theirs)
	}
	for _, id := range theirs {
		r.step(step.AttemptExited{Attempt: id, Exit: grid.Exit{Cause: grid.CauseStopped}})
		if sends := only[step.Send](r.out); len(sends) != 0 {
			t.Errorf("the banned submitter is told %v", sends)
		}
	}
	if _, known := r.m.cache.Peek(r.m.now, job1); known {
		t.Error("its requirement is still cached")
	}
	r.step(step.BansChanged{Banned: []grid.SiteID{alice}}) // once more
	if len(only[step.StopAttempt](r.out)) != 0 || len(only[step.Report](r.out)) != 0 {
		t.Errorf("the same bans again do %v", r.out)
	}
	r.receive(alice, announcement(job3, alice))
	if sends := only[step.Send](r.out); len(sends) != 0 {
		t.Errorf("a banned submitter is answered with %v", sends)
	}
	r.step(step.BansChanged{})
	r.receive(alice, announcement(job3, alice))
	one[protocol.Bid](r, alice)
}

// Ceilings that fall leave running attempts alone, and nothing new fits.
func TestLessCapacity(t *testing.T) {
	r := newRig(t)
	list := r.running(job1, alice, 3)
	less := fourCores()
	less.Total.MilliCPUs = 2_000
	r.step(step.CapacityChanged{Capability: less})
	a := announcement(job2, bob)
	a.Explain = true
	r.receive(bob, a)
	want := grid.Refusal{Reason: grid.ReasonCPUs, Want: 1_000}
	if got := one[protocol.Refuse](r, bob).Refusal; got != want {
		t.Errorf("refusal %+v", got)
	}
	for _, id := range list[:2] {
		r.exited(id)
	}
	a.Seq = 2
	r.receive(bob, a)
	one[protocol.Bid](r, bob)

	less.Total.MilliCPUs = -1
	r.step(step.CapacityChanged{Capability: less})
	r.reported(eventInvalid)
}

// What others leave for now bounds what is offered, and excludes nothing permanently.
func TestOthersLeaveLess(t *testing.T) {
	r := newRig(t)
	left := fourCores()
	left.Total.MilliCPUs, left.Total.MFLOPS, left.CoreMFLOPS = 500, 500, 1_000
	r.step(step.CapacityChanged{Capability: fourCores(), Left: &left})
	a := announcement(job1, alice)
	a.Explain = true
	r.receive(alice, a)
	want := grid.Refusal{Reason: grid.ReasonCPUs, Want: 1_000, Have: 500}
	if got := one[protocol.Refuse](r, alice).Refusal; got != want {
		t.Errorf("refusal %+v, want one for now", got)
	}
	left.Total.MilliCPUs, left.Total.MFLOPS = 9_000, 3_000
	r.step(step.CapacityChanged{Capability: fourCores(), Left: &left})
	r.reported(eventCapacityChanged)
	a.Seq = 2
	r.receive(alice, a)
	slow := one[protocol.Bid](r, alice).Offer
	if slow.CoreMFLOPS != 1_000 {
		t.Errorf("a core offered at %d MFLOP/s, want what is left of it", slow.CoreMFLOPS)
	}
	if got := r.m.Status().Left.Total; got.MilliCPUs != fourCores().Total.MilliCPUs ||
		got.MFLOPS != 3_000 {
		t.Errorf("left %+v, want no more than the ceilings", got)
	}
	r.step(step.CapacityChanged{Capability: fourCores()})
	a.Seq = 3
	r.receive(alice, a)
	if fast := one[protocol.Bid](r, alice).Offer; fast.CoreMFLOPS != 2_000 ||
		fast.Parts.X >= slow.Parts.X {
		t.Errorf("x = %g with all and %g with little of it", fast.Parts.X, slow.Parts.X)
	}
}

// A speed that was not measured yet is no reason to refuse permanently.
func TestUnknownSpeed(t *testing.T) {
	r := newRig(t)
	unknown := fourCores()
	unknown.CoreMFLOPS, unknown.Total.MFLOPS = 0, 0
	r.step(step.CapacityChanged{Capability: unknown})
	a := announcement(job1, alice)
	a.Explain, a.Req.Need.MFLOPS = true, 2_000
	r.receive(alice, a)
	if got := one[protocol.Refuse](r, alice).Refusal; got.Reason != grid.ReasonComputation ||
		got.Never {
		t.Errorf("refusal %+v, want computation, for now", got)
	}
	r.step(step.CapacityChanged{Capability: fourCores()})
	a.Seq = 2
	r.receive(alice, a)
	one[protocol.Bid](r, alice)
}

// After a crash: what had not ended has died with the agent, what had ended is
// told again, and a pause goes on.
func TestRestart(t *testing.T) {
	r := newRig(t)
	run := r.running(job1, alice, 1)[0]
	wait := r.accepted(job2, alice, 1)[0]
	done := r.running(job3, bob, 1)[0]
	r.exited(done)
	r.step(step.Pause{Until: r.now.Add(time.Hour)})

	next := r.restart(2)
	for _, id := range []grid.AttemptID{run, wait} {
		i := slices.IndexFunc(sent[protocol.Exited](next.out, alice), func(e protocol.Exited) bool {
			return e.Attempt == id
		})
		if i < 0 || sent[protocol.Exited](next.out, alice)[i].Exit.Cause != grid.CauseSiteRestart {
			t.Errorf("%s: says %+v", id, sent[protocol.Exited](next.out, alice))
		}
	}
	if got := one[protocol.Exited](next, bob); got.Attempt != done ||
		got.Exit.Cause != grid.CauseExited {
		t.Errorf("bob hears %+v", got)
	}
	if s := next.m.Status(); !s.Paused || s.Free.MilliCPUs != 4_000 {
		t.Errorf("status %+v", s)
	}
	if got := sent[protocol.Exited](next.advance(7*time.Second), bob); len(got) != 3 {
		t.Errorf("repeated %d times in 7 s, want 3", len(got))
	}

	// The tokens survive with their attempts, and so does whose job it is.
	next.receive(alice, award(job1, grid.Offer{ID: 1}, 1, 1))
	one[protocol.Exited](next, alice)
	next.receive(bob, award(job1, grid.Offer{ID: 1}, 1, 2))
	next.reported(eventNotSubmitter)

	next.receive(bob, protocol.ExitAck{Attempts: []grid.AttemptID{done}})
	third := next.restart(3)
	none := sent[protocol.Exited](third.out, bob)
	if len(none) != 0 || len(sent[protocol.Exited](third.out, alice)) != 2 {
		t.Errorf("the third run says %+v", third.out)
	}
	third.advance(2 * time.Hour)
	if third.m.Status().Paused {
		t.Error("the pause does not end")
	}
}

// Numbers of offers and requests are never used again, so that what was meant for
// an earlier run is not taken for this one's.
func TestNumbersOfRuns(t *testing.T) {
	r := newRig(t)
	first := r.bid(announcement(job1, alice)).ID
	r.receive(alice, award(job1, grid.Offer{ID: first}, 1, 1))
	renewal := one[protocol.Accepted](r, alice).Renewal
	next := r.restart(2)
	if second := next.bid(announcement(job2, alice)).ID; second <= first || second>>32 != 2 {
		t.Errorf("offers %d and %d", first, second)
	}
	list := next.accepted(job3, alice, 1)
	next.step(step.Staged{Attempt: list[0]})
	next.receive(alice, protocol.Lease{Renewal: renewal, Attempts: list, Duration: time.Hour})
	next.reported(eventUnknownRenewal)
}

func TestRestoreRefuses(t *testing.T) {
	r := newRig(t)
	id := r.running(job1, alice, 1)[0]
	good := r.m.Snapshot()
	fact := func(kind, key string, value any) []byte {
		return step.EncodeFacts([]step.Fact{step.NewFact(kind, key, value)})
	}
	task := &grid.Task{ID: id.Task}
	for name, text := range map[string][]byte{
		"no JSON":      []byte("x"),
		"a later kind": fact("attempt/2", id.String(), 1),
		"no attempt":   fact(kindAttempt, id.String(), 1),
		"other key": fact(kindAttempt, "x", attemptFact{
			Attempt: id, Submitter: alice, Phase: factStarted, Task: task,
		}),
		"other phase": fact(kindAttempt, id.String(), attemptFact{
			Attempt: id, Submitter: alice, Phase: "x", Task: task,
		}),
		"no submitter": fact(kindAttempt, id.String(), attemptFact{
			Attempt: id, Phase: factStarted, Task: task,
		}),
		"no task": fact(kindAttempt, id.String(), attemptFact{
			Attempt: id, Submitter: alice, Phase: factStarted,
		}),
		"no exit": fact(kindAttempt, id.String(), attemptFact{
			Attempt: id, Submitter: alice, Phase: factExited,
		}),
		"no token": fact(kindAttempt, "x", attemptFact{
			Submitter: alice, Phase: factStarted, Task: task,
		}),
		"bad pause": fact(kindPaused, pausedKey, "x"),
		"two submitters": step.EncodeFacts([]step.Fact{
			step.NewFact(kindAttempt, id.String(), attemptFact{
				Attempt: id, Submitter: alice, Phase: factStarted, Task: task,
			}),
			step.NewFact(kindAttempt, attemptID(job1, 1, 1).String(),
				attemptFact{Attempt: attemptID(job1, 1, 1), Submitter: bob, Phase: factStarted, Task: task}),
		}),
	} {
		if err := New(Default(self, fourCores())).Restore(text); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := r.m.Restore(good); err == nil {
		t.Error("a machine in use: no error")
	}
	twice := New(Default(self, fourCores()))
	if err := twice.Restore(good); err != nil {
		t.Fatalf("an attempt: %v", err)
	}
	if err := twice.Restore(step.EncodeFacts(nil)); err == nil {
		t.Error("a machine with one attempt: no error")
	}
	fresh := New(Default(self, fourCores()))
	if err := fresh.Restore(nil); err != nil {
		t.Errorf("nothing to restore: %v", err)
	}
}

func TestConfigValidate(t *testing.T) {
	if err := Default(self, fourCores()).Validate(); err != nil {
		t.Fatalf("Default: %v", err)
	}
	for name, change := range map[string]func(*Config){
		"self":        func(c *Config) { c.Self = "" },
		"capability":  func(c *Config) { c.Capability.DownBps = -1 },
		"prior":       func(c *Config) { c.Prior = avail.Prior{} },
		"cache":       func(c *Config) { c.CacheEntries = 7 },
		"attempts":    func(c *Config) { c.MaxAttempts = 1 << 30 },
		"ttl":         func(c *Config) { c.CacheTTL = 0 },
		"validity":    func(c *Config) { c.OfferValidity = -time.Second },
		"retry":       func(c *Config) { c.RenewRetry = 0 },
		"give up":     func(c *Config) { c.GiveUp = 0 },
		"frozen":      func(c *Config) { c.FrozenLimit = 0 },
		"result":      func(c *Config) { c.ResultHold = 0 },
		"max runtime": func(c *Config) { c.MaxRuntime = -1 },
	} {
		cfg := Default(self, fourCores())
		change(&cfg)
		if err := cfg.Validate(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("New takes an invalid configuration")
		}
	}()
	New(Config{})
}

func TestStatusAndSubmitter(t *testing.T) {
	r := newRig(t)
	id := r.running(job1, alice, 1)[0]
	s := r.m.Status()
	if len(s.Attempts) != 1 || s.Attempts[0].ID != id || s.Attempts[0].Phase != "running" ||
		s.Attempts[0].Submitter != alice ||
		!s.Attempts[0].LeaseUntil.Equal(r.now.Add(lease)) || s.Attempts[0].Distance <= 0 ||
		!s.Attempts[0].End.After(r.now) {
		t.Errorf("attempts %+v", s.Attempts)
	}
	if s.Free.MilliCPUs != 3_000 || s.Cached != 1 {
		t.Errorf("status %+v", s)
	}
	if who, ok := r.m.Submitter(id); !ok || who != alice {
		t.Errorf("Submitter = %q, %v", who, ok)
	}
	if _, ok := r.m.Submitter(attemptID(job2, 0, 1)); ok {
		t.Error("Submitter knows an unknown attempt")
	}
}

func TestRecentForgetsTheOldest(t *testing.T) {
	r := newRecent[int, int](10)
	for i := range 100 {
		r.put(i, i)
		if got, ok := r.recall(0); !ok || got != 0 { // asked for again and again, it stays
			t.Fatalf("after %d: get(0) = %d, %v", i, got, ok)
		}
		if r.len() > 10 {
			t.Fatalf("%d entries, the limit is 10", r.len())
		}
	}
	for i := range 100 {
		if ok := r.knows(i); ok != (i == 0 || i > 100-r.len()) {
			t.Errorf("knows(%d) = %v with %d entries", i, ok, r.len())
		}
	}
}

// A submitter that was refused because it had its share hears when capacity is free again.
func TestFreedShareIsAVacancy(t *testing.T) {
	r := newRig(t, func(c *Config) { c.MaxAttempts = 8 })
	id := r.running(job1, alice, 1)[0]
	r.receive(alice, protocol.Clear{Job: job1, Submitter: alice, Kind: protocol.ClearPlaced})
	r.exited(id)
	r.advance(vacancyDelay)
	r.receive(alice, announcement(job2, alice))
	none[protocol.Bid](r)
	r.receive(alice, protocol.ExitAck{Attempts: []grid.AttemptID{id}})
	if got := sent[protocol.Vacancy](r.advance(vacancyDelay), alice); len(got) != 1 ||
		!slices.Equal(got[0].Jobs, []grid.JobID{job2}) {
		t.Errorf("vacancies %v, want one for %s", got, job2)
	}
}

// What other programs take is felt for as long as nobody says that they take less: it is
// counted for five minutes ahead, anew when half of them are over.
func TestWhatOthersTakeLasts(t *testing.T) {
	busy := func(after time.Duration) *rig {
		r := newRig(t)
		left := fourCores()
		left.Total.MilliCPUs = 500
		r.step(step.CapacityChanged{Capability: fourCores(), Left: &left})
		r.advance(after)
		return r
	}
	for _, after := range []time.Duration{
		0, othersStay - 1, othersStay, othersStay + time.Second, time.Hour,
	} {
		r := busy(after)
		r.receive(alice, announcement(job1, alice))
		none[protocol.Bid](r)
		r.step(step.CapacityChanged{Capability: fourCores()})
		r.receive(alice, announcement(job2, alice))
		one[protocol.Bid](r, alice)
	}
	for after, bids := range map[time.Duration]int{
		0: 1, othersStay / 2: 1, othersStay/2 + 1: 0,
	} {
		r := busy(after)
		r.receive(alice, announcement(job1, alice, at(othersStay+time.Second)))
		if got := len(sent[protocol.Bid](r.out, alice)); got != bids {
			t.Errorf("after %s: %d bids for a start just after the first five minutes", after, got)
		}
	}
}

// The table of peers has an end, which nobody passes; who is in it is heard on.
func TestTheTableOfPeersIsBounded(t *testing.T) {
	r := newRig(t)
	for i := range maxPeers {
		r.m.links.peers[grid.SiteID(fmt.Sprint("p", i))] = &peer{}
	}
	r.step(step.PeerSeen{Site: alice})
	r.reported(eventTableFull)
	if len(r.m.links.peers) != maxPeers || r.m.links.peers[alice] != nil {
		t.Errorf("%d peers", len(r.m.links.peers))
	}
	r.step(step.PeerSeen{Site: "p0", Capability: grid.Capability{DownBps: 7}})
	if got := r.m.links.peers["p0"].capability.DownBps; got != 7 {
		t.Errorf("a known peer's rate %d", got)
	}
	r.step(step.PeerGone{Site: "p1"})
	r.step(step.PeerSeen{Site: alice})
	if r.m.links.peers[alice] == nil {
		t.Error("the place of one that has gone is not given to the next")
	}
}

// What begins once the site is open again can be promised while it is closed; nothing is while it
// leaves, nor now.
func TestWhatBeginsOnceTheSiteIsOpen(t *testing.T) {
	now := epoch()
	in := func(d time.Duration) grid.Window { return grid.Window{At: now.Add(d)} }
	until := func(d time.Duration) pause { return pause{on: true, until: now.Add(d)} }
	const pausedR, busyR = grid.ReasonPaused, grid.ReasonOwnerBusy
	paused, hour := owner{paused: pause{on: true}}, owner{paused: until(time.Hour)}
	leaving := owner{draining: true, paused: until(time.Hour)}
	busy := owner{busy: busyR}
	both, short := owner{busy: busyR, paused: until(time.Hour)}, owner{busy: busyR, paused: until(1)}
	for name, c := range map[string]struct {
		owner  owner
		window grid.Window
		closed bool
		reason grid.Reason
	}{
		"open":                       {owner{}, grid.Window{}, false, grid.ReasonNone},
		"paused":                     {paused, in(time.Hour), true, pausedR},
		"paused, now":                {hour, grid.Window{}, true, pausedR},
		"paused until just after":    {hour, in(time.Hour - 1), true, pausedR},
		"paused until then":          {hour, in(time.Hour), false, pausedR},
		"leaving":                    {owner{draining: true}, in(time.Hour), true, grid.ReasonDraining},
		"leaving and paused":         {leaving, in(2 * time.Hour), true, grid.ReasonDraining},
		"busy, now":                  {busy, grid.Window{}, true, busyR},
		"busy, too soon":             {busy, in(ownerStays - 1), true, busyR},
		"busy, later":                {busy, in(ownerStays), false, busyR},
		"busy and paused for longer": {both, in(ownerStays), true, pausedR},
		"both, after both":           {both, in(time.Hour), false, pausedR},
		"busy longer than paused":    {short, in(ownerStays - 1), true, pausedR},
	} {
		refusal, closed := c.owner.closedFor(c.window, now)
		if closed != c.closed || refusal.Reason != c.reason {
			t.Errorf("%s: closed: %v for %q, want %v for %q",
				name, closed, refusal.Reason, c.closed, c.reason)
		}
	}
}

// knows reports whether there is an entry, without making it young.
func (r *recent[K, V]) knows(key K) bool {
	_, young := r.young[key]
	_, old := r.old[key]
	return young || old
}

// What the owner ordered here is not changed from afar, and what came from afar the owner changes.
func TestOrdersFromAfarYieldToTheOwners(t *testing.T) {
	here, afar := step.Pause{}, step.Pause{By: alice}
	for _, tt := range []struct {
		name   string
		in     []step.Input
		paused bool
		by     grid.SiteID
	}{
		{"afar alone", []step.Input{afar}, true, alice},
		{"afar, ended from afar", []step.Input{afar, step.Resume{By: alice}}, false, ""},
		{"afar, ended by another one", []step.Input{afar, step.Resume{By: bob}}, false, ""},
		{"afar, ended here", []step.Input{afar, step.Resume{}}, false, ""},
		{"here, not ended from afar", []step.Input{here, step.Resume{By: alice}}, true, ""},
		{"here, not changed from afar", []step.Input{here, afar}, true, ""},
		{
			"afar, then here, not ended from afar",
			[]step.Input{afar, here, step.Resume{By: alice}},
			true, "",
		},
		{"afar, changed from afar", []step.Input{afar, step.Pause{By: bob}}, true, bob},
		{
			"draining, not resumed from afar",
			[]step.Input{step.Drain{}, step.Resume{By: bob}},
			false, "",
		},
		{"draining, not paused from afar", []step.Input{step.Drain{}, afar}, false, ""},
	} {
		r := newRig(t)
		for _, in := range tt.in {
			r.step(in)
		}
		s := r.m.Status()
		if s.Paused != tt.paused || s.PausedBy != tt.by {
			t.Errorf("%s: paused %v by %q, want %v by %q",
				tt.name, s.Paused, s.PausedBy, tt.paused, tt.by)
		}
		if _, drains := tt.in[0].(step.Drain); s.Draining != drains {
			t.Errorf("%s: draining %v, want %v", tt.name, s.Draining, drains)
		}
	}
}

// Who paused a site is known after a restart.
func TestAPauseFromAfarOutlivesARestart(t *testing.T) {
	r := newRig(t)
	r.step(step.Pause{By: alice})
	r = r.restart(2)
	if s := r.m.Status(); !s.Paused || s.PausedBy != alice {
		t.Errorf("paused %v by %q, want true by %q", s.Paused, s.PausedBy, alice)
	}
}
