package native_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/lrmtest"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// A command that hides what it writes, in files without a name that wait in a socket or are mapped,
// takes no more than its disk all the same, and is told to have wanted more.
func TestTheKernelHoldsWhatIsHidden(t *testing.T) {
	t.Parallel()
	adapter := need(t, withBubblewrap)
	if !adapter.Probe(t.Context()).InMemory {
		t.Skip("the kernel cannot hold what commands write here")
	}
	a := lrmtest.NewAttempt(t, t.TempDir(), 1, guestPath, "hide")
	a.Inputs = []lrm.Bind{{SandboxPath: guestPath, HostPath: guest}}
	r := lrmtest.Wait(t, lrmtest.Start(t, adapter, a))
	if r.Exit.Cause != grid.CauseDisk {
		t.Errorf("exit %+v, want too much of the disk", r.Exit)
	}
	hidden, err := strconv.ParseInt(strings.TrimSpace(lrmtest.Text(t, r.Stdout)), 10, 64)
	if most := a.Limits.DiskBytes; err != nil || hidden < most/2 || hidden > most+most/20 {
		t.Errorf("hid %d bytes, %v, of %d that it may write", hidden, err, most)
	}
}
