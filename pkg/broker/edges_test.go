package broker

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// TestEachLimitOfAConfigurationIsExact has the last value that is taken and the first that is
// not, for each limit.
func TestEachLimitOfAConfigurationIsExact(t *testing.T) {
	for name, c := range map[string]struct {
		text        string // in the error
		last, first func(*Config)
	}{
		"owner": {"site id", func(c *Config) { c.Owner = "s" }, func(c *Config) { c.Owner = "" }},
		"here":  {"site id", func(c *Config) { c.Here = "" }, func(c *Config) { c.Here = "a b" }},
		"lease": {
			"lease:", func(c *Config) { c.Lease = 100 * time.Millisecond },
			func(c *Config) { c.Lease = 100*time.Millisecond - 1 },
		},
		"long lease": {
			"long lease:", func(c *Config) { c.LongLease = c.Lease },
			func(c *Config) { c.LongLease = c.Lease - 1 },
		},
		"reservation lease": {
			"reservation lease:", func(c *Config) { c.ReservationLease = c.Lease },
			func(c *Config) { c.ReservationLease = c.Lease - 1 },
		},
		"start lease": {
			"start lease:", func(c *Config) { c.StartLease = 0 },
			func(c *Config) { c.StartLease = -1 },
		},
		"hold top": {
			"hold top:", func(c *Config) { c.HoldTop = maxHolds },
			func(c *Config) { c.HoldTop = maxHolds + 1 },
		},
		"hold nobody": {
			"hold top:", func(c *Config) { c.HoldTop = 1 }, func(c *Config) { c.HoldTop = 0 },
		},
		"margin": {
			"lease margin:", func(c *Config) { c.LeaseMargin = grid.FreezeGrace },
			func(c *Config) { c.LeaseMargin = grid.FreezeGrace - 1 },
		},
		"award window": {
			"award window:", func(c *Config) { c.AwardWindow = 1 },
			func(c *Config) { c.AwardWindow = 0 },
		},
		"back-off": {
			"back-off:", func(c *Config) { c.BackoffMin = 1 }, func(c *Config) { c.BackoffMin = 0 },
		},
		"most back-off": {
			"back-off:", func(c *Config) { c.BackoffMax = c.BackoffMin },
			func(c *Config) { c.BackoffMax = c.BackoffMin - 1 },
		},
		"collect retry": {
			"collect retry:", func(c *Config) { c.CollectRetry = 1 },
			func(c *Config) { c.CollectRetry = 0 },
		},
		"collect give-up": {
			"collect retry:", func(c *Config) { c.CollectRetry = c.CollectGiveUp },
			func(c *Config) { c.CollectRetry = c.CollectGiveUp + 1 },
		},
		"collect dead": {
			"collect dead:", func(c *Config) { c.CollectDead = 1 },
			func(c *Config) { c.CollectDead = 0 },
		},
		"collect dead most": {
			"collect dead:", func(c *Config) { c.CollectDead = c.CollectGiveUp },
			func(c *Config) { c.CollectDead = c.CollectGiveUp + 1 },
		},
		"boot grace": {
			"boot grace", func(c *Config) { c.BootGrace = 0 }, func(c *Config) { c.BootGrace = -1 },
		},
		"reunion": {
			"reunion", func(c *Config) { c.Reunion = 0 }, func(c *Config) { c.Reunion = -1 },
		},
		"jobs":  {"max jobs", func(c *Config) { c.MaxJobs = 1 }, func(c *Config) { c.MaxJobs = 0 }},
		"tries": {"max tries", func(c *Config) { c.MaxTries = 1 }, func(c *Config) { c.MaxTries = 0 }},
		"ended": {"max ended", func(c *Config) { c.MaxEnded = 0 }, func(c *Config) { c.MaxEnded = -1 }},
		"policy": {
			"policy:", func(c *Config) { c.Policy = grid.AvailSAA },
			func(c *Config) { c.Policy = grid.AvailNSA + 1 },
		},
		"policy with a choice": {
			"policy:", func(c *Config) { c.Policy, c.Choice = grid.AvailNSA, ChoiceNearest },
			func(c *Config) { c.Policy, c.Choice = grid.AvailNSA, ChoiceNearest+1 },
		},
		"reply target": {
			"reply target:", func(c *Config) { c.ReplyTarget = 0 },
			func(c *Config) { c.ReplyTarget = -1 },
		},
	} {
		last, first := Default(self), Default(self)
		c.last(&last)
		c.first(&first)
		if err := last.Validate(); err != nil {
			t.Errorf("%s: the last that is taken: %v", name, err)
		}
		if err := first.Validate(); err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: the first that is not: %v", name, err)
		}
	}
}

