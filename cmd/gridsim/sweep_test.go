package main

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tiny is an experiment that takes no time.
const tiny = `grid n=3 nodes=12 spread=.8 mem=1GiB rate=80Mbps
jobs procs=4 time=.02 longest=5m load=.9 for=10m mem=.1..0.3 data=1MiB estimate=1..2
strategy name=BACKFILL on=queue
strategy name=REP on=queue copies=2 order=random
seeds n=2
`

func tinyFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tiny.txt")
	if err := os.WriteFile(file, []byte(tiny), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// The three forms of a sweep say the same, and what a run with the same values says.
func TestSweepVaries(t *testing.T) {
	file := tinyFile(t)
	args := []string{
		"sweep", file, "--quiet", "--set", "jobs.load=.5,.9", "--set", "jobs.time=.03",
		"--set", "strategy:REP.order=listed,random",
	}
	var result struct {
		Varied []struct{ Key string }
		Points []struct {
			Set    map[string]string
			Ratios map[string]map[string]struct{ Mean, CI95 float64 }
		}
	}
	code, out, errs := gridsim(t, append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(out), &result); code != exitOK || err != nil || errs != "" {
		t.Fatalf("exit code %d, %v: %s %s", code, err, out, errs)
	}
	if len(result.Varied) != 2 || len(result.Points) != 4 || len(result.Points[3].Set) != 2 {
		t.Fatalf("%+v", result)
	}
	wait := result.Points[3].Ratios["REP/BACKFILL"]["wait"]
	code, out, _ = gridsim(t, append(args, "-o", "csv")...)
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	want := ".9 random REP/BACKFILL wait " + plain(wait.Mean)
	found := false
	for _, row := range rows {
		found = found || strings.Join(row[:5], " ") == want
	}
	if code != exitOK || err != nil || !found {
		t.Errorf("exit code %d, %v, want %q in %s", code, err, want, out)
	}
	code, out, _ = gridsim(t, append(args, "--of", "wait,done")...)
	for _, want := range []string{
		"tiny.txt, jobs.load and strategy:REP.order varied, from seed 1 on\n\nwait\njobs.load  ",
		"\n\ndone\n", short(wait.Mean),
	} {
		if code != exitOK || !strings.Contains(out, want) || strings.Contains(out, "makespan") {
			t.Errorf("exit code %d, want %q in\n%s", code, want, out)
		}
	}
	code, out, _ = gridsim(t, "run", file, "--quiet", "--set", "jobs.load=.9", "--set",
		"strategy:REP.order=random", "--set", "jobs.time=.03", "-o", "csv")
	want = "REP/BACKFILL,wait," + plain(wait.Mean)
	if code != exitOK || !strings.Contains(out, want) {
		t.Errorf("exit code %d, want %q in\n%s", code, want, out)
	}
}

// Figures and results go into the directories that were named, which are made.
func TestFiguresAndResults(t *testing.T) {
	file, dir := tinyFile(t), filepath.Join(t.TempDir(), "deep", "down")
	args := []string{"run", file, "--quiet", "--seeds", "1", "--svg", dir, "--png", dir, "--out", dir}
	for range 2 { // figures and results replace their like
		if code, _, errs := gridsim(t, args...); code != exitOK {
			t.Fatal(errs)
		}
	}
	for _, name := range []string{
		"wait.svg", "wait-ratio.png", "gantt-REP.svg", "REP/seed-1/jobs.csv",
		"BACKFILL/seed-1/schedule.json",
	} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() < 300 {
			t.Error(err)
		}
	}
	sweep := filepath.Join(dir, "sweep")
	code, _, errs := gridsim(t, "sweep", file, "--quiet", "--set", "jobs.load=.5,.9", "--of", "wait",
		"--svg", sweep)
	files, err := os.ReadDir(sweep)
	if code != exitOK || err != nil || len(files) != 2 {
		t.Errorf("exit code %d, %v: %v %s", code, err, files, errs)
	}
	// Of several seeds nobody sees who held which node.
	several := filepath.Join(dir, "several")
	args = []string{"run", file, "--quiet", "--svg", several, "--out", several}
	if code, _, errs := gridsim(t, args...); code != exitOK {
		t.Fatal(errs)
	}
	if _, err := os.Stat(filepath.Join(several, "gantt-REP.svg")); err == nil {
		t.Error("a picture of one seed of two")
	}
	if _, err := os.Stat(filepath.Join(several, "REP", "seed-2", "jobs.csv")); err != nil {
		t.Error(err)
	}
}

func TestSweepMistakes(t *testing.T) {
	file := tinyFile(t)
	mine := filepath.Join(t.TempDir(), "wait.svg")
	if err := os.WriteFile(mine, []byte("<svg/>"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]struct {
		line string
		code int
	}{
		"want one experiment, or one file":         {"sweep", exitUsage},
		"want a key with several values":           {"sweep FILE", exitUsage},
		"--set scenario: \"load=.5\": want LINE":   {"sweep FILE --set load=.5", exitUsage},
		"jobs lod: want one of procs time longest": {"sweep FILE --set jobs.lod=.5,.6", exitUsage},
		"no measure is called \"kg\"":              {"sweep FILE --set grid.n=2,3 --of kg", exitUsage},
		"--output: want table, json or csv":        {"sweep FILE --set grid.n=2,3 -o xml", exitUsage},
		"no strategy is called \"X\"":              {"sweep FILE --set grid.n=2,3 --only X", exitUsage},
		"--seeds, --workers: want at least 0":      {"sweep FILE --set grid.n=2,3 --seeds -1", exitUsage},
		"gridsim sweep varies them":                {"run FILE --set grid.n=2,3", exitUsage},
		"--set grid.m=2: line 1: grid m: want":     {"run FILE --set grid.m=2", exitUsage},
		"ckpt has cases of its own":                {"sweep ckpt --set tasks.load=.1,.2", exitUsage},
		"ckpt has no sites that hold jobs":         {"run ckpt --out nowhere", exitUsage},
		"there is no file":                         {"run FILE --set jobs.log=nowhere.swf", exitUsage},
		"is not a figure of gridsim: it stays": {
			"run FILE --seeds 1 --svg " + filepath.Dir(mine), exitOther,
		},
		"directory for figures: ": {"run FILE --svg " + mine, exitOther},
		"directory for results: ": {"run FILE --out " + mine, exitOther},
	} {
		args := strings.Fields(strings.ReplaceAll(c.line, "FILE", file))
		code, out, errs := gridsim(t, args...)
		if code != c.code || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d, output %q, errors %q, want %q", c.line, code, out, errs, want)
		}
	}
}
