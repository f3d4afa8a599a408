package main

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// An experiment that is printed can be changed and run; the three forms say the same.
func TestRunCompares(t *testing.T) {
	code, text, _ := gridsim(t, "list", "thesis-1")
	if code != exitOK || !strings.Contains(text, "strategy name=MRS on=mesh split=greedy") {
		t.Fatalf("exit code %d: %s", code, text)
	}
	text = regexp.MustCompile(` for=\S+`).ReplaceAllString(text, " for=20m")
	text = strings.Replace(text, "longest=4h", "longest=10m", 1)
	file := filepath.Join(t.TempDir(), "mine.txt")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{
		"run", file, "--seeds", "2", "--first", "5", "--only", "BACKFILL,MRS", "--quiet",
	}
	code, out, errs := gridsim(t, append(args, "-o", "json")...)
	var result struct {
		Scenario   string
		Seeds      int
		Strategies map[string]map[string]struct{ Mean, CI95 float64 }
		Ratios     map[string]map[string]struct{ Mean, CI95 float64 }
	}
	if err := json.Unmarshal([]byte(out), &result); code != exitOK || err != nil || errs != "" {
		t.Fatalf("exit code %d, %v: %s, %s", code, err, out, errs)
	}
	wait := result.Ratios["MRS/BACKFILL"]["wait"]
	if result.Scenario != file || result.Seeds != 2 || len(result.Strategies) != 2 || wait.Mean <= 0 {
		t.Errorf("%+v", result)
	}
	code, out, _ = gridsim(t, append(args, "-o", "csv", "--workers", "1")...)
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if code != exitOK || err != nil || len(rows) < 30 {
		t.Fatalf("exit code %d, %v: %s", code, err, out)
	}
	found := false
	for _, row := range rows {
		found = found || row[0] == "MRS/BACKFILL" && row[1] == "wait" && row[2] == plain(wait.Mean)
	}
	if !found {
		t.Errorf("the same ratio %v is not in %s", wait, out)
	}
	code, out, _ = gridsim(t, args...)
	for _, want := range []string{
		"mine.txt, seeds 5 to 6\n", "\nmeasure ", "\nbeside BACKFILL  MRS", "\nmessages ",
		"MRS/BACKFILL of wait", short(wait.Mean),
	} {
		if code != exitOK || !strings.Contains(out, want) {
			t.Errorf("exit code %d, want %q in\n%s", code, want, out)
		}
	}
}

func TestRunMistakes(t *testing.T) {
	story := filepath.Join(t.TempDir(), "story.txt")
	if err := os.WriteFile(story, []byte("sites n=1\nrun for=1s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, line := range map[string]string{
		"want one experiment, or one file":                 "run",
		"no experiment and no file is called \"thesis-9\"": "run thesis-9",
		"--output: want table, json or csv":                "run thesis-1 -o xml",
		"--seeds, --workers: want at least 0":              "run thesis-1 --seeds -1",
		"no strategy is called \"MSR\"":                    "run thesis-1 --only MSR",
		"gridsim run --help lists the flags":               "run thesis-1 --sed 1",
		"gridsim play shows a single story":                "run " + story,
		"want at most one experiment":                      "list a b",
		"no experiment is called \"thesis-9\": gridsim li": "list thesis-9",
	} {
		code, out, errs := gridsim(t, strings.Fields(line)...)
		if code != exitUsage || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d, output %q, errors %q, want %q", line, code, out, errs, want)
		}
	}
	code, out, errs := gridsim(t, "list")
	if code != exitOK || errs != "" || !strings.Contains(out, "  BACKFILL, REP and MRS as in table") {
		t.Errorf("exit code %d: %s %s", code, out, errs)
	}
}

// A second block of seeds is compared with the first, which stays as it is alone.
func TestRunBlocks(t *testing.T) {
	file := tinyFile(t)
	args := []string{"run", file, "-q", "--first", "4", "--seeds", "3"}
	_, alone, _ := gridsim(t, args...)
	code, out, errs := gridsim(t, append(args, "--blocks", "2")...)
	if rest, is := strings.CutPrefix(out, alone); code != exitOK || !is || errs != "" ||
		!strings.HasPrefix(rest, "\nseeds 7 to 9 beside 4 to 6: ") ||
		!strings.Contains(rest, " means are as close as their intervals say; chance leaves ") {
		t.Errorf("exit code %d: %s%s\nalone: %s", code, out, errs, alone)
	}
	code, out, _ = gridsim(t, append(args, "--blocks", "2", "-o", "json")...)
	var result struct {
		Blocks struct{ First, Means, Close int }
	}
	if err := json.Unmarshal([]byte(out), &result); code != exitOK || err != nil ||
		result.Blocks.First != 7 || result.Blocks.Means < 10 || result.Blocks.Close < 5 {
		t.Errorf("exit code %d, %v: %s", code, err, out)
	}
	for want, rest := range map[string]string{
		"--blocks: want 1 or 2, have 3":           "--blocks 3",
		"--blocks 2: want -o table or json":       "--blocks 2 -o csv",
		"two blocks: want at least 2 seeds in ea": "--blocks 2 --seeds 1",
	} {
		code, out, errs := gridsim(t, append(args, strings.Fields(rest)...)...)
		if code != exitUsage || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d, output %q, errors %q", rest, code, out, errs)
		}
	}
}

// An experiment whose sites fail is printed by settings, with the number of those in which each
// expectation holds; forecasts have columns of their own.
func TestRunInSettings(t *testing.T) {
	text := "grid n=4 nodes=16\njobs procs=8 time=.02 longest=5m load=.5 for=20m\n" +
		"failures availability=.6 factor=.5 reading=over,times law=weibull\n" +
		"strategy name=BACKFILL on=queue split=greedy\n" +
		"strategy name=REP on=queue copies=2 split=greedy\n" +
		"expect ratio=REP/BACKFILL of=failures from=1 to=100\n"
	file := filepath.Join(t.TempDir(), "mine.txt")
	run := func(text string, want ...string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, errs := gridsim(t, "run", file, "--seeds", "2")
		for _, w := range want {
			if code != exitOK || !strings.Contains(out, w) {
				t.Errorf("exit code %d, want %q in\n%s%s", code, w, out, errs)
			}
		}
	}
	run(text, "\nweibull-0.5-over ", "\nweibull-0.5-times ", "beside BACKFILL: done",
		"REP/BACKFILL of failures  1 to 100  ", " of 2  ")
	run(strings.Split(text, "strategy")[0]+"forecast name=SAME by=unchanged ahead=1m\n"+
		"expect strategy=SAME of=within2 from=0 to=1\n", "within 2 sites", "SAME of within2", "2 of 2")
}
