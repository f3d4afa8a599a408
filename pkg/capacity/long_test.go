//go:build e2e

package capacity

import "testing"

// TestLongPlay is the game of TestPlay for as long as it takes to meet the rare.
func TestLongPlay(t *testing.T) { play(t, 1_000_000, 400) }
