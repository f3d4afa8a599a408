package sim

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The queue gives events in the order of a list that is sorted each time; those of one time as
// they were put in.
func TestQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q eventQueue
		var list []event
		sequence := uint64(0)
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			if len(list) > 0 && rapid.Bool().Draw(t, "takes") {
				slices.SortStableFunc(list, func(a, b event) int { return int(a.at - b.at) })
				want := list[0]
				list = list[1:]
				if got := q.pop(); got.at != want.at || got.sequence != want.sequence {
					t.Fatalf("event %d at %d, want %d at %d", got.sequence, got.at, want.sequence, want.at)
				}
				continue
			}
			sequence++
			e := event{at: time.Duration(rapid.IntRange(0, 20).Draw(t, "at")), sequence: sequence}
			q.push(e)
			list = append(list, e)
		}
		if len(q) != len(list) {
			t.Fatalf("%d events are left, want %d", len(q), len(list))
		}
	})
}
