package broker

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
	"github.com/mrsmesh/mrsmesh/pkg/step"
)

// What is near is a distance in the thesis' map, and a part of the run time in that of seconds;
// each map has its own.
func TestNearIsOfAMap(t *testing.T) {
	var n near
	thesis := &grid.Requirement{Map: grid.MapThesis, Runtime: time.Minute}
	seconds := &grid.Requirement{Map: grid.MapSeconds, Runtime: time.Minute}
	hours := &grid.Requirement{Map: grid.MapSeconds, Runtime: time.Hour}
	for _, offers := range [][]float64{nil, {3}} {
		if n.learn(thesis, offers, 16, .1); n.distance(thesis) != 0 {
			t.Errorf("something was learned of %v", offers)
		}
	}
	n.learn(thesis, []float64{3, 2, 5}, 16, .1)
	if got := n.distance(thesis); got != 1 || n.distance(seconds) != 0 {
		t.Errorf("near is %v, want 1; in seconds %v, want 0", got, n.distance(seconds))
	}
	n.learn(seconds, []float64{90, 30}, 16, .1)
	if minute, hour := n.distance(seconds), n.distance(hours); minute != 15 || hour != 60*minute {
		t.Errorf("near is %v of a minute and %v of an hour, want 15 and 900", minute, hour)
	}
	// Nobody is near, and one of ten was drawn: eight of the ten before the nearest one should be.
	n.learn(thesis, []float64{2, 3}, 16, .1)
	if got := n.distance(thesis); math.Abs(got-1.8) > 1e-9 {
		t.Errorf("near is %v, want 1.8", got)
	}
	// As many are near as were drawn, so sixteen of all: half of them are enough.
	n.learn(thesis, []float64{1.2, 1.4, 1.5, 1.6, 2, 3, 4, 5}, 16, .1)
	if got := n.distance(thesis); got != 1.5 {
		t.Errorf("near is %v, want 1.5", got)
	}
}

// As many are drawn as are missing to what was asked for: the submitter's own site answers in any
// case, and so do near ones, eight of them until others were counted. A third is drawn always.
func TestHowManyAreDrawn(t *testing.T) {
	some := tally{rounds: tallyRounds / 4, drawn: 160, answers: 160 + 16*11}
	few := tally{rounds: tallyRounds / 8, drawn: 80, answers: 80 + 8*15}
	none := tally{rounds: tallyRounds, drawn: tallyRounds * 10, answers: tallyRounds * 2}
	for _, c := range []struct {
		tally   tally
		answers int
		theta   float64
		want    float64
	}{
		{tally{}, 16, 0, 15},
		{tally{}, 16, 1, 7},
		{tally{}, 24, 1, 15},
		{tally{}, 12, 1, 4},
		{tally{}, 1, 1, 1},
		{tally{}, 1, 0, 1},
		{some, 24, 1, 13},
		{some, 24, 0, 13},
		{some, 12, 1, 4},
		{few, 24, 1, 12}, // as if there had been eight more with nine answers each
		{few, 24, 0, 16},
		{none, 24, 1, 24},
	} {
		n := near{tally: c.tally}
		if got := n.draws(c.answers, c.theta); got != c.want {
			t.Errorf("of %d answers with near ones at %v, %v are drawn, want %v",
				c.answers, c.theta, got, c.want)
		}
	}
	for _, c := range []struct {
		round  round
		offers int
		want   bool
	}{
		{round{sample: .5, drawn: 100}, 7, false},
		{round{sample: .5, drawn: 100}, 8, true},
		{round{sample: .5, drawn: 6}, 3, false},
		{round{sample: .5, drawn: 6}, 4, true},
		{round{sample: .5, drawn: 100, theta: 1}, 13, false},
		{round{sample: .5, drawn: 100, theta: 1}, 14, true},
		{round{sample: .5, drawn: 6, theta: 1}, 9, false},
		{round{sample: .5, drawn: 6, theta: 1}, 10, true},
		{round{sample: .5, drawn: 6, search: search{part: .1}}, 7, false},
		{round{sample: .5, drawn: 6, search: search{part: .1}}, 8, true},
		{round{sample: 1}, 100, false},
	} {
		if c.round.offers = c.offers; c.round.enough() != c.want {
			t.Errorf("%+v is enough: %v", c.round, !c.want)
		}
	}
}

