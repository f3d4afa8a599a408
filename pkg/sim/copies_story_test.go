package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/broker"
	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

// waysOfCopying are what users may ask for.
func waysOfCopying() []grid.Redundancy {
	return []grid.Redundancy{
		{Replicas: 2},
		{Replicas: 2, Agreement: 2},
		{Replicas: 3, Agreement: 2},
		{Auto: true},
		{Verify: .02},
	}
}

// In all stories of trouble the copies of a task keep to the rules that tasks do: none runs twice
// at the same time, all end, and with agreement the results are right although one site errs.
func TestStoriesWithCopies(t *testing.T) {
	for _, s := range append(stories(), storiesOfSubmitters()...) {
		if s.change != nil {
			continue // what is not to be relied on is switched off: attempts overlap then
		}
		for n, how := range waysOfCopying() {
			for seed := range max(1, uint64(*errants)/8) {
				s.playCopies(t, seed*8+uint64(n), how)
			}
		}
	}
}

// storiesOfSubmitters are about the site whose jobs these are.
func storiesOfSubmitters() []story {
	return []story{
		{name: "the submitter's backup is restored", happen: func(w *World, _ grid.SiteID) {
			w.Backup("s0")
			w.after(15*time.Second, func() {
				w.Crash("s0")
				w.RestoreBackup("s0")
				w.Restart("s0")
			})
		}},
		{name: "the submitter is cut off", happen: func(w *World, _ grid.SiteID) {
			w.Isolate("s0")
			w.after(20*time.Second, func() { w.Rejoin("s0") })
		}},
		{name: "all sites are killed, one after the other", happen: func(w *World, _ grid.SiteID) {
			for n, site := range w.order {
				w.after(time.Duration(n)*7*time.Second, func() { w.Crash(site) })
				w.after(time.Duration(n)*7*time.Second+5*time.Second, func() { w.Restart(site) })
			}
		}},
	}
}

func (s story) playCopies(t *testing.T, seed uint64, how grid.Redundancy) {
	t.Helper()
	cfg := Config{Seed: seed, Sites: fleet(6), Network: lan(), CheckFacts: true, CheckEvery: 10}
	if s.change != nil {
		s.change(&cfg)
	}
	w := New(cfg)
	_ = w.Run(storyBegins)
	w.Err("s5", .5, 0)
	job := elsewhere(20 * time.Second)
	job.Count, job.Redundancy = 3, how
	id := mustSubmit(t, w, "s0", job)
	_ = w.Run(storyTrouble)
	state, _ := w.Broker("s0").Job(id)
	s.happen(w, state.Tasks[1].Site)
	if err := w.Run(30 * time.Minute); err != nil {
		t.Fatalf("%s, %+v, seed %d: %v", s.name, how, seed, err)
	}
	state, known := w.Job("s0", id)
	if !known && s.name == "the submitter's disk is lost" {
		return
	}
	if state.Ended.IsZero() {
		t.Errorf("%s, %+v, seed %d: goes on: %+v", s.name, how, seed, state.Tasks)
	}
	if n := w.Trace().overlaps(); n > 0 {
		t.Errorf("%s, %+v, seed %d: %d attempts overlap", s.name, how, seed, n)
	}
	for _, task := range state.Tasks {
		wantRight(t, s.name, task, how)
	}
	for site := range (&errant{World: w}).outvoted() {
		if site != "s5" && !strings.Contains(s.name, "the site lies") {
			t.Errorf("%s, %+v, seed %d: %s is accused", s.name, how, seed, site)
		}
	}
}

func wantRight(t *testing.T, story string, task broker.TaskState, how grid.Redundancy) {
	t.Helper()
	if task.Phase == grid.PhaseDone && how.Agreement > 1 &&
		task.Exit.Outputs[0].CID != outputCID(task.ID) {
		t.Errorf("%s, %+v: task %s has a wrong result", story, how, task.ID)
	}
}
