//go:build e2e

package data

import (
	"testing"
	"time"
)

// The whole GiB, of which a hundredth changes in pages here and there.
func TestAGibibyteThatChangesALittle(t *testing.T) {
	begun := time.Now()
	share := stateMoves(t, 1<<30, changes()["pages here and there"])
	t.Logf("%.2f %% has moved, in %s for adding and fetching twice", 100*share, time.Since(begun))
	if share > .05 {
		t.Errorf("a change by 1 %% has moved %.2f %%, want less than 5", 100*share)
	}
}
