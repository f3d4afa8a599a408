package agent

import (
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/fake"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// mates are two benches that are connected.
func mates(t *testing.T, tune ...func(*Config)) (one, two *bench) {
	t.Helper()
	c := plans(t, 3)
	for _, change := range tune {
		change(&c[1])
	}
	c[2].Adapters = map[grid.WorkKind]lrm.Adapter{grid.KindWasm: fake.New(fake.Config{})}
	two = newBenchOf(t, c[2])
	c[1].P2P.Bootstrap = two.Addrs()
	one = newBenchOf(t, c[1])
	for _, b := range []*bench{one, two} {
		eventually(t, "they are connected", func() bool { return len(b.mesh.Peers()) == 1 })
		await[step.PeerSeen](b)
		eventually(t, "the submitter's machine is told", func() bool {
			return len(heardOf[step.PeerSeen](&b.ofBroker)) > 0
		})
	}
	return one, two
}

// Both machines hear of a peer what it says of itself, and when it is gone.
func TestPeersAreTold(t *testing.T) {
	t.Parallel()
	one, two := mates(t)
	for _, seen := range [][]step.PeerSeen{
		list[step.PeerSeen](one), heardOf[step.PeerSeen](&one.ofBroker),
	} {
		if len(seen) == 0 || seen[0].Site != two.Self() || seen[0].Name != two.cfg.Name ||
			seen[0].Capability.Total != two.cfg.Capability.Total || seen[0].Line != two.Agent.store.Line() ||
			seen[0].Line == 0 || seen[0].Skew.Abs() > patience {
			t.Errorf("of its peer a machine hears %+v", seen)
		}
	}
	eventually(t, "how long a message takes is told", func() bool {
		for _, seen := range list[step.PeerSeen](one) {
			if seen.RoundTrip > 0 {
				return true
			}
		}
		return false
	})
	two.leave(errStopped)
	if err := two.mesh.Close(); err != nil {
		t.Error(err)
	}
	if gone := await[step.PeerGone](one); gone.Site != two.Self() {
		t.Errorf("gone is %+v", gone)
	}
	eventually(t, "the submitter hears it, too", func() bool {
		return len(heardOf[step.PeerGone](&one.ofBroker)) > 0
	})
}

// A message reaches the machine that it is for and no other; what is sent to this site itself
// does not need a network. A tap sees what goes and what comes.
func TestMessagesReachTheirMachine(t *testing.T) {
	t.Parallel()
	var sending, received []protocol.Message
	one, two := mates(t, func(c *Config) {
		c.Taps.Sending = func(_ grid.SiteID, m protocol.Message) bool {
			sending = append(sending, m)
			return true
		}
		c.Taps.Received = func(_ grid.SiteID, m protocol.Message) { received = append(received, m) }
	})
	forSite := protocol.Cancel{Job: testAttempt.Task.Job}
	forBroker := protocol.Progress{Attempt: testAttempt, Phase: grid.PhaseRunning}
	both := func(to grid.SiteID, at *bench, from grid.SiteID) {
		t.Helper()
		one.order(step.Send{To: to, Message: forSite})
		one.order(step.Send{To: to, Message: forBroker})
		eventually(t, "both have arrived", func() bool {
			return len(list[step.MessageReceived](at)) > 0 &&
				len(heardOf[step.MessageReceived](&at.ofBroker)) > 0
		})
		s, b := list[step.MessageReceived](at), heardOf[step.MessageReceived](&at.ofBroker)
		if len(s) != 1 || len(b) != 1 || s[0].From != from || b[0].From != from ||
			s[0].Message != protocol.Message(forSite) || b[0].Message != protocol.Message(forBroker) {
			t.Errorf("the site hears %+v, the submitter %+v", s, b)
		}
	}
	both(one.Self(), one, one.Self())
	both(two.Self(), two, one.Self())
	if len(sending) != 4 || len(received) != 0 {
		t.Errorf("the taps saw %d messages go and %d come, want 4 and 0", len(sending), len(received))
	}
	two.order(step.Send{To: one.Self(), Message: forSite})
	eventually(t, "it has arrived", func() bool { return len(list[step.MessageReceived](one)) == 2 })
	if len(received) != 1 {
		t.Errorf("the tap saw %d messages come, want one", len(received))
	}
}

// What is broadcast reaches this site, too, also where a tap keeps it from all others; what is
// kept from one site is not sent.
func TestWhatATapKeepsBack(t *testing.T) {
	asked := 0
	one, two := mates(t, func(c *Config) {
		c.Taps.Sending = func(grid.SiteID, protocol.Message) bool { asked++; return false }
	})
	said := protocol.Cancel{Job: testAttempt.Task.Job}
	one.order(step.Broadcast{Message: said})
	one.order(step.Send{To: two.Self(), Message: said})
	one.order(step.Send{To: one.Self(), Message: said})
	if err := one.site.ask(t.Context(), func() {}); err != nil {
		t.Fatal(err)
	}
	got := list[step.MessageReceived](one)
	if len(got) != 1 || got[0].From != one.Self() || asked != 3 {
		t.Errorf("here are heard %+v, want the broadcast alone; the tap was asked %d times", got, asked)
	}
	two.order(step.Send{To: one.Self(), Message: said})
	eventually(t, "the network works", func() bool {
		return len(list[step.MessageReceived](one)) == 2
	})
	if got := list[step.MessageReceived](two); len(got) != 0 {
		t.Errorf("the other site hears %+v", got)
	}
}

// What cannot be sent is counted, and has no other effect.
func TestWhatCannotBeSentIsCounted(t *testing.T) {
	var said sentence
	c := plans(t, 2)[1]
	c.Log = logged(&said, -4)
	b := newBenchOf(t, c)
	b.order(step.Send{To: c.P2P.Allow[0], Message: protocol.Cancel{Job: testAttempt.Task.Job}})
	if n := b.Known().Counters["send_failed"]; n != 1 ||
		said.count("a message could not be sent") != 1 {
		t.Errorf("%d counted: %s", n, said.String())
	}
	if err := b.mesh.Close(); err != nil {
		t.Fatal(err)
	}
	b.order(step.Broadcast{Message: protocol.Cancel{Job: testAttempt.Task.Job}})
	if n := b.Known().Counters["broadcast_failed"]; n != 1 ||
		said.count("could not be broadcast") != 1 {
		t.Errorf("%d broadcasts counted: %s", n, said.String())
	}
}

// A message that finds the queue full is dropped, as a network would, and counted.
func TestAMessageThatFindsTheQueueFull(t *testing.T) {
	b := newBare(t)
	gate, held := make(chan struct{}), make(chan struct{})
	b.site.soon(func() { close(held); <-gate })
	<-held
	for range queueLimit {
		b.site.tell(step.Resume{})
	}
	message := protocol.Cancel{Job: testAttempt.Task.Job}
	b.received("other", message)
	done := make(chan struct{})
	b.site.soon(func() { close(done) })
	close(gate)
	<-done
	if n := b.reports.counters()["message_dropped"]; n != 1 ||
		len(heardOf[step.MessageReceived](&b.ofSite)) != 0 {
		t.Errorf("%d messages were dropped, want one", n)
	}
	b.received("other", message)
	b.settle(t)
	if n := b.reports.counters()["message_dropped"]; n != 1 ||
		len(heardOf[step.MessageReceived](&b.ofSite)) != 1 {
		t.Errorf("%d messages were dropped, want no more", n)
	}
}

// noise is a text of which no part comes again.
func noise(size int) string {
	text := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(text) // never fails
	return string(text)
}

// Data that another site has is fetched and counted, with its progress, kept for the attempt,
// and counts for the site that it is for.
func TestStagingFromAnotherSite(t *testing.T) {
	one, two := mates(t)
	const size = 3 << 20
	large, small := two.store(t, noise(size)), two.store(t, "small")
	inputs := []grid.Input{
		{Path: "/in/small", CID: small.CID, Bytes: small.Bytes},
		{Path: "/in/large", CID: large.CID, Bytes: large.Bytes},
	}
	module := two.store(t, "module")
	two.gives(one, large.CID, small.CID, module.CID)
	began := time.Now()
	one.order(step.Stage{
		Attempt: testAttempt, From: two.Self(), Inputs: inputs,
		Module: grid.Input{Path: "/module", CID: module.CID, Bytes: module.Bytes},
	})
	got := await[step.Staged](one)
	if got.Problem != "" || got.Local || got.Bytes < large.Bytes+small.Bytes+module.Bytes ||
		got.Bytes > 2*large.Bytes || got.Took <= 0 || got.Took > time.Since(began) {
		t.Fatalf("staged %+v", got)
	}
	total := large.Bytes + small.Bytes + module.Bytes
	var last int64
	for _, p := range list[step.StageProgress](one) {
		if p.Attempt != testAttempt || p.Total != total || p.Done < last || p.Done > total {
			t.Errorf("on its way: %+v after %d of %d", p, last, total)
		}
		last = p.Done
	}
	if len(list[step.StageProgress](one)) == 0 {
		t.Error("nothing is said of what is on its way")
	}
	holder := attemptOwner(testAttempt)
	one.pins.mu.Lock()
	owned, charges := one.pins.owned[holder], one.pins.charges[holder]
	one.pins.mu.Unlock()
	for _, cid := range []grid.CID{large.CID, small.CID, module.CID} {
		if !owned[cid] {
			t.Errorf("%s is not kept for the attempt", cid)
		}
	}
	if len(charges) != 3 || charges[0].tenant != two.Self() {
		t.Errorf("what counts is %+v, want three for the submitter", charges)
	}
	one.discard()
}

// The outputs of an attempt are fetched and kept for their job; what cannot be had is named,
// and is the other site's problem.
func TestOutputsAreCollected(t *testing.T) {
	t.Parallel()
	one, two := mates(t)
	ref := two.store(t, "result")
	two.gives(one, ref.CID)
	one.order(step.Collect{Attempt: testAttempt, Outputs: []grid.CID{ref.CID}, From: two.Self()})
	collected := func() step.Collected {
		t.Helper()
		var all []step.Collected
		eventually(t, "it is told", func() bool {
			all = heardOf[step.Collected](&one.ofBroker)
			return len(all) > 0
		})
		one.ofBroker.mu.Lock()
		defer one.ofBroker.mu.Unlock()
		one.ofBroker.heard = nil
		return all[0]
	}
	if got := collected(); got != (step.Collected{Attempt: testAttempt}) {
		t.Errorf("collected %+v", got)
	}
	one.wantPin(ref.CID, pin{true, true}, "a result that was collected")
	job := testAttempt.Task.Job
	one.order(step.Hold{Job: job, Release: true})
	one.wantPin(ref.CID, pin{}, "a result of a job that was let go")
	one.order(step.Hold{Job: job, CIDs: []grid.CID{ref.CID}})
	one.wantPin(ref.CID, pin{true, true}, "data that a job needs")

	const nowhere = "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy"
	one.order(step.Collect{
		Attempt: testAttempt, Outputs: []grid.CID{nowhere, ref.CID}, From: one.Self(),
	})
	if got := collected(); got.Problem == "" || got.Local || got.Attempt != testAttempt {
		t.Errorf("what nobody has: %+v", got)
	}

	first, second := two.store(t, strings.Repeat("1", 600)), two.store(t, strings.Repeat("2", 600))
	both := []grid.CID{first.CID, second.CID}
	two.gives(one, both...)
	one.order(step.Collect{Attempt: testAttempt, Outputs: both, From: two.Self(), MostBytes: 1000})
	if got := collected(); !strings.Contains(got.Problem, "sends more than 1000 B") || got.Local {
		t.Errorf("more than the task may leave: %+v", got)
	}
	one.order(step.Collect{Attempt: testAttempt, Outputs: both, From: two.Self(), MostBytes: 2000})
	if got := collected(); got.Problem != "" {
		t.Errorf("as much as the task may leave: %+v", got)
	}
}

// A log can be read only by the site whose attempt it is, and the site that runs it has to be
// there.
func TestLogsOfOtherSites(t *testing.T) {
	t.Parallel()
	one, two := mates(t)
	body, err := one.OpenLog(t.Context(), two.Self(), testAttempt, view.LogQuery{Stream: "stdout"})
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(body)
	if err = body.Close(); err != nil || len(text) != 0 {
		t.Errorf("it reads %q, %v", text, err)
	}
	if n := two.Known().Counters["log_request_denied"]; n != 1 {
		t.Errorf("%d requests were denied, want 1", n)
	}
	if _, err = one.OpenLog(
		t.Context(), one.cfg.P2P.Allow[0], testAttempt, view.LogQuery{},
	); !errors.Is(err, view.ErrBusy) {
		t.Errorf("the log of a site that is away: %v, want ErrBusy", err)
	}
}

// An owner's ban is told to both machines, once, and the banned site's connection ends; so is
// the end of the ban.
func TestAnOwnersDecisionIsTold(t *testing.T) {
	t.Parallel()
	one, two := mates(t)
	record, err := one.members.Ban(two.Self(), "two", "as the test says")
	if err != nil || record != nil {
		t.Fatalf("record %+v, %v; want none without the domain's key", record, err)
	}
	one.Decided(record)
	want := step.BansChanged{Banned: []grid.SiteID{two.Self()}}
	for range 2 { // said again, it is told once
		bans := list[step.BansChanged](one)
		eventually(t, "both are told", func() bool {
			bans = list[step.BansChanged](one)
			return len(bans) > 0 && len(heardOf[step.BansChanged](&one.ofBroker)) > 0
		})
		if len(bans) != 1 || len(bans[0].Banned) != 1 || bans[0].Banned[0] != want.Banned[0] {
			t.Errorf("the site is told %+v, want %+v once", bans, want)
		}
		one.tellBans()
	}
	eventually(t, "the banned site is gone", func() bool { return len(one.mesh.Peers()) == 0 })
	if _, err = one.members.Admit(two.Self(), "two", ""); err != nil {
		t.Fatal(err)
	}
	one.Decided(nil)
	eventually(t, "the ban is lifted", func() bool {
		bans := list[step.BansChanged](one)
		return len(bans) == 2 && len(bans[1].Banned) == 0
	})
}

// How fast data moves between two sites is told to both machines, when it was measured and when
// the other one is seen again.
func TestTheRatesOfALinkAreTold(t *testing.T) {
	t.Parallel()
	one, two := mates(t)
	ref := two.store(t, noise(2<<20))
	two.gives(one, ref.CID)
	one.order(step.Collect{Attempt: testAttempt, Outputs: []grid.CID{ref.CID}, From: two.Self()})
	measured := func(all []step.BandwidthMeasured) bool {
		for _, m := range all {
			if m.Peer == two.Self() && m.DownBps > 0 {
				return true
			}
		}
		return false
	}
	eventually(t, "both machines are told", func() bool {
		return measured(list[step.BandwidthMeasured](one)) &&
			measured(heardOf[step.BandwidthMeasured](&one.ofBroker))
	})
	two.stop()
	await[step.PeerGone](one)
	one.mu.Lock()
	one.heard = nil
	one.mu.Unlock()
	two.cfg.P2P.Bootstrap = one.Addrs()
	newBenchOf(t, two.cfg)
	eventually(t, "it is told again when the site is seen again", func() bool {
		return len(list[step.PeerSeen](one)) > 0 && measured(list[step.BandwidthMeasured](one))
	})
}
