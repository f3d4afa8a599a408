package index

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mrsmesh/mrsmesh/pkg/argument"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// "send reservation requests to the top three sites ... Using the returned start
// time all accepted requests can be compared based on the shortest expected delay
// ... All other reservations are cancelled" (Migol, 6.2.1).
func TestPaperShortestExpectedDelay(t *testing.T) {
	candidates := []Reservation{
		{"never asked", 4, true, 0, 0, 0},
		{"starts first", 3, true, 1, 50, 10},
		{"ends first", 2, true, 9, 5, 10},
		{"rejects", 1, false, 0, 0, 0},
	}
	for mode, want := range map[DelayMode]Choice{
		DelayFixed: {"ends first", 19, 3, []grid.SiteID{"starts first"}},
		DelayPaper: {"starts first", 60, 3, []grid.SiteID{"ends first"}},
	} {
		got, ok, err := ShortestExpectedDelay(candidates, DefaultReservations, mode)
		if diff := cmp.Diff(want, got); !ok || err != nil || diff != "" {
			t.Errorf("mode %d: %v, %v, %s", mode, ok, err, diff)
		}
	}
	if got, ok, err := ShortestExpectedDelay(candidates, 1, DelayFixed); ok || err != nil {
		t.Errorf("the only one asked rejects: %+v, %v", got, err)
	}
}

func TestShortestExpectedDelayRefuses(t *testing.T) {
	for i, c := range []Reservation{
		{Rank: math.NaN()}, {StartSeconds: -1}, {TransferSeconds: -1}, {RuntimeSeconds: math.NaN()},
	} {
		_, _, err := ShortestExpectedDelay([]Reservation{{}, c}, 1, DelayFixed)
		if !errors.Is(err, argument.ErrInvalid) {
			t.Errorf("case %d: error = %v, want argument.ErrInvalid", i, err)
		}
	}
	for _, args := range [][2]int{{-1, 0}, {1, 2}} {
		_, _, err := ShortestExpectedDelay(nil, args[0], DelayMode(args[1]))
		if !errors.Is(err, argument.ErrInvalid) {
			t.Errorf("%v: error = %v, want argument.ErrInvalid", args, err)
		}
	}
}

func TestShortestExpectedDelayProperties(t *testing.T) {
	reservation := rapid.Custom(func(t *rapid.T) Reservation {
		return Reservation{
			grid.SiteID(rapid.StringMatching(`[a-z]{4}`).Draw(t, "site")),
			float64(rapid.IntRange(0, 3).Draw(t, "rank")), rapid.Bool().Draw(t, "accepted"),
			amounts().Draw(t, "start"), amounts().Draw(t, "transfer"), amounts().Draw(t, "runtime"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		candidates := rapid.SliceOfNDistinct(reservation, 0, 8, func(r Reservation) grid.SiteID {
			return r.Site
		}).Draw(t, "candidates")
		top := rapid.IntRange(0, 9).Draw(t, "top")
		mode := rapid.SampledFrom([]DelayMode{DelayFixed, DelayPaper}).Draw(t, "mode")
		got, ok, err := ShortestExpectedDelay(candidates, top, mode)
		if err != nil || got.Asked > top || !(got.FinishSeconds >= 0) {
			t.Fatalf("%+v, %v", got, err)
		}
		shuffled, _, _ := ShortestExpectedDelay(rapid.Permutation(candidates).Draw(t, "shuffled"),
			top, mode)
		if diff := cmp.Diff(got, shuffled); diff != "" {
			t.Errorf("order of arrival matters: %s", diff)
		}
		if ok && mode == DelayFixed { // no site that was asked would end earlier
			for _, c := range candidates {
				if slices.Contains(got.Cancel, c.Site) && c.finish() < got.FinishSeconds {
					t.Errorf("%+v, yet %+v ends earlier", got, c)
				}
			}
		}
	})
}

func amounts() *rapid.Generator[float64] {
	return rapid.OneOf(rapid.Float64Range(0, 1e12),
		rapid.SampledFrom([]float64{0, 1, 1e-300, 1e300, math.Inf(1)}))
}
