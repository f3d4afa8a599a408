package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// saved runs a command and puts what it prints into a file.
func saved(t *testing.T, name string, args ...string) string {
	t.Helper()
	code, out, errs := gridsim(t, args...)
	if code != exitOK || errs != "" {
		t.Fatalf("%v: exit code %d: %s", args, code, errs)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The other experiments read what is made up.
func TestWorkloadFeedsExperiments(t *testing.T) {
	log := saved(t, "log.swf", "workload", "lublin", "--procs", "32", "--jobs", "200", "--seed", "4",
		"--typed", "--estimates")
	code, out, errs := gridsim(t, "swf", "--log", log, "-o", "json")
	if code != exitOK || !strings.Contains(out, `"jobs": 200`) {
		t.Errorf("exit code %d, output %s, errors %s", code, out, errs)
	}
	events := saved(t, "events.tab", "workload", "availability", "--law", "weibull", "--shape", ".4",
		"--scale", "3h", "--machines", "20", "--days", "30")
	code, out, errs = gridsim(t, "calibrate", "--events", events, "-o", "json")
	if code != exitOK || !strings.Contains(out, `"machines": 20`) {
		t.Errorf("exit code %d, output %s, errors %s", code, out, errs)
	}
	var fit struct {
		Nodes    int
		Up, Down struct {
			Weibull struct {
				ScaleH float64 `json:"scale_h"`
				Shape  float64
			}
			Best string
		}
	}
	_, out, _ = gridsim(t, "workload", "fit", "--events", events, "-o", "json")
	if err := json.Unmarshal([]byte(out), &fit); err != nil || fit.Nodes != 20 ||
		fit.Up.Weibull.Shape < 0.3 || fit.Up.Weibull.Shape > 0.55 || fit.Up.Best != "weibull" {
		t.Errorf("%v: %s", err, out)
	}
	code, out, _ = gridsim(t, "workload", "fit", "--events", events, "--nodes", "m00000")
	for _, want := range []string{"machines      10\n", "up ", "down ", "lognormal", " best"} {
		if code != exitOK || !strings.Contains(out, want) {
			t.Errorf("exit code %d, output %s, want %q", code, out, want)
		}
	}
	hosts := saved(t, "hosts.csv", "workload", "hosts", "--sites", "9")
	if text, err := os.ReadFile(hosts); err != nil || strings.Count(string(text), "\n") != 10 {
		t.Errorf("hosts %s: %v", text, err)
	}
	links := saved(t, "links.csv", "workload", "links", "--sites", "3")
	if text, err := os.ReadFile(links); err != nil || strings.Count(string(text), "\n") != 10 {
		t.Errorf("links %s: %v", text, err)
	}
}

func TestWorkloadMistakes(t *testing.T) {
	for want, line := range map[string]string{
		"want one of availability, fit, hosts, links, lublin (": "lublim",
		"--procs: want 1 to ":                            "lublin --procs 0",
		"--jobs: want 1 to ":                             "lublin --jobs -1",
		"--longest-estimate: nobody":                     "lublin --longest-estimate 2h",
		"--longest-estimate: want an hour":               "lublin --estimates --longest-estimate 2m",
		"gridsim workload lublin --help lists the flags": "lublin --proc 1",
		"gridsim workload lublin takes flags only":       "lublin x",
		"--law: invalid law: want one of":                "availability --law gamma",
		"--availability: it sets --down-scale":           "availability --availability 1 --down-scale 1h",
		"--availability: want more than 0":               "availability --availability 0",
		"and less than 1, have 1.5":                      "availability --availability 1.5",
		"--events: name an event_trace":                  "fit",
		"--output: want text or json":                    "fit -o xml",
		"--sigma: give either a law or a table":          "hosts --speeds x --sigma 1",
		"--median: give either a law or a table":         "hosts --speeds x --median 1",
		"--local: want a positive rate":                  "links --local 0",
	} {
		args := append([]string{"workload"}, strings.Fields(line)...)
		code, out, errs := gridsim(t, args...)
		if code != exitUsage || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%v: exit code %d, output %q, errors %q, want %q", args, code, out, errs, want)
		}
	}
}

func TestWorkloadHelpTeaches(t *testing.T) {
	for command, wants := range map[string][]string{
		"lublin":       {"Standard Workload Format", "Tsafrir", "--typed", "Examples:", "gridsim swf"},
		"availability": {"event_trace", "usual shape", "SETI@home", "Examples:", "gridsim calibrate"},
		"fit":          {"likelihood", "Examples:", "--nodes"},
		"hosts":        {"count,speed", "Examples:", "--total"},
		"links":        {"ordered pair", "Examples:", "--local"},
	} {
		code, out, _ := gridsim(t, "workload", command, "--help")
		for _, want := range wants {
			if code != exitOK || !strings.Contains(out, want) {
				t.Errorf("gridsim workload %s --help does not tell of %q (exit code %d)", command, want, code)
			}
		}
	}
	code, out, _ := gridsim(t, "workload")
	if code != exitOK || !strings.Contains(out, "gridsim swf --log") {
		t.Errorf("gridsim workload alone: exit code %d, output %s", code, out)
	}
}
