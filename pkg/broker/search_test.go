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
