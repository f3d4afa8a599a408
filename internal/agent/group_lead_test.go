package agent

import (
	"testing"
	"time"
)

// An owner gets the lead back when it has been there for a second and answers: one whose machine
// has just fallen asleep is connected as well, and would be waited for.
func TestWhoMayHaveTheLeadBack(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	ago := func(ms int) time.Time { return now.Add(-time.Duration(ms) * time.Millisecond) }
	const minute = 60_000
	never := time.Time{}
	for name, c := range map[string]struct {
		since, offered, heard time.Time
		rests, want           bool
	}{
		"it is back":                  {ago(1000), never, ago(200), false, true},
		"it has just come":            {ago(999), never, now, false, false},
		"it was offered it":           {ago(minute), ago(29_999), now, false, false},
		"that was long ago":           {ago(minute), ago(30_000), now, false, true},
		"it sleeps":                   {ago(minute), never, ago(700), false, false},
		"nobody is heard in a rest":   {ago(minute), never, ago(2000), true, true},
		"the group does not know yet": {ago(minute), never, never, false, false},
	} {
		if got := mayReturn(now, c.since, c.offered, c.heard, c.rests); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
