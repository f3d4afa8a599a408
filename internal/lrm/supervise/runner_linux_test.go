package supervise

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/lrm"
)

// ranAs runs a script as a runner that nobody watches, and gives its end.
func ranAs(t *testing.T, script string, change func(*Spec)) runnerEnd {
	t.Helper()
	dir := t.TempDir()
	spec := Spec{
		Runner: []string{"/bin/sh", "-c", script}, Dir: dir, Stdout: filepath.Join(dir, "stdout"),
		Stderr: filepath.Join(dir, "stderr"), Limits: lrm.Limits{OutputBytes: 4},
	}
	change(&spec)
	r, err := startRunner(spec, nil, onDisk)
	if err != nil {
		t.Fatal(err)
	}
	<-r.gone
	return <-r.ended
}

// What a program printed too much is known by its end, whether or not the supervisor saw it in
// time; of either stream.
func TestAFullStreamIsKnownByTheEnd(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]bool{
		"printf 1234": false, "printf 12345": true, "printf 12345 >&2": true, "printf 1234 >&2": false,
		"printf 12; printf 34": false, "printf 12; printf 345": true, "true": false,
	} {
		end := ranAs(t, script, func(*Spec) {})
		if end.overflowed != want || end.code != 0 || end.signal != 0 || end.report != nil {
			t.Errorf("%q: %+v, want a full stream: %t", script, end, want)
		}
	}
}

// The end of a runner is told by the system, and by its own report.
func TestHowARunnerEnds(t *testing.T) {
	t.Parallel()
	const report = `echo '{"preparing":true}' >&3; echo '{"preparing":false}' >&3; ` +
		`echo '{"cause":1,"code":7}' >&3; `
	for _, c := range []struct {
		script         string
		code, signal   int
		text, reported string
	}{
		{"exit 3", 3, 0, "exit status 3", ""},
		{"kill -9 $$", -1, 9, "signal: killed", ""},
		{report + "exit 3", 3, 0, "exit status 3", "7"},
		{"echo nonsense >&3; exit 3", 3, 0, "exit status 3", ""},
		{`echo '{"cause":99}' >&3; exit 3`, 3, 0, "exit status 3", ""},
	} {
		end := ranAs(t, c.script, func(*Spec) {})
		if end.code != c.code || end.signal != c.signal || end.text != c.text ||
			(end.report != nil) != (c.reported != "") || end.report != nil && end.report.Code != 7 {
			t.Errorf("%q: %+v, report %+v", c.script, end, end.report)
		}
	}
}

// An enclosure's program is called by its last name and is given no variable of anybody.
func TestWhatAnEnclosuresProgramIsGiven(t *testing.T) {
	t.Parallel()
	cmd := enclosed(&Enclosure{Program: "/usr/bin/box", Args: []string{"a", "b"}})
	if cmd.Path != "/usr/bin/box" || !slices.Equal(cmd.Args, []string{"box", "a", "b"}) ||
		cmd.Env == nil || len(cmd.Env) != 0 {
		t.Errorf("%q as %q with %q", cmd.Path, cmd.Args, cmd.Env)
	}
}

// Where a runner is not given variables it has none; its directory is the one it is told.
func TestARunnersVariables(t *testing.T) {
	t.Setenv("OWNERS_SECRET", "x")
	for _, env := range [][]string{nil, {}, {"A=1"}} {
		var dir, out string
		ranAs(t, `read -r line < /proc/self/environ; printf %s "$OWNERS_SECRET$A" ; pwd`,
			func(s *Spec) { s.Env, s.Limits.OutputBytes, dir, out = env, 1<<10, s.Dir, s.Stdout })
		text, err := os.ReadFile(out)
		want := dir + "\n"
		if len(env) > 0 {
			want = "1" + want
		}
		if err != nil || string(text) != want {
			t.Errorf("with %q it said %q, %v, want %q", env, text, err, want)
		}
	}
}
