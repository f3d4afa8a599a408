package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const micro = "../../internal/eval/testdata/micro.swf"

func gridsim(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestSWF(t *testing.T) {
	starts := filepath.Join(t.TempDir(), "starts.csv")
	code, out, errs := gridsim(t, "swf", "--log", micro, "--procs", "10", "--policy", "conservative",
		"--semantics", "batch",
		"--starts", starts, "-o", "json")
	if code != exitOK || errs != "" {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	var got map[string]float64
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	var keys []string
	for key := range got {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	want := []string{
		"avg_bounded_slowdown", "avg_wait_s", "jobs", "jobs_per_s", "makespan_s", "utilization",
	}
	if !slices.Equal(keys, want) || got["jobs"] != 7 || got["makespan_s"] != 235 {
		t.Errorf("output %s, want the fields %v", out, want)
	}
	text, err := os.ReadFile(starts)
	if err != nil || !strings.HasPrefix(string(text), "job_id,submit,start\n1,0,0\n2,1,100\n") {
		t.Errorf("starts %q: %v", text, err)
	}
	if code, out, errs = gridsim(t, "swf", "--log", micro); code != exitOK ||
		!strings.Contains(out, "avg_wait_s            ") || errs != "" {
		t.Errorf("exit code %d, output %s, errors %s", code, out, errs)
	}
}

func TestCalibrate(t *testing.T) {
	svg := filepath.Join(t.TempDir(), "diagram.svg")
	args := []string{"calibrate", "--machines", "1", "--days", "10", "--learning", "5", "--svg", svg}
	code, out, errs := gridsim(t, args...)
	for _, want := range []string{"0.9 to 1.0", "brier  ", "brier_paper", "first_brier", "worst_bin"} {
		if code != exitOK || errs != "" || !strings.Contains(out, want) {
			t.Errorf("exit code %d, output %s, errors %s, want %q", code, out, errs, want)
		}
	}
	if picture, err := os.ReadFile(svg); err != nil || !strings.HasPrefix(string(picture), "<svg ") {
		t.Errorf("picture %.100s: %v", picture, err)
	}
	var got map[string]any
	code, out, _ = gridsim(t, append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitOK ||
		got["machines"] != 1.0 {
		t.Errorf("exit code %d, %v, output %s", code, err, out)
	}
}

func TestMistakes(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.swf")
	if err := os.WriteFile(bad, []byte("; x\n1 2 three\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no log": {[]string{"swf"}, exitUsage, "--log"},
		"policy": {
			[]string{"swf", "--log", micro, "--policy", "lifo"},
			exitUsage,
			"want one of fcfs, easy, conservative",
		},
		"procs": {
			[]string{"swf", "--log", micro, "--procs", "0"}, exitUsage, "--procs: want at least 1",
		},
		"output":     {[]string{"swf", "--log", micro, "-o", "xml"}, exitUsage, "want text or json"},
		"flag":       {[]string{"swf", "--logs", micro}, exitUsage, "gridsim swf --help"},
		"argument":   {[]string{"swf", micro}, exitUsage, "takes flags only"},
		"experiment": {[]string{"swff"}, exitUsage, "want one of"},
		"model":      {[]string{"calibrate", "--model", "laptop"}, exitUsage, "want desktop"},
		"events":     {[]string{"calibrate", "--events", "absent.tab"}, exitOther, "absent.tab"},
		"form":       {[]string{"calibrate", "-o", "xml"}, exitUsage, "want text or json"},
		"line":       {[]string{"swf", "--log", bad}, exitOther, bad + `: line 2: `},
	} {
		code, out, errs := gridsim(t, c.args...)
		if code != c.code || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf(
				"%s: exit code %d, output %q, errors %q, want %d and %q", name, code, out, errs, c.code, c.want,
			)
		}
	}
}

func TestHelpTeaches(t *testing.T) {
	code, out, _ := gridsim(t, "swf", "--help")
	for _, want := range []string{
		"job_id,submit,start", "conservative", "Standard Workload Format", "avg_bounded_slowdown",
		"Examples:",
	} {
		if code != exitOK || !strings.Contains(out, want) {
			t.Errorf("gridsim swf --help does not tell of %q (exit code %d)", want, code)
		}
	}
	if code, out, _ = gridsim(t); code != exitOK || !strings.Contains(out, "First steps") {
		t.Errorf("gridsim alone: exit code %d, output %s", code, out)
	}
}

func TestInterrupt(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	var log strings.Builder
	for range 9000 {
		log.WriteString("1 0 -1 1 1 -1 -1 1 1 -1 1 1 -1 -1 -1 -1 -1 -1\n")
	}
	path := filepath.Join(t.TempDir(), "long.swf")
	if err := os.WriteFile(path, []byte(log.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code := run(ctx, []string{"swf", "--log", path, "--procs", "1"}, &out, &errs)
	if code != exitOther || !strings.Contains(errs.String(), "stopped after") {
		t.Errorf("exit code %d, errors %s", code, errs.String())
	}
}

func TestProgress(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	tell := progress(&out, func() time.Time { return now })
	for range 10 {
		tell(1, 4)
		now = now.Add(time.Second)
	}
	if want := strings.Repeat("gridsim: 1 of 4 jobs started (25 %)\n", 4); out.String() != want {
		t.Errorf("progress %q, want %q", out.String(), want)
	}
}
