package main

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mrsmesh/mrsmesh/pkg/metrics"
)

// An experiment with several cases has a table for each measure, with a column for each case, and
// the three forms say the same.
func TestRunShowsCases(t *testing.T) {
	code, text, _ := gridsim(t, "list", "ckpt")
	if code != exitOK || !strings.Contains(text, "strategy  name=auto     save=learned\n") {
		t.Fatalf("exit code %d: %s", code, text)
	}
	file := filepath.Join(t.TempDir(), "mine.txt")
	text = strings.ReplaceAll(text, "n=3000", "n=60")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"run", file, "--seeds", "2", "--only", "optimum,auto,LFCA,MFCA", "-q"}
	code, out, errs := gridsim(t, append(args, "-o", "json")...)
	var result struct {
		Cases      []string
		Strategies map[string]map[string]struct{ Mean, CI95 float64 }
	}
	if err := json.Unmarshal([]byte(out), &result); code != exitOK || err != nil || errs != "" ||
		len(result.Cases) != 4 || len(result.Strategies) != 4*14 {
		t.Fatalf("exit code %d, %v: %s, %s", code, err, out, errs)
	}
	code, out, _ = gridsim(t, append(args, "-o", "csv", "--workers", "1")...)
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if code != exitOK || err != nil {
		t.Fatalf("exit code %d, %v", code, err)
	}
	seen := 0
	for _, row := range rows[1:] {
		if x, known := result.Strategies[row[0]][row[1]]; known {
			if seen++; row[2] != plain(x.Mean) {
				t.Errorf("%v, in JSON %v", row, x)
			}
		}
	}
	if seen != 4*14*5 {
		t.Errorf("%d rows of strategies", seen)
	}
	code, out, _ = gridsim(t, args...)
	auto := metrics.Interval(result.Strategies["auto@8h"]["waste"])
	waste := cell(map[string]metrics.Interval{"waste": auto}, "waste")
	for _, want := range []string{
		", seeds 1 to 2\n\nwaste ", "4h ", "100h\n", "\nMFCA-160m ", waste, "auto@4h/optimum@4h of waste",
		"more checkpoints in MFCA than in LFCA, part of cells", " of 16 ",
	} {
		if code != exitOK || !strings.Contains(out, want) {
			t.Errorf("exit code %d, want %q in\n%s", code, want, out)
		}
	}
}

// The odds as text and as JSON. Those of two resources are other ones, but for copies.
func TestOdds(t *testing.T) {
	four, two := "odds", "odds --resources 2"
	for want, line := range map[string]string{
		"0.30 0.3000 0.5100 (-0.4) 0.6570 (-1.1) 0.7599 (-1.8) 0.35": four,
		"0.15 0.7225 0.5220 0.2725 0.0743 0.20":                      two,
		"0.15 0.5220 0.7715 (1.044) 0.9478 (2.088) 0.20":             four,
		"0.25 0.5625 0.8086 (1.125) 0.9634 (2.25) 0.30":              two,
	} {
		code, out, errs := gridsim(t, strings.Fields(line)...)
		cells := strings.Join(strings.Fields(out), " ")
		if code != exitOK || errs != "" || !strings.Contains(cells, want) {
			t.Errorf("%s: exit code %d, want %q in\n%s%s", line, code, want, out, errs)
		}
	}
	var result struct {
		Over         []float64
		Copies, Once []struct{ Name string }
		Tries        []struct{ Success, Paper []float64 }
	}
	code, out, _ := gridsim(t, "odds", "-o", "json")
	if err := json.Unmarshal([]byte(out), &result); code != exitOK || err != nil ||
		len(result.Copies) != 4 || len(result.Once) != 4 || len(result.Tries) != 3 ||
		len(result.Tries[0].Paper) != 0 || len(result.Tries[1].Paper) != len(result.Over) {
		t.Errorf("exit code %d, %v: %s", code, err, out)
	}
	for want, line := range map[string]string{
		"--resources: want at least 1, have 0": "odds --resources 0",
		`invalid argument "x"`:                 "odds --resources x",
		"takes flags only":                     "odds 4",
		"--output: want text or json":          "odds -o csv",
	} {
		code, out, errs := gridsim(t, strings.Fields(line)...)
		if code != exitUsage || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d, output %q, errors %q, want %q", line, code, out, errs, want)
		}
	}
}

// The figures of one task, as text and as JSON.
func TestCheckpoints(t *testing.T) {
	code, out, errs := gridsim(t, "checkpoints")
	for _, want := range []string{
		"4            1h8m0s     1h20m0s   1h32m0s\n", "best         0          4         7\n",
		"equal segments  1h6m11s     30m0s\n",
	} {
		if code != exitOK || errs != "" || !strings.Contains(out, want) {
			t.Errorf("exit code %d, want %q in\n%s%s", code, want, out, errs)
		}
	}
	code, out, _ = gridsim(t, "checkpoints", "--run", "10h", "-o", "json")
	var result struct {
		Outages []struct{ Best int }
		Plans   []struct {
			Rule string
			At   []float64
		}
	}
	if err := json.Unmarshal([]byte(out), &result); code != exitOK || err != nil ||
		len(result.Outages) != 3 || len(result.Plans) != 4 {
		t.Errorf("exit code %d, %v: %s", code, err, out)
	}
	for want, line := range map[string]string{
		"run, cost, mtbf: want times above 0": "checkpoints --cost 0s",
		"takes flags only":                    "checkpoints 1h",
		"--output: want text or json":         "checkpoints -o xml",
	} {
		code, out, errs = gridsim(t, strings.Fields(line)...)
		if code != exitUsage || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d, output %q, errors %q, want %q", line, code, out, errs, want)
		}
	}
	// What fails all the time takes longer than can be written.
	_, out, _ = gridsim(t, strings.Fields("checkpoints --run 1000h --mtbf 6m --cost 100h --most 0")...)
	if !strings.Contains(out, "Young           -  ") {
		t.Errorf("%s", out)
	}
}
