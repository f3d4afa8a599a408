package broker

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/fault"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

const (
	self   = grid.SiteID("submitter")
	module = grid.CID("bmodule")
)

// bench drives one broker by hand: the test plays the sites.
type bench struct {
	*testing.T
	m      *Machine
	now    time.Time
	facts  *step.Facts
	timers map[step.TimerKey]time.Time
	last   []step.Effect // of the last input
}

func newBench(t *testing.T, tune func(*Config), sites ...grid.SiteID) *bench {
	t.Helper()
	cfg := Default(self)
	if tune != nil {
		tune(&cfg)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	b := &bench{
		T: t, m: New(cfg), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		facts: step.NewFacts(), timers: make(map[step.TimerKey]time.Time),
	}
	b.do(step.Boot{Incarnation: 1})
	for _, s := range sites {
		b.do(step.PeerSeen{Site: s, Name: string(s)})
	}
	return b
}

// do gives an input and checks what must always hold.
func (b *bench) do(in step.Input) []step.Effect {
	b.Helper()
	b.last = b.m.Step(b.now, in)
	for _, e := range b.last {
		switch e := e.(type) {
		case step.Persist:
			b.facts.Apply(e.Fact)
		case step.SetTimer:
			b.timers[e.Key] = e.At
		case step.StopTimer:
			delete(b.timers, e.Key)
		}
	}
	if err := b.m.Check(); err != nil {
		b.Fatalf("after %T: %v", in, err)
	}
	if !bytes.Equal(b.m.Snapshot(), b.facts.Encode()) {
		b.Fatalf("after %T: the snapshot is not the table of facts", in)
	}
	return b.last
}

// faultIndex is a site's fault index as it was counted, in whole faults.
func (b *bench) faultIndex(site grid.SiteID) int {
	return int(math.Round(b.m.peers.faults.Index(site, b.now)))
}

func (b *bench) hear(from grid.SiteID, msg protocol.Message) []step.Effect {
	b.Helper()
	return b.do(step.MessageReceived{From: from, Message: msg})
}

// pass lets time go by and fires what is due, in order.
func (b *bench) pass(d time.Duration) (all []step.Effect) {
	b.Helper()
	end := b.now.Add(d)
	for {
		var due []step.TimerKey
		for key, at := range b.timers {
			if !at.After(end) {
				due = append(due, key)
			}
		}
		if len(due) == 0 {
			b.now = end
			return all
		}
		slices.SortFunc(due, func(x, y step.TimerKey) int {
			if c := b.timers[x].Compare(b.timers[y]); c != 0 {
				return c
			}
			return slices.Compare([]string{x.Name, x.ID}, []string{y.Name, y.ID})
		})
		b.now = b.timers[due[0]]
		delete(b.timers, due[0])
		all = append(all, b.do(step.TimerFired{Key: due[0]})...)
	}
}

func (b *bench) submit(job grid.Job) grid.JobID {
	b.Helper()
	effects := b.do(step.Submit{Command: 1, Job: job})
	for _, e := range effects {
		if r, ok := e.(step.Reply); ok {
			if r.Err != nil {
				b.Fatalf("submit: %v", r.Err)
			}
			return r.Job
		}
	}
	b.Fatal("submit: no reply")
	return ""
}

func (b *bench) phase(id grid.JobID, index int) grid.Phase {
	b.Helper()
	s, ok := b.m.Job(id)
	if !ok {
		b.Fatalf("job %s is unknown", id)
	}
	return s.Tasks[index].Phase
}

func (b *bench) wantPhase(id grid.JobID, index int, want grid.Phase) {
	b.Helper()
	if got := b.phase(id, index); got != want {
		b.Fatalf("task %d is %s, want %s", index, got, want)
	}
}

func testJob(count uint32) grid.Job {
	return grid.Job{
		Spec: grid.Spec{
			Name: "test", Kind: grid.KindWasm,
			Module: grid.Input{Path: "/module.wasm", CID: module, Bytes: 1000},
			Need:   grid.Resources{MilliCPUs: 1000, MemoryBytes: 1 << 20}, Runtime: time.Minute,
			Weights: grid.DefaultWeights(),
		},
		Count: count, TTL: time.Second,
	}
}

func offer(id uint64, distance float64, tasks uint32) grid.Offer {
	return grid.Offer{
		ID: id, Parts: grid.Parts{X: distance, Distance: distance}, Validity: 30 * time.Second,
		TasksNow: tasks,
	}
}

// sent lists the messages of one type among effects, with their receivers;
// broadcasts have the receiver "*".
func sent[M protocol.Message](effects []step.Effect) (to []grid.SiteID, msgs []M) {
	for _, e := range effects {
		switch e := e.(type) {
		case step.Send:
			if m, ok := e.Message.(M); ok {
				to, msgs = append(to, e.To), append(msgs, m)
			}
		case step.Broadcast:
			if m, ok := e.Message.(M); ok {
				to, msgs = append(to, "*"), append(msgs, m)
			}
		}
	}
	return to, msgs
}

func one[M protocol.Message](t *testing.T, effects []step.Effect) (grid.SiteID, M) {
	t.Helper()
	to, msgs := sent[M](effects)
	if len(msgs) != 1 {
		var m M
		t.Fatalf("sent %d of %T, want 1: %+v", len(msgs), m, effects)
	}
	return to[0], msgs[0]
}

// offers lets sites answer the announcement under way; the site's distance is
// its place in the list plus one.
func (b *bench) offers(id grid.JobID, tasks uint32, sites ...grid.SiteID) []step.Effect {
	b.Helper()
	var all []step.Effect
	for i, s := range sites {
		all = append(all, b.hear(s, protocol.Bid{
			Job: id, Seq: b.m.asked(id).seq, Offer: offer(uint64(i+1), float64(i+1), tasks),
		})...)
	}
	return all
}

func (b *bench) refusal(id grid.JobID, site grid.SiteID, never bool) []step.Effect {
	b.Helper()
	return b.hear(site, protocol.Refuse{
		Job: id, Seq: b.m.asked(id).seq,
		Refusal: grid.Refusal{Reason: grid.ReasonMemory, Never: never, Want: 2, Have: 1},
	})
}

// started brings task 0 of a fresh job to run on site a.
func (b *bench) started(count uint32) grid.JobID {
	b.Helper()
	id := b.submit(testJob(count))
	b.offers(id, count, "a", "b", self)
	_, award := one[protocol.Award](b.T, b.last)
	var attempts []grid.AttemptID
	for _, t := range award.Tasks {
		attempts = append(attempts, grid.AttemptID{
			Task: grid.TaskID{Job: id, Index: t.Index}, Token: t.Token,
		})
	}
	b.hear("a", protocol.Accepted{Attempts: attempts, Renewal: 1})
	for _, a := range attempts {
		b.hear("a", protocol.Progress{Attempt: a, Phase: grid.PhaseRunning})
	}
	b.wantPhase(id, 0, grid.PhaseRunning)
	return id
}

func attemptOf(id grid.JobID, index uint32, token grid.Token) grid.AttemptID {
	return grid.AttemptID{Task: grid.TaskID{Job: id, Index: index}, Token: token}
}

// "1. New job announces itself to entire GCE using a unique job ID together
// with its requirements. [...] 3. Job submission location waits for a timeout
// and collects all ACK responses and sorts the results in ascending order.
// 4. Full job description is dispatched to the target site. 5. Target site
// acknowledges receipt of full job [...]. Job submission location then issues a
// 'cache clear' to all sites for this job ID." (thesis 4.1)
func TestThesisSubmission(t *testing.T) {
	b := newBench(t, nil, "a", "b", "c")
	id := b.submit(testJob(1))
	to, announce := one[protocol.Announce](t, b.last)
	if to != "*" || announce.Job != id || announce.Req.Need != testJob(1).Spec.Need {
		t.Fatalf("announced %+v to %s", announce, to)
	}
	b.hear("b", protocol.Bid{Job: id, Seq: 1, Offer: offer(7, 3, 1)})
	b.hear("c", protocol.Bid{Job: id, Seq: 1, Offer: offer(8, 2, 1)})
	if _, awards := sent[protocol.Award](b.last); len(awards) != 0 {
		t.Fatal("awarded before the timeout while sites are still expected to answer")
	}
	effects := b.pass(time.Second)
	to, award := one[protocol.Award](t, effects)
	if to != "c" || award.OfferID != 8 || award.Spec.Module.CID != module || award.RunnerUp != 3 ||
		!award.HasNext {
		t.Fatalf("awarded %+v to %s, want the nearest, c", award, to)
	}
	if to, c := one[protocol.Clear](t, effects); to != "*" || c.Kind != protocol.ClearPlaced {
		t.Fatalf("cleared %+v to %s", c, to)
	}
}

// "2. Sites with requirements in cache ACK with euclidean measure. Sites
// without requirements in cache ACKs with requirements request. 3. Job
// submission location sends requirements to the other sites and waits for
// timeout." (thesis 4.1, re-submission)
func TestThesisResubmission(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.submit(testJob(1))
	effects := b.pass(5 * time.Second)
	to, again := sent[protocol.Reannounce](effects)
	if !slices.Contains(to, "a") || !slices.Contains(to, "b") || again[0].Job != id {
		t.Fatalf("announced again to %v", to)
	}
	last := again[len(again)-1]
	if b.m.jobs.all[id].round() == nil {
		b.do(step.TimerFired{Key: step.TimerKey{Name: timerAgain, ID: string(id)}})
	}
	_, req := one[protocol.Requirements](t, b.hear("a", protocol.NeedRequirements{
		Job: id, Seq: b.m.asked(id).seq,
	}))
	if protocol.DigestOf(req.Announce.Req) != last.Digest {
		t.Error("the requirement's digest is not the one that was announced")
	}
}

func TestRoundClosesWhenAllHaveAnswered(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.submit(testJob(1))
	b.offers(id, 1, "a", "b")
	b.refusal(id, self, true)
	if to, _ := one[protocol.Award](t, b.last); to != "a" {
		t.Fatalf("awarded to %s, want a", to)
	}
}

func TestArrayIsSpreadByRoom(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.submit(testJob(5))
	b.offers(id, 2, "a", "b", self)
	to, awards := sent[protocol.Award](b.last)
	if fmt.Sprint(to) != "[a b submitter]" || len(awards[0].Tasks) != 2 || len(awards[2].Tasks) != 1 {
		t.Fatalf("awards to %v: %+v", to, awards)
	}
}

func TestNeverPlaceableIsRefused(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.submit(testJob(1))
	b.refusal(id, "a", true)
	b.refusal(id, "b", true)
	b.refusal(id, self, true)
	b.wantPhase(id, 0, grid.PhaseRefused)
}

func TestNotNowWaitsAndIsPlacedOnVacancy(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.submit(testJob(1))
	b.refusal(id, "a", true)
	b.refusal(id, "b", false)
	b.refusal(id, self, true)
	b.wantPhase(id, 0, grid.PhaseWaiting)
	vacancy := protocol.Vacancy{Jobs: []grid.JobID{id}}
	if to, _ := one[protocol.Reannounce](t, b.hear("b", vacancy)); to != "b" {
		t.Fatalf("asked %s again, want b", to)
	}
	b.offers(id, 1, "b")
	if to, _ := one[protocol.Award](t, b.last); to != "b" {
		t.Fatalf("awarded to %s", to)
	}
}

// A site that reports capacity again and again, and then has none for the job, puts off no round
// of all sites: another may have had some for long, and its word of it was lost.
func TestVacanciesPutOffNoRound(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.submit(testJob(1))
	b.refusal(id, "a", true)
	b.refusal(id, "b", false)
	b.refusal(id, self, true)
	asked := false
	for end := b.now.Add(b.m.cfg.BackoffMin); !asked && b.now.Before(end); {
		b.hear("b", protocol.Vacancy{Jobs: []grid.JobID{id}})
		b.refusal(id, "b", false)
		to, _ := sent[protocol.Reannounce](b.pass(b.m.cfg.BackoffMin / 8))
		asked = slices.Contains(to, "a")
	}
	if !asked {
		t.Errorf("a was not asked again within %s", b.m.cfg.BackoffMin)
	}
}

// Nor do such rounds make the pauses between the others longer.
func TestVacanciesDoNotLengthenThePause(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.submit(splitJob(grid.SplitIfNeeded, 2))
	pause := func() time.Duration { return b.m.jobs.all[id].pause }
	refuse := func() {
		for _, site := range []grid.SiteID{"a", "b", self} {
			b.refusal(id, site, false)
		}
	}
	refuse()
	before := pause()
	for range 3 {
		b.hear("b", protocol.Vacancy{Jobs: []grid.JobID{id}})
		refuse()
	}
	if before <= 0 || pause() != before {
		t.Errorf("the pause grew from %s to %s", before, pause())
	}
}

func TestMissingMemberKeepsAJobPending(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	b.do(step.PeerGone{Site: "b"})
	id := b.submit(testJob(1))
	b.refusal(id, "a", true)
	b.refusal(id, self, true)
	b.wantPhase(id, 0, grid.PhaseWaiting)
}

func TestNoWaitRefuses(t *testing.T) {
	b := newBench(t, nil, "a")
	b.do(step.Submit{Command: 1, Job: testJob(1), NoWait: true})
	id := b.m.Jobs()[0]
	b.refusal(id, "a", false)
	b.refusal(id, self, false)
	b.wantPhase(id, 0, grid.PhaseRefused)
}

func TestUnansweredAwardGoesToTheRunnerUp(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.submit(testJob(1))
	b.offers(id, 1, "a", "b", self)
	effects := b.pass(2 * time.Second)
	to, award := one[protocol.Award](t, effects)
	if to != "b" || award.Tasks[0].Token != 2 {
		t.Fatalf("second award %+v to %s, want token 2 to b", award, to)
	}
	if got := b.faultIndex("a"); got != 1 {
		t.Errorf("fault index of a = %d, want 1", got)
	}
	// The first site's late acceptance gets no lease: it is fenced off.
	_, fence := one[protocol.Fence](t, b.hear("a", protocol.Accepted{
		Attempts: []grid.AttemptID{attemptOf(id, 0, 1)},
	}))
	if fence.Below[0] != attemptOf(id, 0, 2) {
		t.Errorf("fenced below %v", fence.Below)
	}
	if _, leases := sent[protocol.Lease](b.last); len(leases) != 0 {
		t.Error("a stale attempt got a lease")
	}
}

func TestLeaseIsWaitedOut(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.started(1)
	cfg := b.m.cfg
	effects := b.pass(cfg.Lease + cfg.LeaseMargin - time.Millisecond)
	if _, awards := sent[protocol.Award](effects); len(awards) != 0 {
		t.Fatal("moved while the lease still held")
	}
	// The submitter itself may be cut off, so the runner-up from before does
	// not do: all sites are asked again.
	effects = b.pass(time.Millisecond)
	if to, _ := sent[protocol.Reannounce](effects); !slices.Contains(to, "b") {
		t.Fatalf("asked %v again, want b among them", to)
	}
	b.pass(time.Millisecond)
	b.hear("b", protocol.Bid{Job: id, Seq: b.m.asked(id).seq, Offer: offer(10, 2, 1)})
	b.refusal(id, self, false)
	to, award := one[protocol.Award](t, b.last)
	if to != "b" || award.Tasks[0].Token != 2 {
		t.Fatalf("moved to %s with %+v", to, award.Tasks)
	}
}

func TestCutOffSubmitterTakesItsAttemptsBack(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.started(1)
	effects := b.pass(9 * time.Second) // nobody says a word
	if _, awards := sent[protocol.Award](effects); len(awards) != 0 {
		t.Fatalf("awarded again to sites that were not heard since: %+v", awards)
	}
	one[protocol.Lease](t, b.hear("a", protocol.Renew{
		Renewal: 5, Attempts: []grid.AttemptID{attemptOf(id, 0, 1)},
	}))
	b.wantPhase(id, 0, grid.PhaseRunning)
}

func TestRenewalKeepsATaskInPlace(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.started(1)
	for range 10 {
		effects := b.pass(time.Second)
		if _, awards := sent[protocol.Award](effects); len(awards) != 0 {
			t.Fatal("moved although its lease was renewed")
		}
		_, lease := one[protocol.Lease](t, b.hear("a", protocol.Renew{
			Renewal: 9, Attempts: []grid.AttemptID{attemptOf(id, 0, 1)},
		}))
		if lease.Renewal != 9 || lease.Duration != b.m.cfg.Lease {
			t.Fatalf("lease %+v", lease)
		}
	}
}

func TestReturningAttemptIsTakenBack(t *testing.T) {
	b := newBench(t, nil, "a")
	id := b.submit(testJob(1))
	b.offers(id, 1, "a")
	b.refusal(id, self, true)
	attempt := attemptOf(id, 0, 1)
	b.hear("a", protocol.Accepted{Attempts: []grid.AttemptID{attempt}, Renewal: 1})
	b.pass(5 * time.Second) // nobody else can take it
	if got := b.phase(id, 0); got != grid.PhaseWaiting && got != grid.PhaseAnnounced {
		t.Fatalf("task is %s, want waiting", got)
	}
	b.hear("a", protocol.Renew{Renewal: 5, Attempts: []grid.AttemptID{attempt}})
	one[protocol.Lease](t, b.last)
	b.wantPhase(id, 0, grid.PhaseRunning)
}

// A banned site is lost: its task moves, but not before its lease has ended, and
// what it says is ignored until the ban is taken back.
func TestBannedSitesTaskMovesWhenItsLeaseHasEnded(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.started(1)
	attempt := attemptOf(id, 0, 1)
	b.do(step.BansChanged{Banned: []grid.SiteID{"a"}})
	if to, _ := sent[protocol.Award](b.last); len(to) != 0 {
		t.Fatalf("awarded to %v immediately", to)
	}
	b.hear("a", protocol.Renew{Renewal: 5, Attempts: []grid.AttemptID{attempt}})
	if to, _ := sent[protocol.Lease](b.last); len(to) != 0 {
		t.Fatal("a banned site is granted a lease")
	}
	effects := b.pass(b.m.cfg.Lease + b.m.cfg.LeaseMargin - time.Millisecond)
	if to, _ := sent[protocol.Award](effects); len(to) != 0 {
		t.Fatalf("awarded to %v while the lease holds", to)
	}
	b.pass(2 * time.Millisecond)
	b.hear("a", protocol.Bid{Job: id, Seq: b.m.asked(id).seq, Offer: offer(9, 0, 1)})
	b.hear("b", protocol.Bid{Job: id, Seq: b.m.asked(id).seq, Offer: offer(10, 2, 1)})
	b.refusal(id, self, false)
	if to, award := one[protocol.Award](t, b.last); to != "b" || award.Tasks[0].Token != 2 {
		t.Fatalf("moved to %s with %+v", to, award.Tasks)
	}
	b.do(step.PeerSeen{Site: "a"})
	if _, known := b.m.peers.all["a"]; known {
		t.Error("a banned site is a member")
	}
	b.do(step.BansChanged{})
	b.do(step.PeerSeen{Site: "a"})
	if _, known := b.m.peers.all["a"]; !known {
		t.Error("the ban cannot be taken back")
	}
}

func TestFailoverTakesTheLeastFaultIndex(t *testing.T) {
	b := newBench(t, nil, "a", "b", "c")
	b.m.peers.faults.Put("b", fault.Record{Index: 2, At: b.now, Tried: 2})
	b.m.peers.saveFault("b")
	b.facts = step.NewFacts()
	for _, f := range b.m.out.Facts().All() {
		b.facts.Apply(f)
	}
	id := b.submit(testJob(1))
	b.offers(id, 1, "a", "b", "c", self)
	attempt := attemptOf(id, 0, 1)
	b.hear("a", protocol.Accepted{Attempts: []grid.AttemptID{attempt}})
	b.hear("a", protocol.Exited{Attempt: attempt, Exit: grid.Exit{Cause: grid.CauseSandbox}})
	if to, _ := one[protocol.Award](t, b.last); to != "c" {
		t.Fatalf("moved to %s; want c: b is nearer but has failed more", to)
	}
}

// A site that has failed once may be less of a risk than one that will probably leave. By FIBR
// the fault index counts first.
func TestFailoverTakesTheLowestRisk(t *testing.T) {
	for _, c := range []struct {
		fibr bool
		want grid.SiteID
	}{{false, "b"}, {true, "c"}} {
		b := newBench(t, func(cfg *Config) { cfg.FIBR = c.fibr }, "a", "b", "c")
		b.m.peers.faults.Missed("b", fault.Failed, b.now) // risk .11
		b.m.peers.saveFault("b")
		b.facts = step.NewFacts()
		for _, f := range b.m.out.Facts().All() {
			b.facts.Apply(f)
		}
		id := b.submit(testJob(1))
		b.offers(id, 1, "a", "b")
		leaves := offer(3, 3, 1)
		leaves.Parts.Z = .5
		b.hear("c", protocol.Bid{Job: id, Seq: b.m.asked(id).seq, Offer: leaves})
		b.refusal(id, self, true)
		attempt := attemptOf(id, 0, 1)
		b.hear("a", protocol.Accepted{Attempts: []grid.AttemptID{attempt}})
		b.hear("a", protocol.Exited{Attempt: attempt, Exit: grid.Exit{Cause: grid.CauseSandbox}})
		if to, _ := one[protocol.Award](t, b.last); to != c.want {
			t.Errorf("FIBR %t: moved to %s, want %s", c.fibr, to, c.want)
		}
	}
}

func TestNeverFirstTheSiteThatFailed(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.submit(testJob(1))
	b.offers(id, 1, "a")
	b.refusal(id, "b", false)
	b.refusal(id, self, true)
	attempt := attemptOf(id, 0, 1)
	b.hear("a", protocol.Accepted{Attempts: []grid.AttemptID{attempt}})
	b.hear("a", protocol.Exited{Attempt: attempt, Exit: grid.Exit{Cause: grid.CauseSandbox}})
	b.offers(id, 1, "a", "b", self)
	if to, _ := one[protocol.Award](t, b.last); to == "a" {
		t.Fatal("given first to the site that failed it")
	}
}

func TestResultIsFetchedBeforeItIsAcknowledged(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.started(1)
	attempt := attemptOf(id, 0, 1)
	exit := grid.Exit{
		Cause: grid.CauseExited, Code: 7, Stdout: grid.Produced{Path: "/stdout", CID: "bout", Bytes: 3},
	}
	effects := b.hear("a", protocol.Exited{Attempt: attempt, Exit: exit})
	if _, acks := sent[protocol.ExitAck](effects); len(acks) != 0 {
		t.Fatal("acknowledged before the output is here")
	}
	b.wantPhase(id, 0, grid.PhaseCollecting)
	effects = b.do(step.Collected{Attempt: attempt})
	one[protocol.ExitAck](t, effects)
	if _, c := one[protocol.Clear](t, effects); c.Kind != protocol.ClearEnded {
		t.Errorf("cleared with %d, want ended", c.Kind)
	}
	s, _ := b.m.Job(id)
	if s.Tasks[0].Phase != grid.PhaseFailed || s.Tasks[0].Exit.Status() != 7 {
		t.Errorf("task ended %s with %d", s.Tasks[0].Phase, s.Tasks[0].Exit.Status())
	}
}

func TestOutputsThatCannotBeFetchedAreComputedAgain(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.started(1)
	attempt := attemptOf(id, 0, 1)
	exit := grid.Exit{Cause: grid.CauseExited, Stdout: grid.Produced{Path: "/stdout", CID: "bout"}}
	b.hear("a", protocol.Exited{Attempt: attempt, Exit: exit})
	for range 70 {
		b.do(step.Collected{Attempt: attempt, Problem: "unreachable"})
		b.pass(time.Second)
	}
	s, _ := b.m.Job(id)
	if got := s.Tasks[0]; got.Exit != nil || got.Phase == grid.PhaseCollecting || got.Phase.Ended() {
		t.Errorf("the task is %s with exit %v; want it to wait for another site", got.Phase, got.Exit)
	}
}

// A fetch that is under way does not hold up the task of a site that has died.
func TestOutputsOfADeadSiteAreComputedAgainSoon(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.started(1)
	attempt := attemptOf(id, 0, 1)
	exit := grid.Exit{Cause: grid.CauseExited, Stdout: grid.Produced{Path: "/stdout", CID: "bout"}}
	b.hear("a", protocol.Exited{Attempt: attempt, Exit: exit})
	b.do(step.PeerGone{Site: "a", Refusing: true})
	b.pass(b.m.cfg.CollectDead - time.Millisecond)
	b.wantPhase(id, 0, grid.PhaseCollecting)
	b.pass(2 * time.Millisecond)
	if s, _ := b.m.Job(id); s.Tasks[0].Phase == grid.PhaseCollecting || s.Tasks[0].Phase.Ended() {
		t.Errorf("the task is %s, want it to wait for another site or be announced", s.Tasks[0].Phase)
	}
	b.do(step.Collected{Attempt: attempt}) // too late: it is computed again
	if s, _ := b.m.Job(id); s.Tasks[0].Phase.Ended() {
		t.Errorf("the task is %s by what came late", s.Tasks[0].Phase)
	}
}

func TestOthersCannotEndATask(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.started(1)
	b.hear("b", protocol.Exited{
		Attempt: attemptOf(id, 0, 1), Exit: grid.Exit{Cause: grid.CauseExited},
	})
	b.wantPhase(id, 0, grid.PhaseRunning)
}

func TestCancelTellsTheSites(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.started(1)
	effects := b.do(step.CancelJob{Command: 2, Job: id})
	if to, c := one[protocol.Cancel](t, effects); to != "a" || c.Job != id {
		t.Fatalf("cancel to %s", to)
	}
	b.wantPhase(id, 0, grid.PhaseCancelled)
	// A site that missed it is fenced off when it renews.
	one[protocol.Fence](t, b.hear("a", protocol.Renew{
		Renewal: 3, Attempts: []grid.AttemptID{attemptOf(id, 0, 1)},
	}))
}

func TestRestartPresumesLeasesAndAnnouncesTheRest(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.started(2)
	again := New(b.m.cfg)
	if err := again.Restore(b.m.Snapshot()); err != nil {
		t.Fatal(err)
	}
	b.m, b.timers = again, make(map[step.TimerKey]time.Time)
	b.do(step.Boot{Incarnation: 2})
	b.do(step.PeerSeen{Site: "a"})
	b.do(step.PeerSeen{Site: "b"})
	b.wantPhase(id, 0, grid.PhaseAwarded)
	if _, awards := sent[protocol.Award](b.pass(b.m.cfg.Lease)); len(awards) != 0 {
		t.Fatal("awarded again while an attempt may still run")
	}
	one[protocol.Lease](t, b.hear("a", protocol.Renew{
		Renewal: 1, Attempts: []grid.AttemptID{attemptOf(id, 0, 1)},
	}))
	second := b.submit(testJob(1))
	if second == id {
		t.Error("a job ID was used twice")
	}
}

func TestDeclinedWithQuoteStaysACandidate(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.submit(testJob(1))
	b.offers(id, 1, "a", "b", self)
	quote := offer(9, 2.5, 1)
	effects := b.hear("a", protocol.Declined{
		Attempts: []grid.AttemptID{attemptOf(id, 0, 1)}, Refusal: grid.Refusal{Reason: grid.ReasonWorse},
		Quote: &quote,
	})
	if to, _ := one[protocol.Award](t, effects); to != "b" {
		t.Fatalf("awarded to %s, want b", to)
	}
	if c := b.m.jobs.all[id].offers["a"]; c == nil || c.offer.Parts.Distance != 2.5 {
		t.Error("the new quote was forgotten")
	}
}

func TestProbePlacesNothing(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	b.do(step.Probe{Command: 5, Job: testJob(1)})
	_, announce := one[protocol.Announce](t, b.last)
	b.offers(announce.Job, 1, "a", "b", self)
	if _, awards := sent[protocol.Award](b.last); len(awards) != 0 {
		t.Fatal("a probe was awarded")
	}
	s, ok := b.m.Job(announce.Job)
	if !ok || len(s.Answers) != 3 || len(b.m.Jobs()) != 0 {
		t.Errorf("probe kept %d answers, %d jobs", len(s.Answers), len(b.m.Jobs()))
	}
}

func TestForgetNeedsAnEnd(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.started(1)
	reply := func() error {
		for _, e := range b.do(step.ForgetJob{Command: 3, Job: id}) {
			if r, ok := e.(step.Reply); ok {
				return r.Err
			}
		}
		return nil
	}
	if err := reply(); err != step.ErrNotEnded { //nolint:errorlint // the very value
		t.Errorf("forget a running job: %v", err)
	}
	b.do(step.CancelJob{Command: 2, Job: id})
	if err := reply(); err != nil {
		t.Errorf("forget: %v", err)
	}
	if facts := b.factsButMembers(); len(facts) != 2 { // the counter and the longest grant stay
		t.Errorf("%d facts are left: %v", len(facts), facts)
	}
}
