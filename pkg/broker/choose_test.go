package broker

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/fault"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// awardsOf lets the sites answer n jobs with these offers and counts who is
// awarded.
func awardsOf(
	t *testing.T, tune func(*Config), n int, job grid.Job, offers map[grid.SiteID]grid.Offer,
) map[grid.SiteID]int {
	t.Helper()
	names := sortedSites(offers)
	b := newBench(t, func(c *Config) {
		c.MaxJobs = n + 1
		if tune != nil {
			tune(c)
		}
	}, names...)
	counts := make(map[grid.SiteID]int)
	for range n {
		id := b.submit(job)
		for i, s := range names {
			o := offers[s]
			o.ID = uint64(i + 1)
			b.hear(s, protocol.Bid{Job: id, Seq: b.m.asked(id).seq, Offer: o})
		}
		b.refusal(id, self, true)
		to, _ := one[protocol.Award](t, b.last)
		counts[to]++
		b.do(step.CancelJob{Job: id})
		b.do(step.ForgetJob{Job: id}) // so that checking stays cheap
	}
	return counts
}

func quick(distance float64, coreMFLOPS int64) grid.Offer {
	o := offer(1, distance, 1)
	o.CoreMFLOPS = coreMFLOPS
	return o
}

func TestTiesAreSharedByChance(t *testing.T) {
	counts := awardsOf(t, nil, 300, testJob(1), map[grid.SiteID]grid.Offer{
		"a": quick(1, 1000), "b": quick(1+1e-12, 1000), "c": quick(1, 1000), "d": quick(1.001, 9000),
	})
	if counts["a"] < 60 || counts["b"] < 60 || counts["c"] < 60 || counts["d"] != 0 {
		t.Errorf("awarded %v, want a, b and c alike and d never", counts)
	}
}

// In the thesis map x is 0 at every adequate site, so that distance does not see
// speed: of those that are equally near, the faster one comes first.
func TestTiesGoToTheFasterSiteInTheThesisMap(t *testing.T) {
	offers := map[grid.SiteID]grid.Offer{"a": quick(1, 1000), "b": quick(1, 3000), "c": quick(1, 2000)}
	if counts := awardsOf(t, nil, 20, testJob(1), offers); counts["b"] != 20 {
		t.Errorf("thesis map: awarded %v, want b alone", counts)
	}
	job := testJob(1)
	job.Spec.Map = grid.MapSeconds
	if counts := awardsOf(t, nil, 100, job, offers); counts["a"] < 10 || counts["c"] < 10 {
		t.Errorf("seconds map: awarded %v, want all alike", counts)
	}
}

// A job may weigh what only its submitter knows: here the farther site answers
// ten times as fast.
func TestLatencyIsTheSubmittersToKnow(t *testing.T) {
	job := testJob(1)
	job.Spec.Axes = append(grid.DefaultAxes(), grid.Axis{Dimension: grid.Latency, Weight: 1})
	b := newBench(t, nil)
	for site, rtt := range map[grid.SiteID]time.Duration{
		"a": 200 * time.Millisecond, "b": 20 * time.Millisecond,
	} {
		b.do(step.PeerSeen{Site: site, Name: string(site), RoundTrip: rtt})
	}
	id := b.submit(job)
	seq := b.m.jobs.all[id].seq
	b.hear("a", protocol.Bid{Job: id, Seq: seq, Offer: quick(1, 1000)})
	b.hear("b", protocol.Bid{Job: id, Seq: seq, Offer: quick(1.5, 1000)})
	b.refusal(id, self, true)
	to, award := one[protocol.Award](t, b.last)
	if to != "b" {
		t.Fatalf("awarded to %s, want b: sqrt(1.5^2 + 0.2^2) is less than sqrt(1^2 + 2^2)", to)
	}
	// The site compares with its own distance, which knows nothing of latency.
	want := math.Sqrt(1 + 4 - 0.04)
	if award.Quoted != 1.5 || !award.HasNext || math.Abs(award.RunnerUp-want) > 1e-9 {
		t.Errorf("quoted %v, runner-up %v; want 1.5 and %v", award.Quoted, award.RunnerUp, want)
	}
	state, _ := b.m.Job(id)
	if lag := state.Behind[1]; lag.Dimension != grid.Latency || lag.Value != 2 {
		t.Errorf("a is behind on %v with %v, want latency with 2 tenths of a second",
			lag.Dimension, lag.Value)
	}
}

