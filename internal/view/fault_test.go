package view_test

import (
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

func TestFaultsInWords(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) view.Time { return view.At(now.Add(-d)) }
	for want, row := range map[string]view.FaultRow{
		"": {},
		"2 lost leases, last 3h ago; others say 0.4": {
			Index: 2, Shared: .4, Causes: []view.CountedWord{{Word: "lost lease", Count: 2}},
			Last: ago(3*time.Hour + time.Minute),
		},
		"1 wrong result, 2 failures of the site, last 8d ago": {
			Causes: []view.CountedWord{
				{Word: "wrong result", Count: 1}, {Word: "failure of the site", Count: 2},
			}, Last: ago(200 * time.Hour),
		},
		"others say 2.0": {Shared: 2, Says: 3},
		"1 restart, last 0s ago": {
			Causes: []view.CountedWord{{Word: "restart", Count: 1}}, Last: ago(-time.Hour),
		},
		"1 missing output, last 5m ago": {
			Causes: []view.CountedWord{{Word: "missing output", Count: 1}},
			Last:   ago(5 * time.Minute),
		},
	} {
		if got := row.Text(now); got != want || row.IsEmpty() != (want == "") {
			t.Errorf("%+v: %q, empty %t, want %q", row, got, row.IsEmpty(), want)
		}
	}
}
