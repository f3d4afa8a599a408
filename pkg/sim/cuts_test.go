package sim

import (
	"testing"
	"time"

	"github.com/mrsmesh/mrsmesh/pkg/grid"
)

func TestDeafSiteSpeaksAndHearsNothing(t *testing.T) {
	w := New(Config{Seed: 1, Sites: fleet(3), Network: lan()})
	_ = w.Run(time.Second)
	w.Deafen("s2")
	id := mustSubmit(t, w, "s0", wasmJob(1, time.Second))
	if s := mustEnd(t, w, w.elapsed+time.Minute, "s0", id); len(s.Answers) != 2 {
		t.Errorf("%d sites answered, want 2", len(s.Answers))
	}
	if _, err := w.Submit("s2", wasmJob(1, time.Second)); err != nil {
		t.Fatal(err)
	}
	_ = w.Run(w.elapsed + time.Second)
	if n := w.Trace().Heard["s2"]; n != 1 { // its own
		t.Errorf("it heard %d announcements, want its own", n)
	}
	if n := w.Trace().Heard["s1"]; n != 2 {
		t.Errorf("s1 heard %d announcements, want both", n)
	}
	w.Undeafen("s2")
	id = mustSubmit(t, w, "s0", wasmJob(1, time.Second))
	if s := mustEnd(t, w, w.elapsed+time.Minute, "s0", id); len(s.Answers) != 3 {
		t.Errorf("%d sites answered afterwards, want 3", len(s.Answers))
	}
}

func TestCutIsOneWayAndOfTwoSites(t *testing.T) {
	w := New(Config{Seed: 1, Sites: fleet(3), Network: lan()})
	_ = w.Run(time.Second)
	w.Cut("s0", "s2")
	heard := func(from grid.SiteID, want map[grid.SiteID]int) {
		t.Helper()
		before := map[grid.SiteID]int{}
		for _, s := range w.order {
			before[s] = w.Trace().Heard[s]
		}
		mustEnd(t, w, w.elapsed+time.Minute, from, mustSubmit(t, w, from, wasmJob(1, time.Second)))
		for s, n := range want {
			if got := w.Trace().Heard[s] - before[s]; got != n {
				t.Errorf("%s heard %d announcements of %s, want %d", s, got, from, n)
			}
		}
	}
	heard("s0", map[grid.SiteID]int{"s1": 1, "s2": 0})
	heard("s2", map[grid.SiteID]int{"s0": 1, "s1": 1})
	heard("s1", map[grid.SiteID]int{"s0": 1, "s2": 1})
	w.Mend("s0", "s2")
	heard("s0", map[grid.SiteID]int{"s1": 1, "s2": 1})
}

// Both halves of a mesh that falls apart work on, each by itself, and find each other again.
func TestBothHalvesWorkOn(t *testing.T) {
	w := New(Config{Seed: 1, Sites: fleet(6), Network: lan(), CheckFacts: true})
	_ = w.Run(time.Second)
	w.Part([]grid.SiteID{"s1", "s2", "s3"})
	_ = w.Run(20 * time.Second)
	for _, at := range []grid.SiteID{"s0", "s1"} {
		s := mustEnd(t, w, w.elapsed+time.Minute, at, mustSubmit(t, w, at, wasmJob(1, time.Second)))
		wantAllDone(t, s)
		if len(s.Answers) != 3 {
			t.Errorf("%s got %d answers, want those of its half", at, len(s.Answers))
		}
	}
	if n := len(w.Site("s2").Status().Peers); n != 2 {
		t.Errorf("s2 has %d peers, want 2", n)
	}
	w.healAll()
	_ = w.Run(w.elapsed + time.Second)
	s := mustEnd(t, w, w.elapsed+time.Minute, "s0", mustSubmit(t, w, "s0", wasmJob(1, time.Second)))
	if len(s.Answers) != 6 {
		t.Errorf("%d answers afterwards, want 6", len(s.Answers))
	}
}
