//go:build e2e

package p2p

import (
	"testing"
	"time"
)

// TestScoresCutAFloodAmongThirtySites takes a quarter of a minute of computation,
// too much for every day.
func TestScoresCutAFloodAmongThirtySites(t *testing.T) { cutsAFlood(t, 30, 10*time.Second) }
