package broker

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

func splitJob(mode grid.Split, parts uint32) grid.Job {
	job := testJob(parts)
	job.Split = mode
	job.Spec.Env = []grid.EnvVar{
		{Name: "ALPHA", Value: "1"}, {Name: "MRS_PART", Value: "mine"}, {Name: "ZETA", Value: "2"},
	}
	return job
}

// room is an offer of a site that is ready after a while.
func (b *bench) room(
	id grid.JobID, site grid.SiteID, tasks uint32, ready time.Duration,
) []step.Effect {
	b.Helper()
	o := offer(uint64(b.now.UnixMilli()), 0, tasks)
	o.Parts.Wait, o.Parts.Run, o.Finish = ready, time.Minute, ready+time.Minute
	o.Parts.Distance = map[grid.SiteID]float64{"a": 1, "b": 2, "c": 3, "d": 4}[site]
	return b.hear(site, protocol.Bid{Job: id, Seq: b.m.asked(id).seq, Offer: o})
}

func (b *bench) holds(id grid.JobID, site grid.SiteID, asked protocol.HoldOffer) []step.Effect {
	b.Helper()
	o := offer(asked.OfferID+1_000, 1, asked.Tasks)
	o.Firm = true
	return b.hear(site, protocol.Bid{Job: id, Seq: asked.Seq, Offer: o})
}

// holdsAsked lists who was asked to hold what.
func holdsAsked(effects []step.Effect) map[grid.SiteID]protocol.HoldOffer {
	all := make(map[grid.SiteID]protocol.HoldOffer)
	to, msgs := sent[protocol.HoldOffer](effects)
	for i, site := range to {
		all[site] = msgs[i]
	}
	return all
}

func shareOf(asked map[grid.SiteID]protocol.HoldOffer) map[grid.SiteID]uint32 {
	shares := make(map[grid.SiteID]uint32)
	for site, msg := range asked {
		shares[site] = msg.Tasks
	}
	return shares
}

// offered submits a split job to which a offers 2 places, b 2 and c 4; d is silent.
func offered(t *testing.T, mode grid.Split, parts uint32) (*bench, grid.JobID) {
	t.Helper()
	b := newBench(t, nil, "a", "b", "c")
	id := b.submit(splitJob(mode, parts))
	b.refusal(id, self, false)
	b.room(id, "a", 2, time.Second)
	b.room(id, "b", 2, 7*time.Second)
	b.room(id, "c", 4, 3*time.Second)
	return b, id
}

func awardsBySite(effects []step.Effect) map[grid.SiteID]protocol.Award {
	all := make(map[grid.SiteID]protocol.Award)
	to, msgs := sent[protocol.Award](effects)
	for i, site := range to {
		all[site] = msgs[i]
	}
	return all
}

func indexesOf(a protocol.Award) []uint32 {
	var list []uint32
	for _, t := range a.Tasks {
		list = append(list, t.Index)
	}
	return list
}

// allHold lets every site that was asked hold its share.
func (b *bench) allHold(
	id grid.JobID, asked map[grid.SiteID]protocol.HoldOffer,
) map[grid.SiteID]protocol.Award {
	b.Helper()
	var effects []step.Effect
	for _, site := range slices.Sorted(maps.Keys(asked)) {
		effects = append(effects, b.holds(id, site, asked[site])...)
	}
	return awardsBySite(effects)
}

// allAccept accepts awards and returns the leases that are granted then. All come with the last
// acceptance, or none.
func (b *bench) allAccept(
	id grid.JobID, awards map[grid.SiteID]protocol.Award,
) map[grid.SiteID]protocol.Lease {
	b.Helper()
	leases := make(map[grid.SiteID]protocol.Lease)
	for n, site := range slices.Sorted(maps.Keys(awards)) {
		if len(leases) > 0 {
			b.Fatalf("%v got leases before %s had accepted", leases, site)
		}
		var attempts []grid.AttemptID
		for _, t := range awards[site].Tasks {
			attempts = append(attempts, attemptOf(id, t.Index, t.Token))
		}
		to, msgs := sent[protocol.Lease](b.hear(site, protocol.Accepted{
			Attempts: attempts, Renewal: uint64(n + 1),
		}))
		for i, receiver := range to {
			leases[receiver] = msgs[i]
		}
	}
	return leases
}

