package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWeekly(t *testing.T) {
	t.Parallel()
	const h = time.Hour
	for text, want := range map[string][]Weekly{
		"":                                   nil,
		"mon 09:00-18:00":                    {{9 * h, 18 * h}},
		"tue-wed 09:30-24:00":                {{33*h + 30*time.Minute, 48 * h}, {57*h + 30*time.Minute, 72 * h}},
		"fri 22:00-06:00":                    {{118 * h, 126 * h}},
		"sun 22:00-06:00":                    {{166 * h, 6 * h}},
		"sat-mon 08:00-09:00":                {{128 * h, 129 * h}, {152 * h, 153 * h}, {8 * h, 9 * h}},
		" Mon 09:00-10:00, tue 09:00-10:00 ": {{9 * h, 10 * h}, {33 * h, 34 * h}},
	} {
		got, err := parseWeekly(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
		again, err := parseWeekly(showWeekly(got))
		if diff := cmp.Diff(want, again); diff != "" || err != nil {
			t.Errorf("%q written as %q, %v (-want +got):\n%s", text, showWeekly(got), err, diff)
		}
	}
	for _, text := range []string{"mon", "09:00-18:00", "mon 9-18", "mon 09:00", "mon-xyz 09:00-18:00", "mon 09:00-09:00", "mon 25:00-26:00", strings.Repeat("mon-sun 01:00-02:00,", 10)} {
		if got, err := parseWeekly(text); err == nil {
			t.Errorf("%q is taken: %v", text, got)
		}
	}
}
