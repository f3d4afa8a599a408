package workload

import (
	"fmt"
	"math"
	"testing"
)

// Consecutive seeds, and names that differ in a letter, give streams that share no number:
// none is a shifted copy of another. A generator whose seed moves it along one sequence is
// found out by the same count.
func TestNeighbouringSeedsAreUnrelated(t *testing.T) {
	const streams, length = 64, 256
	repeated := func(draw func(seed uint64) func() uint64) (n int) {
		seen := map[uint64]bool{}
		for seed := range uint64(streams) {
			next := draw(seed)
			for range length {
				x := next()
				if seen[x] {
					n++
				}
				seen[x] = true
			}
		}
		return n
	}
	if n := repeated(func(seed uint64) func() uint64 { return Stream(seed, "a").Uint64 }); n != 0 {
		t.Errorf("%d numbers of %d streams came before in another one", n, streams)
	}
	if n := repeated(func(i uint64) func() uint64 {
		return Stream(7, fmt.Sprint(i)).Uint64
	}); n != 0 {
		t.Errorf("%d numbers of streams with other names came before in another one", n)
	}
	const step = 0x9e3779b97f4a7c15
	shifted := repeated(func(seed uint64) func() uint64 {
		state := seed * step
		return func() uint64 {
			state += step
			x := (state ^ state>>30) * 0xbf58476d1ce4e5b9
			x = (x ^ x>>27) * 0x94d049bb133111eb
			return x ^ x>>31
		}
	})
	if shifted < streams*length/2 {
		t.Errorf("only %d numbers of shifted streams came before: the count finds nothing", shifted)
	}
}

// What two disjoint blocks of seeds say agrees within what chance allows, and seeds differ
// as much from each other as independent ones do.
func TestBlocksOfSeedsAgree(t *testing.T) {
	const seeds, draws = 400, 500
	block := func(first uint64) (mean, variance float64) {
		var sum, squares float64
		for seed := first; seed < first+seeds; seed++ {
			rng, of := Stream(seed, "block"), 0.0
			for range draws {
				of += rng.Float64() / draws
			}
			sum, squares = sum+of, squares+of*of
		}
		mean = sum / seeds
		return mean, (squares/seeds - mean*mean) * seeds / (seeds - 1)
	}
	const expected = 1.0 / 12 / draws
	meanA, varianceA := block(0)
	meanB, varianceB := block(seeds)
	if off := math.Abs(meanA-meanB) / math.Sqrt((varianceA+varianceB)/seeds); off > 3 {
		t.Errorf("means of two blocks: %v and %v, %.1f standard errors apart", meanA, meanB, off)
	}
	for _, v := range []float64{varianceA, varianceB} {
		if v < 0.75*expected || v > 1.3*expected {
			t.Errorf("variance between seeds %v, of independent ones %v", v, expected)
		}
	}
}

// The same seed and name give the same stream; any other seed or name another one.
func TestStreamsAreNamed(t *testing.T) {
	first := Stream(1, "a").Uint64()
	for name, c := range map[string]struct {
		seed uint64
		name string
		same bool
	}{
		"again": {1, "a", true}, "other seed": {2, "a", false}, "other name": {1, "b", false},
		"longer": {1, "a ", false}, "empty": {1, "", false},
		"seed in the first byte": {1 << 56, "a", false},
	} {
		if got := Stream(c.seed, c.name).Uint64(); (got == first) != c.same {
			t.Errorf("%s: %x, the first is %x", name, got, first)
		}
	}
}