// runParts accepts awards and lets the parts run.
func (b *bench) runParts(id grid.JobID, awards map[grid.SiteID]protocol.Award) {
	b.Helper()
	leases := b.allAccept(id, awards)
	for _, site := range slices.Sorted(maps.Keys(leases)) {
		for _, a := range leases[site].Attempts {
			b.hear(site, protocol.Progress{Attempt: a, Phase: grid.PhaseRunning})
		}
	}
}

func TestPartsAreHeldAndAwardedTogether(t *testing.T) {
	b, id := offered(t, grid.SplitGreedy, 5)
	holds := holdsAsked(b.last)
	if diff := cmp.Diff(map[grid.SiteID]uint32{"a": 2, "b": 2, "c": 1}, shareOf(holds)); diff != "" {
		t.Fatalf("asked to hold (-want +got):\n%s", diff)
	}
	at := holds["a"].At
	if early := b.now.Add(7 * time.Second); at.Before(early) || at.After(early.Add(3*time.Second)) {
		t.Errorf("the common start is %s, want some time after %s, when the last is ready", at, early)
	}
	if holds["b"].At != at || holds["c"].At != at {
		t.Errorf("asked for different starts: %+v", holds)
	}
	b.holds(id, "b", holds["b"])
	b.holds(id, "a", holds["a"])
	if to, _ := sent[protocol.Award](b.last); len(to) > 0 {
		t.Fatalf("awarded to %v before all hold", to)
	}
	awards := awardsBySite(b.holds(id, "c", holds["c"]))
	want := map[grid.SiteID][]uint32{"a": {0, 1}, "b": {2, 3}, "c": {4}}
	for site, indexes := range want {
		award := awards[site]
		if !slices.Equal(indexesOf(award), indexes) || award.OfferID != holds[site].OfferID+1_000 ||
			award.HasNext || award.AskFirst {
			t.Errorf("%s is awarded %+v, want parts %v of its firm offer", site, award, indexes)
		}
		env := []grid.EnvVar{
			{Name: "ALPHA", Value: "1"},
			{Name: "MRS_HOSTS", Value: "a:2,b:2,c:1"},
			{Name: "MRS_PART", Value: "{{index}}"},
			{Name: "MRS_PARTS", Value: "5"},
			{Name: "ZETA", Value: "2"},
		}
		if diff := cmp.Diff(env, award.Spec.Env); diff != "" {
			t.Errorf("%s: environment (-want +got):\n%s", site, diff)
		}
		if !award.Spec.Window.At.Equal(at) {
			t.Errorf("%s: is to start at %s, want %s", site, award.Spec.Window.At, at)
		}
	}
	if part := awards["b"].Spec.Expand(id, 3, grid.Item{}).Env[2]; part.Value != "3" {
		t.Errorf("part 3 is told %+v", part)
	}
	b.runParts(id, awards)
	for i := range 5 {
		b.wantPhase(id, i, grid.PhaseRunning)
	}
	cleared := 0
	for i := range uint32(5) {
		b.hear(want2site(i), protocol.Exited{
			Attempt: attemptOf(id, i, 1), Exit: grid.Exit{Cause: grid.CauseExited},
		})
		to, _ := sent[protocol.Clear](b.last)
		cleared += len(to)
	}
	if state, _ := b.m.Job(id); state.Ended.IsZero() || cleared == 0 {
		t.Errorf("the job has not ended: %+v", state.Tasks)
	}
}

func want2site(i uint32) grid.SiteID { return []grid.SiteID{"a", "a", "b", "b", "c"}[i] }

