package broker

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/protocol"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// Who knows nobody near asks some of those that are nearer than the nearest so far, sixteen times
// as many of them in each round, and awards to the nearest of all that have answered. The next job
// knows what is near.
func TestASearchForNearSites(t *testing.T) {
	names := manySites(1000)
	b := newBench(t, func(c *Config) { c.ReplyTarget = 10 }, names...)
	id := b.submit(testJob(1))
	b.pass(50 * time.Millisecond)
	offers := func(from int, distances ...float64) {
		for i, d := range distances {
			b.hear(names[from+i], protocol.Bid{
				Job: id, Seq: b.m.asked(id).seq, Offer: offer(1, d, 1),
			})
		}
	}
	offers(1, 8, 8, 8, 8, 8, 8, 8, 4)
	effects := b.pass(50 * time.Millisecond)
	if _, awards := sent[protocol.Award](effects); len(awards) > 0 {
		t.Fatal("awarded to one of ten drawn among a thousand")
	}
	to, a := one[protocol.Announce](t, effects)
	if part := .009 * 16; to != "*" || a.Nearer != 4 || a.Part != part || a.Sample != noSample {
		t.Fatalf("asked %s: %+v, want those nearer than 4, %v of them", to, a, part)
	}
	offers(20, 3)
	to, a = one[protocol.Announce](t, b.pass(100*time.Millisecond))
	if to != "*" || a.Nearer != 3 || a.Part != 1 {
		t.Fatalf("asked %s: %+v, want all that are nearer than 3", to, a)
	}
	offers(30, 2.5, 2)
	effects = b.pass(100 * time.Millisecond)
	if to, _ := one[protocol.Award](t, effects); to != names[31] {
		t.Errorf("awarded to %s, want the nearest of all, %s", to, names[31])
	}
	b.submit(testJob(1))
	if _, a = one[protocol.Announce](t, b.last); a.Theta != 3 || a.Part != 0 {
		t.Errorf("the next job asks those up to %v, and a part of %v; want 3, 0", a.Theta, a.Part)
	}
}

// Agents that know of no searches do not answer them: the job is awarded all the same, to the
// nearest that did answer.
func TestASearchThatNobodyAnswers(t *testing.T) {
	names := manySites(1000)
	b := newBench(t, func(c *Config) { c.ReplyTarget = 10 }, names...)
	id := b.submit(testJob(1))
	b.pass(50 * time.Millisecond)
	b.offers(id, 1, names[1:9]...)
	var awarded grid.SiteID
	rounds := 0
	for range 10 {
		effects := b.pass(100 * time.Millisecond)
		to, awards := sent[protocol.Award](effects)
		if len(awards) > 0 {
			awarded = to[0]
			break
		}
		rounds++
	}
	if awarded != names[1] || rounds > 4 {
		t.Errorf("awarded to %q after %d tenths of a second, want %s", awarded, rounds, names[1])
	}
}

// searching is a job of a submitter who knows nobody near, whose first round is over: it searches.
func searching(b *bench, names []grid.SiteID) grid.JobID {
	b.Helper()
	id := b.submit(testJob(1))
	b.pass(50 * time.Millisecond)
	for _, site := range names[1:9] {
		b.hear(site, protocol.Bid{Job: id, Seq: b.m.asked(id).seq, Offer: offer(1, 8, 1)})
	}
	if _, a := one[protocol.Announce](b.T, b.pass(50*time.Millisecond)); a.Nearer != 8 {
		b.Fatalf("asked %+v, want those nearer than 8", a)
	}
	return id
}

// announcedNow are the jobs that effects announce, by what is near for them.
func announcedNow(effects []step.Effect) map[grid.JobID]float64 {
	_, all := sent[protocol.Announce](effects)
	jobs := make(map[grid.JobID]float64)
	for _, a := range all {
		jobs[a.Job] = a.Theta
	}
	return jobs
}

