package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The experiment vrm prints its curves as JSON, and the same in tables; its figures are drawn.
func TestRunShowsRemapping(t *testing.T) {
	dir := t.TempDir()
	args := []string{
		"run", "vrm", "--set", "requests.slots=4000", "--seeds", "3", "--only",
		"paper,ours-0.775,A-optimal", "-q",
	}
	code, out, errs := gridsim(t, append(args, "-o", "json", "--svg", dir, "--png", dir)...)
	type measured map[string]struct{ Mean, CI95 float64 }
	var result struct {
		Cases      []string
		Strategies map[string]measured
		Curves     map[string]map[string]measured
	}
	if err := json.Unmarshal([]byte(out), &result); code != exitOK || err != nil || errs != "" ||
		strings.Join(result.Cases, " ") != "300 1000" || len(result.Curves["1000"]) != 12 {
		t.Fatalf("exit code %d, %v: %s, %s", code, err, out, errs)
	}
	at := result.Curves["300"]["0.775"]
	for _, measure := range []string{"termination", "blocking", "terminated", "overhead"} {
		x, there := at[measure]
		if !there || x.Mean <= 0 || x != result.Strategies["paper-0.775@300"][measure] {
			t.Errorf("%s: %+v", measure, at)
		}
	}
	for _, name := range []string{"termination-eta", "termination-references", "interval-length"} {
		for _, suffix := range []string{".svg", ".png"} {
			info, err := os.Stat(filepath.Join(dir, name+suffix))
			if err != nil || info.Size() < 300 {
				t.Error(err)
			}
		}
	}
	code, out, _ = gridsim(t, append(args, "--workers", "1", "-o", "csv")...)
	want := "paper-0.775@300,termination," + plain(at["termination"].Mean)
	if code != exitOK || !strings.Contains(out, want) {
		t.Errorf("exit code %d, want %q in\n%s", code, want, out)
	}
	code, out, _ = gridsim(t, args...)
	for _, want := range []string{
		"\ntermination 300", "\npaper-0.775 " + short(at["termination"].Mean), "\nA-optimal ",
		"eta at which termination of paper@300 is lowest", " of 12",
	} {
		if code != exitOK || !strings.Contains(singleSpaced(out), want) {
			t.Errorf("exit code %d, want %q in\n%s", code, want, out)
		}
	}
}

// A sweep compares strategies within each case.
func TestSweepOfRemapping(t *testing.T) {
	args := strings.Fields("sweep vrm -q --seeds 2 --only A-optimal,ours-0.775 " +
		"--set requests.load=.5,2 --set requests.slots=4000 --of blocking,overhead")
	code, out, errs := gridsim(t, args...)
	for _, want := range []string{
		"vrm, requests.load varied, from seed 1 on\n\nblocking\n", "\n\noverhead\n",
		"requests.load ours-0.775@300 A-optimal@300 ours-0.775@1000 A-optimal@1000 " +
			"A-optimal@300/ours-0.775@300 A-optimal@1000/ours-0.775@1000\n.5 ", "\n2 0.",
	} {
		if code != exitOK || errs != "" || !strings.Contains(singleSpaced(out), want) {
			t.Errorf("exit code %d, %s, want %q in\n%s", code, errs, want, out)
		}
	}
}

// singleSpaced has one space between the cells of a table.
func singleSpaced(table string) string {
	for strings.Contains(table, "  ") {
		table = strings.ReplaceAll(table, "  ", " ")
	}
	return table
}

func TestRemappingMistakes(t *testing.T) {
	const many = "run vrm --set requests.widest=2 --set requests.load=99"
	for want, line := range map[string]string{
		"no sites that hold jobs":          "run vrm --out nowhere",
		"no strategy is called \"A-2\"":    "run vrm --only A-2",
		"eta=x: want numbers from 0 to 10": "run vrm --set strategy:ours.eta=x",
		"down=9999: want less than every":  "run vrm --set machines:*.down=9999",
		"there are 2 such lines":           "run vrm --set machines.down=9",
		"want at most 1048576 requests":    many,
		"no measure is called \"wait\"":    "sweep vrm --set requests.load=1,2 --of wait",
		"requests lod: want one of":        "sweep vrm --set requests.lod=1,2",
		"machines 300: invalid":            "run vrm --set machines:*.lead=1e6",
	} {
		code, out, errs := gridsim(t, strings.Fields(line)...)
		if code != exitUsage || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d, output %q, errors %q, want %q", line, code, out, errs, want)
		}
	}
}
