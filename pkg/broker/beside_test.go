package broker

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// campus is a neighbouring domain.
const campus = grid.SiteID("campus")

// neighboured is a bench with the members a and b, and a neighbour that is asked together with
// them, or after them.
func neighboured(t *testing.T, beside bool) *bench {
	t.Helper()
	b := newBench(t, nil, "a", "b")
	b.do(step.PeerSeen{Site: campus, Name: "campus", Domain: "campus", Beside: beside})
	return b
}

// asks reports whether among effects a site is told of a job.
func asks(effects []step.Effect, site grid.SiteID) bool {
	to, _ := sent[protocol.Announce](effects)
	return slices.Contains(to, site)
}

// A neighbour that is asked together with the members is one site among them: it hears of the job
// in the same round, is waited for, and gets what it is the nearest for.
func TestANeighbourIsAskedBesideTheMembers(t *testing.T) {
	for _, beside := range []bool{true, false} {
		b := neighboured(t, beside)
		id := b.submit(testJob(1))
		if asks(b.last, campus) != beside {
			t.Fatalf("beside %v: the neighbour is asked: %v", beside, !beside)
		}
		offers := []grid.SiteID{"a", "b", self}
		if beside {
			offers = []grid.SiteID{campus, "a", "b", self}
			if b.offers(id, 1, "a"); b.m.asked(id).round() == nil {
				t.Fatal("the neighbour is not waited for")
			}
		}
		b.offers(id, 1, offers...)
		if to, _ := one[protocol.Award](t, b.last); to != offers[0] {
			t.Errorf("beside %v: awarded to %s, want the nearest, %s", beside, to, offers[0])
		}
		said, _ := b.m.Job(id)
		if beside != strings.Contains(said.Abroad, "domain campus, asked beside the members: 1") {
			t.Errorf("beside %v: it is said that %q", beside, said.Abroad)
		}
	}
}

// A member that is nearer gets the task, and the neighbour the next one.
func TestTheNearestWinsBesideTheMembers(t *testing.T) {
	b := neighboured(t, true)
	id := b.submit(testJob(3))
	b.offers(id, 1, "a", campus, "b")
	b.refusal(id, self, false)
	if to, _ := sent[protocol.Award](b.last); !slices.Equal(to, []grid.SiteID{"a", campus, "b"}) {
		t.Errorf("awarded to %v, want a, the neighbour and b", to)
	}
}

// What stays at home is not asked for beside the members either.
func TestWhatStaysAtHomeIsNotAskedForBeside(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, change := range map[string]func(*grid.Job){
		"a deadline": func(j *grid.Job) { j.Spec.Window.Deadline = now.Add(time.Hour) },
		"a flood":    func(j *grid.Job) { j.Flood = true },
		"copies":     func(j *grid.Job) { j.Redundancy.Replicas, j.Redundancy.Agreement = 2, 2 },
	} {
		b, job := neighboured(t, true), testJob(1)
		change(&job)
		if b.submit(job); asks(b.last, campus) {
			t.Errorf("%s: the neighbour is asked", name)
		}
	}
}

// Another domain's job goes as many borders further as that one allows, and the border is told
// first whose it is.
func TestOthersJobsGoAsFarAsTheyMayBeside(t *testing.T) {
	for _, hops := range []uint32{0, 1} {
		b := neighboured(t, true)
		b.do(step.Submit{Command: 1, Job: testJob(1), Ordered: step.Ordered{
			Domain: "lab", Ref: "an order", Hops: hops,
		}})
		told := slices.IndexFunc(b.last, func(e step.Effect) bool {
			news, is := e.(step.TellBorder)
			return is && news.News.Phase == grid.PhaseAnnounced
		})
		asked := slices.IndexFunc(b.last, func(e step.Effect) bool {
			s, is := e.(step.Send)
			return is && s.To == campus
		})
		if hops == 0 && asked >= 0 || hops > 0 && (asked < 0 || told < 0 || told > asked) {
			t.Errorf("%d hops: asked in effect %d, told whose it is in %d", hops, asked, told)
		}
	}
}

// A job that no member can ever run waits for a neighbour that may run it later, unless its user
// wants no waiting, and is refused if no neighbour ever can.
func TestAJobWaitsForANeighbourBeside(t *testing.T) {
	for _, c := range []struct {
		never, noWait bool
		want          grid.Phase
	}{
		{false, false, grid.PhaseWaiting},
		{true, false, grid.PhaseRefused},
		{false, true, grid.PhaseRefused},
	} {
		b := neighboured(t, true)
		effects := b.do(step.Submit{Command: 1, Job: testJob(1), NoWait: c.noWait})
		_, announced := sent[protocol.Announce](effects)
		id := announced[0].Job
		for _, site := range []grid.SiteID{"a", "b", self} {
			b.refusal(id, site, true)
		}
		b.refusal(id, campus, c.never)
		b.wantPhase(id, 0, c.want)
		if c.want != grid.PhaseWaiting {
			continue
		}
		if effects := b.pass(b.m.cfg.BackoffMax); !asks(effects, campus) {
			t.Error("the neighbour is not asked again")
		}
	}
}

