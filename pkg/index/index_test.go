package index

import (
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// What the rules of the package doc promise; internal/vectors compares the numbers.

// near allows a relative error of 1e-9; only an infinity is near an infinity.
func near(a, b float64) bool {
	size := max(math.Abs(a), math.Abs(b))
	return a == b || !math.IsInf(size, 0) && math.Abs(a-b) <= max(1e-12, 1e-9*size)
}

func TestDistanceNeitherOverflowsNorVanishes(t *testing.T) {
	for _, c := range []struct {
		axes []float64
		want float64
	}{
		{nil, 0},
		{[]float64{3e200, 4e200}, 5e200},
		{[]float64{3e-200, 4e-200}, 5e-200},
		{[]float64{1, 1, 1, 1}, 2},
		{[]float64{math.Inf(1), 1}, math.Inf(1)},
		{[]float64{math.Copysign(0, -1)}, 0},
	} {
		got, err := Distance(c.axes...)
		if err != nil || got != c.want && math.Abs(got-c.want) > 1e-12*c.want {
			t.Errorf("Distance(%v) = %v, %v, want %v", c.axes, got, err, c.want)
		}
	}
	if _, err := Distance(math.Inf(1), math.NaN()); !errors.Is(err, ErrInvalidArgument) {
		t.Errorf("Distance(Inf, NaN): error = %v, want ErrInvalidArgument", err)
	}
}

func TestComputationIndexSurvivesExtremeWeights(t *testing.T) {
	half := Dimension{Offered: 1, Required: 2, K: 1e308}
	x, err := ComputationIndex([]Dimension{half, half, half}, ModeWeight, true)
	if err != nil || !near(x, 0.5) {
		t.Errorf("normalised index with weights of 1e308 = %v, %v, want 0.5", x, err)
	}
	for _, k := range []float64{5e-324, math.NaN(), -1, 0} {
		half.K = k
		if x, err := ComputationIndex([]Dimension{half}, ModePaper, false); !errors.Is(err, ErrInvalidArgument) {
			t.Errorf("K = %v in paper mode: %v, %v, want ErrInvalidArgument", k, x, err)
		}
	}
	half.K = math.Inf(1)
	if x, err := ComputationIndex([]Dimension{half}, ModePaper, true); x != 0 || err != nil {
		t.Errorf("K = Inf in paper mode: %v, %v, want 0", x, err)
	}
}

func TestInvalidArguments(t *testing.T) {
	nan, transfer := math.NaN(), Transfer{Bytes: 1, Link: KnownRate(1)}
	_, eNaNLink := DataIndex(Transfer{Local: true, Link: KnownRate(nan)}, 1)
	_, eDisk := DataIndex(Transfer{Disk: KnownRate(-1)}, 1)
	_, eRuntime := DataIndexMulti(nil, 0)
	_, eMulti := DataIndexMulti([]Transfer{{Bytes: nan}, transfer}, 1)
	_, eBounded := YBounded(-1)
	_, ePotential := Potential("a", []Upload{{"b", nan}})
	for i, err := range []error{eNaNLink, eDisk, eRuntime, eMulti, eBounded, ePotential} {
		if !errors.Is(err, ErrInvalidArgument) {
			t.Errorf("case %d: error = %v, want ErrInvalidArgument", i, err)
		}
	}
}

func amounts() *rapid.Generator[float64] {
	return rapid.OneOf(rapid.Float64Range(0, 1e12), rapid.SampledFrom([]float64{0, 1, 1e-300, 1e300, math.Inf(1)}))
}

func TestProvisionRatioProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, g := amounts().Draw(t, "f"), amounts().Draw(t, "g")
		more := f + amounts().Draw(t, "more")
		r, err := ProvisionRatio(f, g)
		if err != nil || !(r >= 0 && r <= 1) {
			t.Fatalf("R(%v, %v) = %v, %v, want 0 to 1", f, g, r, err)
		}
		if better, _ := ProvisionRatio(more, g); better > r {
			t.Errorf("R grows from %v to %v when the offer grows", r, better)
		}
		const scale = 8
		if scaled, _ := ProvisionRatio(f*scale, g*scale); !near(scaled, r) {
			t.Errorf("R depends on the unit: %v and %v", r, scaled)
		}
	})
}

func TestComputationIndexProperties(t *testing.T) {
	dimension := rapid.Custom(func(t *rapid.T) Dimension {
		return Dimension{amounts().Draw(t, "f"), amounts().Draw(t, "g"), rapid.Float64Range(0, 10).Draw(t, "K")}
	})
	rapid.Check(t, func(t *rapid.T) {
		dims := rapid.SliceOfN(dimension, 0, 6).Draw(t, "dims")
		x, err := ComputationIndex(dims, ModeWeight, false)
		normal, err2 := ComputationIndex(dims, ModeWeight, true)
		if err != nil || err2 != nil || x < 0 || normal < 0 || normal > 1+1e-9 {
			t.Fatalf("x = %v, %v; normalised %v, %v", x, err, normal, err2)
		}
		shuffled := rapid.Permutation(dims).Draw(t, "shuffled")
		if y, _ := ComputationIndex(shuffled, ModeWeight, false); !near(x, y) {
			t.Errorf("order matters: %v and %v", x, y)
		}
		sum := 0.0 // the dumb twin
		for _, d := range dims {
			r, _ := ProvisionRatio(d.Offered, d.Required)
			sum += d.K * r * r
		}
		if !near(x, math.Sqrt(sum)) {
			t.Errorf("x = %v, want %v", x, math.Sqrt(sum))
		}
	})
}