// Soft-min takes an offer with a weight of exp(-(d-d1)/(0.1 d1)).
func TestSoftMinFollowsItsWeights(t *testing.T) {
	const n = 2000
	counts := awardsOf(t, func(c *Config) {
		c.Choice = ChoiceSoftMin
	}, n, testJob(1), map[grid.SiteID]grid.Offer{
		"a": quick(1, 0), "b": quick(1.1, 0), "c": quick(1.2, 0), "d": quick(5, 0),
	})
	total := 1 + math.Exp(-1) + math.Exp(-2)
	for site, weight := range map[grid.SiteID]float64{
		"a": 1, "b": math.Exp(-1), "c": math.Exp(-2), "d": 0,
	} {
		if got, want := float64(counts[site])/n, weight/total; math.Abs(got-want) > .04 {
			t.Errorf("%s got a share of %.3f, want %.3f", site, got, want)
		}
	}
}

func manySites(n int) []grid.SiteID {
	var names []grid.SiteID
	for i := range n {
		names = append(names, grid.SiteID(fmt.Sprintf("site%03d", i)))
	}
	return names
}

// With sampled replies two thirds of the offers are enough for a round; if they do not place the
// job and are fewer than eight it is repeated with eight times the sites.
func TestSampledReplies(t *testing.T) {
	names := manySites(100)
	b := newBench(t, func(c *Config) { c.ReplyTarget = 10 }, names...)
	id := b.submit(testJob(1))
	if _, announce := one[protocol.Announce](t, b.last); announce.Sample != .09 {
		t.Fatalf("announced with sample %v, want 0.09: this site answers as well", announce.Sample)
	}
	b.offers(id, 1, names[:5]...)
	if _, awards := sent[protocol.Award](b.last); len(awards) != 0 {
		t.Fatal("awarded after five of nine offers")
	}
	b.offers(id, 1, names[2]) // repeated: counts once
	if _, awards := sent[protocol.Award](b.last); len(awards) != 0 {
		t.Fatal("awarded after five offers, one of them twice")
	}
	b.offers(id, 1, names[50])
	one[protocol.Award](t, b.last)

	const near = .5 // half the distance of the nearest
	replies, sites := 10.0, 100.0
	third := replies / 3 / sites
	// Sites that are nearer than those of the first round are always to answer; fewer are drawn, a
	// third of the answers at least.
	second := b.submit(testJob(1))
	_, announce := one[protocol.Announce](t, b.last)
	if announce.Sample != third || announce.Theta != near {
		t.Errorf("sample %v, near is %v, want %v and %v",
			announce.Sample, announce.Theta, third, near)
	}
	_, announce = one[protocol.Announce](t, b.pass(time.Second))
	if announce.Job != second || announce.Sample != 8*third || announce.Theta != near {
		t.Errorf("nobody answered: announced %s with sample %v and near %v, want %s with %v and %v",
			announce.Job, announce.Sample, announce.Theta, second, 8*third, near)
	}
	if _, announce := one[protocol.Announce](t, b.pass(time.Second)); announce.Sample != 1 {
		t.Errorf("still nobody: sample %v, want 1", announce.Sample)
	}
}

// The nearest site need not be the first to answer: with enough offers a sampled round goes on for
// as long as they took.
func TestSampledRoundsWaitForThoseOnTheirWay(t *testing.T) {
	names := manySites(100)
	b := newBench(t, func(c *Config) { c.ReplyTarget = 10 }, names...)
	id := b.submit(testJob(1))
	b.pass(80 * time.Millisecond)
	b.offers(id, 1, names[1:9]...)
	early := b.pass(79 * time.Millisecond)
	early = append(early, b.hear(names[0], protocol.Bid{
		Job: id, Seq: b.m.asked(id).seq, Offer: offer(1, .5, 1),
	})...)
	if awards, _ := sent[protocol.Award](early); len(awards) != 0 {
		t.Fatalf("awarded to %v before the others had the time to answer", awards)
	}
	if to, _ := one[protocol.Award](t, b.pass(time.Millisecond)); to != names[0] {
		t.Errorf("awarded to %s, want the nearest, %s", to, names[0])
	}
}