// The twin of a roll is a set: what the site named and leaves out of a later list, in the range
// of that list, it has no more, and is told in order.
func TestRollsAgreeWithASet(t *testing.T) {
	id := func(n int) grid.AttemptID {
		return attemptOf("mfrggzdfmztwq2lk", uint32(n/3), grid.Token(n%3+1))
	}
	some := func(t *rapid.T, name string) (list []grid.AttemptID) {
		for n := range 12 {
			if rapid.Bool().Draw(t, name) {
				list = append(list, id(n))
			}
		}
		return list
	}
	always := func(grid.AttemptID) bool { return true }
	rapid.Check(t, func(t *rapid.T) {
		r, twin := rolls{}, map[grid.AttemptID]bool{}
		for range rapid.IntRange(1, 6).Draw(t, "requests") {
			entered, named := some(t, "enter"), some(t, "named")
			r.enter("a", entered, always)
			for _, e := range entered {
				twin[e] = true
			}
			list := protocol.Listing{}
			if rapid.Bool().Draw(t, "after") {
				list.After = id(rapid.IntRange(0, 11).Draw(t, "first"))
			}
			if rapid.Bool().Draw(t, "up to") {
				list.UpTo = id(rapid.IntRange(0, 11).Draw(t, "last"))
			}
			var want []grid.AttemptID
			for n := range 12 {
				if twin[id(n)] && list.Holds(id(n)) && !slices.Contains(named, id(n)) {
					want = append(want, id(n))
					delete(twin, id(n))
				}
			}
			if got := r.strike("a", &list, named); !slices.Equal(got, want) {
				t.Fatalf("struck %v, want %v", got, want)
			}
			if of := r["a"]; (of != nil) != (len(twin) > 0) || of != nil && len(of.ids) != len(twin) {
				t.Fatalf("%+v is left, want %v", of, twin)
			}
			if r.strike("b", &list, nil) != nil {
				t.Fatal("a site that named nothing has lost something")
			}
		}
	})
}

// A roll is looked through for those that have ended when it is longer than its bound, and is
// then as long as what is under way.
func TestALongRollIsLookedThrough(t *testing.T) {
	r := rolls{}
	var ids []grid.AttemptID
	for n := range rollSlack + 1 {
		ids = append(ids, attemptOf("mfrggzdfmztwq2lk", uint32(n), 1))
	}
	even := func(id grid.AttemptID) bool { return id.Task.Index%2 == 0 }
	r.enter("a", ids[:rollSlack], even)
	if got := len(r["a"].ids); got != rollSlack {
		t.Errorf("%d of %d are left at the bound", got, rollSlack)
	}
	r.enter("a", ids[rollSlack:], even)
	if of := r["a"]; len(of.ids) != rollSlack/2+1 || of.bound != 2*len(of.ids)+rollSlack {
		t.Errorf("%d are left, the next bound is %d", len(of.ids), of.bound)
	}
	r.enter("b", nil, even)
	if len(r) != 1 {
		t.Error("a site that names nothing has a roll")
	}
}

// An attempt counts as starting until it runs, its program's compilation included; as held up
// while its site says that it may not go on.
func TestPhasesOfAnAttempt(t *testing.T) {
	for _, c := range []struct {
		phase          grid.Phase
		standing       grid.Reason
		starting, held bool
	}{
		{grid.PhaseAwarded, grid.ReasonNone, true, false},
		{grid.PhaseStaging, grid.ReasonNone, true, false},
		{grid.PhaseStaging, grid.ReasonOwnerBusy, true, true},
		{grid.PhaseRunning, grid.ReasonPreparing, true, false},
		{grid.PhaseRunning, grid.ReasonNone, false, false},
		{grid.PhaseFrozen, grid.ReasonNone, false, true},
		{grid.PhaseFrozen, grid.ReasonPreparing, false, true},
		{grid.PhaseFrozen, grid.ReasonOwnerBusy, false, true},
	} {
		k := task{phase: c.phase}
		k.standing = c.standing
		if k.isStarting() != c.starting || k.isHeldUp() != c.held {
			t.Errorf("%s, %s: starting %t, held up %t",
				c.phase, c.standing, k.isStarting(), k.isHeldUp())
		}
	}
}