// Of jobs that come together one searches; the others wait for what it finds and ask for that.
// Sites that come meanwhile get none of them.
func TestJobsThatComeTogetherSearchOnce(t *testing.T) {
	names := manySites(1000)
	b := newBench(t, func(c *Config) { c.ReplyTarget = 10 }, names...)
	first := searching(b, names)
	second, third := b.submit(testJob(1)), b.submit(testJob(1))
	meanwhile := b.last
	for _, in := range []step.Input{
		step.PeerSeen{Site: "new", Name: "new"}, step.PeerGone{Site: names[900]},
	} {
		meanwhile = append(meanwhile, b.do(in)...)
	}
	if announced(meanwhile) {
		t.Fatalf("somebody is asked for other jobs while %s searches", first)
	}
	if s, _ := b.m.Job(second); !s.Round {
		t.Error("a job that waits for a search is not shown as one that looks for offers")
	}
	effects := b.pass(110 * time.Millisecond)
	for _, site := range names[11:21] {
		b.hear(site, protocol.Bid{Job: first, Seq: b.m.asked(first).seq, Offer: offer(1, 3, 1)})
	}
	effects = append(effects, b.pass(200*time.Millisecond)...)
	jobs := announcedNow(effects)
	if jobs[second] != 3 || jobs[third] != 3 {
		t.Errorf("after the search are announced %v, want %s and %s with 3", jobs, second, third)
	}
	if fourth := b.submit(testJob(1)); announcedNow(b.last)[fourth] != 3 {
		t.Errorf("a later job is not announced immediately")
	}
}

// A job that searches may end before it has found anything, by its user's will: those that
// wait for it go on, and one that is cancelled while it waits asks nobody.
func TestJobsDoNotWaitForASearchThatEnded(t *testing.T) {
	names := manySites(1000)
	for name, end := range map[string]func(*bench, grid.JobID){
		"cancelled": func(b *bench, id grid.JobID) { b.do(step.CancelJob{Command: 2, Job: id}) },
		"no answer": func(*bench, grid.JobID) {},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(c *Config) { c.ReplyTarget = 10 }, names...)
			first := searching(b, names)
			second, third := b.submit(testJob(1)), b.submit(testJob(1))
			b.do(step.CancelJob{Command: 3, Job: third})
			if len(announcedNow(b.last)) > 0 {
				t.Errorf("a job that is cancelled while it waits is announced")
			}
			end(b, first)
			effects := b.pass(2 * searchLongest)
			if !b.m.jobs.all[second].announced {
				t.Errorf("%s is not announced", second)
			}
			if _, is := announcedNow(effects)[third]; is {
				t.Errorf("%s was cancelled and is announced", third)
			}
		})
	}
}

// Where it is known what is near, few offers and all far away are a reason to search, as long as
// all searches together cost no more answers than are asked for.
func TestSearchesOfJobsWithOtherNeeds(t *testing.T) {
	now := time.Unix(0, 0)
	req := grid.Requirement{Map: grid.MapThesis}
	begin := func(n *near, id grid.JobID, theta float64) search {
		j := newJob(id, grid.Job{TTL: time.Second}, now, &Config{})
		j.req = req
		j.offers["a"] = &candidate{quoted: 5}
		j.offers["b"] = &candidate{quoted: 7}
		r := &round{sample: .001, drawn: 10, offers: 2, theta: theta, opened: now}
		return n.look(j, r, 24, now.Add(time.Second))
	}
	known := func() *near {
		n := &near{tally: tally{rounds: 60, answers: 60*24 - 40}}
		n.theta[req.Map] = 1
		return n
	}
	n := known()
	if s := begin(n, "first", 1); s.part != .016 || s.nearer != 5 || s.long != time.Second/2 {
		t.Errorf("two far offers: %+v, want 16 of those nearer than 5", s)
	}
	if s := begin(n, "second", 1); s.part > 0 {
		t.Errorf("two searches are under way, with answers left for one: %+v", s)
	}
	now = now.Add(time.Minute)
	if s := begin(n, "third", 1); s.part == 0 {
		t.Error("the first search is over, and none begins")
	}
	n = known()
	n.tally.answers = 60 * 24
	if s := begin(n, "fourth", 1); s.part > 0 {
		t.Errorf("as many answer as are asked for, and one searches: %+v", s)
	}
	n = known()
	n.theta[req.Map] = 6
	if s := begin(n, "near", 6); s.part > 0 {
		t.Errorf("one is near, and the job searches: %+v", s)
	}
}

