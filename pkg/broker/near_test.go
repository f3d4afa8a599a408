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

// Of drawn sites as many answer as are asked for, without and with near ones beside them; half of
// them are drawn in any case.
func TestHowManyAreDrawn(t *testing.T) {
	for _, c := range []struct {
		answers int
		theta   float64
		want    int
	}{{16, 0, 16}, {16, 1, 8}, {24, 1, 16}, {10, 1, 5}, {1, 1, 1}, {1, 0, 1}} {
		if got := drawn(c.answers, c.theta); got != c.want {
			t.Errorf("of %d answers with near ones at %v, %d are drawn, want %d",
				c.answers, c.theta, got, c.want)
		}
	}
	for _, c := range []struct {
		round  round
		offers int
		want   bool
	}{
		{round{sample: .5}, 7, false},
		{round{sample: .5}, 8, true},
		{round{sample: .5, theta: 1}, 15, false},
		{round{sample: .5, theta: 1}, 16, true},
		{round{sample: 1}, 100, false},
	} {
		if c.round.offers = c.offers; c.round.enough() != c.want {
			t.Errorf("%+v is enough: %v", c.round, !c.want)
		}
	}
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