// Where a part of the sites was asked only those that have answered hear that the job is placed,
// and for a failover it is announced anew: the others have not kept it.
func TestSampledJobsAreClearedWhereTheyWereOffered(t *testing.T) {
	names := manySites(100)
	b := newBench(t, func(c *Config) { c.ReplyTarget = 10 }, names...)
	id := b.submit(testJob(1))
	b.offers(id, 1, names[:6]...)
	site, award := one[protocol.Award](t, b.last)
	effects := append(slices.Clone(b.last), b.hear(site, protocol.Accepted{
		Attempts: []grid.AttemptID{attemptOf(id, 0, award.Tasks[0].Token)}, Renewal: 1,
	})...)
	told, clears := sent[protocol.Clear](effects)
	if diff := cmp.Diff(names[:6], told); diff != "" || clears[0].Kind != protocol.ClearPlaced {
		t.Errorf("told that it is placed, %v (-want +got):\n%s", clears, diff)
	}
	late := b.offers(id, 1, names[20])
	to, msg := one[protocol.Clear](t, late)
	if to != names[20] || msg.Kind != protocol.ClearPlaced {
		t.Errorf("who answers later: %s is told %v", to, msg.Kind)
	}
	vacant := b.hear(names[30], protocol.Vacancy{Jobs: []grid.JobID{id}})
	to, msg = one[protocol.Clear](t, vacant)
	if to != names[30] || msg.Kind != protocol.ClearPlaced {
		t.Errorf("who has capacity for it: %s is told %v", to, msg.Kind)
	}
	clear(b.m.jobs.all[id].offers) // they have expired
	effects = b.do(step.PeerGone{Site: site, Refusing: true})
	asked, announce := sent[protocol.Announce](effects)
	for range 100 {
		if len(asked) > 0 {
			break
		}
		effects = b.pass(100 * time.Millisecond)
		asked, announce = sent[protocol.Announce](effects)
	}
	if len(asked) == 0 || asked[0] != "*" || announce[0].Sample == 1 {
		t.Errorf("after its site died asked %v: %v", asked, announce)
	}
	if again, _ := sent[protocol.Reannounce](effects); len(again) > 0 {
		t.Errorf("%v are to remember it", again)
	}
}

func TestFaultsOutliveARestart(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.submit(testJob(1))
	b.offers(id, 1, "a", "b", self)
	b.pass(2 * time.Second) // a does not answer the award
	again := New(b.m.cfg)
	if err := again.Restore(b.m.Snapshot()); err != nil {
		t.Fatal(err)
	}
	if got := again.peers.faults.Record("a").Index; got != 1 {
		t.Errorf("fault index of a after a restart = %v, want 1", got)
	}
	b.hear("b", protocol.Accepted{Attempts: []grid.AttemptID{attemptOf(id, 0, 2)}})
	b.m.peers.faults.Missed("b", fault.Failed, b.now)
	b.hear("b", protocol.Exited{
		Attempt: attemptOf(id, 0, 2), Exit: grid.Exit{Cause: grid.CauseExited},
	})
	if got := b.faultIndex("b"); got != 0 {
		t.Errorf("fault index of b after a success = %d, want 0", got)
	}
}

func TestProbesAreNotHeldForEver(t *testing.T) {
	b := newBench(t, nil, "a")
	b.do(step.Probe{Command: 5, Job: testJob(1)})
	effects := b.pass(time.Second) // nobody answers
	replied := false
	for _, e := range effects {
		r, is := e.(step.Reply)
		replied = replied || is && r.Command == 5 && r.Err == nil
	}
	if !replied {
		t.Error("the probe was not answered when its round was over")
	}
	b.pass(probeKept)
	if len(b.m.jobs.all)+len(b.m.probes) != 0 {
		t.Error("a probe was kept after its end")
	}
}

// factsButMembers lists the facts but those about members.
func (b *bench) factsButMembers() []step.Fact {
	return slices.DeleteFunc(b.facts.All(), func(f step.Fact) bool { return f.Kind == factMember })
}

// A job that is placed keeps as many offers as answers, the nearest ones: they are enough to fail
// over to, and each of thousands of running jobs would keep one of every site of a large mesh.
func TestAPlacedJobKeepsTheNearestOffers(t *testing.T) {
	names := manySites(maxAnswers + 40)
	b := newBench(t, nil, names...)
	far := slices.Clone(names)
	slices.Reverse(far) // the last name is the nearest
	id := b.submit(testJob(2))
	b.offers(id, 1, far...)
	if kept := len(b.m.asked(id).offers); kept != len(names) {
		t.Fatalf("%d offers are kept while it waits, want %d", kept, len(names))
	}
	placed := b.pass(time.Second)
	to, awards := sent[protocol.Award](placed)
	want := []grid.SiteID{far[1], far[0]}
	if !slices.Equal(slices.Sorted(slices.Values(to)), want) {
		t.Fatalf("awarded to %v, want %v", to, want)
	}
	var kept []grid.SiteID
	for _, site := range far {
		if b.m.asked(id).offers[site] != nil {
			kept = append(kept, site)
		}
	}
	if diff := cmp.Diff(far[:maxAnswers], kept); diff != "" {
		t.Errorf("offers that are kept of a placed job (-want +got):\n%s", diff)
	}
	task := awards[0].Tasks[0]
	declined := b.hear(to[0], protocol.Declined{
		Attempts: []grid.AttemptID{attemptOf(id, task.Index, task.Token)},
		Refusal:  grid.Refusal{Reason: grid.ReasonMemory},
	})
	if next, _ := one[protocol.Award](t, declined); next != far[2] {
		t.Errorf("then awarded to %s, want %s", next, far[2])
	}
}
