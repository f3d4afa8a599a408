package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/internal/play"
)

const (
	killed    = "../../testdata/scenarios/site-killed.txt"
	twoSites  = "sites n=2 cores=2 gflops=8\nsubmit job=a at=1s by=s0 run=5s\nrun for=1m seed=1\n"
	unmetLine = "expect done=7\n"
)

// written writes a scenario and gives its path.
func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "story.txt")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The command prints the golden file beside the scenario, and in all forms it is the same story.
func TestPlay(t *testing.T) {
	dir := t.TempDir()
	svg, html := filepath.Join(dir, "s.svg"), filepath.Join(dir, "s.html")
	code, out, errs := gridsim(t, "play", killed, "--svg", svg, "--html", html)
	if code != exitOK || errs != "" {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	golden, err := os.ReadFile(strings.TrimSuffix(killed, ".txt") + ".golden")
	if err != nil {
		t.Fatal(err)
	}
	_, story, _ := strings.Cut(string(golden), "time line")
	if _, printed, found := strings.Cut(out, "time line"); !found || printed != story {
		t.Errorf("it prints\n%s\nwant\n%s", printed, story)
	}
	picture, err := os.ReadFile(svg)
	if err != nil || !bytes.HasPrefix(picture, []byte("<svg ")) {
		t.Errorf("%.60s: %v", picture, err)
	}
	page, err := os.ReadFile(html)
	if err != nil || !bytes.Contains(page, picture) ||
		!bytes.Contains(page, []byte("<title>site-killed.txt</title>")) {
		t.Errorf("%.200s: %v", page, err)
	}
	code, out, errs = gridsim(t, "play", killed, "-o", "json")
	var got play.Result
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitOK {
		t.Fatalf("exit code %d, %v: %s", code, err, errs)
	}
	if !got.Met || !strings.Contains(string(golden), "hash "+got.Hash+"\n") || got.Doubled != 0 {
		t.Errorf("%+v", got)
	}
	moves := 0
	for _, j := range got.Jobs {
		if moves += j.Moves; j.Done != j.Tasks || j.TookS == nil {
			t.Errorf("%+v", j)
		}
	}
	if moves == 0 {
		t.Error("no task moved")
	}
	if code, all, _ := gridsim(t, "play", killed, "--all"); code != exitOK ||
		strings.Count(all, "\n") <= strings.Count(out, "\n") {
		t.Errorf("exit code %d, with --all %d lines", code, strings.Count(all, "\n"))
	}
}

// A story that does not go as it expects is shown nevertheless.
func TestPlayNotAsExpected(t *testing.T) {
	path := written(t, twoSites+unmetLine)
	code, out, errs := gridsim(t, "play", path)
	if code != exitOther || !strings.Contains(out, "time line") ||
		!strings.Contains(errs, "not as expected:\nline 4: expected done=7: have 1") {
		t.Errorf("exit code %d, errors %s, output\n%s", code, errs, out)
	}
	code, out, _ = gridsim(t, "play", path, "-o", "json")
	var got play.Result
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitOther {
		t.Fatalf("exit code %d, %v", code, err)
	}
	if got.Met || len(got.Unmet) != 1 || got.Unmet[0] != "line 4: expected done=7: have 1" {
		t.Errorf("unmet: %q", got.Unmet)
	}
}

func TestMistakesOfPlayers(t *testing.T) {
	good, bad := written(t, twoSites), written(t, twoSites+"crash site=s7\nsubmit job=b\n")
	many := saved(t, "experiment.txt", "list", "thesis-1")
	empty, nowhere := t.TempDir(), filepath.Join(t.TempDir(), "absent", "s.svg")
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no story":    {[]string{"play"}, exitUsage, "want one file with a scenario, have 0"},
		"two":         {[]string{"play", good, good}, exitUsage, "have 2"},
		"experiment":  {[]string{"play", many}, exitUsage, "gridsim run plays it"},
		"absent":      {[]string{"play", good + "x"}, exitOther, "no such file"},
		"line":        {[]string{"play", bad}, exitUsage, bad + ":\nline 4: crash site=s7: want"},
		"second line": {[]string{"play", bad}, exitUsage, "\nline 5: submit by: want"},
		"form":        {[]string{"play", good, "-o", "xml"}, exitUsage, "want text or json"},
		"picture":     {[]string{"play", good, "--svg", nowhere}, exitOther, nowhere},
		"page":        {[]string{"play", good, "--html", nowhere}, exitOther, nowhere},
		"no state":    {[]string{"replay"}, exitUsage, "want the state directories"},
		"no journal":  {[]string{"replay", empty}, exitOther, empty + ": it holds no journal; name an"},
		"no place":    {[]string{"replay", nowhere}, exitOther, "no such file"},
	} {
		code, out, errs := gridsim(t, c.args...)
		if code != c.code || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit code %d, output %q, errors %q, want %d and %q",
				name, code, out, errs, c.code, c.want)
		}
	}
}

func TestPlayIsInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	var out, errs bytes.Buffer
	if code := run(ctx, []string{"play", written(t, twoSites)}, &out, &errs); code != exitOther ||
		!strings.Contains(errs.String(), "stopped at 0s of 1m0s") {
		t.Errorf("exit code %d, errors %s", code, errs.String())
	}
}

func TestShareOfAScenario(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	tell := shareOf(&out, func() time.Time { return now }, 10*time.Minute)
	for share := range 5 {
		tell(float64(share) / 4)
		now = now.Add(time.Second)
	}
	const want = "gridsim: 5m0s of 10m0s played (50 %)\ngridsim: 10m0s of 10m0s played (100 %)\n"
	if out.String() != want {
		t.Errorf("progress %q, want %q", out.String(), want)
	}
}

// The words of a scenario are explained without the source at hand.
func TestHelpOfScenarios(t *testing.T) {
	code, out, errs := gridsim(t, "help", "scenarios")
	for _, want := range []string{"submit  job=", "restore  its agent", "silent  answers", "doubled"} {
		if code != exitOK || errs != "" || !strings.Contains(out, want) {
			t.Errorf("exit code %d, %q, no %q in\n%s", code, errs, want, out)
		}
	}
}