// However many sites there are, and how far away: as many answer as are asked for, on average over
// many rounds, and not one more; two, where many are announced before the first is answered. No
// more are drawn than are asked for: of sites that cannot all offer that part answers. Who answers
// too late for the round is counted all the same.
func TestAsManyAnswerAsAreAskedFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		target := rapid.SampledFrom([]int{16, 24, 48}).Draw(t, "replies")
		sites := rapid.SampledFrom([]int{100, 300, 600}).Draw(t, "sites")
		together := rapid.SampledFrom([]int{1, 10}).Draw(t, "announced together")
		able := rapid.Float64Range(.5, 1).Draw(t, "part that can offer")
		late := rapid.Float64Range(0, .3).Draw(t, "part that is late")
		spread := rapid.Float64Range(.1, 1).Draw(t, "spread")
		chance := step.NewRand(rapid.Uint64().Draw(t, "seed"), "near", 0)
		var n near
		req := &grid.Requirement{Map: grid.MapSeconds, Runtime: time.Minute}
		now := time.Unix(0, 0)
		// ask makes an announcement, and returns what counts its answers when they come.
		ask := func() (answer func() int) {
			theta := n.distance(req)
			n.tally.settle(now)
			drawn := n.draws(target, theta)
			poll := n.tally.add(drawn, now.Add(time.Second))
			return func() (answered int) {
				var offers []float64
				for site := range sites {
					d := math.Exp(spread * chance.NormFloat64())
					called := site == 0 || d <= theta || chance.Float64() < drawn/float64(sites)
					if !called || chance.Float64() > able {
						continue
					}
					answered++
					if n.tally.hear(poll); chance.Float64() >= late {
						offers = append(offers, d)
					}
				}
				if theta == n.distance(req) {
					n.learn(req, offers, drawn, drawn/float64(sites))
				}
				return answered
			}
		}
		const first, rounds = 150, 400
		answered := 0
		for done := 0; done < first+rounds; done += together {
			answers := make([]func() int, together)
			for i := range answers {
				answers[i] = ask()
			}
			now = now.Add(time.Second)
			for _, answer := range answers {
				if more := answer(); done >= first {
					answered += more
				}
			}
		}
		mean, more := float64(answered)/rounds, 1.
		if together > 1 {
			more = 2
		}
		if want := float64(target); mean < .9*able*want || mean > want+more {
			t.Fatalf("%.2f of %d sites answer, want about %d", mean, sites, target)
		}
	})
}

// Whatever the distances of a thousand sites are, after some rounds about as many answer for
// being near as should.
func TestNearIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const sites, chosen = 1000, 16
		seed := rapid.Uint64().Draw(t, "seed")
		spread := rapid.Float64Range(.1, 1).Draw(t, "spread")
		chance := step.NewRand(seed, "near", 0)
		var n near
		req := &grid.Requirement{Map: grid.MapThesis}
		var late []int
		for round := range 200 {
			var near, random []float64
			for range sites {
				d := 1 + spread*chance.Float64()
				switch theta := n.distance(req); {
				case d <= theta:
					near = append(near, d)
				case chance.Float64() < float64(chosen)/sites:
					random = append(random, d)
				}
			}
			if len(near) > sites/2 {
				t.Fatalf("%d sites answer in round %d", len(near), round)
			}
			if round >= 100 {
				late = append(late, len(near))
			}
			n.learn(req, append(near, random...), chosen, chosen/float64(sites))
		}
		slices.Sort(late)
		if middle := late[len(late)/2]; middle < 1 || middle > 2*nearMany {
			t.Fatalf("in the middle %d sites answer for being near, want about %d", middle, nearSites)
		}
	})
}
