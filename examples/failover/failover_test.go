package main

import (
	"bytes"
	"testing"

	"github.com/mrsmesh/mrsmesh/internal/audit"
	"github.com/mrsmesh/mrsmesh/internal/localmesh"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func TestVerdict(t *testing.T) {
	good := func() result {
		return result{
			lost: 2, began: 41, matches: true,
			audit: audit.Report{Total: audit.JobReport{Tasks: 1, Done: 1, Attempts: 2}},
		}
	}
	tests := []struct {
		name  string
		spoil func(*result)
		ok    bool
	}{
		{"all well", func(*result) {}, true},
		{"another result", func(r *result) { r.matches = false }, false},
		{"begun anew", func(r *result) { r.began = 0 }, false},
		{"lost", func(r *result) { r.audit.Lost = make([]grid.TaskID, 1) }, false},
		{"doubled", func(r *result) { r.audit.Doubled = make([]audit.Double, 1) }, false},
		{"not done", func(r *result) { r.audit.Total.Done = 0 }, false},
		{"another job", func(r *result) { r.audit.Total.Tasks = 2 }, false},
		{"restarted", func(r *result) { r.audit.Total.Attempts = 3 }, false},
	}
	for _, test := range tests {
		var said bytes.Buffer
		r := good()
		test.spoil(&r)
		err := r.verdict(localmesh.NewScreen(&said, false))
		if (err == nil) != test.ok {
			t.Errorf("%s: %v", test.name, err)
		}
		const want = "failover: 1 job, 2 machines lost, continued at 41 %, result matches the " +
			"local run, 0 lost, 0 doubled\n"
		if test.ok && said.String() != want {
			t.Errorf("%s: said %q, want %q", test.name, said.String(), want)
		}
	}
}

// The standbys cannot run the job, and those that run it stand by for nobody: a machine that did
// both would be two losses.
func TestNobodyRunsTheJobAndStandsBy(t *testing.T) {
	place := &localmesh.Place{Dir: t.TempDir()}
	m := localmesh.New(place, "siteagent", domain, gifts(), tune)
	willing := 0
	for _, a := range m.Agents {
		stands := a.Config.Standby.Accept != "none" && a != m.Submitter()
		if stands {
			willing++
		}
		able := a.Config.Ceilings.MemoryBytes >= memoryNeed
		if able == (stands || a == m.Submitter()) {
			t.Errorf("%s: can run the job: %t, stands by: %t", a.Name, able, stands)
		}
	}
	if want := m.Submitter().Config.Standby.Count; willing != want || want != standbys {
		t.Errorf("%d agents stand by, %s wants %d", willing, m.Submitter().Name, want)
	}
}
