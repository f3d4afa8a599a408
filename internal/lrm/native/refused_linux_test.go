//go:build amd64 || arm64

package native_test

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
	"github.com/mrsmesh/mrsmesh/internal/lrm/lrmtest"
)

// The kernel refuses a command each system call that is not on the list, as the list says: also
// those that are newer than it, and on this machine perhaps there.
func TestTheKernelRefusesWhatTheListDoes(t *testing.T) {
	for _, way := range bubblewrapWays() {
		t.Run(way, func(t *testing.T) {
			adapter := need(t, way)
			t.Parallel()
			refused, err := adapter.Refused(600)
			if err != nil || len(refused) < 200 || refused[unix.SYS_UNSHARE] != unix.EPERM {
				t.Fatalf("%d refused, %v", len(refused), err)
			}
			if runtime.GOARCH == "amd64" {
				// The kernel asks no filter about uprobe, which fails unless the kernel itself has
				// put it into a program that is traced.
				delete(refused, 336)
			}
			args, want := []string{guestPath, "calls"}, ""
			for _, number := range slices.Sorted(maps.Keys(refused)) {
				args = append(args, fmt.Sprint(number))
				want += fmt.Sprintln(number, int(refused[number]))
			}
			a := attempt(t, args...)
			a.Inputs = []lrm.Bind{{SandboxPath: guestPath, HostPath: guest}}
			r := lrmtest.Wait(t, lrmtest.Start(t, adapter, a))
			got := strings.Split(lrmtest.Text(t, r.Stdout), "\n")
			for i, line := range strings.Split(want, "\n") {
				if i >= len(got) || got[i] != line {
					t.Fatalf("number and error %q, want %q; stderr %q, exit %+v",
						got[min(i, len(got)-1)], line, lrmtest.Text(t, r.Stderr), r.Exit)
				}
			}
		})
	}
}
