//go:build e2e

package plan

import (
	"fmt"
	"testing"
)

// TestLongPlay is TestPlay for as long as it takes to meet the rare: 11,000 plays. As they share
// nothing, the processors share them.
func TestLongPlay(t *testing.T) {
	const plays, together = 11_000, 1_000
	for from := uint64(0); from < plays; from += together {
		t.Run(fmt.Sprint("from ", from), func(t *testing.T) {
			t.Parallel()
			play(t, from, from+together, false)
		})
	}
}