// Of rounds that were under way together one changes what is near: each would else go as far on.
func TestRoundsUnderWayTogetherLearnOnce(t *testing.T) {
	now := time.Unix(0, 0)
	n := &near{}
	n.theta[grid.MapThesis] = 1
	for range 2 {
		j := newJob("job", grid.Job{TTL: time.Second}, now, &Config{})
		j.offers["a"], j.offers["b"] = &candidate{quoted: 2}, &candidate{quoted: 3}
		n.look(j, &round{sample: .1, drawn: 16, theta: 1, offers: 2, opened: now}, 24, now)
		if got := n.theta[grid.MapThesis]; got != 1.8 {
			t.Errorf("near is %v, want 1.8", got)
		}
	}
}

// When nothing is to be searched for, and that it ends in time.
func TestWhenASearchGoesOn(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := search{nearer: 3, long: time.Second, until: now.Add(time.Second), offers: 4}
	for name, c := range map[string]struct {
		search search
		part   float64
		offers []float64
		want   search
	}{
		"nearer": {s, .01, []float64{2, 5}, search{2, .16, time.Second, s.until, 6}},
		"none":   {s, .01, nil, search{3, .16, time.Second, s.until, 4}},
		"all":    {s, 1. / 3, []float64{4}, search{3, 1, time.Second, s.until, 5}},
		"few":    {s, 1. / 2, []float64{2}, search{}},
		"here":   {s, .01, []float64{0}, search{}},
		"late":   {search{nearer: 3, long: time.Second + 1, until: s.until}, .01, nil, search{}},
	} {
		if got := c.search.next(c.part, len(c.offers), c.offers, now); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if short, long := searchTime(time.Second), searchTime(time.Minute); short != 2*time.Second ||
		long != 4*time.Second {
		t.Errorf("a search takes up to %v and %v", short, long)
	}
}

// Among so many sites as there may be a search finds one of the nearest, and about how near eight
// of them are, in three rounds and with some dozens of answers.
func TestASearchFindsTheNearest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sites := rapid.SampledFrom([]int{1_000, 10_000, 100_000}).Draw(t, "sites")
		chance := step.NewRand(rapid.Uint64().Draw(t, "seed"), "search", 0)
		spread := rapid.Float64Range(.1, 1).Draw(t, "spread")
		far := make([]float64, sites)
		for i := range far {
			far[i] = math.Exp(spread * chance.NormFloat64())
		}
		slices.Sort(far)
		ask := func(part, nearer float64) (offers []float64) {
			for _, d := range far {
				if d <= nearer && chance.Float64() < part {
					offers = append(offers, d)
				}
			}
			return offers
		}
		var n near
		j := &job{}
		j.offers = make(map[grid.SiteID]*candidate)
		j.req, j.spec.TTL = grid.Requirement{Map: grid.MapThesis}, time.Second
		now, names := time.Unix(0, 0), manySites(1_000)
		r := &round{sample: 24 / float64(sites), drawn: 24, opened: now}
		nearest, answers, rounds := math.Inf(1), 0, 0
		for s := (search{nearer: math.Inf(1), part: r.sample}); s.part > 0; rounds++ {
			offers := ask(s.part, s.nearer)
			for rounds == 0 && len(offers) < enoughOffers { // else more would be asked for first
				offers = ask(s.part, s.nearer)
			}
			r.offers = len(offers)
			clear(j.offers)
			for i, d := range offers {
				j.offers[names[i]] = &candidate{quoted: d}
				nearest = min(nearest, d)
			}
			answers += len(offers)
			s = n.look(j, r, 24, now)
			r.search = s
		}
		if nearest > far[19] {
			t.Errorf("%v is the nearest found; 20 are up to %v", nearest, far[19])
		}
		known, _ := slices.BinarySearch(far, n.distance(&j.req))
		if rounds > 4 || answers > 400 || known > 100 {
			t.Errorf("%d rounds, %d answers, %d sites are near", rounds, answers, known)
		}
	})
}
