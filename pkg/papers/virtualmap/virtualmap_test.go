package virtualmap

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// near allows a relative error of 1e-9; only an infinity is near an infinity.
func near(a, b float64) bool {
	size := max(math.Abs(a), math.Abs(b))
	return a == b || !math.IsInf(size, 0) && math.Abs(a-b) <= max(1e-12, 1e-9*size)
}

func TestComputationIndexSurvivesExtremeWeights(t *testing.T) {
	half := Dimension{Offered: 1, Required: 2, K: 1e308}
	x, err := ComputationIndex([]Dimension{half, half, half}, ModeWeight, true)
	if err != nil || !near(x, 0.5) {
		t.Errorf("normalised index with weights of 1e308 = %v, %v, want 0.5", x, err)
	}
	for _, k := range []float64{5e-324, math.NaN(), -1, 0} {
		half.K = k
		x, err := ComputationIndex([]Dimension{half}, ModePaper, false)
		if !errors.Is(err, argument.ErrInvalid) {
			t.Errorf("K = %v in paper mode: %v, %v, want argument.ErrInvalid", k, x, err)
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
	for i, err := range []error{eNaNLink, eDisk, eRuntime, eMulti, eBounded} {
		if !errors.Is(err, argument.ErrInvalid) {
			t.Errorf("case %d: error = %v, want argument.ErrInvalid", i, err)
		}
	}
}

func amounts() *rapid.Generator[float64] {
	return rapid.OneOf(rapid.Float64Range(0, 1e12),
		rapid.SampledFrom([]float64{0, 1, 1e-300, 1e300, math.Inf(1)}))
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
		return Dimension{
			amounts().Draw(t, "f"), amounts().Draw(t, "g"), rapid.Float64Range(0, 10).Draw(t, "K"),
		}
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
		shuffled, _ := DataIndexMulti(rapid.Permutation(inputs).Draw(t, "shuffled"), runtime)
		if !near(y, shuffled) {
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
		if !slices.IsSortedFunc(a, func(x, y Ranked) int { return cmp.Compare(x.Distance, y.Distance) }) {
			t.Errorf("not ascending: %v", a)
		}
		limit := rapid.IntRange(1, 25).Draw(t, "limit")
		if head := Rank(points, limit); !slices.Equal(head, a[:min(limit, len(a))]) {
			t.Errorf("limit %d: %v is not the head of %v", limit, head, a)
		}
	})
}
