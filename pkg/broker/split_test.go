package broker

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// at describes shares: "a:2,b:1"; nothing for none.
func described(shares []share) string {
	var list []string
	for _, s := range shares {
		list = append(list, fmt.Sprintf("%s:%d", s.site, s.parts))
	}
	return strings.Join(list, ",")
}

// takes is a place with room that is ready now and runs for a minute at 8 Mbit/s.
func takes(site grid.SiteID, room uint32, change ...func(*place)) place {
	p := place{site: site, room: room, run: time.Minute, bps: 8_000_000}
	for _, c := range change {
		c(&p)
	}
	return p
}

func readyIn(d time.Duration) func(*place) { return func(p *place) { p.ready = d } }
func runs(d time.Duration) func(*place)    { return func(p *place) { p.run = d } }
func rate(bps int64) func(*place)          { return func(p *place) { p.bps = bps } }

func TestDivide(t *testing.T) {
	const mega = 1_000_000
	small := []place{takes("a", 2), takes("b", 1), takes("c", 3), takes("d", 8), takes("e", 4)}
	for _, test := range []struct {
		name   string
		mode   grid.Split
		parts  uint32
		comm   int64
		places []place
		want   string
	}{
		{"never: the nearest that takes all", grid.SplitNever, 3, 0, small, "c:3"},
		{"never: nobody takes all", grid.SplitNever, 9, 0, small, ""},
		{"if needed: not needed", grid.SplitIfNeeded, 4, 0, small, "d:4"},
		{"if needed: as few as it takes", grid.SplitIfNeeded, 9, 0, small, "a:2,d:7"},
		{"if needed: the nearest of those", grid.SplitIfNeeded, 12, 0, small, "d:8,e:4"},
		{"if needed: all of them", grid.SplitIfNeeded, 18, 0, small, "a:2,b:1,c:3,d:8,e:4"},
		{"if needed: too many", grid.SplitIfNeeded, 19, 0, small, ""},
		{
			"if needed: a site of unknown rate comes last", grid.SplitIfNeeded, 4, mega,
			[]place{takes("a", 3, rate(0)), takes("b", 3), takes("c", 1)},
			"b:3,c:1",
		},
		{
			"if needed: but comes in if the others do not suffice", grid.SplitIfNeeded, 5, mega,
			[]place{takes("a", 3, rate(0)), takes("b", 3), takes("c", 1)},
			"a:3,b:2",
		},
		{
			"if needed: rates do not matter to parts that say nothing", grid.SplitIfNeeded, 4, 0,
			[]place{takes("a", 3, rate(0)), takes("b", 3), takes("c", 1)},
			"a:3,b:1",
		},
		{"greedy: nearest first", grid.SplitGreedy, 9, 0, small, "a:2,b:1,c:3,d:3"},
		{"greedy: one site on a tie", grid.SplitGreedy, 4, 0, small, "d:4"},
		{
			"greedy: sooner on two", grid.SplitGreedy, 4, mega,
			[]place{takes("a", 2), takes("b", 2), takes("c", 4, readyIn(2*time.Second))},
			"a:2,b:2",
		},
		{
			"greedy: one site on a tie, communication counted", grid.SplitGreedy, 4, mega,
			[]place{takes("a", 2), takes("b", 2), takes("c", 4, readyIn(time.Second))},
			"c:4",
		},
		{
			"greedy: communication is slower than waiting", grid.SplitGreedy, 4, 100 * mega,
			[]place{takes("a", 2), takes("b", 2), takes("c", 4, readyIn(99*time.Second))},
			"c:4",
		},
		{
			"greedy: an unknown rate never ends", grid.SplitGreedy, 4, 1,
			[]place{takes("a", 2), takes("b", 2, rate(0)), takes("c", 4, readyIn(time.Hour))},
			"c:4",
		},
		{
			"greedy: unless there is nothing else", grid.SplitGreedy, 4, 1,
			[]place{takes("a", 2), takes("b", 2, rate(0)), takes("c", 3, readyIn(time.Hour))},
			"a:2,b:2",
		},
		{
			"greedy: the soonest single site, not the nearest", grid.SplitGreedy, 2, mega,
			[]place{takes("a", 1), takes("b", 2, runs(time.Hour)), takes("c", 2)},
			"c:2",
		},
		{"no parts", grid.SplitGreedy, 0, 0, small, ""},
		{"no places", grid.SplitIfNeeded, 1, 0, nil, ""},
		{"places without room", grid.SplitGreedy, 1, 0, []place{takes("a", 0), takes("b", 1)}, "b:1"},
		{
			"room beyond counting", grid.SplitIfNeeded, 5, 0,
			[]place{takes("a", 4), takes("b", math.MaxUint32)},
			"b:5",
		},
	} {
		if got := described(divide(test.mode, test.parts, test.comm, test.places)); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

func TestCompletionCountsCommunication(t *testing.T) {
	const mega = 1_000_000
	for _, test := range []struct {
		name   string
		shares []share
		comm   int64
		want   time.Duration
	}{
		{"one site", []share{{takes("a", 4, readyIn(time.Second)), 4}}, 1000 * mega, 61 * time.Second},
		{
			"the last and the slowest",
			[]share{{takes("a", 1, readyIn(5*time.Second)), 1}, {takes("b", 1, runs(2*time.Minute)), 1}},
			0,
			125 * time.Second,
		},
		{
			"8 Mbyte through 2 Mbit/s",
			[]share{{takes("a", 1, rate(2*mega)), 1}, {takes("b", 1), 1}},
			8 * mega,
			time.Minute + 32*time.Second,
		},
		{"unknown", []share{{takes("a", 1), 1}, {takes("b", 1, rate(0)), 1}}, 1, endless},
		{
			"beyond counting",
			[]share{{takes("a", 1, rate(1)), 1}, {takes("b", 1), 1}},
			math.MaxInt64,
			endless,
		},
	} {
		if got := completion(test.shares, test.comm); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

func drawPlaces(t *rapid.T) []place {
	var places []place
	for i := range rapid.IntRange(0, 7).Draw(t, "sites") {
		places = append(places, place{
			site: grid.SiteID(fmt.Sprintf("s%d", i)), room: rapid.Uint32Range(0, 6).Draw(t, "room"),
			ready: time.Duration(rapid.IntRange(0, 100).Draw(t, "ready")) * time.Second,
			run:   time.Duration(rapid.IntRange(1, 100).Draw(t, "run")) * time.Second,
			bps:   rapid.Int64Range(0, 5).Draw(t, "rate") * 1_000_000,
		})
	}
	return places
}

func drawMode(t *rapid.T) grid.Split {
	return rapid.SampledFrom([]grid.Split{
		grid.SplitNever, grid.SplitIfNeeded, grid.SplitGreedy,
	}).Draw(t, "mode")
}

// Every part is placed exactly once, no site gets more than it takes, nearer ones come
// first, and a division is found if there is one.
func TestDivisionsAreWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		places, mode := drawPlaces(t), drawMode(t)
		parts := rapid.Uint32Range(1, 24).Draw(t, "parts")
		comm := rapid.Int64Range(0, 100).Draw(t, "comm") * 1_000_000
		shares := divide(mode, parts, comm, places)
		var sum, all, largest uint32
		for _, p := range places {
			all, largest = all+p.room, max(largest, p.room)
		}
		last := -1
		for _, s := range shares {
			at := slices.IndexFunc(places, func(p place) bool { return p.site == s.site })
			if at <= last || s.parts == 0 || s.parts > places[at].room {
				t.Fatalf("%s: %s of %+v", described(shares), s.site, places)
			}
			last, sum = at, sum+s.parts
		}
		possible := all >= parts
		if mode == grid.SplitNever {
			possible = largest >= parts
		}
		switch {
		case possible != (len(shares) > 0):
			t.Fatalf("divided as %q although that is possible: %t; %+v", described(shares), possible, places)
		case possible && sum != parts:
			t.Fatalf("%s: %d parts, want %d", described(shares), sum, parts)
		case mode == grid.SplitIfNeeded && largest >= parts && len(shares) != 1:
			t.Fatalf("%s: divided although one site takes all: %+v", described(shares), places)
		case comm == 0 && mode == grid.SplitIfNeeded && len(shares) != fewestByTrying(parts, places):
			t.Fatalf("%s: fewer sites take all: %+v", described(shares), places)
		}
	})
}

// fewestByTrying tries all sets of sites.
func fewestByTrying(parts uint32, places []place) int {
	best := 0
	for set := range 1 << len(places) {
		n, sum := 0, uint32(0)
		for i, p := range places {
			if set&(1<<i) != 0 {
				n, sum = n+1, sum+p.room
			}
		}
		if sum >= parts && (best == 0 || n < best) {
			best = n
		}
	}
	return best
}

// A division never ends later for more communication being possible at a higher rate,
// or for less of it; and what greedy gives ends no later than one site would.
func TestDivisionsAreMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		places, mode := drawPlaces(t), drawMode(t)
		parts := rapid.Uint32Range(1, 12).Draw(t, "parts")
		comm := rapid.Int64Range(1, 100).Draw(t, "comm") * 1_000_000
		shares := divide(mode, parts, comm, places)
		if len(shares) == 0 {
			return
		}
		took := completion(shares, comm)
		if less := completion(shares, comm/2); less > took {
			t.Fatalf("half the communication takes %s, all of it %s", less, took)
		}
		faster := slices.Clone(places)
		for i := range faster {
			faster[i].bps *= 2
		}
		if sped := divide(grid.SplitGreedy, parts, comm, faster); mode == grid.SplitGreedy &&
			completion(sped, comm) > took {
			t.Fatalf("at twice the rate %s takes %s, before %s took %s",
				described(sped), completion(sped, comm), described(shares), took)
		}
		if fewer := divide(mode, parts-1, comm, places); parts > 1 && len(fewer) == 0 {
			t.Fatalf("%d parts have a place, %d have none", parts, parts-1)
		}
		if mode != grid.SplitGreedy {
			return
		}
		for _, single := range singles(parts, places) {
			if completion(single, comm) < took {
				t.Fatalf("%s takes %s, %s took %s",
					described(single), completion(single, comm), described(shares), took)
			}
		}
	})
}

