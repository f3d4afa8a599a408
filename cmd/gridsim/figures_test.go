package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// One command draws each kind of figure: of a mesh with one seed the virtual map, where sites fail
// a plot for each law, of rules for checkpoints lines over their interval, of one task its
// outages, and of a sweep whatever all strategies have.
func TestOneCommandDrawsEach(t *testing.T) {
	const grid = "grid n=4 nodes=16\njobs procs=8 time=.02 longest=5m load=.5 for=20m\n"
	for name, c := range map[string]struct{ text, line, title string }{
		"map-MESH.svg": {
			grid + "strategy name=MESH on=mesh split=greedy\n", "run FILE --seeds 1",
			", MESH, seed 1: sites around a job",
		},
		"failed-ratio.svg": {
			grid + "failures availability=.5 factor=.9,.5 law=weibull\n" +
				"strategy name=A on=queue\nstrategy name=B on=queue copies=2\n",
			"run FILE --seeds 2", ">weibull, longest run over factor<",
		},
		"within2.svg": {
			grid + "failures availability=.6 mttf=10m\nforecast name=SAME by=unchanged ahead=1m\n",
			"run FILE --seeds 2", ">part of forecasts within two sites<",
		},
		"completion-interval.svg": {
			"resources name=4h n=8 mtbf=4h\ntasks n=20 run=1h checkpoint=2m\n" +
				"strategy name=LFCA save=lfca interval=5m,20m\n",
			"run FILE --seeds 2", ">20 min<",
		},
		"odds-tries.svg": {"", "odds", ">R=4, thesis<"},
		"workload.svg": {
			"", "workload lublin --jobs 50", ">Lublin-Feitelson 1999, untyped: number of jobs 50<",
		},
		"checkpoints.svg": {"", "checkpoints --run 10h", ">A task of 10 h, checkpoints of 2 min<"},
		"wait.svg": {
			grid + "strategy name=A on=mesh\nstrategy name=B on=mesh split=greedy\n",
			"sweep FILE --seeds 1 --set strategy:*.ttl=1s,3s --of wait", ">strategy:*.ttl<",
		},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "mine.txt")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		args := strings.Fields(strings.ReplaceAll(c.line, "FILE", file))
		code, _, errs := gridsim(t, append(args, "--svg", dir)...)
		drawn, err := os.ReadFile(filepath.Join(dir, name))
		if code != exitOK || err != nil || !strings.Contains(string(drawn), c.title) {
			t.Errorf("%s: exit code %d, %v, no %q: %s", name, code, err, c.title, errs)
		}
	}
	// A directory that cannot be made is told before the answer.
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"checkpoints", "odds", "workload lublin"} {
		code, out, errs := gridsim(t, append(strings.Fields(line), "--svg", file)...)
		if code != exitOther || out != "" || !strings.Contains(errs, "directory for figures: ") {
			t.Errorf("%s: exit code %d: %s%s", line, code, out, errs)
		}
	}
}

// Who has a figure drawn gets the same log, and is refused for the same flags.
func TestFiguresLeaveTheLog(t *testing.T) {
	args := strings.Fields("workload lublin --procs 9 --jobs 40 --estimates")
	_, plain, _ := gridsim(t, args...)
	code, out, errs := gridsim(t, append(args, "--svg", t.TempDir())...)
	if code != exitOK || errs != "" || out != plain || plain == "" {
		t.Errorf("exit code %d, %s: the log is\n%s\nwithout a figure\n%s", code, errs, out, plain)
	}
	dir := filepath.Join(t.TempDir(), "figures")
	code, out, errs = gridsim(t, "workload", "lublin", "--jobs", "0", "--svg", dir)
	if _, err := os.Stat(dir); code != exitUsage || out != "" || !os.IsNotExist(err) ||
		!strings.Contains(errs, "--jobs: want 1 to") {
		t.Errorf("exit code %d, %v: %s%s", code, err, out, errs)
	}
}
