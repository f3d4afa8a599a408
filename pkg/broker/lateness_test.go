package broker

import (
	"testing"
	"time"
)

// What was late is said in a sentence: the beginning, the end, and whether the estimate was wrong.
func TestLateness(t *testing.T) {
	const estimate = 10 * time.Second
	for want, c := range map[string]struct {
		pledge pledge
		ran    time.Duration
	}{
		"":                            {},
		beganLate(5 * time.Second):    {pledge{startLate: 5 * time.Second}, time.Minute},
		"ended 3s after its deadline": {pledge{endLate: 3 * time.Second}, estimate},
		"ended 3s after its deadline; it ran for 11s, and 10s were estimated": {
			pledge{endLate: 3 * time.Second}, 11 * time.Second,
		},
		beganLate(5*time.Second) + ", ended 3s after its deadline": {
			pledge{startLate: 5 * time.Second, endLate: 3 * time.Second}, estimate,
		},
	} {
		if got := c.pledge.lateness(c.ran, estimate); got != want {
			t.Errorf("%+v: %q, want %q", c.pledge, got, want)
		}
	}
}