// The time between two requests counts for the phase that the attempt was in; that of a silence
// for none.
func TestTimeCountsForThePhase(t *testing.T) {
	at := func(n int) time.Time { return time.Unix(int64(1000+n), 0) }
	var k task
	k.phase = grid.PhaseStaging
	k.count(at(0)) // the first lease
	k.count(at(5))
	if k.ran != 0 || k.froze != 0 || !k.since.Equal(at(0)) {
		t.Errorf("while staging: %+v", k.stint)
	}
	k.phase = grid.PhaseRunning
	k.count(at(8))
	k.phase = grid.PhaseFrozen
	k.count(at(15))
	k.phase = grid.PhaseRunning
	k.count(at(17))
	k.countOn(at(100)) // a silence
	k.count(at(101))
	if k.ran != 6*time.Second || k.froze != 7*time.Second || !k.since.Equal(at(100)) {
		t.Errorf("ran %s, frozen %s, could start since %s; want 3 + 2 + 1 s, 7 s",
			k.ran, k.froze, k.since.Sub(at(0)))
	}
}

// A span of a grant lies between none and the longest run there can be.
func TestSpansOfGrants(t *testing.T) {
	most := grid.MaxRuntime.Milliseconds()
	for ms, want := range map[int64]time.Duration{
		-1: 0, 0: 0, 1: time.Millisecond, most: grid.MaxRuntime, most + 1: 0,
	} {
		if got := fromMS(ms); got != want {
			t.Errorf("%d ms: %s, want %s", ms, got, want)
		}
	}
}

// It is worth to give jobs to the history when a quarter more than those that stay, or 16 more,
// are here, or too many tasks.
func TestWhenTheTailIsTooLong(t *testing.T) {
	for _, c := range []struct {
		jobs, tasks, most int
		want              bool
	}{
		{0, 0, 0, false},
		{1, 1, 0, true},
		{5, 5, 4, false},
		{6, 6, 4, true},
		{80, 80, 64, false},
		{81, 81, 64, true},
		{416, 416, 400, false},
		{417, 417, 400, true},
		{1, maxTailTasks, 64, false},
		{1, maxTailTasks + 1, 64, true},
		{0, maxTailTasks + 1, 64, false},
	} {
		l := tail{ids: make([]grid.JobID, c.jobs), tasks: c.tasks}
		if got := l.tooLong(c.most); got != c.want {
			t.Errorf("%d jobs, %d tasks, %d stay: %t", c.jobs, c.tasks, c.most, got)
		}
	}
}

// What an offer said counts from when it was sent; a fixed start from now, and what has begun
// begins now.
func TestOffersAsReservations(t *testing.T) {
	sent := time.Unix(1000, 0)
	c := &candidate{at: sent, offer: grid.Offer{Site: "a", Parts: grid.Parts{
		Distance: 3, Wait: 10 * time.Second, StageIn: 4 * time.Second, Run: 7 * time.Second,
	}}}
	for _, k := range []struct {
		fixed           time.Time
		after           int
		start, transfer float64
	}{
		{time.Time{}, 0, 10, 4},
		{time.Time{}, 3, 7, 1},
		{time.Time{}, 20, 0, 0},
		{sent.Add(30 * time.Second), 3, 27, 1},
		{sent.Add(3 * time.Second), 3, 0, 1},
		{sent.Add(2 * time.Second), 3, 0, 1},
	} {
		r := c.asReservation(k.fixed, sent.Add(time.Duration(k.after)*time.Second))
		if r.StartSeconds != k.start || r.TransferSeconds != k.transfer || r.RuntimeSeconds != 7 ||
			r.Rank != 3 || r.Site != "a" || !r.Accepted {
			t.Errorf("%+v: %+v", k, r)
		}
	}
}

// An award's size is worked out ahead from what its items take: never less than they do.
func TestItemsTakeNoMoreThanIsReckoned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		item := grid.Item{Value: strings.Repeat("v", rapid.IntRange(0, 300).Draw(t, "value"))}
		for range rapid.IntRange(0, 5).Draw(t, "inputs") {
			item.Inputs = append(item.Inputs, grid.Input{
				Path:  "/" + strings.Repeat("p", rapid.IntRange(1, 200).Draw(t, "path")),
				CID:   grid.CID(strings.Repeat("c", rapid.IntRange(1, 128).Draw(t, "cid"))),
				Bytes: rapid.Int64Range(0, 1<<50).Draw(t, "bytes"),
			})
		}
		award := protocol.Award{
			Job: "mfrggzdfmztwq2lk", OfferID: 1, Spec: testJob(1).Spec,
			Tasks: []protocol.AwardedTask{{Index: grid.MaxTasks - 1, Token: 1 << 53}},
		}
		bare, err := protocol.Encode(award)
		if err != nil {
			t.Fatal(err)
		}
		award.Tasks[0].Item = item
		full, err := protocol.Encode(award)
		if err != nil {
			t.Fatal(err)
		}
		if got, most := len(full)-len(bare), itemBytes(item); got > most {
			t.Fatalf("%d bytes, reckoned %d", got, most)
		}
	})
}