func TestDataIndexProperties(t *testing.T) {
	transfer := rapid.Custom(func(t *rapid.T) Transfer {
		tr := Transfer{Bytes: amounts().Draw(t, "bytes"), Local: rapid.Bool().Draw(t, "local")}
		if rapid.Bool().Draw(t, "known") {
			tr.Link, tr.Disk = KnownRate(amounts().Draw(t, "link")), KnownRate(amounts().Draw(t, "disk"))
		}
		return tr
	})
	rapid.Check(t, func(t *rapid.T) {
		inputs := rapid.SliceOfN(transfer, 0, 6).Draw(t, "inputs")
		runtime := rapid.Float64Range(1e-3, 1e6).Draw(t, "runtime")
		y, err := DataIndexMulti(inputs, runtime)
		if err != nil || !(y >= 0) {
			t.Fatalf("y = %v, %v", y, err)
		}
		if shuffled, _ := DataIndexMulti(rapid.Permutation(inputs).Draw(t, "shuffled"), runtime); !near(y, shuffled) {
			t.Errorf("order matters: %v and %v", y, shuffled)
		}
		if longer, _ := DataIndexMulti(inputs, 2*runtime); longer > y {
			t.Errorf("y grows from %v to %v with the runtime", y, longer)
		}
		if b, err := YBounded(y); err != nil || b < 0 || b > 1 {
			t.Errorf("bounded y = %v, %v", b, err)
		}
	})
}

func TestRankDoesNotDependOnTheOrderOfArrival(t *testing.T) {
	point := rapid.Custom(func(t *rapid.T) Point {
		axis := rapid.SampledFrom([]float64{0, 0.5, 1, 2, math.Inf(1), math.NaN(), -1})
		return Point{
			Site: grid.SiteID(rapid.StringMatching(`[a-d]`).Draw(t, "site")),
			X:    axis.Draw(t, "x"), Y: axis.Draw(t, "y"), Z: axis.Draw(t, "z"),
			Infeasible: rapid.Bool().Draw(t, "infeasible"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		points := rapid.SliceOfN(point, 0, 20).Draw(t, "points")
		a := Rank(points, 0)
		if b := Rank(rapid.Permutation(points).Draw(t, "shuffled"), 0); !slices.Equal(a, b) {
			t.Fatalf("%v and %v", a, b)
		}
		if !slices.IsSortedFunc(a, func(x, y Ranked) int { return sign(x.Distance - y.Distance) }) {
			t.Errorf("not ascending: %v", a)
		}
		limit := rapid.IntRange(1, 25).Draw(t, "limit")
		if head := Rank(points, limit); !slices.Equal(head, a[:min(limit, len(a))]) {
			t.Errorf("limit %d: %v is not the head of %v", limit, head, a)
		}
	})
}

func sign(v float64) int {
	switch {
	case v < 0:
		return -1
	case v > 0:
		return 1
	default:
		return 0
	}
}

func offer(site grid.SiteID, id uint64, x, y, z, d float64) grid.Offer {
	return grid.Offer{Site: site, ID: id, Parts: grid.Parts{X: x, Y: y, Z: z, Distance: d}}
}

func TestRankOffers(t *testing.T) {
	offers := []grid.Offer{
		offer("far", 1, 0, 0, 0, 9), offer("nan", 1, 0, 0, 0, math.NaN()), offer("inf", 1, 0, math.Inf(1), 0, math.Inf(1)),
		offer("b", 1, 1, 0, 0, 1), offer("a", 2, 1, 0, 0, 1), offer("a", 1, 1, 0, 0, 1),
		offer("z", 1, 0, 0, 1, 1), offer("y", 1, 0, 1, 0, 1),
	}
	before := slices.Clone(offers)
	type key struct {
		site grid.SiteID
		id   uint64
	}
	var got []key
	for _, o := range RankOffers(offers) {
		got = append(got, key{o.Site, o.ID})
	}
	want := []key{{"a", 1}, {"a", 2}, {"b", 1}, {"y", 1}, {"z", 1}, {"far", 1}}
	if !slices.Equal(got, want) {
		t.Errorf("RankOffers = %v, want %v", got, want)
	}
	for i := range offers {
		if offers[i].Site != before[i].Site {
			t.Fatal("RankOffers changed its argument")
		}
	}
}

func TestSoftMin(t *testing.T) {
	ranked := []grid.Offer{offer("a", 1, 1, 0, 0, 1), offer("b", 1, 1, 0, 0, 1.1), offer("c", 1, 1, 0, 0, 50)}
	counts := make([]int, 3)
	const draws = 10_000
	for i := range draws {
		counts[SoftMin(ranked, 3, float64(i)/draws)]++
	}
	share := 1 / (1 + math.Exp(-1)) // the first against the second, one scale further
	if got := float64(counts[0]) / draws; math.Abs(got-share) > 0.001 || counts[2] != 0 {
		t.Errorf("counts = %v, want a share of %.3f for the first and none for the last", counts, share)
	}
	for _, c := range []struct {
		ranked  []grid.Offer
		count   int
		uniform float64
		want    int
	}{
		{nil, 3, 0.5, -1},
		{ranked, 1, 0.99, 0},
		{ranked, 0, 0.99, 0},
		{ranked, 2, math.Nextafter(1, 0), 1},
		{ranked, 9, 0, 0},
		{ranked, 3, math.NaN(), 2},
		{[]grid.Offer{offer("a", 1, 0, 0, 0, 0), offer("b", 1, 0, 0, 0, 1)}, 2, 0.99, 0},
		{[]grid.Offer{offer("a", 1, 0, 0, 0, 0), offer("b", 1, 0, 0, 0, 0)}, 2, 0.5, 1},
	} {
		if got := SoftMin(c.ranked, c.count, c.uniform); got != c.want {
			t.Errorf("SoftMin(%d offers, %d, %v) = %d, want %d", len(c.ranked), c.count, c.uniform, got, c.want)
		}
	}
}
