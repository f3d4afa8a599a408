package workload

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Each speed comes as often as there are hosts with it.
func TestSpeedsAreSampled(t *testing.T) {
	table, err := ReadSpeeds(lines("# hosts, GFLOPS\n\n1,10\r\n0,99\n 6,0.5 \n3,2e1"))
	if err != nil {
		t.Fatal(err)
	}
	const n = 100_000
	count := map[float64]int{}
	for _, speed := range table.Sample(Stream(1, "x"), n) {
		count[speed]++
	}
	for speed, share := range map[float64]float64{10: 0.1, 0.5: 0.6, 20: 0.3} {
		if got := float64(count[speed]) / n; math.Abs(got-share) > 0.006 {
			t.Errorf("speed %v: %.4f of the hosts, want %v", speed, got, share)
		}
	}
	if len(count) != 3 {
		t.Errorf("speeds %v", count)
	}
	if !slices.Equal(table.Sample(Stream(7, "x"), 9), table.Sample(Stream(7, "x"), 9)) {
		t.Error("the same stream gives other speeds")
	}
}

func TestReadSpeedsRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":           "not a table of speeds: no hosts in 1 lines",
		"# x\n0,1\n": "no hosts in 3 lines",
		"1,2\n5": "line 2: not a table of speeds: want a number of hosts, a comma, and a " +
			`positive speed, have "5"`,
		"5,x":          "line 1: ",
		"x,5":          "line 1: ",
		"-1,5":         "line 1: ",
		"1,0":          "line 1: ",
		"1,-3":         "line 1: ",
		"1,NaN":        "line 1: ",
		"1,Inf":        "line 1: ",
		"1,2,3":        "line 1: ",
		"4294967296,1": "line 1: ",
	} {
		table, err := ReadSpeeds(lines(text))
		if !errors.Is(err, errSpeeds) || !strings.Contains(err.Error(), want) || table.values != nil {
			t.Errorf("%q: error = %v, want %q", text, err, want)
		}
	}
	if _, err := ReadSpeeds(lines("4294967295,1")); err != nil {
		t.Error(err)
	}
}

// The same seed gives the same speeds and rates.
func TestSpeedsAndRatesRepeat(t *testing.T) {
	table, err := ReadSpeeds(lines("1,10\n6,0.5\n3,2e1"))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "hosts.txt", fmt.Sprintf("%v\n%.9g\n", table.Sample(Stream(1, "x"), 20),
		Rates(Stream(1, "y"), 3, Law{LogNormal, 10, 0.7}, 100)))
}

// FuzzReadSpeeds: whatever the bytes, a table gives positive speeds.
func FuzzReadSpeeds(f *testing.F) {
	f.Add("3,4.5\n#\n2,1e-3")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := ReadSpeeds(lines(text))
		if err != nil {
			return
		}
		for _, speed := range table.Sample(Stream(1, "x"), 10) {
			if !(speed > 0) {
				t.Fatalf("speed %v", speed)
			}
		}
	})
}

// Each ordered pair of sites has a rate of its own, and each site that of a local copy.
func TestRates(t *testing.T) {
	law := Law{LogNormal, 10, 0.7}
	rapid.Check(t, func(t *rapid.T) {
		sites := rapid.IntRange(0, 8).Draw(t, "sites")
		rates := Rates(Stream(rapid.Uint64().Draw(t, "seed"), "x"), sites, law, 100)
		seen := map[float64]bool{}
		for from, row := range rates {
			for to, rate := range row {
				if from == to && rate != 100 || from != to && (seen[rate] || !(rate > 0)) {
					t.Fatalf("from %d to %d: %v in %v", from, to, rate, rates)
				}
				seen[rate] = true
			}
			if len(row) != sites {
				t.Fatalf("row %v of %d sites", row, sites)
			}
		}
		if len(rates) != sites {
			t.Fatalf("%d rows of %d sites", len(rates), sites)
		}
	})
	var lns []float64
	for from, row := range Rates(Stream(1, "x"), 200, law, 100) {
		for to, rate := range row {
			if from != to {
				lns = append(lns, rate)
			}
		}
	}
	fitted, err := Fit(LogNormal, lns)
	if err != nil || math.Abs(fitted.Scale-10) > 0.15 || math.Abs(fitted.Shape-0.7) > 0.015 {
		t.Errorf("rates are of %+v, %v, want %+v", fitted, err, law)
	}
}