// cluster is some sites on which divided jobs run, first come first served.
type cluster struct {
	rng   *rand.Rand
	sites []place
	ends  []running
	comm  float64 // median bytes that a part exchanges
}

type running struct {
	at     time.Duration
	shares []share
}

// mean is the mean time from submission to end of jobs that are divided in one way.
func (c *cluster) mean(mode grid.Split, jobs int) time.Duration {
	var now, free, sum time.Duration
	for range jobs {
		now += time.Duration(c.rng.ExpFloat64() * float64(30*time.Second))
		free = max(free, now) // when the job before has started
		c.end(free)
		parts := uint32(1) << c.rng.IntN(5)
		comm := int64(c.comm * math.Exp(c.rng.NormFloat64()))
		run := time.Duration((0.2 + c.rng.ExpFloat64()) * float64(5*time.Minute))
		order := c.rng.Perm(len(c.sites)) // how near they are to this job
		for {
			places := make([]place, 0, len(order))
			for _, i := range order {
				p := c.sites[i]
				p.run = run
				places = append(places, p)
			}
			shares := divide(mode, parts, comm, places)
			if shares != nil {
				took := completion(shares, comm)
				c.take(shares, -1)
				c.ends = append(c.ends, running{free + took, shares})
				sum += free + took - now
				break
			}
			next := slices.MinFunc(c.ends, func(a, b running) int { return int(a.at - b.at) })
			free = next.at
			c.end(free)
		}
	}
	return sum / time.Duration(jobs)
}