func TestOneRefusalReleasesTheOthers(t *testing.T) {
	b, id := offered(t, grid.SplitIfNeeded, 6) // a:2, c:4
	holds := holdsAsked(b.last)
	if diff := cmp.Diff(map[grid.SiteID]uint32{"a": 2, "c": 4}, shareOf(holds)); diff != "" {
		t.Fatalf("asked to hold (-want +got):\n%s", diff)
	}
	b.holds(id, "c", holds["c"])
	b.hear("a", protocol.Refuse{
		Job: id, Seq: holds["a"].Seq, Refusal: grid.Refusal{Reason: grid.ReasonPromised},
	})
	next := holdsAsked(b.last)
	if diff := cmp.Diff(map[grid.SiteID]uint32{"b": 2, "c": 4}, shareOf(next)); diff != "" {
		t.Fatalf("asked next (-want +got):\n%s", diff)
	}
	if next["c"].OfferID != holds["c"].OfferID+1_000 || next["c"].At != next["b"].At {
		t.Errorf("c is asked for %+v: want what it holds for a new start", next["c"])
	}
	b.holds(id, "c", holds["c"]) // said twice: not the answer
	b.holds(id, "c", next["c"])
	effects := b.hear("b", protocol.Refuse{
		Job: id, Seq: next["b"].Seq, Refusal: grid.Refusal{Reason: grid.ReasonPromised},
	})
	if to, _ := one[protocol.Clear](t, effects); to != "c" {
		t.Errorf("%s is released, want c", to)
	}
	if to, _ := sent[protocol.Award](effects); len(to) > 0 {
		t.Errorf("awarded to %v although not all hold", to)
	}
	if to, _ := sent[protocol.Reannounce](effects); len(to) != 4 {
		t.Errorf("asked again: %v, want all sites immediately", to)
	}
}

func TestSilenceReleasesTheOthers(t *testing.T) {
	b, id := offered(t, grid.SplitIfNeeded, 6)
	holds := holdsAsked(b.last)
	b.holds(id, "a", holds["a"])
	effects := b.pass(b.m.cfg.AwardWindow)
	if to, _ := sent[protocol.Clear](effects); !slices.Contains(to, "a") {
		t.Errorf("released %v, want a", to)
	}
	if to, _ := sent[protocol.Award](effects); len(to) > 0 {
		t.Errorf("awarded to %v", to)
	}
	if to, _ := one[protocol.Clear](t, b.holds(id, "c", holds["c"])); to != "c" {
		t.Errorf("who holds too late is not released")
	}
}

func TestNeverSplit(t *testing.T) {
	b, id := offered(t, grid.SplitNever, 5)
	if to, _ := sent[protocol.HoldOffer](b.last); len(to) > 0 {
		t.Errorf("asked %v although nobody takes all", to)
	}
	b.wantPhase(id, 0, grid.PhaseWaiting)
	b, id = offered(t, grid.SplitNever, 3)
	awards := b.allHold(id, holdsAsked(b.last))
	if len(awards) != 1 || len(awards["c"].Tasks) != 3 {
		t.Errorf("awarded %+v, want all to c", awards)
	}
}

// A site that has capacity is asked alone, and all of them only if they may suffice together.
func TestOneSiteWithMoreRoomIsAskedAlone(t *testing.T) {
	b, id := offered(t, grid.SplitIfNeeded, 10)
	more := func(tasks uint32) []grid.SiteID {
		b.pass(10 * time.Millisecond)
		asked, _ := sent[protocol.Reannounce](b.hear("c", protocol.Vacancy{Jobs: []grid.JobID{id}}))
		if diff := cmp.Diff([]grid.SiteID{"c"}, asked); diff != "" {
			t.Fatalf("asked after a vacancy (-want +got):\n%s", diff)
		}
		asked, _ = sent[protocol.Reannounce](b.room(id, "c", tasks, time.Second))
		return asked
	}
	if asked := more(5); len(asked) > 0 {
		t.Errorf("asked %v for 9 places of 10", asked)
	}
	more(6)
	if diff := cmp.Diff(map[grid.SiteID]uint32{"a": 2, "b": 2, "c": 6},
		shareOf(holdsAsked(b.last))); diff != "" {
		t.Errorf("asked to hold (-want +got):\n%s", diff)
	}

	b, id = offered(t, grid.SplitIfNeeded, 10)
	for site := range b.m.jobs.all[id].offers {
		delete(b.m.jobs.all[id].offers, site) // they have expired
	}
	if asked := more(5); len(asked) > 0 {
		t.Errorf("asked %v for 9 places of 10", asked)
	}
	if asked := more(6); len(asked) != 4 {
		t.Errorf("asked %v, want all: they had 10 places", asked)
	}
}

// fourPlaces takes four tasks of testJob.
func fourPlaces() grid.Capability {
	need := testJob(1).Spec.Need
	return grid.Capability{
		Total: need.Add(need).Add(need).Add(need), CoreMFLOPS: 1_000, OS: "linux", Arch: "amd64",
		Kinds: []grid.WorkKind{testJob(1).Spec.Kind},
	}
}

