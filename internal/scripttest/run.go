package scripttest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mrsmesh/mrsmesh/internal/localmesh"
)

// Machines says on which machine a user works: the words that stand before a command to
// run it there. A user who is not named works on this one.
type Machines map[string][]string

// Run runs the scripts of a directory, each as a subtest, side by side.
func Run(t *testing.T, dir string) {
	t.Helper()
	RunOn(t, dir, nil)
}

// RunOn is Run with users who have machines of their own.
func RunOn(t *testing.T, dir string, machines Machines) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("agents stop by signals, which Windows does not have")
	}
	place, err := localmesh.MakePlace("mrs-script-")
	if err != nil {
		t.Fatal(err)
	}
	h := &harness{place: place, machines: machines}
	t.Cleanup(func() { // after all scripts
		if h.shared != nil {
			if err := h.shared.Stop(context.Background()); err != nil {
				t.Error(err)
			}
		}
		if err := place.Remove(); err != nil {
			t.Error(err)
		}
	})
	for _, pkg := range programsOf(t, dir) {
		if _, err := place.Build(t.Context(), path.Base(pkg), pkg, nil); err != nil {
			t.Fatal(err)
		}
	}
	testscript.Run(t, testscript.Params{
		Dir: dir, Setup: h.setup, Condition: condition, RequireUniqueNames: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"submit":     program("submit"),
			"siteagent":  program("siteagent"),
			"gridsim":    program("gridsim"),
			"countwords": program("countwords"),
			"exits":      exits,
			"eventually": eventually,
			"mesh":       h.mesh,
			"crash":      crash,
			"module":     module,
			"keep":       keep,
			"like":       like,
			"user":       user,
			"agent":      agent,
			"freeport":   freePort,
			"othertime":  otherTime,
			"terminal":   terminal,
		},
	})
}

// programsOf are the packages of the programs that the scripts of a directory need. The agents are
// always there.
func programsOf(t *testing.T, dir string) []string {
	t.Helper()
	needed := []string{"cmd/siteagent", "cmd/submit"}
	scripts, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	for _, script := range scripts {
		text, err := os.ReadFile(filepath.Join(dir, script.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text...)
	}
	for _, pkg := range []string{"cmd/gridsim", "sdk/examples/countwords"} {
		if bytes.Contains(all, []byte(path.Base(pkg))) {
			needed = append(needed, pkg)
		}
	}
	return needed
}

// harness is shared by the scripts of one run.
type harness struct {
	place    *localmesh.Place // of the programs and the shared mesh
	machines Machines
	once     sync.Once
	shared   *localmesh.Mesh
	failed   error // to start it
}

func (h *harness) setup(env *testscript.Env) error {
	sdk, err := filepath.Abs("../../sdk")
	if err != nil {
		return err
	}
	env.Setenv("SDK", sdk)
	home := filepath.Join(env.WorkDir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		return err
	}
	env.Setenv("HOME", home)
	env.Setenv("XDG_RUNTIME_DIR", home)
	env.Setenv("PATH", h.place.Dir+string(os.PathListSeparator)+env.Getenv("PATH"))
	return makeStage(env, h)
}

// program is a command that runs one of the programs.
func program(name string) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		err := execute(ts, name, args)
		switch {
		case err != nil && !neg:
			ts.Fatalf("%s: %v", name, err)
		case err == nil && neg:
			ts.Fatalf("%s succeeded, want it to fail", name)
		}
	}
}

var bubblewrap = sync.OnceValue(func() bool { //nolint:gochecknoglobals // tried once
	return exec.CommandContext(
		context.Background(), "bwrap", "--unshare-all", "--ro-bind", "/", "/", "true",
	).Run() == nil
})

// snakemake reports whether Snakemake and python are among the programs of the system, which alone
// a sandbox shows, and whether Snakemake can speak TES.
func snakemake() bool {
	for _, program := range []string{"/usr/bin/snakemake", "/usr/bin/python"} {
		if _, err := os.Stat(program); err != nil {
			return false
		}
	}
	imports := exec.CommandContext(context.Background(), "/usr/bin/python3", "-c", "import tes")
	return imports.Run() == nil
}

// onNetwork reports whether this machine has an address that is not its own alone.
func onNetwork() bool {
	addrs, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(addrs, func(a net.Addr) bool {
		n, is := a.(*net.IPNet)
		return is && n.IP.To4() != nil && !n.IP.IsLoopback()
	})
}

func condition(name string) (bool, error) {
	switch name {
	case "bwrap":
		return bubblewrap(), nil
	case "lan":
		return onNetwork(), nil
	case "snakemake":
		return snakemake(), nil
	default:
		return false, fmt.Errorf("unknown condition %q", name)
	}
}
