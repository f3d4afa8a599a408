//go:build e2e && unix

package e2e_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// volunteer is a person with a home of their own, on this machine.
type volunteer struct {
	env  []string
	home string
}

// newVolunteer makes a home in which nothing was set but what lets the test share the machine.
func newVolunteer(t *testing.T, dir, name string, settings ...string) volunteer {
	t.Helper()
	v := volunteer{home: filepath.Join(dir, name)}
	run, programs := filepath.Join(v.home, "r"), filepath.Join(dir, "bin")
	for _, made := range []string{run, programs, filepath.Join(v.home, "machine")} {
		if err := os.MkdirAll(made, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for battery, kind := range map[string]string{"AC": "Mains", "BAT0": "Battery"} {
		supply := filepath.Join(v.home, "machine/sys/class/power_supply", battery)
		if err := os.MkdirAll(supply, 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(supply, "type"), kind+"\n")
		writeFile(t, filepath.Join(supply, "online"), "1\n")
	}
	v.env = append([]string{
		"HOME=" + v.home, "XDG_CONFIG_HOME=" + filepath.Join(v.home, ".config"),
		"XDG_STATE_HOME=" + filepath.Join(v.home, ".local/state"), "XDG_RUNTIME_DIR=" + run,
		"PATH=" + programs, // no service manager is asked
		"MRS_PRESET=test", "MRS_LEASE_LENGTH=2s", "MRS_LEASE_MARGIN=500ms",
		"MRS_OWNER_YIELD=false", "MRS_LISTEN=/ip4/127.0.0.1/tcp/0", "LANG=C.UTF-8",
		"MRS_OWNER_ROOT=" + filepath.Join(v.home, "machine"),
	}, settings...)
	return v
}

// output runs a program without a terminal, and gives what it printed.
func (v volunteer) output(t *testing.T, program ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program[0], program[1:]...)
	cmd.Env = v.env
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v %s", program, err, out)
	}
	return strings.TrimSpace(string(out))
}

// awaitStatus waits until the agent answers, and says that.
func (v volunteer) awaitStatus(t *testing.T, part string) {
	t.Helper()
	eventually(t, patience, "the agent of "+v.home+" says "+part, func() bool {
		cmd := exec.CommandContext(t.Context(), bin.siteagent, "status")
		cmd.Env = v.env
		out, err := cmd.Output()
		return err == nil && strings.Contains(string(out), part)
	})
}

