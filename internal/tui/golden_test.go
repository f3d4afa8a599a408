package tui

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/view"
)

var update = flag.Bool("update", false, "write the pictures of testdata anew")

// golden compares a picture with that of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got), -update writes it anew:\n%s", file, diff)
	}
}

// picture draws a window without colours.
func picture(s *screen) string {
	var b strings.Builder
	for _, line := range s.lines() {
		b.WriteString(strings.TrimRight(ansi.Strip(line), " ") + "\n")
	}
	return b.String()
}

func TestPictures(t *testing.T) {
	t.Parallel()
	site := func() *fakeAgent { return &fakeAgent{site: aSite()} }
	paused := aSite()
	paused.Status.Paused = true
	for _, c := range []struct {
		name   string
		screen *screen
		keys   []string
		height int
	}{
		{name: "site", screen: siteOn(site()), keys: []string{"down", "down"}},
		{name: "site-paused", screen: siteOn(&fakeAgent{site: paused})},
		{name: "site-empty", screen: siteOn(&fakeAgent{})},
		{name: "site-job", screen: siteOn(site()), keys: []string{"down", "enter"}},
		{name: "site-details", screen: siteOn(site()), keys: []string{
			"down", "down", "down", "enter",
		}},
		{name: "site-notice", screen: siteOn(site()), keys: []string{"end", "enter"}},
		{name: "site-snooze", screen: siteOn(site()), keys: []string{"s"}},
		{name: "site-help", screen: siteOn(site()), keys: []string{"?"}},
		{name: "site-low", screen: siteOn(site()), height: 6, keys: []string{"end"}},
		{name: "fleet", screen: fleetOn(&fakeAgent{fleet: aFleet()}), keys: []string{"down"}},
		{name: "fleet-none", screen: fleetOn(&fakeAgent{})},
		{name: "fleet-site", screen: fleetOn(&fakeAgent{fleet: aFleet()}), keys: []string{"enter"}},
		{
			name: "fleet-snooze", screen: fleetOn(&fakeAgent{fleet: aFleet()}),
			keys: []string{"down", "s"},
		},
		{name: "jobs", screen: jobsOn(&fakeAgent{jobs: someJobs()}), keys: []string{"down"}},
		{name: "jobs-none", screen: jobsOn(&fakeAgent{})},
		{
			name:   "jobs-tasks",
			screen: jobsOn(&fakeAgent{jobs: someJobs(), tasks: someTasks(200)}),
			keys:   []string{"enter"},
		},
		{
			name: "jobs-waits", screen: jobsOn(&fakeAgent{jobs: someJobs(), tasks: someTasks(1)}),
			keys: []string{"down", "enter"},
		},
		{
			name: "jobs-filter", screen: jobsOn(&fakeAgent{jobs: someJobs()}),
			keys: []string{"/", "l", "i", "b", "x", "backspace", "enter"},
		},
		{
			name: "jobs-log", keys: []string{"l"}, screen: jobsOn(&fakeAgent{
				jobs: someJobs(), tasks: someTasks(1), log: "one\r\n\x1b[31mtwo\x1b[0m\x07\n" +
					strings.Repeat("a long line ", 8) + "\n",
			}),
		},
		{name: "jobs-cancel", screen: jobsOn(&fakeAgent{jobs: someJobs()}), keys: []string{"c"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, width := range []int{80, 20} {
				height := 24
				if c.height > 0 {
					height = c.height
				}
				run(c.screen, sized(width, height))
				if width == 80 {
					run(c.screen, typed(c.keys...)...)
				}
				name := c.name
				if width == 20 {
					name += "-20"
				}
				golden(t, name, picture(c.screen))
			}
		})
	}
}

func TestPlainLines(t *testing.T) {
	t.Parallel()
	var site, jobs bytes.Buffer
	top := SiteTop{Sharing: func(view.AgentStatus, time.Time) string { return "yes" }}
	if err := top.Print(&site, aSite(), noon); err != nil {
		t.Fatal(err)
	}
	golden(t, "plain-site", site.String())
	list := JobsTop{Left: func(view.JobView) string { return "" }}
	if err := list.Print(&jobs, JobsFacts{Jobs: someJobs()}, noon); err != nil {
		t.Fatal(err)
	}
	golden(t, "plain-jobs", jobs.String())
}
