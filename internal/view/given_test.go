package view

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Days before the first one do not count, own jobs are last and not in the sum, and the newest
// name is the one that counts.
func TestSumGiven(t *testing.T) {
	t.Parallel()
	days := []GivenDay{
		{Date: "2026-03-01", For: []GivenShare{{Site: "lab", Name: "old", CoreSeconds: 100}}},
		{Date: "2026-03-02", For: []GivenShare{
			{Site: "me", Own: true, CoreSeconds: 50, Tasks: 5},
			{Site: "ada", Name: "ada", CoreSeconds: 2, Tasks: 1},
			{Site: "lab", Name: "lab", CoreSeconds: 1},
		}},
		{Date: "2026-03-03", For: []GivenShare{{Site: "lab", CoreSeconds: 2, Tasks: 1}}},
	}
	want := Given{
		Since: "2026-03-02", CoreSeconds: 5, Tasks: 2, Days: days[1:],
		For: []GivenShare{
			{Site: "lab", Name: "lab", CoreSeconds: 3, Tasks: 1},
			{Site: "ada", Name: "ada", CoreSeconds: 2, Tasks: 1},
			{Site: "me", Own: true, CoreSeconds: 50, Tasks: 5},
		},
	}
	if diff := cmp.Diff(want, SumGiven(days, "2026-03-02")); diff != "" {
		t.Error(diff)
	}
	if all := SumGiven(days, ""); all.CoreSeconds != 105 || len(all.Days) != 3 {
		t.Errorf("all: %+v", all)
	}
}

// A week begins on Monday, also across the end of a year.
func TestMonday(t *testing.T) {
	t.Parallel()
	for day := range 7 {
		at := time.Date(2026, time.December, 28+day, 23, 59, 0, 0, time.UTC)
		if got := Monday(at); got != "2026-12-28" {
			t.Errorf("the week of %s begins on %s", at.Format(time.DateOnly), got)
		}
	}
}