// files lists all that is in the home.
func (v volunteer) files(t *testing.T) (all []string) {
	t.Helper()
	err := filepath.WalkDir(v.home, func(path string, _ fs.DirEntry, err error) error {
		all = append(all, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestWalk80x24 walks where a volunteer walks, on terminals of the usual size: join with its
// questions, share, look, pause, submit, read a log, cancel, and leave. With MRS_WALK_SCREENS the
// screens are kept in the folder that it names.
func TestWalk80x24(t *testing.T) {
	dir, err := os.MkdirTemp(bin.dir, "w") //nolint:usetesting // sockets need short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	anna := newVolunteer(t, dir, "anna", "MRS_CEILINGS_CPUS=2", "MRS_CEILINGS_MEMORY=1GiB",
		"MRS_CEILINGS_DISK=1GiB", "MRS_CEILINGS_GFLOPS=8")
	anna.output(t, bin.siteagent, "init", "--name", "anna")
	openTerminal(t, "anna", anna.env, bin.siteagent, "run")
	anna.awaitStatus(t, "in domain home")
	token := anna.output(t, bin.siteagent, "invite")
	ben := newVolunteer(t, dir, "ben")
	before := ben.files(t)

	walkJoin(t, ben, token)
	agent := openTerminal(t, "run", ben.env, bin.siteagent, "run")
	ben.awaitStatus(t, "1 connected")
	agent.keep("started")
	walkStatus(t, ben)
	walkSiteTop(t, ben)
	walkSubmit(t, ben)
	walkJobsTop(t, ben)
	walkLeave(t, ben)
	agent.wantEnd(0) // what it writes is a log, whose lines may be long
	agent.keep("ended")
	if after := ben.files(t); !slices.Equal(before, after) {
		t.Errorf("after leaving there is %q, before there was %q", after, before)
	}
}

func walkJoin(t *testing.T, v volunteer, token string) {
	t.Helper()
	w := openTerminal(t, "join", v.env, bin.siteagent, "join", "--name", "cellar", token)
	w.see(`How much may jobs of others use`)
	w.answer("50%")
	w.see(`When\? always`)
	w.answer("always")
	w.see(`Also while it runs on battery`)
	w.keep("questions")
	w.answer("yes")
	w.see(`my offers arrive: yes`)
	w.keep("joined")
	w.wantEnd(0)
	w.wantNarrow()
}

func walkStatus(t *testing.T, v volunteer) {
	t.Helper()
	w := openTerminal(t, "status", v.env, bin.siteagent, "status")
	w.wantEnd(0)
	w.keep("status")
	w.see(`^site +cellar, in domain home`)
	w.wantNarrow()
}

// walkSiteTop pauses and resumes by keys, and makes the window smaller and larger again.
func walkSiteTop(t *testing.T, v volunteer) {
	t.Helper()
	w := openTerminal(t, "top", v.env, bin.siteagent, "top")
	w.see(`^sharing yes$`)
	title := `cellar in domain home, [\d:]{8}`
	w.wantDrawn(usualSize, title, `p pause  s snooze  l leave  enter details  \? help  q quit`)
	w.press("p")
	w.see(`^sharing no: paused; siteagent resume ends that$`)
	w.see(`^paused; p resumes$`)
	v.wantSharing(t, "no: paused")
	const keys = `p resume  s snooze  l leave  enter details  \? help  q quit`
	w.wantDrawn(usualSize, title, keys)
	w.wantDrawn(halfSize, title, keys)
	w.wantDrawn(tinySize, `cellar in domain ho…`, `\? help  q quit`)
	w.see(`^sharing no: paused;\nsiteagent resume\nends that$`)
	w.press("?")
	w.see(`^p +pause:$`)
	w.see(`^window is too small$`)
	w.press("?")
	w.wantDrawn(usualSize, title, keys)
	w.press("p")
	w.see(`^sharing yes$`)
	w.see(`^resumed$`)
	v.wantSharing(t, "yes")
	w.press("q")
	w.wantEnd(0)
}

// wantSharing wants the agent to say whether it shares.
func (v volunteer) wantSharing(t *testing.T, want string) {
	t.Helper()
	first, _, _ := strings.Cut(v.output(t, bin.siteagent, "status"), "\n")
	said := strings.TrimSpace(strings.TrimPrefix(first, "sharing"))
	if !strings.HasPrefix(said, want) {
		t.Errorf("the agent says %q, want %q", first, want)
	}
}

func walkSubmit(t *testing.T, v volunteer) {
	t.Helper()
	w := openTerminal(t, "submit", v.env, bin.submit, "run", "--wasm", bin.guest,
		"--name", "letters", "--", "print=hello")
	w.wantEnd(0)
	w.keep("run")
	w.see(`^hello$`)
	w.wantNarrow()
	w = openTerminal(t, "map", v.env, bin.submit, "map", "--wasm", bin.guest, "--", "print={}",
		":::", "one", "two", "three")
	w.wantEnd(0)
	w.keep("map")
	w.see(`^three$`)
	w.wantNarrow()
}

// walkJobsTop reads the log of a job and cancels it, by keys.
func walkJobsTop(t *testing.T, v volunteer) {
	t.Helper()
	v.output(t, bin.submit, "run", "-d", "--parsable", "--wasm", bin.guest, "--name", "ticking",
		"--", "ticks=6000")
	w := openTerminal(t, "jobs", v.env, bin.submit, "top")
	w.see(`^> ticking +running`)
	w.wantDrawn(usualSize, `3 jobs, 1 open, [\d:]{8}`,
		`enter tasks  l logs  c cancel  / filter  \? help  q quit`)
	w.press("l")
	w.see(`^tick 3$`)
	w.wantDrawn(usualSize, `stdout of task \w{16}\.0, running`, `tab other stream  \? help  q quit`)
	w.press("\x1b")
	w.see(`^> ticking +running`)
	w.press("\r")
	w.see(`^TASKS 0 TO 0 OF 1$`)
	const title, keys = `job ticking, \w{16}`, `l logs  c cancel  \? help  q quit`
	w.wantDrawn(usualSize, title, keys)
	w.wantDrawn(halfSize, title, keys)
	w.see(`0 failed$`) // the counts are not cut
	w.wantDrawn(tinySize, `job ticking, \w{6}…`, `\? help  q quit`)
	w.see(`^0 % running$`)
	w.see(`^window is too small$`)
	w.wantDrawn(usualSize, title, keys)
	w.press("c")
	w.see(`^\(y/n\) Cancel job ticking\?$`)
	w.wantDrawn(usualSize, title, `y yes  n no`)
	w.press("y")
	w.see(`^job ticking cancelled$`)
	w.wantDrawn(usualSize, title, keys)
	if list := v.output(t, bin.submit, "list"); !strings.Contains(list, "cancelled") {
		t.Errorf("the agent lists %s", list)
	}
	w.press("q")
	w.wantEnd(0)
}

func walkLeave(t *testing.T, v volunteer) {
	t.Helper()
	w := openTerminal(t, "leave", v.env, bin.siteagent, "leave", "--purge")
	w.see(`Remove it for good\?`)
	w.keep("question")
	w.answer("yes")
	w.see(`removed what was made for this site`)
	w.wantEnd(0)
	w.keep("left")
	w.wantNarrow()
}
