//go:build e2e

package plan

import "testing"

// TestLongPlay is TestPlay for as long as it takes to meet the rare.
func TestLongPlay(t *testing.T) { play(t, 11_000, false) }