// Check notices what no Step may leave behind.
func TestCheckNotices(t *testing.T) {
	more := func(l []look) []look { return append(l, look{}) }
	for name, spoil := range map[string]func(*Machine, *job){
		"a key of another job":   func(m *Machine, j *job) { j.key = "k"; m.jobs.byKey["k"] = "other" },
		"a key of no job":        func(m *Machine, _ *job) { m.jobs.byKey["k"] = "other" },
		"a look that is left":    func(m *Machine, _ *job) { m.looks.queue = more(m.looks.queue) },
		"a look that is found":   func(m *Machine, _ *job) { m.looks.found = more(m.looks.found) },
		"a look that goes on":    func(m *Machine, _ *job) { m.looks.under = true },
		"one open too many":      func(_ *Machine, j *job) { j.open++ },
		"one failed too many":    func(_ *Machine, j *job) { j.failed++ },
		"one that waits no more": func(_ *Machine, j *job) { j.waiting = nil },
	} {
		b := newBench(t, nil, "a")
		id := b.submit(testJob(2))
		if err := b.m.Check(); err != nil {
			t.Fatal(err)
		}
		if spoil(b.m, b.m.jobs.all[id]); b.m.Check() == nil {
			t.Errorf("%s is not noticed", name)
		}
	}
}

