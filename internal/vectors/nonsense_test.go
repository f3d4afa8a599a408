package vectors

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const casesOfNonsense = 12 // of each family

// TestNonsenseIsRefused puts NaN and a negative number in the place of each number
// of a few cases of each family: whatever the result depends on, all of it must be
// checked, and no function may answer.
func TestNonsenseIsRefused(t *testing.T) {
	known := families()
	names, err := filepath.Glob(filepath.Join(filepath.FromSlash(ownDirectory), "*"+extension))
	if err != nil || len(names) == 0 {
		t.Fatalf("no vectors (%v)", err)
	}
	for _, name := range names {
		f := readFile(t, name)
		work := known[f.Family]
		for _, c := range f.Cases[:min(len(f.Cases), casesOfNonsense)] {
			if work == nil || c.Error != "" || f.Family == "rank" { // rank drops what makes no sense
				continue
			}
			t.Run(c.ID, func(t *testing.T) { checkNonsense(t, f.Family, work, c.In) })
		}
	}
}

func checkNonsense(t *testing.T, family string, work family, input []byte) {
	t.Helper()
	var in any
	if err := json.Unmarshal(input, &in); err != nil {
		t.Fatal(err)
	}
	for _, place := range numbers(in, nil) {
		for _, nonsense := range []any{"NaN", -1.5, -2.0} {
			if mayBe(family, place, nonsense) {
				continue
			}
			text, err := json.Marshal(replace(in, place, nonsense))
			if err != nil {
				t.Fatal(err)
			}
			if _, err = work(text); errorName(err) != "invalid_argument" {
				t.Errorf("%v = %v: error %v (input %s)", place, nonsense, err, text)
			}
		}
	}
}

// mayBe says which numbers are exempt: those that may be negative, and those that
// the papers' formulas leave out.
func mayBe(family string, place []string, nonsense any) bool {
	field := place[len(place)-1]
	if len(place) > 1 && (place[0] == "predicted" || place[0] == "actual") {
		field = place[0]
	}
	switch family + "." + field {
	case "error_adjust.predicted", "error_adjust.actual", "capacity_forecast.e_T", "fibr.floor":
		return nonsense != "NaN"
	}
	return family == "potential" && place[0] == "upload_bps" ||
		family == "computation_index" && place[0] == "offer"
}

// numbers returns the paths of the numbers in a JSON value.
func numbers(value any, at []string) [][]string {
	var places [][]string
	switch v := value.(type) {
	case float64:
		return [][]string{at}
	case map[string]any:
		for key, part := range v {
			places = append(places, numbers(part, append(slices.Clone(at), key))...)
		}
	case []any:
		for i, part := range v {
			places = append(places, numbers(part, append(slices.Clone(at), fmt.Sprint(i)))...)
		}
	}
	return places
}

// replace is a copy of a JSON value with another number in a place.
func replace(value any, place []string, with any) any {
	if len(place) == 0 {
		return with
	}
	switch v := value.(type) {
	case map[string]any:
		c := maps.Clone(v)
		c[place[0]] = replace(v[place[0]], place[1:], with)
		return c
	case []any:
		c := slices.Clone(v)
		for i := range c {
			if fmt.Sprint(i) == place[0] {
				c[i] = replace(v[i], place[1:], with)
			}
		}
		return c
	}
	panic("no such place: " + strings.Join(place, "."))
}
