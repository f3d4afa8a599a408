package supervise

import (
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// What submitters wait beyond a lease is no less than a supervisor may take to freeze.
func TestFreezingKeepsToItsGrace(t *testing.T) {
	if took := checkEvery + freezeWait; took > grid.FreezeGrace {
		t.Errorf("a job is frozen up to %s after its lease, submitters wait for %s",
			took, grid.FreezeGrace)
	}
}