func (c *cluster) end(now time.Duration) {
	c.ends = slices.DeleteFunc(c.ends, func(r running) bool {
		if r.at <= now {
			c.take(r.shares, 1)
		}
		return r.at <= now
	})
}

func (c *cluster) take(shares []share, sign int) {
	for _, s := range shares {
		i := slices.IndexFunc(c.sites, func(p place) bool { return p.site == s.site })
		c.sites[i].room = uint32(int(c.sites[i].room) + sign*int(s.parts))
	}
}

// Evaluation, section 4: splitting a job only when no single site fits beats greedy
// splitting by 14 % once communication is counted. The means over the seeds are
// compared; without communication neither wins by much.
func TestSplittingIfNeededBeatsGreedy(t *testing.T) {
	const seeds = 10
	ratio := func(commBytes float64) float64 {
		var sum float64
		for seed := range uint64(seeds) {
			mean := func(mode grid.Split) float64 {
				c := &cluster{rng: rand.New(rand.NewPCG(seed, 7)), comm: commBytes}
				for i, cores := range []uint32{4, 4, 8, 8, 8, 16, 16, 32} {
					rate := int64(4e6 * math.Exp(c.rng.NormFloat64()))
					site := grid.SiteID(fmt.Sprintf("s%d", i))
					c.sites = append(c.sites, place{site: site, room: cores, bps: rate})
				}
				return c.mean(mode, 2000).Seconds()
			}
			sum += mean(grid.SplitIfNeeded) / mean(grid.SplitGreedy)
		}
		return sum / seeds
	}
	counted, without := ratio(50e6), ratio(0)
	t.Logf("mean completion if needed / greedy: %.3f with communication, %.3f without",
		counted, without)
	if counted > .9 || without < .9 || without > 1.1 {
		t.Errorf("if needed / greedy is %.3f with communication, want below .9; %.3f without, want "+
			"about 1", counted, without)
	}
}
