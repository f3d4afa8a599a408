//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/lrm/scratch"
)

// mountingEnv names the variable by which this program runs a test where it may mount, with the
// directory of the programs that are built.
const mountingEnv = "MRS_E2E_MOUNTING"

var skipped = regexp.MustCompile(`(?m)^--- SKIP: `)

// mayMount runs the caller, a test that mounts, once more where an ordinary user may do that: in
// a mount namespace of its own. It reports whether the caller itself is to go on, as root does.
func mayMount(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() == 0 || os.Getenv(mountingEnv) != "" {
		return true
	}
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	again.Env = append(os.Environ(), mountingEnv+"="+bin.dir)
	said, err := again.CombinedOutput()
	switch {
	case err != nil:
		t.Errorf("where it may mount: %v\n%s", err, said)
	case skipped.Match(said):
		t.Skipf("neither here nor in a mount namespace of its own:\n%s", said)
	case !strings.Contains(string(said), "--- PASS: "+t.Name()):
		t.Errorf("where it may mount it says no end:\n%s", said)
	default:
	}
	return false
}

// enterMounting goes where an ordinary user may mount, if it was started for that. It returns the
// directory of the programs that are built.
func enterMounting() (dir string, entered bool) {
	if len(os.Args) > 2 && os.Args[1] == scratch.Arg {
		os.Exit(scratch.Trial(os.Args[2]))
	}
	dir = os.Getenv(mountingEnv)
	if dir == "" {
		return "", false
	}
	trial := []string{os.Args[0], scratch.Arg}
	if err := scratch.Enter(context.Background(), os.TempDir(), trial); err != nil {
		fmt.Println("it may mount nowhere:", err) // the tests that want to skip
	}
	return dir, true
}