func TestPartsThatNoSiteCanEverTakeAreRefused(t *testing.T) {
	for mode, want := range map[grid.Split]string{
		grid.SplitNever:    "the largest site takes 4",
		grid.SplitIfNeeded: "all sites together take 12",
	} {
		b := newBench(t, nil)
		for _, site := range []grid.SiteID{"a", "b", "c"} {
			b.do(step.PeerSeen{Site: site, Name: string(site), Capability: fourPlaces()})
		}
		id := b.submit(splitJob(mode, 17))
		b.refusal(id, self, false)
		for _, site := range []grid.SiteID{"a", "b", "c"} {
			b.room(id, site, 4, time.Second)
		}
		b.wantPhase(id, 0, grid.PhaseRefused)
		if s, _ := b.m.Job(id); s.Tasks[0].Exit == nil || !strings.Contains(s.Tasks[0].Exit.Text, want) {
			t.Errorf("%d: refused with %+v, want %q", mode, s.Tasks[0].Exit, want)
		}
	}
}

func TestARestartForgetsHolds(t *testing.T) {
	b, id := offered(t, grid.SplitIfNeeded, 6)
	holds := holdsAsked(b.last)
	facts := b.m.Snapshot()
	b.m, b.timers = New(b.m.cfg), make(map[step.TimerKey]time.Time)
	if err := b.m.Restore(facts); err != nil {
		t.Fatal(err)
	}
	b.do(step.Boot{Incarnation: 2})
	for _, site := range []grid.SiteID{"a", "b", "c"} {
		b.do(step.PeerSeen{Site: site})
	}
	if to, _ := one[protocol.Clear](t, b.holds(id, "a", holds["a"])); to != "a" {
		t.Error("a hold that is not known any more is not released")
	}
	for range 50 { // a round closes and another is opened
		b.pass(100 * time.Millisecond)
	}
	b.refusal(id, self, false)
	var effects []step.Effect
	for site, tasks := range map[grid.SiteID]uint32{"a": 2, "b": 2, "c": 4} {
		effects = append(effects, b.room(id, site, tasks, 0)...)
	}
	effects = append(effects, b.pass(2*time.Second)...)
	if len(holdsAsked(effects)) == 0 {
		t.Error("nobody is asked after the restart")
	}
}

func TestPartsAndDeadlines(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	job := splitJob(grid.SplitGreedy, 4)
	job.Spec.Window.Deadline = b.now.Add(90 * time.Second)
	late := b.submit(job)
	for _, site := range []grid.SiteID{"a", "b"} {
		b.room(late, site, 2, 40*time.Second) // and it runs for a minute
	}
	b.refusal(late, self, false)
	if to, _ := sent[protocol.HoldOffer](b.last); len(to) > 0 {
		t.Errorf("asked %v, who would end too late", to)
	}
	b.wantPhase(late, 0, grid.PhaseRefused)
	soon := b.submit(job)
	for _, site := range []grid.SiteID{"a", "b"} {
		b.room(soon, site, 2, 10*time.Second)
	}
	b.refusal(soon, self, false)
	if len(holdsAsked(b.last)) != 2 {
		t.Errorf("asked %v, want both", holdsAsked(b.last))
	}
}

// Parts that must start together are told the same time by the submitter's clock, and what that
// shows.
func TestTheCommonStartIsOnTheSubmittersClock(t *testing.T) {
	b := newBench(t, nil)
	b.do(step.PeerSeen{Site: "a", Name: "twin"})
	b.do(step.PeerSeen{Site: "b", Name: "twin", Skew: 400 * time.Millisecond})
	id := b.submit(splitJob(grid.SplitGreedy, 4))
	b.refusal(id, self, false)
	b.room(id, "a", 2, 0)
	b.room(id, "b", 2, 0)
	holds := holdsAsked(b.last)
	for _, hold := range holds {
		if !hold.At.Equal(holds["a"].At) || !hold.Clock.Equal(b.now) {
			t.Errorf("it is to start at %s, and it is %s", hold.At, hold.Clock)
		}
	}
	awards := b.allHold(id, holds)
	if !awards["b"].Spec.Window.At.Equal(holds["b"].At) {
		t.Errorf("awarded for %s, held for %s", awards["b"].Spec.Window.At, holds["b"].At)
	}
	hosts := awards["a"].Spec.Env[1].Value
	if hosts != "twin:2,b:2" || strings.Count(hosts, "twin") != 1 {
		t.Errorf("the hosts are %q: names must be unique", hosts)
	}
}