// A job that no member can ever run is not refused because a neighbour is slow to answer; only
// after it was silent again and again.
func TestAJobWaitsForANeighbourThatIsSilent(t *testing.T) {
	b := neighboured(t, false)
	id := b.submit(testJob(1))
	refuse := func() {
		for _, site := range []grid.SiteID{"a", "b", self} {
			b.refusal(id, site, true)
		}
	}
	refuse()
	if !asks(b.last, campus) {
		t.Fatal("the neighbour is not asked")
	}
	b.pass(b.m.asked(id).spec.TTL)
	b.wantPhase(id, 0, grid.PhaseWaiting)
	b.m.peers.all[campus].silences = maxSilences
	b.pass(b.m.cfg.BackoffMax)
	refuse()
	b.pass(b.m.asked(id).spec.TTL)
	b.wantPhase(id, 0, grid.PhaseRefused)
}

// A user who wants no waiting gets none for a neighbour that is asked after the members.
func TestNoWaitingForANeighbourAfterTheMembers(t *testing.T) {
	b := neighboured(t, false)
	effects := b.do(step.Submit{Command: 1, Job: testJob(1), NoWait: true})
	_, announced := sent[protocol.Announce](effects)
	id := announced[0].Job
	for _, site := range []grid.SiteID{"a", "b", self} {
		b.refusal(id, site, false)
	}
	if !asks(b.last, campus) {
		t.Fatal("the neighbour is not asked")
	}
	b.refusal(id, campus, false)
	b.wantPhase(id, 0, grid.PhaseRefused)
}

// A neighbour that comes is asked for what waits, as a member is.
func TestANeighbourThatComesIsAskedForWhatWaits(t *testing.T) {
	b := newBench(t, nil, "a", "b")
	id := b.submit(testJob(1))
	for _, site := range []grid.SiteID{"a", "b", self} {
		b.refusal(id, site, false)
	}
	b.do(step.PeerSeen{Site: campus, Name: "campus", Domain: "campus", Beside: true})
	if !asks(b.last, campus) {
		t.Fatal("it is not asked")
	}
	b.offers(id, 1, campus)
	if to, _ := one[protocol.Award](t, b.last); to != campus {
		t.Errorf("awarded to %s", to)
	}
}

// A neighbour that did not answer is asked again, beside the members or after them, and not waited
// for; when it has answered it is.
func TestASilentNeighbourIsAskedAndNotWaitedFor(t *testing.T) {
	for _, beside := range []bool{true, false} {
		b := neighboured(t, beside)
		refused := func() grid.JobID {
			id := b.submit(testJob(1))
			for _, site := range []grid.SiteID{"a", "b", self} {
				b.refusal(id, site, false)
			}
			if !asks(b.last, campus) && !beside {
				t.Errorf("beside %v: the neighbour is not asked", beside)
			}
			return id
		}
		id := refused()
		if b.m.asked(id).round() == nil {
			t.Errorf("beside %v: it is not waited for", beside)
		}
		b.pass(time.Second)
		if id = refused(); b.m.asked(id).round() != nil {
			t.Errorf("beside %v: it is waited for", beside)
		}
		b.offers(id, 1, campus)
		if to, _ := one[protocol.Award](t, b.last); to != campus {
			t.Errorf("beside %v: its late offer is not taken", beside)
		}
		if id = refused(); b.m.asked(id).round() == nil {
			t.Errorf("beside %v: it has answered, and is not waited for", beside)
		}
	}
}

// A state that was saved does not cross: members come first for a task that has one.
func TestATaskWithASavedStateGoesToAMemberFirst(t *testing.T) {
	b := neighboured(t, true)
	id := b.submit(testJob(1))
	j := b.m.jobs.all[id]
	if order := rankedOffers(b, j); order != "campus a" {
		t.Errorf("ranked %q, want the nearest first", order)
	}
	state := grid.Checkpoint{Number: 1, CID: "bstate", Bytes: 1}
	j.tasks[0].counted = []counted{{Checkpoint: state}}
	if order := rankedOffers(b, j); order != "a campus" {
		t.Errorf("with a saved state ranked %q, want the member first", order)
	}
}

// rankedOffers lets the neighbour offer, and a from farther away.
func rankedOffers(b *bench, j *job) string {
	var names []string
	for i, site := range []grid.SiteID{campus, "a"} {
		nearness := offer(uint64(i+1), float64(i+1), 1)
		b.hear(site, protocol.Bid{Job: j.id, Seq: j.seq, Offer: nearness})
	}
	for _, c := range b.m.peers.standing(j) {
		names = append(names, string(c.offer.Site))
	}
	return strings.Join(names, " ")
}

// Where a part of the members is drawn to answer the neighbour is asked as well, and counts neither
// among those that were drawn nor among those that are near.
func TestANeighbourIsNotDrawn(t *testing.T) {
	b := newBench(t, func(c *Config) { c.ReplyTarget = 2 }, "a", "b", "c", "d", "e", "f")
	b.do(step.PeerSeen{Site: campus, Name: "campus", Domain: "campus", Beside: true})
	id := b.submit(testJob(1))
	j := b.m.asked(id)
	if j.round().sample >= 1 || !asks(b.last, campus) {
		t.Fatalf("%v of the members are drawn; the neighbour is asked: %v",
			j.round().sample, asks(b.last, campus))
	}
	before := j.poll.answers
	b.offers(id, 1, campus)
	if j.poll.answers != before || len(j.offersOf(j.round())) != 0 || j.round().offers != 0 {
		t.Errorf("its answer counts: %v answers, %d offers", j.poll.answers, j.round().offers)
	}
	if b.offers(id, 1, "a"); j.poll.answers != before+1 {
		t.Error("a member's answer does not count")
	}
}
