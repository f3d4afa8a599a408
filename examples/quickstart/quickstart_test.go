package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mrsmesh/mrsmesh/internal/audit"
	"github.com/mrsmesh/mrsmesh/internal/localmesh"
	"github.com/mrsmesh/mrsmesh/internal/view"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func writeTree(t *testing.T, files map[string]int) string {
	t.Helper()
	root := t.TempDir()
	for name, size := range files {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, bytes.Repeat([]byte("\n"), size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestPackagesBelow(t *testing.T) {
	root := writeTree(t, map[string]int{
		"doc.go": 9, "fmt/a.go": 5, "fmt/b_test.go": 6, "fmt/README": 900, "fmt/testdata/x.go": 900,
		"net/a.go": 20, "net/http/a.go": 20, "net/http/internal/only.txt": 1,
		"cmd/go/main.go": 900, "vendor/x/x.go": 900, "net/vendor/x.go": 900, "_old/x.go": 900,
		"huge/a.go": largestPackage + 1,
	})
	all, err := packagesBelow(root)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range all {
		got = append(got, p.name)
	}
	if diff := cmp.Diff([]string{"net", "net/http", "fmt"}, got); diff != "" {
		t.Errorf("packages, the largest first (-want +got):\n%s", diff)
	}
	if all[2].bytes != 11 {
		t.Errorf("fmt has %d bytes, want 11: both .go files and nothing else", all[2].bytes)
	}
}

func TestPackHoldsTheGoFilesAlone(t *testing.T) {
	root := writeTree(t, map[string]int{"b.go": 3, "a.go": 2, "README": 1, "sub/c.go": 1})
	archive, err := sourcePackage{name: "p", dir: root}.pack()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for r := tar.NewReader(archive); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got[header.Name] = header.Size
	}
	if diff := cmp.Diff(map[string]int64{"a.go": 2, "b.go": 3}, got); diff != "" {
		t.Errorf("archive (-want +got):\n%s", diff)
	}
}

// moment is any time at all.
func moment() view.Time { return view.At(time.Unix(1, 0)) }

func TestWhoIsKilledAndWhatMoved(t *testing.T) {
	m := &localmesh.Mesh{Agents: []*localmesh.Agent{{ID: "self"}, {ID: "b"}, {ID: "c"}}}
	task := func(site grid.SiteID, phase view.Phase, attempts ...grid.SiteID) view.TaskView {
		v := view.TaskView{Site: site, Phase: phase, Started: moment()}
		for _, a := range attempts {
			v.Attempts = append(v.Attempts, view.AttemptView{Site: a})
		}
		return v
	}
	staging := task("b", view.PhaseRunning)
	staging.Started = view.Time{}
	tests := []struct {
		name   string
		tasks  []view.TaskView
		victim *localmesh.Agent
	}{
		{"nothing runs", []view.TaskView{task("b", view.PhaseDone)}, nil},
		{"never the submitter", []view.TaskView{task("self", view.PhaseRunning)}, nil},
		{"not for what has not started", []view.TaskView{staging, task("b", view.PhaseStaging)}, nil},
		{
			"the one that holds most",
			[]view.TaskView{
				task("b", view.PhaseRunning), task("c", view.PhaseRunning), task("c", view.PhaseRunning),
			},
			m.Agents[2],
		},
	}
	for _, test := range tests {
		if got := busiest(m, test.tasks); got != test.victim {
			t.Errorf("%s: victim %+v, want %+v", test.name, got, test.victim)
		}
	}
	moved := movedFrom([]view.TaskView{
		task("b", view.PhaseDone, "b"),                 // stayed
		task("c", view.PhaseDone, "b", "c"),            // moved
		task("c", view.PhaseDone, "b", "self", "c"),    // moved, twice
		task("c", view.PhaseFailed, "b", "c"),          // did not end well
		task("c", view.PhaseDone, "self", "c"),         // from elsewhere
		task("b", view.PhaseDone, "b", "self", "b"),    // came back
		task("self", view.PhaseDone, "b", "b", "self"), // counts once
	}, "b")
	if len(moved) != 3 {
		t.Errorf("%d tasks moved from b, want 3", len(moved))
	}
}

func TestVerdict(t *testing.T) {
	good := func() result {
		return result{
			tasks: 48, matched: 48, moved: 2, audit: audit.Report{Total: audit.JobReport{Done: 48}},
		}
	}
	tests := []struct {
		name  string
		spoil func(*result)
		ok    bool
	}{
		{"all well", func(*result) {}, true},
		{"one result differs", func(r *result) { r.matched-- }, false},
		{"nothing moved", func(r *result) { r.moved = 0 }, false},
		{"one lost", func(r *result) { r.audit.Lost = make([]grid.TaskID, 1) }, false},
		{"one doubled", func(r *result) { r.audit.Doubled = make([]audit.Double, 1) }, false},
		{"the records know of fewer", func(r *result) { r.audit.Total.Done-- }, false},
	}
	for _, test := range tests {
		var said bytes.Buffer
		r := good()
		test.spoil(&r)
		err := r.verdict(localmesh.NewScreen(&said, false))
		if (err == nil) != test.ok {
			t.Errorf("%s: %v", test.name, err)
		}
		const want = "quickstart: 48/48 results match the local run; 1 agent killed, 2 tasks moved, 0 " +
			"lost, 0 doubled\n"
		if test.ok && said.String() != want {
			t.Errorf("%s: said %q, want %q", test.name, said.String(), want)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		args []string
		want int // tasks; 0: refused
	}{
		{nil, defaultTasks}, {[]string{"-tasks", "10"}, fewestTasks}, {[]string{"-tasks", "9"}, 0},
	} {
		var o options
		flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
		check := o.define(flags)
		if err := flags.Parse(c.args); err != nil {
			t.Fatal(err)
		}
		if err := check(); (err == nil) != (c.want > 0) || err == nil && o.tasks != c.want {
			t.Errorf("%v: %d tasks, %v; want %d", c.args, o.tasks, err, c.want)
		}
	}
}
