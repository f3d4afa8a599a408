package virtualmap

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strings"
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
	for k, says := range map[float64]string{
		5e-324: "inverse overflows", math.NaN(): "factor K NaN", -1: "factor K -1", 0: "factor K 0",
	} {
		half.K = k
		x, err := ComputationIndex([]Dimension{half}, ModePaper, false)
		if !errors.Is(err, argument.ErrInvalid) || !strings.Contains(err.Error(), says) {
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

// Who reads a number beside an error reads 0.
func TestNothingStandsBesideAnError(t *testing.T) {
	nan := math.NaN()
	x := func(d Dimension, mode Mode) func() (float64, error) {
		return func() (float64, error) { return ComputationIndex([]Dimension{d}, mode, false) }
	}
	for name, f := range map[string]func() (float64, error){
		"ratio":        func() (float64, error) { return ProvisionRatio(nan, 1) },
		"runtime":      func() (float64, error) { return DataIndex(Transfer{}, 0) },
		"no runtime":   func() (float64, error) { return DataIndexMulti(nil, 0) },
		"an input":     func() (float64, error) { return DataIndexMulti([]Transfer{{Bytes: nan}}, 1) },
		"y":            func() (float64, error) { return YBounded(-1) },
		"no such mode": x(Dimension{}, 2),
		"factor":       x(Dimension{}, ModePaper),
		"offered":      x(Dimension{nan, 1, 1}, ModeWeight),
		"tiny factor":  x(Dimension{1, 1, 5e-324}, ModePaper),
	} {
		if v, err := f(); v != 0 || !errors.Is(err, argument.ErrInvalid) {
			t.Errorf("%s: %v beside %v", name, v, err)
		}
	}
	if w, err := (Dimension{K: -1}).weight(ModePaper); w != 0 || err == nil {
		t.Errorf("weight: %v beside %v", w, err)
	}
	if rate, err := EffectiveBandwidth(KnownRate(nan), KnownRate(1)); rate != (Rate{}) || err == nil {
		t.Errorf("bandwidth: %v beside %v", rate, err)
	}
}

// What flows is limited by the receiver's download and by the holder's upload; who does not
// know one of them knows nothing of it.
func TestBandwidthIsThatOfTheSlowerEnd(t *testing.T) {
	unknown := Rate{}
	for _, c := range []struct{ down, up, want Rate }{
		{KnownRate(3), KnownRate(5), KnownRate(3)},
		{KnownRate(5), KnownRate(3), KnownRate(3)},
		{KnownRate(0), KnownRate(3), KnownRate(0)},
		{KnownRate(math.Inf(1)), KnownRate(3), KnownRate(3)},
		{unknown, KnownRate(3), unknown},
		{KnownRate(3), unknown, unknown},
		{unknown, unknown, unknown},
	} {
		if got, err := EffectiveBandwidth(c.down, c.up); got != c.want || err != nil {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
	}
	_, err := EffectiveBandwidth(KnownRate(1), KnownRate(-1))
	if !errors.Is(err, argument.ErrInvalid) {
		t.Errorf("an upload below 0: %v", err)
	}
}

// Equation (1) as printed divides by K, so that a K below 1 amplifies; normalised, the index of
// a site that gives nothing is 1.
func TestFactorsAsPrintedDivide(t *testing.T) {
	for k, want := range map[float64]float64{0.25: 2, 0.5: math.Sqrt2, 1: 1, 4: 0.5} {
		dims := []Dimension{{Offered: 0, Required: 8, K: k}}
		if x, err := ComputationIndex(dims, ModePaper, false); err != nil || !near(x, want) {
			t.Errorf("K = %v: %v, %v, want %v", k, x, err, want)
		}
		if x, err := ComputationIndex(dims, ModePaper, true); err != nil || !near(x, 1) {
			t.Errorf("K = %v, normalised: %v, %v", k, x, err)
		}
	}
	mixed := []Dimension{{Offered: 4, Required: 8, K: 1}, {Offered: 0, Required: 8, K: 2}}
	if x, err := ComputationIndex(mixed, ModePaper, true); err != nil || !near(x, math.Sqrt(.75/1.5)) {
		t.Errorf("half of one and none of another: %v, %v", x, err)
	}
	if x, err := ComputationIndex(mixed, ModeWeight, true); err != nil || !near(x, math.Sqrt(2.25/3)) {
		t.Errorf("weighted: %v, %v", x, err)
	}
}

// Equation (2): bytes are eight bits each, nothing takes no time, what is local takes the
// disk's, and what cannot come takes forever.
func TestTheDataIndexOfEachKindOfInput(t *testing.T) {
	inf := math.Inf(1)
	for name, c := range map[string]struct {
		input Transfer
		want  float64
	}{
		"remote":               {Transfer{Bytes: 50, Link: KnownRate(10)}, 4},
		"slow":                 {Transfer{Bytes: 50, Link: KnownRate(1)}, 40},
		"nothing":              {Transfer{}, 0},
		"nothing, no link":     {Transfer{Link: KnownRate(0)}, 0},
		"little":               {Transfer{Bytes: 1, Link: KnownRate(8)}, 0.1},
		"local":                {Transfer{Bytes: 50, Local: true, Link: KnownRate(1)}, 0},
		"local, known disk":    {Transfer{Bytes: 50, Local: true, Disk: KnownRate(20)}, 2},
		"remote, own disk":     {Transfer{Bytes: 50, Link: KnownRate(10), Disk: KnownRate(1)}, 4},
		"link unknown":         {Transfer{Bytes: 1}, inf},
		"link down":            {Transfer{Bytes: 1, Link: KnownRate(0)}, inf},
		"endless":              {Transfer{Bytes: inf, Link: KnownRate(inf)}, inf},
		"endless link":         {Transfer{Bytes: 50, Link: KnownRate(inf)}, 0},
		"endless, local":       {Transfer{Bytes: inf, Local: true}, 0},
		"endless, stuck disk":  {Transfer{Bytes: 1, Local: true, Disk: KnownRate(0)}, inf},
		"endless, known disks": {Transfer{Bytes: inf, Local: true, Disk: KnownRate(1)}, inf},
	} {
		if y, err := DataIndex(c.input, 10); err != nil || y != c.want && !near(y, c.want) {
			t.Errorf("%s: %v, %v, want %v", name, y, err, c.want)
		}
		if y, err := DataIndexMulti([]Transfer{c.input, c.input}, 10); err != nil ||
			y != 2*c.want && !near(y, 2*c.want) {
			t.Errorf("%s, twice: %v, %v, want %v", name, y, err, 2*c.want)
		}
	}
	for y, want := range map[float64]float64{0: 0, 1: 0.5, 3: 0.75, inf: 1} {
		if got, err := YBounded(y); err != nil || got != want {
			t.Errorf("y = %v bounded: %v, %v, want %v", y, got, err, want)
		}
	}
}

// Sites that are equally far stand in the order of risk, data, computation and name; a limit of
// 0 or less keeps all.
func TestTiesInTheRanking(t *testing.T) {
	points := []Point{
		{Site: "b", X: 3, Y: 4},
		{Site: "a", X: 3, Y: 4},
		{Site: "c", X: 4, Y: 3},
		{Site: "d", Z: 5},
		{Site: "e", X: 4, Z: 3},
		{Site: "f", X: 1},
		{Site: "g", X: 1, Infeasible: true},
		{Site: "h", X: math.Inf(1)},
		{Site: "i", X: -1},
	}
	want := []Ranked{{"f", 1}, {"c", 5}, {"a", 5}, {"b", 5}, {"e", 5}, {"d", 5}}
	for limit, n := range map[int]int{-1: 6, 0: 6, 1: 1, 5: 5, 6: 6, 7: 6} {
		if got := Rank(points, limit); !slices.Equal(got, want[:n]) {
			t.Errorf("limit %d: %v, want %v", limit, got, want[:n])
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
