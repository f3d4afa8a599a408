package scripttest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mrsmesh/mrsmesh/internal/freeport"
)

// stageKey finds a script's stage among its values.
type stageKey struct{}

// stage holds what one script has beside its files.
type stage struct {
	*harness
	run    string                   // of sockets: their paths must be short
	agents map[string]*agentProcess // by their user's home
}

// makeStage makes a script's stage, and clears it when the script has ended.
func makeStage(env *testscript.Env, h *harness) error {
	run, err := os.MkdirTemp("", "mrs")
	if err != nil {
		return err
	}
	s := &stage{harness: h, run: run, agents: map[string]*agentProcess{}}
	env.Values[stageKey{}] = s
	env.Defer(func() {
		for _, a := range s.agents {
			a.finish(env.T())
		}
		_ = os.RemoveAll(run) // it was made above
	})
	return nil
}

func stageOf(ts *testscript.TestScript) *stage { return ts.Value(stageKey{}).(*stage) }

// command is a command line on the machine of the user.
func (s *stage) command(ts *testscript.TestScript, name string, args []string) []string {
	if name == "siteagent" || name == "submit" {
		name = s.place.File(name)
	}
	there := s.machines[filepath.Base(ts.Getenv("HOME"))]
	return append(append(slices.Clone(there), name), args...)
}

// execute runs a command on the machine of the user and keeps what it prints.
func execute(ts *testscript.TestScript, name string, args []string) error {
	line := stageOf(ts).command(ts, name, args)
	return ts.Exec(line[0], line[1:]...)
}

// tamed are the settings of a user whose agent shares the machine with tests.
func tamed() map[string]string {
	return map[string]string{
		"MRS_PRESET": "test", "MRS_LEASE_LENGTH": "2s", "MRS_LEASE_MARGIN": "500ms",
		"MRS_CEILINGS_CPUS": "2", "MRS_CEILINGS_MEMORY": "2GiB",
		"MRS_CEILINGS_DISK": "1GiB", "MRS_CEILINGS_GFLOPS": "8", "MRS_COMMANDS": Commands(),
	}
}

var userName = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// user becomes a user, whose home is made if need be.
func user(ts *testscript.TestScript, neg bool, args []string) {
	fresh := len(args) == 2 && args[0] == "-fresh"
	if fresh {
		args = args[1:]
	}
	if neg || len(args) != 1 || !userName.MatchString(args[0]) {
		ts.Fatalf("usage: user [-fresh] NAME")
	}
	s := stageOf(ts)
	home, run := filepath.Join(ts.Getenv("WORK"), args[0]), filepath.Join(s.run, args[0])
	for _, dir := range []string{home, run} {
		ts.Check(os.MkdirAll(dir, 0o700))
	}
	ts.Setenv("HOME", home)
	ts.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	ts.Setenv("XDG_STATE_HOME", filepath.Join(home, ".local", "state"))
	ts.Setenv("XDG_RUNTIME_DIR", run)
	if !fresh {
		for name, value := range tamed() {
			ts.Setenv(name, value)
		}
	}
}

// freePort sets a variable to a port that nobody uses at this moment.
func freePort(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: freeport NAME")
	}
	port, err := freeport.Pick()
	ts.Check(err)
	ts.Setenv(args[0], strconv.Itoa(port))
}

// otherTime sets a variable to hours of the week that are not now, nor in an hour.
func otherTime(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: othertime NAME")
	}
	day := time.Now().Add(3 * 24 * time.Hour).Format("Mon")
	ts.Setenv(args[0], strings.ToLower(day)+" 09:00-10:00")
}
