package index

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// Of two axes that lag the one counts by which the squared distance grows more: a small step
// far out against a larger one near the job.
func TestBehindCountsSquares(t *testing.T) {
	p, nearest := grid.Parts{X: 10, Y: 1.5}, grid.Parts{X: 9.5}
	if got := Behind(p, nearest, grid.Requirement{}).Dimension; got != grid.Computation {
		t.Errorf("worst on %v, want computation: 100 - 90.25 against 2.25", got)
	}
	if got := Behind(nearest, p, grid.Requirement{}); got != (Lag{}) {
		t.Errorf("the nearest lags: %+v", got)
	}
}

// What is no amount is unknown, and counts as nothing.
func TestSaneCoordinates(t *testing.T) {
	for value, known := range map[float64]bool{
		0: true, 2: true, math.MaxFloat64: true, -1: false, math.Inf(1): false, math.Inf(-1): false,
	} {
		want := grid.Coordinate{}
		if known {
			want = grid.Coordinate{Value: value, Known: true}
		}
		if got := sane(grid.Coordinate{Value: value, Known: true}); got != want {
			t.Errorf("sane of %v = %+v, want %+v", value, got, want)
		}
	}
	if got := sane(grid.Coordinate{Value: math.NaN(), Known: true}); got != (grid.Coordinate{}) {
		t.Errorf("sane of no number = %+v", got)
	}
	if got := sane(grid.Coordinate{Value: 3}); got != (grid.Coordinate{}) {
		t.Errorf("sane of what is unknown = %+v", got)
	}
}

func TestRatesOfALink(t *testing.T) {
	for _, c := range []struct{ down, up, want int64 }{
		{0, 0, DefaultLinkBps},
		{-1, -1, DefaultLinkBps},
		{0, 1, 1},
		{1, 0, 1},
		{2, 1, 1},
		{1, 2, 1},
		{5, 7, 5},
		{7, 5, 5},
		{-1, 7, 7},
		{7, -1, 7},
	} {
		if got := linkBps(c.down, c.up); got != c.want {
			t.Errorf("linkBps(%d, %d) = %d, want %d", c.down, c.up, got, c.want)
		}
	}
}

// Those that are called off come in the order of their names.
func TestShortestExpectedDelayCancelsInOrder(t *testing.T) {
	var asked []Reservation
	for i, site := range []grid.SiteID{"d", "b", "c", "a"} {
		asked = append(asked, Reservation{
			Site: site, Rank: float64(i), Accepted: true, StartSeconds: float64(i), RuntimeSeconds: 1,
		})
	}
	choice, ok, err := ShortestExpectedDelay(asked, len(asked), DelayFixed)
	if err != nil || !ok || choice.Site != "d" ||
		!slices.Equal(choice.Cancel, []grid.SiteID{"a", "b", "c"}) {
		t.Errorf("%+v, %t, %v", choice, ok, err)
	}
}

func TestSpanIsBounded(t *testing.T) {
	for seconds, want := range map[float64]time.Duration{
		0: 0, 1.5: 1500 * time.Millisecond, maxSpan.Seconds(): maxSpan, math.Inf(1): maxSpan,
	} {
		if got := span(seconds); got != want {
			t.Errorf("span(%v) = %v, want %v", seconds, got, want)
		}
	}
}