// A task that runs has an attempt at a site, and one that has ended holds no lease.
func TestCheckNoticesTasksThatCannotBe(t *testing.T) {
	until := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		phase grid.Phase
		token grid.Token
		site  grid.SiteID
		lease time.Time
		good  bool
	}{
		"waiting":               {phase: grid.PhaseWaiting, good: true},
		"awarded":               {phase: grid.PhaseAwarded, token: 1, site: "a", good: true},
		"awarded to nobody":     {phase: grid.PhaseAwarded, token: 1},
		"awarded as no attempt": {phase: grid.PhaseAwarded, site: "a"},
		"running with a lease":  {grid.PhaseRunning, 1, "a", until, true},
		"ended":                 {phase: grid.PhaseDone, token: 1, site: "a", good: true},
		"ended with a lease":    {phase: grid.PhaseDone, token: 1, site: "a", lease: until},
		"failed with a lease":   {phase: grid.PhaseFailed, lease: until},
	} {
		var x task
		x.phase, x.token, x.site, x.leaseEnd = c.phase, c.token, c.site, c.lease
		if err := x.check(0); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// While the disk is full nothing is fetched; with space again all that waits for it.
func TestAFullDiskFetchesNothing(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.started(1)
	b.hear("a", protocol.Exited{Attempt: attemptOf(id, 0, 1), Exit: grid.Exit{
		Cause: grid.CauseExited, Stdout: grid.Produced{Path: "/out", CID: "bout", Bytes: 1},
	}})
	b.do(step.Collected{Attempt: attemptOf(id, 0, 1), Problem: "the disk is full", Local: true})
	if got := count[step.Collect](b.do(step.SpaceChanged{Full: true})); got != 0 {
		t.Errorf("fetched %d times onto a full disk", got)
	}
	if got := count[step.Collect](b.do(step.SpaceChanged{})); got != 1 {
		t.Errorf("with space again fetched %d times, want 1", got)
	}
}

// The history keeps the times of answers as the wall clock shows them.
func TestTheHistoryKeepsTheWallClock(t *testing.T) {
	const ahead = 2 * time.Hour
	b := newBench(t, func(c *Config) { c.MaxEnded = 0 }, "a", "b")
	b.do(step.ClockStepped{By: ahead})
	id := b.finished()
	given := b.given()
	if len(given) != 1 {
		t.Fatalf("%d left", len(given))
	}
	kept, err := ReadRecord(id, given[0].Record)
	if err != nil || len(kept.Answers) == 0 {
		t.Fatalf("%+v, %v", kept, err)
	}
	for _, a := range kept.Answers {
		if !a.At.Equal(b.now.Add(ahead)) {
			t.Errorf("%s answered at %s, want %s", a.Site, a.At, b.now.Add(ahead))
		}
	}
	if !given[0].Ended.Equal(b.now.Add(ahead)) || !given[0].Submitted.Equal(b.now.Add(ahead)) {
		t.Errorf("submitted %s, ended %s", given[0].Submitted, given[0].Ended)
	}
	for name, record := range map[string]string{
		"no JSON": "{", "another type": `{"facts":[],"answers":7}`, "no facts": `{}`,
		"facts of no form":   `{"facts":[{"kind":7}]}`,
		"another's":          strings.ReplaceAll(string(given[0].Record), string(id), "mfrggzdfmztwq2lj"),
		"a task without job": `{"facts":[{"kind":"task/1","key":"mfrggzdfmztwq2lk.0","value":{}}]}`,
	} {
		if got, err := ReadRecord(id, []byte(record)); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A round trip that was not measured leaves the one before.
func TestRoundTripsThatWereMeasuredStay(t *testing.T) {
	b := newBench(t, nil, "a")
	for _, c := range []struct{ told, want time.Duration }{
		{0, 0}, {1, 1}, {0, 1}, {-1, 1}, {7, 7}, {0, 7},
	} {
		b.do(step.PeerSeen{Site: "a", RoundTrip: c.told})
		if got := b.m.peers.all["a"].roundTrip; got != c.want {
			t.Errorf("told %s: %s, want %s", c.told, got, c.want)
		}
	}
}

// A grant has arrived where a later request says that anything is left of it, of a long one more
// than of a first one. Five in a row that had a quarter of a lease to arrive, and did not, mean
// that the site is deaf.
func TestWhetherGrantsArrive(t *testing.T) {
	cfg := Default(self)
	given := time.Unix(1000, 0)
	first, quarter := cfg.Lease, cfg.Lease/vainParts
	for _, c := range []struct {
		long          bool
		left, after   time.Duration
		arrives, vain bool
	}{
		{false, 1, time.Hour, true, false},
		{false, 0, quarter, false, true},
		{false, 0, quarter - 1, false, false},
		{true, first + 1, time.Hour, true, false},
		{true, first, quarter, false, true},
		{true, first, quarter - 1, false, false},
		{true, 0, quarter, false, true},
	} {
		in := &run{cfg: cfg, now: given.Add(c.after)}
		h := arrival{vain: maxVain - 1}
		h.given(3, given, c.long)
		if !h.hears(4, c.left, first, in) || h.holds != c.arrives || h.deaf() != c.vain {
			t.Errorf("%+v: %+v", c, h)
		}
		if c.arrives && h.vain != 0 {
			t.Errorf("%+v: %d for nothing after one that arrived", c, h.vain)
		}
		if before := h; h.hears(4, c.left, first, in) || h != before {
			t.Errorf("%+v: said twice it is news: %+v", c, h)
		}
	}
	var h arrival
	if in := (&run{cfg: cfg, now: given}); h.hears(1, 5, first, in) || h.holds {
		t.Errorf("nothing was granted: %+v", h)
	}
	h.given(3, given, false)
	if in := (&run{cfg: cfg, now: given}); h.hears(3, 5, first, in) || h.holds || h.named != 3 {
		t.Errorf("a request from before the grant: %+v", h)
	}
}

// A deadline that has passed is missed, and said to be, unless the clock was set back since.
func TestAClockSetBackMakesADeadlineComeAgain(t *testing.T) {
	b := newBench(t, nil, "a")
	id := b.pledged(b.due(1))
	b.progress(id, grid.PhaseRunning, 0)
	shown := func() grid.Promise {
		s, _ := b.m.Job(id)
		return s.Tasks[0].Promise
	}
	if said := reports(b.keep(id, time.Hour+time.Second), eventDeadlineMissed); len(said) != 1 ||
		shown() != grid.PromiseLate {
		t.Fatalf("an hour later %s, said %v", shown(), said)
	}
	b.set(-30 * time.Minute)
	if shown() != grid.PromiseOpen {
		t.Errorf("with the deadline ahead again: %s", shown())
	}
	if said := reports(b.keep(id, 31*time.Minute), eventDeadlineMissed); len(said) != 1 ||
		shown() != grid.PromiseLate {
		t.Errorf("when it has passed again: %s, said %v", shown(), said)
	}
}
